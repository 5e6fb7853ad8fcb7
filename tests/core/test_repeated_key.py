"""The key that stands twice in one JSON object is found, however many others there are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.wire import repeated_key


@given(st.lists(st.sampled_from("abcdefgh"), max_size=8))
def test_the_first_key_that_comes_again_is_named(names: list[str]) -> None:
    found = repeated_key((name, None) for name in names)
    again = [name for place, name in enumerate(names) if name in names[:place]]
    assert found == (again[0] if again else None)


def test_a_hundred_thousand_keys_are_no_wait() -> None:
    names = [str(number) for number in range(100_000)]
    assert repeated_key((name, None) for name in [*names, "99999"]) == "99999"
