"""Output that says nothing, or that a disk refused: never an answer, and the latter never the worker's fault."""

from dataclasses import replace

import pytest
from tests.core.judging.cases import BOOM, CHANGED, DENIED, GOOD, NOTHING, verdict

from bullswarm_core.judging.verdict import Judgement
from bullswarm_core.pools import Lane
from bullswarm_core.streams.facts import ExitFacts


def kinds(found: Judgement) -> set[str]:
    return {note.kind for note in found.notes}


FULL = ExitFacts(
    reason="exited",
    exit_code=0,
    wall_sec=12.0,
    capture_error="/r/stream.jsonl: No space left on device",
    dropped_bytes=900,
)
CUT = replace(GOOD, terminal=False)


@pytest.mark.parametrize("lane", ["analyze", "build"])
def test_half_an_output_is_no_answer_and_no_fault_of_the_worker(lane: Lane) -> None:
    found = verdict(lane, exit=FULL, stream=CUT, deliverable=CHANGED)
    assert (found.ok, found.failure_kind) == (False, "runtime")
    assert "No space left on device (900 bytes are in no file)" in found.why
    assert found.content_usable_despite_exit
    assert kinds(found) >= {"capture-cut"}


def test_an_answer_that_is_lost_is_not_an_empty_one() -> None:
    assert verdict(exit=FULL, stream=replace(GOOD, answer="")).failure_kind == "runtime"


def test_what_was_lost_before_a_good_last_word_is_only_noted() -> None:
    found = verdict(exit=FULL)
    assert found.ok and kinds(found) == {"capture-cut"}
    assert verdict("build", exit=FULL, deliverable=CHANGED).ok
    assert verdict("build", exit=FULL, deliverable=NOTHING).failure_kind == "not-produced"


def test_a_failure_that_the_worker_reports_stays_one() -> None:
    assert verdict(exit=replace(FULL, exit_code=3), stream=CUT).failure_kind == "process"
    assert verdict(exit=FULL, stream=replace(GOOD, terminal_error=True, errors=(BOOM,))).failure_kind == "provider"


BLANK = ("\x1b[?25l\x1b[2K", "\0\0", "\u200b", "\u2800", "\u3164", "\u2060", ".")


@pytest.mark.parametrize("answer", BLANK)
def test_an_answer_that_shows_nothing_is_none(answer: str) -> None:
    found = verdict(stream=replace(GOOD, answer=answer))
    assert (found.ok, found.failure_kind) == (False, "semantic")
    assert found.why.startswith("empty output")
    assert not verdict(stream=replace(GOOD, answer=answer, terminal=False)).ok
    assert verdict(stream=replace(GOOD, answer=answer, denials=DENIED)).failure_kind == "denied"
    assert "no-output" in kinds(verdict("build", stream=replace(GOOD, answer=answer), deliverable=CHANGED))


@pytest.mark.parametrize("answer", ["42", "是", "[]"])
def test_a_short_answer_is_one(answer: str) -> None:
    assert verdict(stream=replace(GOOD, answer=answer)).ok


def test_control_sequences_neither_count_nor_hide_an_announcement() -> None:
    assert verdict(stream=replace(GOOD, answer="\x1b[2K42")).why == "answered in 2 characters"
    assert not verdict(stream=replace(GOOD, answer="\x1b[?25lI'll look at the parser now.")).ok
