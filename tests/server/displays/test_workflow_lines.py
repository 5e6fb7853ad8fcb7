"""A workflow in lines for people."""

from __future__ import annotations

from pathlib import Path

from tests.core.runs.journals import Written, document

from bullswarm_core.labels import Labels
from bullswarm_core.runs.events import StepUnplaced
from bullswarm_core.runs.folder import RunFolder
from bullswarm_core.runs.workflow_result import running_result
from bullswarm_server.displays.workflow import result_lines


def why_line(why: str, tmp_path: Path) -> str:
    written = Written(document({"id": "a"}))
    written.write(StepUnplaced("a", why=why, failure_kind="unavailable"))
    result = running_result(written.state, kernel_alive=True, folder=RunFolder(tmp_path), label=str)
    (line,) = [line for line in result_lines(result, labels=Labels({})) if line.strip().startswith("why: ")]
    return line.strip().removeprefix("why: ")


def test_a_reason_that_is_cut_says_so(tmp_path: Path) -> None:
    long = "no pool free: " + "codex is at its limit; " * 30
    assert why_line("no pool", tmp_path) == "no pool"
    shown = why_line(long, tmp_path)
    assert len(shown) <= 300 and shown.endswith("…") and long.startswith(shown[:-1])
