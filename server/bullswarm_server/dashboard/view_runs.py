"""Runs: the history as lines, narrowed by words and by how a run stands. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from bullswarm_core.runs.journal import RunRow
from bullswarm_server.dashboard.rows import LazyRows, Place, Row
from bullswarm_server.dashboard.source import RunsLook
from bullswarm_server.displays.terminal import Terminal
from bullswarm_server.displays.text import duration, one_line
from bullswarm_server.displays.workflow_graph import ASCII_MARKS, MARKS
from bullswarm_server.ops.runs import DAMAGED

Standing = Literal["all", "open", "done", "not done"]
STANDINGS: tuple[Standing, ...] = ("all", "open", "done", "not done")
# How a run that is not over stands, by the mark of each; one that is over is good, stopped, or failed in one of many ways.
_MARK_OF: Mapping[str, str] = {
    "completed": "succeeded", "running": "running", "stopping": "running", "waiting": "waiting", "paused": "waiting",
}  # fmt: skip
_GOOD = frozenset({"completed"})
_NARROW, _WIDE = 80, 110
_STATUS = 11


def standing_of(row: RunRow, look: RunsLook) -> str:
    """Return how a run stands in one word: its outcome, or of one that is not over what its state says."""
    if row.run_id in look.damaged:
        return DAMAGED
    if row.outcome is not None:
        return row.outcome
    glance = look.glances.get(row.run_id)
    return glance.status if glance else "running"


def chosen(look: RunsLook, *, words: str, standing: Standing) -> tuple[RunRow, ...]:
    """Return the runs that hold every one of ``words`` (in id, goal, folder, kind, caller or state) and stand like that."""
    wanted = words.casefold().split()
    if not wanted and standing == "all":
        return look.rows
    return tuple(
        row for row in look.rows if _stands(row, standing) and all(word in _said(row, look) for word in wanted)
    )


def run_list(look: RunsLook, rows: Sequence[RunRow], terminal: Terminal) -> LazyRows[RunRow]:
    """Return the list, a line per run; only what is looked at is drawn."""
    return LazyRows(
        rows,
        draw=lambda row: Row(run_line(row, look, terminal), _place(row)),
        key=_place,
    )


def run_line(row: RunRow, look: RunsLook, terminal: Terminal) -> str:
    """Return one run in one line: mark, short id, state, age, and with room kind and folder; then its goal."""
    status = standing_of(row, look)
    marks, style = (MARKS if terminal.unicode else ASCII_MARKS), terminal.style
    named = _MARK_OF.get(status, "failed")
    mark = marks[named]
    paint = style.good if status in _GOOD else style.bad if named == "failed" else style.warn
    age = duration(max(0.0, (look.now - row.created_at).total_seconds() / 60))
    columns = [f"{row.short_id:<7}", f"{status:<{_STATUS}}", f"{age:>6}"]
    if terminal.width >= _NARROW:
        columns += [f"{row.kind:<8}", terminal.padded(_folder(row), 16)]
    if terminal.width >= _WIDE:
        columns.append(f"{_took(row, look.now):>7}")
    head = " ".join(columns)
    goal = terminal.clipped(f"{head}  {one_line(row.goal)}", terminal.width - 2)
    return f"{paint(mark)} {goal}"


def count_line(look: RunsLook, shown: int, *, words: str, standing: Standing) -> str:
    """Say how many of how many runs are shown, and by what they were chosen."""
    every = len(look.rows)
    if not words.strip() and standing == "all":
        return f"{every} run{'' if every == 1 else 's'}"
    by = [*([standing] if standing != "all" else []), *([f'"{words.strip()}"'] if words.strip() else [])]
    return f"{shown} of {every} runs · {' · '.join(by)}"


def _place(row: RunRow) -> Place:
    return Place("run", row.run_id)


def _stands(row: RunRow, standing: Standing) -> bool:
    if standing == "all":
        return True
    if standing == "open":
        return row.outcome is None
    return row.outcome is not None and (row.outcome in _GOOD) is (standing == "done")


def _said(row: RunRow, look: RunsLook) -> str:
    parts = (row.short_id, row.run_id, row.goal, row.cwd, row.kind, row.caller or "", standing_of(row, look))
    return " ".join(parts).casefold()


def _folder(row: RunRow) -> str:
    return one_line(row.cwd.rstrip("/").rpartition("/")[2] or row.cwd)


def _took(row: RunRow, now: datetime) -> str:
    return duration(max(0.0, ((row.finished_at or now) - row.created_at).total_seconds() / 60))
