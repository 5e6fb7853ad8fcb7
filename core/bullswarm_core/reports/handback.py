"""What a workflow hands back to its caller: what did not get done, how far the rest is proven, and the ways on.

Pure readings of the folded journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bullswarm_core.judging.evidence import proof_label
from bullswarm_core.reports import commands
from bullswarm_core.runs.attempt_result import JudgementRecord
from bullswarm_core.runs.intents import may_be_tried_again
from bullswarm_core.runs.retry import why_no_retry
from bullswarm_core.runs.state import RunState, StepState
from bullswarm_core.runs.status import NodeStatus
from bullswarm_core.wire import iso

Document = dict[str, Any]
_MORE_ROUNDS = 1


def failure_of(step: StepState) -> tuple[str | None, str]:
    """Return the failure kind and the why of a step that failed."""
    if step.unplaced is not None:
        return step.unplaced.failure_kind, step.unplaced.why
    finished = step.current.finished if step.current else None
    if finished is None or finished.ok:
        return None, ""
    skipped = why_no_retry(step.counted)
    return finished.failure_kind, f"{finished.why} · {skipped}" if skipped else finished.why


def proof_of(state: RunState, step: StepState) -> str | None:
    """Say how far a finished step is proven; None for one that did not succeed."""
    finished = step.current.finished if step.current else None
    if step.accepted is None and (finished is None or not finished.ok or step.unplaced is not None):
        return None
    judgement = finished.judgement if finished is not None else JudgementRecord()
    return proof_label(
        accepted=step.accepted is not None,
        results=[item.document for item in judgement.evidence_results or ()],
        reviewed=_reviewed(state, step.id),
        answer_checked=judgement.answer_check is not None and judgement.answer_check.ok,
    )


def handback(state: RunState, known: Mapping[str, NodeStatus], *, over: bool) -> Document:
    """Return what is unfinished, what nobody has read, and the commands that go on from here; ``over``: the run has ended."""
    return {
        "unfinished": [_unfinished(state, step, known) for step in _missing(state, known)],
        "unreadSteering": [said.message for said in state.steering],
        "options": options_of(state, known, over=over),
    }


def options_of(state: RunState, known: Mapping[str, NodeStatus], *, over: bool) -> Document:
    """Return the commands that the person may choose from, by what they do; for the first step of each kind."""
    run = state.created.short_id
    failed = [step for step in _missing(state, known) if known[step.id] in ("failed", "cancelled")]
    found: Document = {"continue": None if over else _continue(state, known)}
    found["resume"] = commands.resume(run) if state.paused is not None and not over else None
    if failed:
        first = failed[0]
        output = first.current.finished.output_file if first.current and first.current.finished else None
        found |= {
            "rerun": commands.rerun(run, first.id, avoid=left_pools(first)),
            "accept": commands.accept(run, first.id),
            "takeOver": output,
        }
    if over and any(may_be_tried_again(state, step.id, known[step.id]) for step in failed):
        found["retry"] = commands.resume(run)
    running = next((step.id for step in state.steps.values() if step.running is not None), None)
    found["restart"] = commands.restart(run, running) if running else None
    found["add"] = commands.add(run) if failed or state.parked is not None else None
    return {key: value for key, value in found.items() if value}


def left_pools(step: StepState) -> tuple[str, ...]:
    """Name the pools that a step was tried on, in that order, where another one could take it; else none.

    A rerun that is kept from them is one elsewhere. Some decision on a try of the step held the other pool for eligible.
    """
    tried = tuple(dict.fromkeys(attempt.picked.pool for attempt in step.counted))
    return tried if set(_candidates(step)) - set(tried) else ()


def _candidates(step: StepState) -> Iterator[str]:
    decisions = [attempt.picked.decision for attempt in step.counted]
    decisions += [step.unplaced.decision] if step.unplaced is not None else []
    for decision in decisions:
        for row in decision.get("candidates") or ():
            if isinstance(row, Mapping) and isinstance(row.get("pool"), str):
                yield row["pool"]


def _continue(state: RunState, known: Mapping[str, NodeStatus]) -> str | None:
    waiting = next((name for name in state.plan.order if known[name] == "waiting"), None)
    if waiting is None:
        return None
    return commands.go_on(state.created.short_id, waiting, rounds=_MORE_ROUNDS if waiting in state.loops else None)


def _missing(state: RunState, known: Mapping[str, NodeStatus]) -> list[StepState]:
    return [state.steps[step.id] for step in state.program.steps if known[step.id] != "succeeded"]


def _unfinished(state: RunState, step: StepState, known: Mapping[str, NodeStatus]) -> Document:
    kind, why = failure_of(step)
    finished = step.current.finished if step.current else None
    back_at = (step.unplaced.back_at if step.unplaced else None) or (finished.judgement.back_at if finished else None)
    return {
        "id": step.id,
        "status": known[step.id],
        "failureKind": kind,
        "why": why,
        "backAt": iso(back_at) if back_at else None,
        "retryable": may_be_tried_again(state, step.id, known[step.id]),
        "noPool": step.unplaced is not None,
        "retries": sum(attempt.picked.retry_how is not None for attempt in step.counted),
    }


def _reviewed(state: RunState, name: str) -> bool:
    """Whether the condition of the step's loop held by the answer of another step of it."""
    loop = state.program.step(name).loop
    if loop is None or state.loops[loop].outcome != "passed":
        return False
    until = state.program.loop(loop).until
    return until.step != name and until.field is not None
