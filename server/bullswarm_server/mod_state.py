"""``cache/mod-state.json``: what the Claude Mod draws, in one file that every change replaces.

It is written beside ``hook-state.json``, by the same processes and from the same look (``bullswarm_server.hook_state``): the
pools with every window, the runs that are not over with their steps, and the newest verdicts. Pools are named by label for
people and by id for programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast import VERSION
from bullswarm_core.fast.text import clipped, one_line
from bullswarm_core.pools import Window
from bullswarm_core.quota.windows import elapsed_pct, readings, spent
from bullswarm_core.reports.workflow_result import status_of
from bullswarm_core.routing.overview import PoolOverview
from bullswarm_core.runs.state import AttemptState, RunState, StepState
from bullswarm_core.runs.status import statuses
from bullswarm_core.store.home import Home
from bullswarm_core.wire import iso

SCHEMA_VERSION = "bullswarm.mod-state.v1"
MOST_VERDICTS = 5
# A strip has room for a handful, a pane for some screens; the file is read every second.
MOST_RUNS = 20
MOST_STEPS = 60
_LONGEST_GOAL = 160
_LONGEST_WHY = 200
# Surplus moves by some points an hour: buckets this wide change some times a day, and only then is the model told.
_AHEAD_PCT, _SPARE_PCT = 10.0, 30.0
_OVER = frozenset({"succeeded", "passed", "failed", "blocked", "cancelled"})

Document = dict[str, Any]
Label = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it was read: its state, and whether a kernel drives it (or it needs none)."""

    state: RunState
    kernel_alive: bool


def state_file(home: Home) -> Path:
    """Return where the state is kept."""
    return home.cache_dir / "mod-state.json"


