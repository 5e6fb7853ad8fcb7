"""Output that a disk refused: never an answer, never the worker's fault."""

from dataclasses import replace

import pytest
from tests.core.judging.cases import BOOM, CHANGED, GOOD, NOTHING, verdict

from bullswarm_core.judging.verdict import Judgement
from bullswarm_core.pools import Lane
from bullswarm_core.workers.facts import ExitFacts


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
