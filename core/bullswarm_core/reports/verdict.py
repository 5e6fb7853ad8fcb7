"""The one verdict of a run: the document `bullswarm.verdict.v1`, the same for every caller."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bullswarm_core.runs.attempt_result import LaunchRecord
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import AttemptState, RunState, StepState
from bullswarm_core.wire import iso

SCHEMA_VERSION = "bullswarm.verdict.v1"
# What a caller is shown of an answer; the whole of it is in the output file.
EXCERPT_BYTES = 2000

Document = dict[str, Any]


def verdict_of(state: RunState, step: StepState, *, folder: RunFolder, label: str | None = None) -> Document:
    """Build the verdict of a settled step: from its last attempt, or from why no pool could take it."""
    if step.unplaced is not None or step.current is None:
        return _without_attempt(state, step)
    return _of_attempt(state, step, step.current, folder=folder, label=label)


def running_document(state: RunState, *, kernel_alive: bool, label: str | None = None) -> Document:
    """Build what can be said of a run that has no verdict yet."""
    step = next(iter(state.steps.values()))
    attempt = step.current
    pick = _pick(attempt, label) if attempt else None
    state_word = "stopping" if state.stop_requested else "running"
    return {
        **_head(state),
        "state": state_word if kernel_alive else "kernel-gone",
        "ok": None,
        "why": "in flight" if kernel_alive else f"kernel gone · next: bullswarm runs resume {state.created.short_id}",
        "pick": pick,
        "routeWhy": attempt.picked.reason if attempt else None,
        "startedAt": iso(attempt.launched_at) if attempt and attempt.launched_at else None,
        "expectedMinutes": attempt.picked.expected_minutes if attempt else None,
    }


def _head(state: RunState) -> Document:
    created = state.created
    return {
        "schemaVersion": SCHEMA_VERSION,
        "runId": created.run_id,
        "shortId": created.short_id,
        "cwd": created.cwd,
        "createdAt": iso(state.created_at),
    }


def _without_attempt(state: RunState, step: StepState) -> Document:
    unplaced = step.unplaced
    cancelled = unplaced is None
    return {
        **_head(state),
        "state": "finished",
        "ok": False,
        "why": "stopped before a worker was started" if unplaced is None else unplaced.why,
        "failureKind": "cancelled" if cancelled else unplaced and unplaced.failure_kind,
        "backAt": _time(unplaced.back_at) if unplaced else None,
        "backAtSource": unplaced.back_at_source if unplaced else None,
        "pick": None,
        "routeWhy": unplaced.decision.get("reason") if unplaced else None,
        "candidates": list(unplaced.decision.get("candidates", ())) if unplaced else [],
        "excluded": list(unplaced.decision.get("excluded", ())) if unplaced else [],
        "attempts": 0,
        "outFile": None,
        "notes": [],
        "meta": None,
    }


def _of_attempt(
    state: RunState, step: StepState, attempt: AttemptState, *, folder: RunFolder, label: str | None
) -> Document:
    finished, picked = attempt.finished, attempt.picked
    assert finished is not None, "a verdict is built from a finished attempt"
    files = folder.attempt(step.id, picked.ordinal)
    judgement, meta = finished.judgement, finished.meta
    launch = attempt.launched.launch if attempt.launched else LaunchRecord()
    output = finished.output_file
    return {
        **_head(state),
        "state": "finished",
        "ok": finished.ok,
        "why": finished.why,
        "failureKind": finished.failure_kind,
        "backAt": _time(judgement.back_at),
        "backAtSource": judgement.back_at_source,
        "pick": _pick(attempt, label),
        "routeWhy": picked.reason,
        "candidates": list(picked.decision.get("candidates", ())),
        "excluded": list(picked.decision.get("excluded", ())),
        "forecast": picked.decision.get("forecast"),
        "reasoning": launch.reasoning,
        "attempts": len(step.attempts),
        "takenOver": attempt.taken_over,
        "taskFile": str(files.task),
        "outFile": output,
        "outBytes": meta.out_bytes,
        "answer": None,
        "answerCheck": None,
        "confinement": meta.confinement,
        "billing": launch.billing,
        **judgement.details(),
        "startedAt": _time(attempt.launched_at),
        "finishedAt": _time(attempt.finished_at),
        "meta": meta.to_wire(),
    }


def _pick(attempt: AttemptState, label: str | None) -> Document:
    launch = attempt.launched.launch if attempt.launched else LaunchRecord()
    return {
        "pool": attempt.picked.pool,
        "poolLabel": label or attempt.picked.pool,
        "provider": attempt.picked.provider,
        "lane": attempt.picked.lane,
        "effort": attempt.picked.effort,
        "model": attempt.picked.model,
        "command": launch.command,
    }


def _time(moment: datetime | None) -> str | None:
    return iso(moment) if moment else None
