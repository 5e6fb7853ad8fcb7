"""What a kernel has to do next: a pure function from the folded journal to actions.

A `run` is a program of one step with one attempt: no retry, no back-off and no second pick (seed: "A single bullswarm run
makes one attempt").
"""

from __future__ import annotations

from bullswarm_core.runs.state import AttemptState, RunState
from bullswarm_core.values import dataclass


@dataclass(frozen=True, slots=True)
class Start:
    """Pick a pool for the step and start its next attempt."""

    step: str


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Follow an attempt that is booked but not finished."""

    step: str
    attempt: AttemptState


@dataclass(frozen=True, slots=True)
class Finish:
    """Every step is settled: write the run's verdict."""


Action = Start | TakeOver | Finish


def next_actions(state: RunState) -> tuple[Action, ...]:
    """Return what is to be done for ``state``; nothing for a run that is finished.

    A stop that was asked for before a step started keeps it from starting; a running attempt is followed to its end, which
    is near, because its keeper was told to stop.
    """
    if state.finished is not None:
        return ()
    actions: list[Action] = []
    for step in state.steps.values():
        if step.status == "running" and step.current is not None:
            actions.append(TakeOver(step.id, step.current))
        elif step.status == "pending" and state.stop_requested is None:
            actions.append(Start(step.id))
    return tuple(actions) or (Finish(),)
