"""A step that was accepted stands for the last attempt that left something, whatever was tried in vain behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.core.runs.journals import Written, document

from bullswarm_core.prompts.context import earlier_results
from bullswarm_core.reports.workflow_result import result_of
from bullswarm_core.runs.attempt_result import JudgementRecord, MetaRecord
from bullswarm_core.runs.events import AttemptFinished, StepAccepted, StepReset, StepUnplaced
from bullswarm_core.runs.run_files import RunFolder

FOLDER = RunFolder(Path("/state/workflows/wf-1"))
OUTPUT = "/state/workflows/wf-1/a.1/output.txt"


def failed_with_work() -> Written:
    """Write a run whose step `a` failed, with a file changed and a reply."""
    written = Written(document({"id": "a", "lane": "build"}, {"id": "b", "dependsOn": ["a"]}))
    ordinal = written.pick("a")
    written.write(
        AttemptFinished(
            step="a", ordinal=ordinal, ok=False, why="its check failed", failure_kind="evidence",
            judgement=JudgementRecord.from_wire({"changedFiles": ["src/a.py"]}),
            meta=MetaRecord.from_wire({"outBytes": 12}), output_file=OUTPUT,
        )
    )  # fmt: skip
    return written


def told_of(written: Written) -> dict[str, Any]:
    steps = result_of(written.state, "partial", folder=FOLDER, label=lambda pool: pool)["steps"]
    found: dict[str, Any] = next(step for step in steps if step["id"] == "a")
    return found


def test_after_a_rerun_without_a_pool_the_work_that_was_accepted_is_told() -> None:
    written = failed_with_work()
    written.write(StepReset("a", why="rerun"), StepUnplaced("a", why="no eligible pool", failure_kind="unavailable"))
    assert told_of(written)["changedFiles"] == [], "nothing was taken of it so far"
    written.write(StepAccepted("a", reason="good enough"))
    found = told_of(written)
    assert (found["status"], found["pool"], found["outFile"]) == ("succeeded", "codex", OUTPUT)
    assert found["changedFiles"] == ["src/a.py"]
    assert found["taskFile"] == str(FOLDER.attempt("a", 1).task)
    text = "\n".join(earlier_results(written.state, written.state.program.step("b"), cwd="/project"))
    assert OUTPUT in text and "src/a.py" in text
    assert "failed (evidence), and accepted as it is" in text


def test_an_attempt_that_left_nothing_hides_no_earlier_one() -> None:
    written = failed_with_work()
    written.write(StepReset("a", why="rerun"))
    written.run("a", "throttle", pool="grok")
    assert told_of(written)["pool"] == "grok"
    written.write(StepAccepted("a", reason="good enough"))
    assert (told_of(written)["pool"], told_of(written)["outFile"]) == ("codex", OUTPUT)


def test_where_no_attempt_left_anything_the_newest_is_told() -> None:
    written = Written(document({"id": "a"}))
    written.run("a", "process")
    written.run("a", "throttle", pool="grok")
    written.write(StepAccepted("a", reason="never mind"))
    assert (told_of(written)["pool"], told_of(written)["changedFiles"]) == ("grok", [])