def document(
    rows: Sequence[PoolOverview],
    runs: Sequence[Run],
    ended: Sequence[RunState],
    *,
    label: Label,
    delegation: bool,
    now: datetime,
) -> Document:
    """Build the state from what was read; pure. ``runs`` are those that are not over, ``ended`` the newest that are."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "version": VERSION,
        "at": iso(now),
        "delegation": delegation,
        "pools": [_pool(row) for row in rows],
        "runs": [run_document(run, label=label) for run in runs[:MOST_RUNS]],
        "verdicts": [_verdict(state) for state in ended[:MOST_VERDICTS] if state.finished is not None],
    }


def bucket(row: PoolOverview) -> str:
    """Return in one word how much a pool has to give: what the model is told anew only when it changes.

    ``closed`` | ``full`` | ``behind`` (surplus below 0) | ``level`` | ``ahead`` (from 10) | ``spare`` (from 30) |
    ``expiring`` | ``open`` (no meter).
    """
    if row.state in ("disabled", "unavailable", "billing-gated"):
        return "closed"
    if row.state in ("quarantined", "burst-gated"):
        return "full"
    if row.state == "expiring-soon":
        return "expiring"
    surplus = row.row.effective_surplus if row.row.pace is not None else None
    if surplus is None:
        return "open"
    if surplus < 0:
        return "behind"
    return "level" if surplus < _AHEAD_PCT else "ahead" if surplus < _SPARE_PCT else "spare"


def _pool(row: PoolOverview) -> Document:
    pool, current = row.pool, readings(row.pool.windows, row.now)
    windows = [_window(window, row.now) for window in current.values()]
    held = row.quarantine.why if row.quarantine else None
    whole = {window["kind"]: window for window in windows if window["scope"] is None}
    return {
        "pool": pool.id,
        "poolLabel": pool.shown_name,
        "provider": pool.provider,
        "enabled": pool.enabled,
        "state": row.state,
        "bucket": bucket(row),
        "metered": pool.metered,
        "lastResort": pool.last_resort,
        "surplus": row.row.effective_surplus if row.row.pace is not None else None,
        "inflight": row.row.inflight,
        "pacingWindow": row.pacing.kind if row.pacing else None,
        "fiveHour": whole.get("5h") or whole.get("daily"),
        "weekly": whole.get("weekly") or whole.get("monthly"),
        "backAt": iso(row.back_at) if row.back_at else None,
        "why": one_line(pool.unavailable or held or pool.meter_error or "") or None,
        "windows": windows,
    }


def _window(window: Window, now: datetime) -> Document:
    return {
        "kind": window.kind,
        "scope": window.scope,
        "usedPct": window.used_pct,
        "elapsedPct": elapsed_pct(window, now),
        "resetsAt": iso(window.resets_at) if window.resets_at else None,
        "source": window.source,
        "spent": spent(window, now, model=window.scope),
    }


def run_document(run: Run, *, label: Label) -> Document:
    """Return a run that is not over: how far it is, the step that it is at, and every step."""
    state, known = run.state, statuses(run.state)
    steps = [_step(state.steps[step.id], known[step.id], label) for step in state.program.steps]
    at = _current(steps)
    return {
        "runId": state.created.run_id,
        "shortId": state.created.short_id,
        "kind": state.created.kind,
        "goal": clipped(one_line(state.created.goal), _LONGEST_GOAL),
        "cwd": state.created.cwd,
        "state": status_of(state, kernel_alive=run.kernel_alive),
        "createdAt": iso(state.created_at),
        "done": sum(step["status"] == "succeeded" for step in steps),
        "all": len(steps),
        "running": sum(step["status"] == "running" for step in steps),
        "step": at["id"] if at else None,
        "lane": state.program.step(at["id"]).lane if at else None,
        "pool": at["pool"] if at else None,
        "poolLabel": at["poolLabel"] if at else None,
        "startedAt": at["startedAt"] if at else None,
        "expectedSec": at["expectedSec"] if at else None,
        "waitingFor": list(state.parked.waiting_for) if state.parked else _waiting(known),
        "steps": steps[:MOST_STEPS],
        "omittedSteps": max(0, len(steps) - MOST_STEPS),
    }


def _waiting(known: Mapping[str, str]) -> list[str]:
    return [name for name, status in known.items() if status == "waiting"]


def _current(steps: Sequence[Document]) -> Document | None:
    """Return the step that a row about the run names: one that runs, else the first that is not over."""
    running = [step for step in steps if step["status"] == "running"]
    to_come = [step for step in steps if step["status"] not in _OVER]
    return next(iter(running or to_come), None)


def _step(step: StepState, status: str, label: Label) -> Document:
    attempt = step.current
    finished = attempt.finished if attempt else None
    return {
        "id": step.id,
        "status": status,
        "pool": attempt.picked.pool if attempt else None,
        "poolLabel": label(attempt.picked.pool) if attempt else None,
        "attempts": len(step.attempts),
        "startedAt": _started(attempt),
        "expectedSec": _expected(attempt),
        "wallSec": finished.meta.wall_sec if finished else None,
        "failureKind": finished.failure_kind if finished else None,
        "why": clipped(one_line(finished.why), _LONGEST_WHY) if finished else None,
        "outFile": finished.output_file if finished else None,
    }


def _started(attempt: AttemptState | None) -> str | None:
    if attempt is None:
        return None
    return iso(attempt.launched_at or attempt.picked_at)


def _expected(attempt: AttemptState | None) -> int | None:
    minutes = attempt.picked.expected_minutes if attempt else None
    return None if minutes is None else round(timedelta(minutes=minutes).total_seconds())


def _verdict(state: RunState) -> Document:
    finished = state.finished
    assert finished is not None  # the caller left the others out
    said, pick = finished.verdict, finished.verdict.get("pick") or {}
    return {
        "runId": state.created.run_id,
        "shortId": state.created.short_id,
        "kind": state.created.kind,
        "goal": clipped(one_line(state.created.goal), _LONGEST_GOAL),
        "outcome": finished.outcome,
        "ok": said.get("ok", finished.outcome == "completed"),
        "why": clipped(one_line(str(said.get("why") or said.get("reason") or "")), _LONGEST_WHY),
        "failureKind": said.get("failureKind"),
        "pool": pick.get("pool"),
        "poolLabel": pick.get("poolLabel"),
        "outFile": said.get("outFile"),
        "finishedAt": iso(state.finished_at) if state.finished_at else None,
    }
