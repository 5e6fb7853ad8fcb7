"""What each event does to the state of a run: one small function per type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from bullswarm_core._dataclasses import replace
from bullswarm_core.program.model import program_from
from bullswarm_core.program.plan import plan_of
from bullswarm_core.runs.events import (
    AttemptFinished,
    AttemptLaunched,
    AttemptPicked,
    AttemptTakenOver,
    Event,
    GatePassed,
    GateWaiting,
    KernelStarted,
    LoopContinued,
    LoopOutOfRounds,
    LoopPassed,
    LoopRound,
    PauseLifted,
    PauseRequested,
    Payload,
    RunCreated,
    RunFinished,
    RunParked,
    RunReopened,
    SteeringAdded,
    StepAccepted,
    StepReset,
    StepsAdded,
    StepUnplaced,
    StopRequested,
)
from bullswarm_core.runs.state import AttemptState, GateState, LoopState, RunState, StepState

Change = Callable[[RunState, Any, datetime], RunState]


def advance(state: RunState, payload: Payload, at: datetime) -> RunState:
    """Return the state after ``payload``; one that says nothing about the state leaves it as it is."""
    change = _CHANGES.get(type(payload))
    return state if change is None else change(state, payload, at)


def _kernel_started(state: RunState, said: KernelStarted, _: datetime) -> RunState:
    return replace(state, kernel=said, parked=None)


def _picked(state: RunState, said: AttemptPicked, at: datetime) -> RunState:
    step = state.steps[said.step]
    attempts = (*step.attempts, AttemptState(picked=said, picked_at=at))
    return _with_step(state, replace(step, attempts=attempts, unplaced=None))


def _unplaced(state: RunState, said: StepUnplaced, _: datetime) -> RunState:
    return _with_step(state, replace(state.steps[said.step], unplaced=said))


def _launched(state: RunState, said: AttemptLaunched, at: datetime) -> RunState:
    return _with_attempt(state, said.step, said.ordinal, launched=said, launched_at=at)


def _taken_over(state: RunState, said: AttemptTakenOver, _: datetime) -> RunState:
    return _with_attempt(state, said.step, said.ordinal, taken_over=said.how)


def _finished(state: RunState, said: AttemptFinished, at: datetime) -> RunState:
    return _with_attempt(state, said.step, said.ordinal, finished=said, finished_at=at)


def _stop_requested(state: RunState, said: StopRequested, _: datetime) -> RunState:
    return replace(state, stop_requested=said, parked=None)


def _reset(state: RunState, said: StepReset, _: datetime) -> RunState:
    step = state.steps[said.step]
    avoid = tuple(dict.fromkeys((*step.avoid, *said.avoid)))
    anew = _anew(step, said.why)
    state = _with_step(state, replace(anew, avoid=avoid, pool=said.pool))
    return _after_change(state, [said.step])


def _accepted(state: RunState, said: StepAccepted, _: datetime) -> RunState:
    return replace(_with_step(state, replace(state.steps[said.step], accepted=said)), parked=None)


def _gate_waiting(state: RunState, said: GateWaiting, at: datetime) -> RunState:
    return _with_gate(state, replace(state.gates[said.gate], waiting=said, waiting_since=at))


def _gate_passed(state: RunState, said: GatePassed, _: datetime) -> RunState:
    gate = replace(state.gates[said.gate], passed=said, waiting=None, waiting_since=None)
    return replace(_with_gate(state, gate), parked=None)


def _loop_round(state: RunState, said: LoopRound, _: datetime) -> RunState:
    state = _with_loop(state, replace(state.loops[said.loop], round=said.round))
    anew = {name: _anew(state.steps[name], "round") for name in state.program.loop(said.loop).steps}
    steps = {name: replace(step, round_generation=step.generation) for name, step in anew.items()}
    return replace(state, steps={**state.steps, **steps})


def _loop_passed(state: RunState, said: LoopPassed, _: datetime) -> RunState:
    return _with_loop(state, replace(state.loops[said.loop], outcome="passed", out_of_rounds=False))


def _loop_out(state: RunState, said: LoopOutOfRounds, at: datetime) -> RunState:
    return _with_loop(state, replace(state.loops[said.loop], out_of_rounds=True, waiting_since=at))


def _loop_continued(state: RunState, said: LoopContinued, _: datetime) -> RunState:
    loop = replace(state.loops[said.loop], out_of_rounds=False, waiting_since=None)
    if said.rounds is None:
        loop = replace(loop, outcome="continued-unmet")
    else:
        loop = replace(loop, max_rounds=loop.round + said.rounds)
    return replace(_with_loop(state, loop), parked=None)


def _steps_added(state: RunState, said: StepsAdded, _: datetime) -> RunState:
    program = program_from(said.program)
    return replace(
        state,
        program=program,
        plan=plan_of(program),
        program_document=said.program,
        steps={step.id: state.steps.get(step.id, StepState(id=step.id)) for step in program.steps},
        gates={gate.id: state.gates.get(gate.id, GateState(id=gate.id)) for gate in program.gates},
        loops={
            loop.id: state.loops.get(loop.id, LoopState(id=loop.id, max_rounds=loop.max_rounds))
            for loop in program.loops
        },
        parked=None,
    )


def _steering(state: RunState, said: SteeringAdded, _: datetime) -> RunState:
    return replace(state, steering=(*state.steering, said))


def _pause(state: RunState, said: PauseRequested, _: datetime) -> RunState:
    return replace(state, paused=said)


def _pause_lifted(state: RunState, _: PauseLifted, __: datetime) -> RunState:
    return replace(state, paused=None, parked=None)


def _parked(state: RunState, said: RunParked, _: datetime) -> RunState:
    return replace(state, parked=said)


def _reopened(state: RunState, _: RunReopened, __: datetime) -> RunState:
    return replace(state, finished=None, finished_at=None, stop_requested=None, paused=None, parked=None)


def _run_finished(state: RunState, said: RunFinished, at: datetime) -> RunState:
    return replace(state, finished=said, finished_at=at)


_CHANGES: Mapping[type[Payload], Change] = {
    KernelStarted: _kernel_started,
    AttemptPicked: _picked,
    StepUnplaced: _unplaced,
    AttemptLaunched: _launched,
    AttemptTakenOver: _taken_over,
    AttemptFinished: _finished,
    StopRequested: _stop_requested,
    StepReset: _reset,
    StepAccepted: _accepted,
    GateWaiting: _gate_waiting,
    GatePassed: _gate_passed,
    LoopRound: _loop_round,
    LoopPassed: _loop_passed,
    LoopOutOfRounds: _loop_out,
    LoopContinued: _loop_continued,
    StepsAdded: _steps_added,
    SteeringAdded: _steering,
    PauseRequested: _pause,
    PauseLifted: _pause_lifted,
    RunParked: _parked,
    RunReopened: _reopened,
    RunFinished: _run_finished,
}


def _anew(step: StepState, why: str) -> StepState:
    return replace(step, generation=step.generation + 1, reset_why=why, unplaced=None, accepted=None, pool=None)


def _after_change(state: RunState, changed: Iterable[str]) -> RunState:
    """Take back what was decided behind a step that begins anew: waiting gates, and loops that are at an end."""
    gates = {name: GateState(id=name) for name, gate in state.gates.items() if gate.waiting}
    loops = {
        name: replace(loop, outcome=None, out_of_rounds=False, waiting_since=None)
        for name, loop in state.loops.items()
        if loop.outcome or loop.out_of_rounds
    }
    # What is behind a step takes a walk through the whole program, and mostly nothing was decided yet.
    behind = state.plan.behind(changed) if gates or loops else frozenset()
    return replace(
        state,
        gates={**state.gates, **{name: gate for name, gate in gates.items() if name in behind}},
        loops={**state.loops, **{name: loop for name, loop in loops.items() if name in behind}},
        parked=None,
    )


def _with_step(state: RunState, step: StepState) -> RunState:
    return replace(state, steps={**state.steps, step.id: step})


def _with_gate(state: RunState, gate: GateState) -> RunState:
    return replace(state, gates={**state.gates, gate.id: gate})


def _with_loop(state: RunState, loop: LoopState) -> RunState:
    return replace(state, loops={**state.loops, loop.id: loop})


def _with_attempt(state: RunState, step_id: str, ordinal: int, **changes: Any) -> RunState:
    step = state.steps[step_id]
    attempts = tuple(
        replace(attempt, **changes) if attempt.picked.ordinal == ordinal else attempt for attempt in step.attempts
    )
    return _with_step(state, replace(step, attempts=attempts))


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
        return begun(payload, at=event.at, seq=event.seq)
    if state is None:
        return None
    state = replace(state, seq=event.seq)
    if payload is None:
        return replace(state, skipped=state.skipped + 1)

    return advance(state, payload, event.at)


def begun(created: RunCreated, *, at: datetime, seq: int) -> RunState:
    """Return the state of a run that was just asked for."""
    program = program_from(created.program)
    return RunState(
        created=created,
        created_at=at,
        seq=seq,
        program=program,
        plan=plan_of(program),
        program_document=created.program,
        steps={step.id: StepState(id=step.id) for step in program.steps},
        gates={gate.id: GateState(id=gate.id) for gate in program.gates},
        loops={loop.id: LoopState(id=loop.id, max_rounds=loop.max_rounds) for loop in program.loops},
    )
