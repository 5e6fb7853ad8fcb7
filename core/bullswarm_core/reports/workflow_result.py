"""The result of a workflow: the document ``bullswarm.workflow.result.v1``, the same for every caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bullswarm_core.reports.handback import failure_of, handback, proof_of
from bullswarm_core.runs.attempt_result import JudgementRecord, Record
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import AttemptState, RunState, StepState
from bullswarm_core.runs.status import NodeStatus, statuses
from bullswarm_core.wire import iso

SCHEMA_VERSION = "bullswarm.workflow.result.v1"
OUTCOMES = ("completed", "partial", "cancelled")
_MOST_NAMED = 5
_TOKENS = ("input", "cacheRead", "cacheWrite", "output")

Document = dict[str, Any]
Label = Callable[[str], str]


def result_of(state: RunState, outcome: str, *, folder: RunFolder, label: Label) -> Document:
    """Build the result of a workflow as it stands, finished or not."""
    known = statuses(state)
    steps = [_step(state, state.steps[step.id], known, folder, label) for step in state.program.steps]
    return {
        "schemaVersion": SCHEMA_VERSION,
        "runId": state.created.run_id,
        "shortId": state.created.short_id,
        "goal": state.created.goal,
        "cwd": state.created.cwd,
        "status": outcome,
        "reason": reason_of(state, known, outcome),
        "createdAt": iso(state.created_at),
        "finishedAt": _time(state.finished_at),
        "steps": steps,
        "gates": [
            {"id": gate.id, "status": known[gate.id], "note": gate.note, "how": _how(state, gate.id)}
            for gate in state.program.gates
        ],
        "loops": [
            {
                "id": loop.id,
                "status": state.loops[loop.id].outcome or known[loop.id],
                "outcome": _loop_outcome(state, loop.id, known),
                **_rounds(state, loop.id),
            }
            for loop in state.program.loops
        ],
        "workspace": {"cwd": state.created.cwd, "changedFiles": _changed(state)},
        "totals": totals_of(state),
        "handback": handback(state, known, over=outcome in OUTCOMES),
        "unreadSteering": [said.message for said in state.steering],
    }


def running_result(state: RunState, *, kernel_alive: bool, folder: RunFolder, label: Label) -> Document:
    """Build what can be said of a workflow that is not over: how each step stands, and what it waits for."""
    status = status_of(state, kernel_alive=kernel_alive)
    document = result_of(state, status, folder=folder, label=label)
    waiting = state.parked.waiting_for if state.parked is not None else ()
    return {**document, "reason": _why_unfinished(state, status), "waitingFor": list(waiting)}


def status_of(state: RunState, *, kernel_alive: bool) -> str:
    """Return how a workflow stands in one word: its outcome, or running, stopping, paused, waiting, kernel-gone."""
    if state.finished is not None:
        return state.finished.outcome
    if state.parked is not None:
        return state.parked.reason
    if not kernel_alive:
        return "kernel-gone"
    return "stopping" if state.stop_requested else "running"


def _why_unfinished(state: RunState, status: str) -> str:
    short = state.created.short_id
    if status == "kernel-gone":
        return f"kernel gone · next: bullswarm runs resume {short}"
    if status == "paused":
        return f"paused · next: bullswarm workflow resume {short}"
    if status == "waiting" and state.parked is not None:
        return f"waiting for you at {', '.join(state.parked.waiting_for)}"
    return "in flight"


def reason_of(state: RunState, known: Mapping[str, NodeStatus], outcome: str) -> str:
    """Say in one line why the run ended as it did."""
    steps = state.program.steps
    if outcome == "cancelled":
        by = state.stop_requested.by if state.stop_requested else "somebody"
        return f"stopped by {by}"
    missing = [step.id for step in steps if known[step.id] != "succeeded"]
    if not missing:
        return " · ".join([f"{len(steps)} of {len(steps)} steps succeeded", *_unmet(state)])
    shown = [f"{name} {_what_became_of(state.steps[name], known[name])}" for name in missing[:_MOST_NAMED]]
    if len(missing) > _MOST_NAMED:
        shown.append(f"and {len(missing) - _MOST_NAMED} more")
    return f"{len(missing)} of {len(steps)} steps did not succeed: {', '.join(shown)}"


def _unmet(state: RunState) -> list[str]:
    """Name the loops that somebody went on from although their condition never held; such a loop never passed."""
    return [
        f"loop {loop.id} continued by the caller after {loop.round} of {loop.max_rounds} rounds (condition not met)"
        for loop in state.loops.values()
        if loop.outcome == "continued-unmet"
    ]


def totals_of(state: RunState) -> Document:
    """Add up the attempts of a run: how many, their minutes and, where told, their tokens."""
    ended = [attempt for step in state.steps.values() for attempt in step.attempts if attempt.finished is not None]
    seconds = [_wall_sec(attempt) for attempt in ended]
    return {
        "attempts": sum(len(step.attempts) for step in state.steps.values()),
        "minutes": _minutes(sum(seconds)),
        "byPool": _by_pool(ended),
        "tokens": _tokens(ended),
        "measuredAttempts": sum(_usage(attempt) is not None for attempt in ended),
    }


def _tokens(ended: list[AttemptState]) -> Document | None:
    """Add up what the providers reported; None where none did: unknown is never 0."""
    known = [usage for attempt in ended if (usage := _usage(attempt)) is not None]
    if not known:
        return None
    return {key: sum(usage.get(key, 0) for usage in known) for key in _TOKENS}


def _usage(attempt: AttemptState) -> Mapping[str, int] | None:
    # A provider that reported without a single count has reported: its sum is 0, not unknown.
    meta = attempt.finished.meta if attempt.finished else None
    return meta.usage if meta is not None and meta.usage_document else None


def _by_pool(ended: list[AttemptState]) -> Document:
    seconds: dict[str, list[float]] = {}
    for attempt in ended:
        seconds.setdefault(attempt.picked.pool, []).append(_wall_sec(attempt))
    return {pool: {"attempts": len(each), "minutes": _minutes(sum(each))} for pool, each in seconds.items()}


def _minutes(seconds: float) -> float:
    """Return minutes to about a tenth of a second: people are told the seconds, and a tenth of a minute is 6 of them."""
    return round(seconds / 60, 3)


def _wall_sec(attempt: AttemptState) -> float:
    return float(attempt.finished.meta.wall_sec or 0.0) if attempt.finished else 0.0


def _what_became_of(step: StepState, status: NodeStatus) -> str:
    kind, _ = failure_of(step)
    return f"failed ({kind})" if status == "failed" and kind else status


def _step(
    state: RunState, step: StepState, known: Mapping[str, NodeStatus], folder: RunFolder, label: Label
) -> Document:
    planned, attempt = state.program.step(step.id), step.standing
    finished = attempt.finished if attempt else None
    kind, why = failure_of(step)
    judgement = finished.judgement if finished else JudgementRecord()
    return {
        "id": step.id,
        "label": planned.label,
        "phase": planned.phase,
        "lane": planned.lane,
        "effort": planned.effort,
        "status": known[step.id],
        "pool": attempt.picked.pool if attempt else None,
        "poolLabel": label(attempt.picked.pool) if attempt else None,
        "model": attempt.picked.model if attempt else None,
        "reasoning": attempt.picked.reasoning if attempt else None,
        "attempts": len(step.attempts),
        "failureKind": kind,
        "why": why or (finished.why if finished else None),
        "backAt": _time(step.unplaced.back_at if step.unplaced else judgement.back_at),
        "accepted": step.accepted.reason if step.accepted else None,
        "proof": proof_of(state, step),
        "answer": judgement.answer,
        "answerCheck": _document(judgement.answer_check),
        "evidenceResults": _documents(judgement.evidence_results),
        "returnedEarly": _document(judgement.returned_early),
        "outsideBlockers": list(judgement.outside_blockers),
        "deliverable": planned.deliverable.type,
        "changedFiles": list(judgement.changed_files),
        "outFile": finished.output_file if finished else None,
        "taskFile": str(folder.attempt(step.id, attempt.picked.ordinal).task) if attempt else None,
        "startedAt": _time(attempt.launched_at) if attempt else None,
        "finishedAt": _time(attempt.finished_at) if attempt else None,
        "wallSec": finished.meta.wall_sec if finished else None,
    }


def _document(record: Record | None) -> Document | None:
    return record.to_wire() if record is not None else None


def _documents(records: Sequence[Record] | None) -> list[Document] | None:
    return None if records is None else [record.to_wire() for record in records]


def _changed(state: RunState) -> list[str]:
    """Name every file that an attempt that counts has changed, once."""
    ended = [attempt.finished for step in state.steps.values() for attempt in step.attempts if attempt.finished]
    return sorted({name for finished in ended for name in finished.judgement.changed_files})


def _how(state: RunState, gate: str) -> str | None:
    passed = state.gates[gate].passed
    return passed.how if passed else None


def _loop_outcome(state: RunState, name: str, known: Mapping[str, NodeStatus]) -> str:
    loop = state.loops[name]
    return loop.outcome or ("out-of-rounds" if loop.out_of_rounds else known[name])


def _rounds(state: RunState, name: str) -> Document:
    loop = state.loops[name]
    return {"round": loop.round, "maxRounds": loop.max_rounds}


def _time(moment: datetime | None) -> str | None:
    return iso(moment) if moment else None
