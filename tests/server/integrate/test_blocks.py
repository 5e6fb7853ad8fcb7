"""The marked block in an instruction file: put in once, renewed in place, taken out to the byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_server.integrate.blocks import BEGIN, END, cut, find, inside_of, put
from bullswarm_server.integrate.errors import TextError

INSIDE = "## Delegation\n\n- one\n- two"
lines = st.lists(
    st.sampled_from(["", "# Rules", "- be kind", "  code", "\ttab", "<!-- mine -->", "ünïcode"]), max_size=6
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return newline.join(draw(lines)) + (newline if draw(st.booleans()) else "")


@given(texts())
def test_taking_out_what_was_put_in_gives_the_original_bytes(text: str) -> None:
    done = put(text, INSIDE)
    assert inside_of(done.text) == INSIDE
    assert put(done.text, INSIDE).text == done.text
    place = find(done.text)
    assert place is not None
    assert cut(done.text, *place, done.glue) == text


@given(texts(), lines)
def test_what_the_person_wrote_below_it_stays_lines_of_its_own(text: str, theirs: list[str]) -> None:
    newline = "\r\n" if "\r\n" in text else "\n"
    done = put(text, INSIDE)
    after = done.text + newline.join(theirs)
    place = find(after)
    assert place is not None
    left = cut(after, *place, done.glue)
    assert left.split() == [*text.split(), *newline.join(theirs).split()]
    assert [line for line in left.split(newline) if line] == [line for line in [*text.split(newline), *theirs] if line]


def test_an_older_block_is_renewed_where_it_stands() -> None:
    text = f"# Mine\n\n<!-- bullswarm:begin v0 -->\nold\n{END}\n\n# More\n"
    assert put(text, INSIDE).text == f"# Mine\n\n{BEGIN}\n{INSIDE}\n{END}\n\n# More\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [(f"a\n{BEGIN}\nx\n", 2), (f"{END}\n", 1), (f"{END}\n{BEGIN}\n", 1), (f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n", 1)],
)
def test_marks_that_are_no_pair_are_refused(text: str, line: int) -> None:
    with pytest.raises(TextError) as caught:
        put(text, INSIDE)
    assert caught.value.line == line
