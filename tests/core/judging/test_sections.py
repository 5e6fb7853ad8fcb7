"""What a final reply says is not done, in all the ways in which workers write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.judging.prose import LONGEST_ITEM, MOST_ITEMS, not_done, outside_blockers, returned_early

END = "\n\n## Suggested next step\n- ship it\n"


@pytest.mark.parametrize(
    ("reply", "items"),
    [
        ("", ()),
        ("All good.", ()),
        ("## Done\n- a\n\n## Not done\n- b\n- c" + END, ("b", "c")),
        ("## Done\n- a\n\n## Not done\n- none" + END, ()),
        ("## Not done\nNone." + END, ()),
        ("## Not done\n(none)" + END, ()),
        ("## Not done\n- N/A" + END, ()),
        ("## Not done\n- nothing left" + END, ()),
        ("## Not done\n- none of the tests were run" + END, ("none of the tests were run",)),
        ("## Not done" + END, ()),
        ("# NOT DONE:\n* b" + END, ("b",)),
        ("#### Not done ####\n1. b\n2) c", ("b", "c")),
        ("**Not done**\n- b\n\n**Suggested next step**\n- ship it", ("b",)),
        ("**Not done:**\n- b", ("b",)),
        ("## **Not done**\r\n- b\r\n- c\r\n", ("b", "c")),
        ("##Not done\n- b", ("b",)),
        ("## Not done\n- b\n  goes on\n  - with a part\n- c", ("b goes on with a part", "c")),
        ("## Not done\n- [ ] b\n- [x] c", ("b",)),
        ("## Not done\nThe docs\nare missing.\n\nSo are the tests." + END, ("The docs are missing.", "So are the tests.")),
        ("## Not done\n- b\n### Details\n- c", ("b",)),
        ("## Not done\n- old\n\nLater:\n## Not done\n- new", ("new",)),
        ("```markdown\n## Done\n- a\n## Not done\n- b\n```", ("b",)),
        ("~~~\n## Not done\n- quoted\n~~~\n## Not done\n- real", ("real",)),
        ("## Not done\n- see\n```\n# a comment\nx = 1\n```\n- c", ("see ``` # a comment x = 1 ```", "c")),
        ("## Not done\n- b\x1b[31mred\x1b[0m", ("bred",)),
        ("I have not done the docs.", ()),
        ("- **Not done** is a heading", ()),
    ],
)  # fmt: skip
def test_the_items(reply: str, items: tuple[str, ...]) -> None:
    assert not_done(reply) == items


@pytest.mark.parametrize(
    ("item", "blocker"),
    [
        ("outside: the registry is down", "the registry is down"),
        ("**Outside:** the registry is down", "the registry is down"),
        ("`outside:` no key", "no key"),
        ("Outside of the scope", None),
        ("the outside: is painted", None),
        ("outside:", "outside:"),
    ],
)
def test_what_lies_outside(item: str, blocker: str | None) -> None:
    assert outside_blockers((item, "something else")) == ([] if blocker is None else [blocker])


def test_what_is_kept_is_bounded_and_all_of_it_counted() -> None:
    many = tuple(f"outside: {number} {'x' * 400}" for number in range(50))
    early = returned_early(many)
    assert early is not None and early["count"] == 50 and len(early["items"]) == MOST_ITEMS
    assert {len(item) for item in early["items"]} == {LONGEST_ITEM}
    assert len(outside_blockers(many)) == MOST_ITEMS and returned_early(()) is None


words = st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=1, max_size=12).map(
    lambda word: f"x{word}"
)


@given(items=st.lists(words, max_size=30), level=st.integers(1, 6), bullet=st.sampled_from(["-", "*", "+", "1."]))
def test_every_item_of_a_list_is_read(items: list[str], level: int, bullet: str) -> None:
    written = "\n".join(f"{bullet} {item}" for item in items)
    assert not_done(f"Words.\n{'#' * level} Not done\n{written}\n{'#' * level} Suggested next step\n- go") == tuple(
        items
    )


@given(st.text())
def test_no_reply_is_too_strange(reply: str) -> None:
    for text in (reply, f"## Not done\n{reply}"):
        found = not_done(text)
        assert all(item and "\n" not in item for item in found)
        assert len(outside_blockers(found)) <= len(found)
