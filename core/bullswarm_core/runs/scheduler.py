"""What a kernel has to do next: a pure function from the folded journal and the clock to actions.

A `run` is a program of one step with one attempt: no retry, no back-off and no second pick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.program.model import Step, files_of
from bullswarm_core.runs.events import (
    GatePassed,
    GateWaiting,
    LoopOutOfRounds,
    LoopPassed,
    LoopRound,
    Payload,
    RunParked,
)
from bullswarm_core.runs.retry import NextTry
from bullswarm_core.runs.state import AttemptState, RunState
from bullswarm_core.runs.status import OVER, NodeStatus, holds, retry_of, statuses

DEFAULT_CONCURRENCY = 4


@dataclass(frozen=True, slots=True)
class Start:
    """Pick a pool for the step and start its next attempt; ``again`` says what the failure rule asks of it."""

    step: str
    again: NextTry | None = None


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Follow an attempt that is booked but not finished; ``superseded`` by a later beginning, it is to be stopped."""

    step: str
    attempt: AttemptState
    superseded: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """Write down what follows from the state alone: a gate that opens or waits, a loop's next round."""

    payload: Payload


@dataclass(frozen=True, slots=True)
class Park:
    """Nothing runs and nothing can start until somebody acts: write ``payload`` and end the kernel."""

    payload: RunParked


@dataclass(frozen=True, slots=True)
class Finish:
    """Every step is settled: write the run's verdict."""


Action = Start | TakeOver | Record | Park | Finish


def next_actions(state: RunState, *, now: datetime) -> tuple[Action, ...]:
    """Return what is to be done for ``state``; nothing for a run that is finished or parked.

    When something is to be recorded, only that is returned: the state is different afterwards.
    """
    if state.finished is not None or state.parked is not None:
        return ()
    known = statuses(state)
    running: list[Action] = [
        TakeOver(step.id, step.running, superseded=step.running.picked.generation != step.generation)
        for step in state.steps.values()
        if step.running is not None
    ]
    if state.stop_requested is not None:
        return tuple(running) or (Finish(),)
    if records := tuple(_records(state, known)):
        return records
    if state.paused is not None:
        return tuple(running) or ((Park(RunParked("paused")),) if _unfinished(known) else (Finish(),))
    starts = tuple(_starts(state, known, now))
    if running or starts or _is_due_later(state, known):
        return (*running, *starts)
    waiting = tuple(name for name in state.plan.order if known[name] == "waiting")
    return (Park(RunParked("waiting", waiting)),) if waiting else (Finish(),)


def next_moment(state: RunState, *, now: datetime) -> datetime | None:
    """Return when the state may ask for something although nothing more happens: the next end of a back-off, or None.

    A step whose back-off is over and that still doesn't start waits for another one to end.
    """
    retries = (retry_of(state, step) for step in state.steps.values())
    moments = (again.not_before for again in retries if again is not None and again.not_before is not None)
    return min((moment for moment in moments if moment > now), default=None)


def _unfinished(known: Mapping[str, NodeStatus]) -> bool:
    return any(status in ("pending", "waiting") for status in known.values())


def _records(state: RunState, known: Mapping[str, NodeStatus]) -> Iterator[Record]:
    for gate in state.program.gates:
        if known[gate.id] == "pending" and _ready(state, known, gate.id):
            reads = None if gate.when is None else holds(state, gate.when)
            if gate.when is not None and reads is False:
                yield Record(GatePassed(gate.id, how="when-false"))
            else:
                yield Record(GateWaiting(gate.id, why=_why_waiting(gate.when is not None, reads)))
    for loop in state.program.loops:
        if known[loop.id] == "pending" and _ready(state, known, loop.id):
            yield Record(_after_round(state, loop.id))


def _why_waiting(conditional: bool, reads: bool | None) -> str | None:
    if not conditional:
        return None
    return "its condition holds" if reads else "its condition can't be read"


def _after_round(state: RunState, name: str) -> Payload:
    loop, program = state.loops[name], state.program.loop(name)
    reads = holds(state, program.until)
    if reads:
        return LoopPassed(name, loop.round)
    if loop.round < loop.max_rounds:
        return LoopRound(name, loop.round + 1)
    why = f"{program.until.shown} did not hold" if reads is False else f"{program.until.shown} can't be read"
    return LoopOutOfRounds(name, loop.round, why)


def _starts(state: RunState, known: Mapping[str, NodeStatus], now: datetime) -> Iterator[Start]:
    """Give the steps that may start now, in the order of the program, as far as concurrency and files allow."""
    busy = [state.program.step(name) for name, status in known.items() if status == "running" and name in state.steps]
    room = int(state.created.options.get("concurrency") or DEFAULT_CONCURRENCY) - len(busy)
    for step in state.program.steps:
        if room <= 0:
            return
        if known[step.id] != "pending" or not _ready(state, known, step.id):
            continue
        again = retry_of(state, state.steps[step.id])
        if again is not None and again.not_before is not None and again.not_before > now:
            continue
        if any(_collide(step, other, apart=state.created.options.get("isolation") == "worktree") for other in busy):
            continue
        yield Start(step.id, again)
        busy.append(step)
        room -= 1


def _is_due_later(state: RunState, known: Mapping[str, NodeStatus]) -> bool:
    """Whether a step only waits for the end of its back-off."""
    return any(
        known[step.id] == "pending" and _ready(state, known, step.id) and retry_of(state, step) is not None
        for step in state.steps.values()
    )


def _ready(state: RunState, known: Mapping[str, NodeStatus], name: str) -> bool:
    return all(known[other] in OVER for other in state.plan.waits[name])


def _collide(one: Step, other: Step, *, apart: bool) -> bool:
    """Whether two steps may not work at once: both write, and in files of the other or without saying where.

    Writers that work ``apart``, each in a worktree of its own, collide only in the files that are merged back.
    """
    if one.lane == "analyze" or other.lane == "analyze":
        return False
    mine, others = set(files_of(one)), set(files_of(other))
    if not apart and not (mine and others):
        return True
    return bool(mine & others)
