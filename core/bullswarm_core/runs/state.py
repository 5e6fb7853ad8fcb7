"""The state of a run: a pure fold of its journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from bullswarm_core.runs.events import (
    AttemptFinished,
    AttemptLaunched,
    AttemptPicked,
    AttemptTakenOver,
    Event,
    KernelStarted,
    Payload,
    RunCreated,
    RunFinished,
    StepUnplaced,
    StopRequested,
)
from bullswarm_core.values import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class AttemptState:
    """One attempt, as far as it has come: picked, launched, finished."""

    picked: AttemptPicked
    picked_at: datetime
    launched: AttemptLaunched | None = None
    launched_at: datetime | None = None
    taken_over: str | None = None
    finished: AttemptFinished | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StepState:
    """One step of the program and its attempts, oldest first."""

    id: str
    attempts: tuple[AttemptState, ...] = ()
    unplaced: StepUnplaced | None = None

    @property
    def current(self) -> AttemptState | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def status(self) -> str:
        """``pending`` | ``running`` | ``succeeded`` | ``failed``."""
        if self.unplaced is not None:
            return "failed"
        attempt = self.current
        if attempt is None:
            return "pending"
        if attempt.finished is None:
            return "running"
        return "succeeded" if attempt.finished.ok else "failed"


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything that a journal says about its run, up to event ``seq``."""

    created: RunCreated
    created_at: datetime
    seq: int
    steps: Mapping[str, StepState]
    kernel: KernelStarted | None = None
    stop_requested: StopRequested | None = None
    finished: RunFinished | None = None
    finished_at: datetime | None = None
    skipped: int = field(default=0)

    @property
    def program_steps(self) -> tuple[Mapping[str, Any], ...]:
        """The steps of the program, in its order."""
        return tuple(self.created.program.get("steps", ()))


def fold(events: Iterable[Event]) -> RunState | None:
    """Build the state from a journal; None for an empty one. Unknown events are counted and skipped."""
    state: RunState | None = None
    for event in events:
        state = apply(state, event)
    return state


def apply(state: RunState | None, event: Event) -> RunState | None:
    """Return the state after one more event."""
    payload = event.payload
    if isinstance(payload, RunCreated):
        steps = {step["id"]: StepState(id=step["id"]) for step in payload.program.get("steps", ())}
        return RunState(created=payload, created_at=event.at, seq=event.seq, steps=steps)
    if state is None:
        return None
    state = replace(state, seq=event.seq)
    if payload is None:
        return replace(state, skipped=state.skipped + 1)
    return _advance(state, payload, event.at)


def _advance(state: RunState, payload: Payload, at: datetime) -> RunState:
    if isinstance(payload, KernelStarted):
        return replace(state, kernel=payload)
    if isinstance(payload, StopRequested):
        return replace(state, stop_requested=payload)
    if isinstance(payload, RunFinished):
        return replace(state, finished=payload, finished_at=at)
    if isinstance(payload, AttemptPicked):
        step = state.steps[payload.step]
        attempt = AttemptState(picked=payload, picked_at=at)
        return _with_step(state, replace(step, attempts=(*step.attempts, attempt)))
    if isinstance(payload, StepUnplaced):
        return _with_step(state, replace(state.steps[payload.step], unplaced=payload))
    if isinstance(payload, AttemptLaunched):
        return _with_attempt(state, payload.step, payload.ordinal, launched=payload, launched_at=at)
    if isinstance(payload, AttemptTakenOver):
        return _with_attempt(state, payload.step, payload.ordinal, taken_over=payload.how)
    if isinstance(payload, AttemptFinished):
        return _with_attempt(state, payload.step, payload.ordinal, finished=payload, finished_at=at)
    return state


def _with_step(state: RunState, step: StepState) -> RunState:
    return replace(state, steps={**state.steps, step.id: step})


def _with_attempt(state: RunState, step_id: str, ordinal: int, **changes: Any) -> RunState:
    step = state.steps[step_id]
    attempts = tuple(
        replace(attempt, **changes) if attempt.picked.ordinal == ordinal else attempt for attempt in step.attempts
    )
    return _with_step(state, replace(step, attempts=attempts))
