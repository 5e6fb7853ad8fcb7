"""How each step, gate and loop of a run stands: pure readings of the folded journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bullswarm_core.program.model import Condition
from bullswarm_core.runs.retry import DEFAULT_RETRIES, NextTry, next_try
from bullswarm_core.runs.state import RunState, StepState

NodeStatus = Literal["pending", "running", "waiting", "succeeded", "passed", "failed", "blocked", "cancelled"]

OVER = frozenset({"succeeded", "passed"})
STUCK = frozenset({"failed", "blocked", "cancelled"})


def statuses(state: RunState) -> dict[str, NodeStatus]:
    """Return the status of every node.

    ``pending`` still has work to come, a due retry too; ``blocked`` waits for something that failed.
    """
    found: dict[str, NodeStatus] = {}
    for name in state.plan.order:
        before = [found[other] for other in state.plan.waits[name]]
        if name in state.steps:
            found[name] = _step(state, state.steps[name], before)
        elif name in state.gates:
            found[name] = _gate(state, name, before)
        else:
            found[name] = _loop(state, name, before)
    return found


def retry_of(state: RunState, step: StepState) -> NextTry | None:
    """Return the automatic try that a step is owed, or None."""
    attempts = step.counted
    if not attempts or step.accepted or step.unplaced or state.is_single or attempts[-1].running:
        return None
    retries = state.created.options.get("retryAttempts", DEFAULT_RETRIES)
    return next_try(state.program.step(step.id), attempts, retries=retries)


def evidence_passed(step: StepState) -> bool | None:
    """Say whether the newest attempt's checks all passed; None when none ran."""
    finished = step.current.finished if step.current else None
    results = finished.judgement.evidence_results if finished else None
    if not results:
        return None
    return all(item.status == "passed" for item in results)


def holds(state: RunState, condition: Condition) -> bool | None:
    """Read a condition on a step; None when there is nothing to read it from."""
    step = state.steps[condition.step]
    if condition.field is None:
        return evidence_passed(step)
    value = answer_of(step)
    read = value.get(condition.field) if isinstance(value, Mapping) else None
    return read is condition.equals if isinstance(read, bool) else None


def answer_of(step: StepState) -> object:
    """Return the typed answer of a step that succeeded, or None."""
    finished = step.current.finished if step.current else None
    return finished.judgement.answer if finished is not None and finished.ok else None


def _step(state: RunState, step: StepState, before: list[NodeStatus]) -> NodeStatus:
    if step.accepted is not None:
        return "succeeded"
    if step.running is not None:
        return "running"
    if step.current is not None and step.status == "succeeded":
        return "succeeded"
    if step.status == "failed" and retry_of(state, step) is None:
        ended = step.current.finished if step.current else None
        stopped = step.unplaced is None and ended is not None and ended.failure_kind == "cancelled"
        return "cancelled" if stopped else "failed"
    if state.stop_requested is not None:
        return "cancelled"
    return "blocked" if any(status in STUCK for status in before) else "pending"


def _gate(state: RunState, name: str, before: list[NodeStatus]) -> NodeStatus:
    gate = state.gates[name]
    if gate.passed is not None:
        return "passed"
    if any(status in STUCK for status in before):
        return "blocked"
    return "waiting" if gate.waiting is not None else "pending"


def _loop(state: RunState, name: str, before: list[NodeStatus]) -> NodeStatus:
    loop = state.loops[name]
    if loop.outcome is not None:
        return "passed"
    if any(status in STUCK for status in before):
        return "blocked"
    return "waiting" if loop.out_of_rounds else "pending"
