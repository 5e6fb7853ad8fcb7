"""The summary of a workflow's result: always one line of at most 4,096 bytes, with the ways on in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.runs.journals import Written, document

from bullswarm_core.reports.summary import MOST_BYTES, SCHEMA_VERSION, summary_line, summary_of
from bullswarm_core.reports.workflow_result import result_of
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.status import statuses

FOLDER = RunFolder(Path("/state/workflows/wf-1"))


def result(written: Written, outcome: str = "partial") -> dict[str, Any]:
    return result_of(written.state, outcome, folder=FOLDER, label=lambda pool: f"the {pool}")


def summary(found: dict[str, Any]) -> dict[str, Any]:
    line = summary_line(summary_of(found, folder=FOLDER))
    assert len(line.encode("utf-8", "surrogatepass")) < MOST_BYTES and "\n" not in line
    value: dict[str, Any] = json.loads(line)
    return value


def test_a_small_run_is_told_whole() -> None:
    written = Written(document({"id": "a"}, {"id": "b"}, {"id": "c", "dependsOn": ["b"]}))
    written.run("a", outsideBlockers=["the server is down"], answer={"x": 1}, answerCheck={"ok": True})
    written.run("b", "process")
    written.run("b", "process", retry_how="another-pool")
    found = summary(result(written))
    assert found["schemaVersion"] == SCHEMA_VERSION and found["counts"] == {"succeeded": 1, "failed": 1, "blocked": 1}
    assert [step["id"] for step in found["steps"]] == ["a", "b", "c"]
    assert found["steps"][0]["answer"] == {"x": 1} and found["steps"][0]["proof"] == "answer checked"
    assert found["steps"][0]["poolLabel"] == "the codex" and found["concerns"] == [
        "a: blocked outside this step: the server is down"
    ]
    assert found["handback"]["options"]["rerun"] == "bullswarm workflow step rerun abcdef b"
    assert found["handback"]["options"]["retry"] == "bullswarm workflow resume abcdef"


def test_a_check_in_vain_is_told_although_the_step_is_over() -> None:
    written = Written(document({"id": "a"}, {"id": "b"}))
    checks = [{"type": "command", "cmd": "true", "status": "passed"}]
    written.run("a", evidenceResults=[*checks, {"type": "command", "cmd": "pytest -q", "status": "failed"}])
    written.run("b", evidenceResults=checks)
    assert summary(result(written, "completed"))["concerns"] == ["a: checked, not passed: pytest -q"]


def test_what_goes_first_is_the_concerns_then_details_then_the_steps_that_went_well() -> None:
    steps = [{"id": f"step-{number}"} for number in range(12)]
    small, large = Written(document(*steps)), Written(document(*steps, *({"id": f"more-{n}"} for n in range(60))))
    for written in (small, large):
        for step in written.state.program.steps:
            written.run(step.id, None, outsideBlockers=["x" * 150], answer={"text": "y" * 100})
    found = summary(result(small, "completed"))
    assert len(found.get("concerns", ())) < 12 and len(found["steps"]) == 12
    found = summary(result(large, "completed"))
    assert "concerns" not in found and "steps" not in found
    assert found["omittedSteps"] == 72 and found["counts"] == {"succeeded": 72}


def test_what_failed_outlasts_what_went_well() -> None:
    written = Written(document(*({"id": f"step-{number}"} for number in range(60))), retryAttempts=0)
    for place, step in enumerate(written.state.program.steps):
        written.run(step.id, "process" if place % 10 == 0 else None)
    found = summary(result(written))
    assert [step["status"] for step in found["steps"]] == ["failed"] * 6 and found["omittedSteps"] == 54


WORDS = st.text(max_size=600)


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 60),
    kinds=st.lists(st.sampled_from([None, "process", "quota", "semantic"]), min_size=1, max_size=8),
    texts=st.lists(WORDS, min_size=1, max_size=5),
    notes=st.lists(st.text("äö€x", min_size=1, max_size=900), max_size=5),
)
def test_it_fits_whatever_was_written(count: int, kinds: list[str | None], texts: list[str], notes: list[str]) -> None:
    steps = [{"id": f"s{number}" * 12, "label": notes[0] if notes else "l"} for number in range(count)]
    gates = [{"id": f"g{place}", "dependsOn": [steps[0]["id"]], "note": note} for place, note in enumerate(notes)]
    written = Written(document(*steps, gates=gates), retryAttempts=0)
    for place, step in enumerate(written.state.program.steps):
        text = texts[place % len(texts)]
        written.run(step.id, kinds[place % len(kinds)], outsideBlockers=texts, answer={"t": text}, changedFiles=texts)
    found = result(written)
    found["goal"] = found["reason"] = "".join(texts) * 9
    told = summary(found)
    assert told["shortId"] == "abcdef" and sum(told["counts"].values()) == count
    assert set(told["counts"]) == {
        status for name, status in statuses(written.state).items() if name in written.state.steps
    }
