"""What a typed answer means for the verdict, and what it can't make good."""

from typing import Any

import pytest
from tests.core.judging.cases import ANSWER, BOOM, CHANGED, DENIED, GOOD, NOTHING, QUOTA, verdict

from bullswarm_core._dataclasses import replace
from bullswarm_core.answers.answer import AnswerCheck, AnswerProblem
from bullswarm_core.pools import Lane
from bullswarm_core.streams.facts import ExitFacts, ProviderError, StreamFacts

VALID = AnswerCheck(True, "final-reply", "/r/answer.json", 12)
BY_FILE = AnswerCheck(True, "answer-file", "/r/answer.json", 12)
WRONG = AnswerCheck(
    False, "final-reply", None, 12, (AnswerProblem("#/ok", "'x' is not of type 'boolean'"), AnswerProblem("#", "y"))
)
NONE = AnswerCheck(False, problems=(AnswerProblem("#", "no answer was given"),))
UNCHECKED = AnswerCheck(False, "final-reply", None, 12, (AnswerProblem("#", "the check took too long"),), checked=False)
SILENT = StreamFacts(terminal=True)
GAVE_UP = ProviderError("Failed to provide valid structured output after 5 attempts", code="retries")
BROKEN = replace(SILENT, terminal_error=True, errors=(BOOM,))


def said(text: str) -> StreamFacts:
    return replace(GOOD, answer=text)


@pytest.mark.parametrize(
    ("lane", "parts", "kind", "why"),
    [
        ("analyze", {"answer": VALID}, None, "answer checked (final reply)"),
        ("analyze", {"answer": BY_FILE, "stream": SILENT}, None, "answer checked (answer file)"),
        ("analyze", {"answer": VALID, "stream": said("I'll look at it.")}, None, "answer checked (final reply)"),
        ("build", {"answer": BY_FILE, "deliverable": CHANGED}, None, "1 file changed, answer checked (answer file)"),
        (
            "analyze",
            {"answer": WRONG},
            "schema",
            "the answer does not match its schema: #/ok: 'x' is not of type 'boolean' (and 1 more) · final reply",
        ),
        ("analyze", {"answer": NONE}, "schema", "no answer: the task asks for one that matches a schema, and none was given"),
        ("analyze", {"answer": NONE, "stream": SILENT, "free": True}, "schema", "no answer: the task asks for one"),
        ("build", {"answer": NONE, "deliverable": CHANGED}, "schema", "no answer: the task asks for one"),
        ("build", {"answer": VALID, "deliverable": NOTHING}, "not-produced", "not produced"),
        ("build", {"answer": WRONG, "deliverable": NOTHING}, "not-produced", "not produced"),
        ("analyze", {"answer": UNCHECKED}, "runtime", "typed answer: the check took too long"),
        ("analyze", {"answer": WRONG, "stream": said("Which parser do you mean?")}, "needs-input", "needs input"),
        ("analyze", {"answer": VALID, "stream": said("Is this what you mean?")}, None, "answer checked"),
        ("analyze", {"answer": VALID, "stream": replace(GOOD, stop_reason="max_tokens")}, "provider", "not finished"),
        ("analyze", {"answer": NONE, "stream": replace(SILENT, denials=DENIED)}, "denied", "denied"),
        (
            "build",
            {"answer": NONE, "deliverable": CHANGED, "stream": replace(SILENT, denials=DENIED)},
            "denied",
            "and no answer was given",
        ),
        ("analyze", {"answer": VALID, "stream": BROKEN}, "provider", "provider error"),
        ("analyze", {"answer": WRONG, "code": 1}, "process", "exit 1"),
        ("analyze", {"answer": NONE, "notice": QUOTA, "stream": SILENT, "code": 1}, "quota", "usage limit"),
        (
            "analyze",
            {"answer": NONE, "answer_given_up": True, "stream": replace(BROKEN, errors=(GAVE_UP,)), "code": 1},
            "schema",
            "the answer does not match its schema: Failed to provide valid structured output after 5 attempts · no answer",
        ),
    ],
)  # fmt: skip
def test_the_answer_decides_with_the_other_facts(lane: Lane, parts: dict[str, Any], kind: str | None, why: str) -> None:
    found = verdict(lane, **parts)
    assert found.failure_kind == kind and found.ok == (kind is None)
    assert found.why.startswith(why) or why in found.why


def test_a_valid_answer_without_a_last_event_is_one() -> None:
    stream = StreamFacts(answer="", terminal=False, event_stream=True, answered_after_tools=False)
    assert verdict(stream=stream, answer=BY_FILE).ok
    assert not verdict(stream=stream, answer=NONE).ok


def test_a_valid_answer_is_no_doubtful_one() -> None:
    assert [note.kind for note in verdict(stream=said('{"error": "none"}'), answer=VALID).notes] == []
    assert [note.kind for note in verdict(stream=said('{"error": "none"}')).notes] == ["doubtful-answer"]


def test_a_valid_answer_of_a_worker_that_failed_is_usable() -> None:
    assert verdict(code=1, answer=VALID).content_usable_despite_exit
    assert not verdict(code=1, answer=WRONG, stream=said(ANSWER)).content_usable_despite_exit
    assert verdict(exit=ExitFacts("stopped"), answer=VALID).failure_kind == "cancelled"


def test_a_recovered_provider_error_is_a_note_beside_a_valid_answer() -> None:
    found = verdict(stream=replace(SILENT, errors=(BOOM,)), answer=BY_FILE)
    assert found.ok and "recovered-stream-error" in [note.kind for note in found.notes]


def test_a_why_stays_one_short_line() -> None:
    long = AnswerCheck(False, "final-reply", None, 9, (AnswerProblem("#/" + "k" * 5000, "x\n" * 5000),))
    why = verdict(answer=long).why
    assert "\n" not in why and len(why) < 400
