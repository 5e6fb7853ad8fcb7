"""A workflow in lines for people."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tests.core.runs.journals import Written, document

from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.workflow_result import running_result
from bullswarm_core.runs.events import StepUnplaced
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_server.displays.workflow import result_lines


def lines_of(written: Written, tmp_path: Path) -> list[str]:
    result = running_result(written.state, kernel_alive=True, folder=RunFolder(tmp_path), label=str)
    return [line.strip() for line in result_lines(result, labels=Labels({}))]


def why_line(why: str, tmp_path: Path) -> str:
    written = Written(document({"id": "a"}))
    written.write(StepUnplaced("a", why=why, failure_kind="unavailable"))
    (line,) = [line for line in lines_of(written, tmp_path) if line.startswith("why: ")]
    return line.removeprefix("why: ")


def test_a_reason_that_is_cut_says_so(tmp_path: Path) -> None:
    long = "no pool free: " + "codex is at its limit; " * 30
    assert why_line("no pool", tmp_path) == "no pool"
    shown = why_line(long, tmp_path)
    assert len(shown) <= 300 and shown.endswith("…") and long.startswith(shown[:-1])


def test_a_step_that_a_used_up_quota_stopped_says_when_it_is_back(tmp_path: Path) -> None:
    written = Written(document({"id": "unplaced"}, {"id": "stopped"}, {"id": "broken"}))
    back_at = datetime(2026, 12, 1, 8, tzinfo=UTC)
    written.write(StepUnplaced("unplaced", why="no pool free", failure_kind="quota", back_at=back_at))
    written.run("stopped", "quota", backAt="2026-12-02T09:00:00Z")
    written.run("broken", "process")
    told = [line for line in lines_of(written, tmp_path) if line.startswith("back at: ")]
    assert told == ["back at: 2026-12-01T08:00:00Z", "back at: 2026-12-02T09:00:00Z"]
