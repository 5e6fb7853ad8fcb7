"""How strictly an answer's text is read."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.alarms import nobody_waits

from bullswarm_core.answers.strict_json import DEEPEST, AnswerTextError, decoded, depth, read_value, unfenced
from bullswarm_core.wire import compact

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("\ufeff", "it is empty"),
        ("yes", "it is not JSON: Expecting value (line 1, column 1)"),
        ('{"a": 1,}', "it is not JSON"),
        ('{"a": 1} {"a": 1}', "it is not JSON: Extra data"),
        ("NaN", "NaN is no JSON number"),
        ('{"a": [-Infinity]}', "-Infinity is no JSON number"),
        ("1e999", 'the number "1e999" is too large'),
        ("-1e999", 'the number "-1e999" is too large'),
        (str(2**64), f'the number "{2**64}" has more than 64 bits'),
        (str(-(2**63) - 1), "has more than 64 bits"),
        ("9" * 100_000, 'the number "9999'),
        ('{"a": 1, "b": 2, "a": 1}', 'the key "a" stands twice in one object'),
        ('[{"x": {"k": 1, "k": 2}}]', 'the key "k" stands twice in one object'),
        ('{"a": 1, "\\u0061": 2}', 'the key "a" stands twice in one object'),
        ('"\\ud800"', "it holds half a surrogate pair"),
        ('{"\\udfff": 1}', "it holds half a surrogate pair"),
        ('"\ud800"', "it holds half a surrogate pair"),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "it is nested deeper than 64 levels"),
        ('{"a":' * 100_000, "it is nested deeper than 64 levels"),
        ("'a'", "it is not JSON"),
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_what_is_no_answer_is_said(text: str, words: str) -> None:
    with pytest.raises(AnswerTextError) as raised:
        read_value(text)
    assert words in str(raised.value) and len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\ufeff[1]", [1]),
        ('"\\ud83d\\ude00"', "😀"),
        (str(2**64 - 1), 2**64 - 1),
        ("1e308", 1e308),
        ("0." + "1" * 1000, float("0." + "1" * 1000)),
        ('"[[[[{{{\\"[[[["', '[[[[{{{"[[[['),
        ("[" * DEEPEST + "]" * DEEPEST, None),
        ('"a\u2028b"', "a\u2028b"),
    ],
)
def test_what_is_one_is_read(text: str, value: Any) -> None:
    assert value is None or read_value(text) == value
    read_value(text)


@pytest.mark.parametrize("data", [b"\xff\xfe{\x00}\x00", b'"\x80"', b'"\xed\xa0\x80"'])
def test_bytes_that_are_no_utf8_are_told(data: bytes) -> None:
    with pytest.raises(AnswerTextError, match="it is not UTF-8"):
        decoded(data)


@given(value=values)
def test_what_was_written_is_read_again(value: Any) -> None:
    again = read_value(compact(value))
    assert again == value and type(again) is type(value)
    assert read_value(json.dumps(value, indent=2)) == value


@given(text=st.text() | st.from_regex(r'[\[\]{}",:\\0-9eE.+-]{0,30}'))
@example(text='{"a":{"a":')
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        value = read_value(text)
    except AnswerTextError as error:
        assert str(error)
    else:
        assert json.loads(text.removeprefix("\ufeff")) == value


@given(value=values)
def test_brackets_in_texts_are_no_levels(value: Any) -> None:
    def levels(item: Any) -> int:
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else None
        return 0 if inner is None else 1 + max(map(levels, inner), default=0)

    assert depth(compact(value)) == levels(value)


@given(value=values, word=st.sampled_from(["", "json", "JSON"]), mark=st.sampled_from(["```", "~~~", "`````"]))
def test_one_fence_is_taken_off(value: Any, word: str, mark: str) -> None:
    text = json.dumps(value, indent=1)
    for before, after in (("", ""), ("Here it is:\n\n", "\nThat is all."), ("\ufeff\n", "\n")):
        assert read_value(unfenced(f"{before}{mark}{word}\n{text}\n{mark}{after}")) == value
    assert unfenced(text) == text


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("```json\n1\n```\nor\n```json\n2\n```", "it has 2 code fences, and only one can be the answer"),
        ("```json\n1\n", "its code fence is never closed"),
        ("````\n```\n1\n```\n", "its code fence is never closed"),
    ],
)
def test_several_fences_and_half_a_fence_are_no_answer(reply: str, words: str) -> None:
    with pytest.raises(AnswerTextError, match=words):
        unfenced(reply)


def test_a_fence_within_a_longer_fence_belongs_to_its_content() -> None:
    assert unfenced("````\n```\n1\n```\n````") == "```\n1\n```"
    assert unfenced("  use `[1]` or ``` here") == "  use `[1]` or ``` here"


def test_a_key_that_stands_twice_is_found_among_very_many_at_once() -> None:
    """The reader runs in the kernel, which drives all steps: an answer of 256 KiB took it most of a minute."""
    keys = ",".join(f'"{number:x}":0' for number in range(30_000))
    with (
        nobody_waits("the key that stands twice", seconds=10.0),
        pytest.raises(AnswerTextError, match='"752f" stands twice'),
    ):
        read_value(f'{{{keys},"752f":0}}')
