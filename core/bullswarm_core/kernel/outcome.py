"""How a run ends: its outcome in one word, and the event that holds its verdict."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from bullswarm_core.reports.verdict import verdict_of
from bullswarm_core.reports.workflow_result import result_of
from bullswarm_core.runs.events import RunFinished
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.status import OVER, statuses
from bullswarm_core.wire import iso


def finished_event(state: RunState, *, folder: RunFolder, label: Callable[[str], str], now: datetime) -> RunFinished:
    """Return the event that ends a run of which every node is settled; ``label`` gives what people call a pool."""
    if not state.is_single:
        outcome = outcome_of(state)
        result = result_of(state, outcome, folder=folder, label=label)
        return RunFinished(outcome=outcome, verdict={**result, "finishedAt": iso(now)})
    step = next(iter(state.steps.values()))
    verdict = verdict_of(state, step, folder=folder, label=label(step.current.picked.pool) if step.current else None)
    outcome = {"succeeded": "completed", "failed": "failed"}.get(step.status, "cancelled")
    if verdict["failureKind"] in ("cancelled", "interrupted"):
        outcome = verdict["failureKind"]
    return RunFinished(outcome=outcome, verdict=verdict)


def outcome_of(state: RunState) -> str:
    """Return the outcome of a workflow: ``completed`` | ``partial`` | ``cancelled``."""
    if state.stop_requested is not None:
        return "cancelled"
    return "completed" if all(status in OVER for status in statuses(state).values()) else "partial"
