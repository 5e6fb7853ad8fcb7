"""The gate for saved outputs: empty, failing, error-shaped and merely announced ones don't pass."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.judging.prose import content_gate, last_sentence, only_announces, says_anything

WORK = (
    "The parser reads tokens one at a time and keeps a stack of open brackets. A closing bracket pops it, and an"
    " unmatched one raises SyntaxError with the line."
)
FAILURE = "failure pattern at output head or tail"


BLANK = (
    "", "  \n\t ", "\u00a0", "\x1b[?25l\x1b[2K", "\x1b]0;a title\x07", "\x9b2K", "\0\0\0", "\u200b", "\u2800", "\u3164",
    "\u2060", "\uffa0", "\u115f\u1160", "\ufeff", ".", "---", "\u202e\u200d", "\u0301",
)  # fmt: skip


@pytest.mark.parametrize("text", BLANK)
def test_nothing_is_no_answer(text: str) -> None:
    assert content_gate(text).reason == "empty output"
    assert not says_anything(text)


@pytest.mark.parametrize(
    "text", ["42", "是", "да", "٣", "é.", "e\u0301", "\x1b[1mYes\x1b[0m", "한", "[]", " [ ]\n", "{}"]
)
def test_a_short_answer_says_something(text: str) -> None:
    assert says_anything(text)


@given(st.text(alphabet=st.characters(categories=("C", "Z", "P", "M"), exclude_characters="[]{}")))
def test_no_mix_of_controls_blanks_marks_and_punctuation_says_anything(text: str) -> None:
    assert not says_anything(text)


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit reached, please try later", "Exceeded your current quota for this month", "error: it broke",
        "FATAL something", "Exception in thread main", "Unauthorized", "Authentication failed for user",
        "invalid API key given", "API key expired yesterday", "Permission denied (publickey)",
        "bash: foo: command not found", "cat: x: no such file or directory", "connect ECONNREFUSED 1.2.3.4", "ETIMEDOUT",
        "socket hang up", "429 Too Many Requests", "503 Service Unavailable", "502 Bad Gateway",
    ],
)  # fmt: skip
def test_failure_text(text: str) -> None:
    assert content_gate(text).reason == FAILURE
    assert content_gate(WORK * 10 + "\n" + text).reason == FAILURE
    assert content_gate(text + ".\n" + WORK * 10).reason == FAILURE


def test_failure_text_in_the_middle_of_a_long_output_is_talk() -> None:
    assert content_gate(WORK * 5 + " it says command not found " + WORK * 5).ok
    assert content_gate(WORK * 10 + " and the word error stands in the middle of the last line").ok


def test_one_failure_phrase_is_matched_in_lower_case_only() -> None:
    assert content_gate("The message 'No Such File Or Directory' is shown to people who mistype the path of it.").ok


@pytest.mark.parametrize(
    "value", [{"error": "x"}, {"message": "m", "code": 1, "status": 500}, {"errors": [], "detail": ""}]
)
def test_an_error_object_is_no_answer(value: dict[str, object]) -> None:
    assert content_gate(json.dumps(value)).reason == "structured: error object, not an answer"
    assert content_gate(json.dumps({**value, "answer": 42})).ok


@pytest.mark.parametrize(
    "text",
    [
        "I'll look at the parser now.", "I’ll start.", "Let me read the files first. Then I will write the report.",
        "Okay, I am going to analyze the code.", "I plan to do it.", "Sure. I intend to begin.", "Done.", "",
    ],
)  # fmt: skip
def test_an_announcement_is_no_substance(text: str) -> None:
    assert not content_gate(text).ok


@pytest.mark.parametrize(
    "text",
    [
        WORK,
        "Node.js v20.1 is used, see package.json for the engines field; npm 10 comes with it.",
        "The answer is in parser.py.\nIt is called from main.py.",
        '{"answer": 42}',
        "Here:\n[1, 2, 3]",
        "I'll say it shortly: I will not.\n" + WORK,
    ],
)
def test_work_passes(text: str) -> None:
    verdict = content_gate(text)
    assert verdict.ok and verdict.reason == "content passed all gates" and not verdict.intent_only


def test_only_announcements_are_told_from_short_answers() -> None:
    assert only_announces("I'll look at the parser now. Let me begin.")
    for answer in ("42", "Yes.", "No, it is not thread-safe.", "I found it in main.py.", "", "I'll be brief.\nYes."):
        assert not only_announces(answer)


def test_the_last_sentence() -> None:
    assert last_sentence("One. Two is here! Three?\n\n") == "Three?"
    assert last_sentence("Use Node.js v1.2") == "Use Node.js v1.2"
    assert last_sentence(" \n") == ""


@given(st.text(max_size=1500))
def test_any_text_gets_one_verdict(text: str) -> None:
    verdict = content_gate(text)
    assert verdict.ok == (verdict.reason == "content passed all gates")
    assert (verdict.reason == "empty output") == (not says_anything(text))
    if only_announces(text):
        assert not verdict.ok or text.strip().endswith("]")


@given(st.text(min_size=1, max_size=300), st.integers(1, 5))
def test_space_around_an_output_changes_nothing(text: str, spaces: int) -> None:
    assert content_gate(text.strip()) == content_gate(" " * spaces + text.strip() + "\n" * spaces)
