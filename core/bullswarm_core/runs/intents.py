"""What people may ask of a workflow while it runs, waits or is over: each wish is checked against the fold and becomes events.

The functions are pure: a state in, the events to append out; UsageError when the wish makes no sense there, and then nothing
happens. ``carry_out`` folds and appends in one transaction, so that no other wish and no kernel comes in between.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bullswarm_core.errors import NothingToRetryError, UsageError
from bullswarm_core.fast.text import is_text
from bullswarm_core.program.validate import MOST_ROUNDS, issues_of
from bullswarm_core.runs.events import (
    GatePassed,
    LoopContinued,
    PauseLifted,
    PauseRequested,
    Payload,
    RunReopened,
    SteeringAdded,
    StepAccepted,
    StepReset,
    StepsAdded,
)
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.retry import may_have_acted
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.status import statuses
from bullswarm_core.store.database import transaction

MOST_REASON = 500
MOST_MESSAGE = 4000
# Another try may end otherwise; the other kinds need a change of the work or of the check
# (docs/design/runs.md, "Reruns, additions, acceptance").
RETRYABLE = frozenset(
    {
        "provider", "quota", "throttle", "auth", "process", "unavailable", "interrupted", "runtime", "schema", "stalled",
        "timeout", "denied", "cancelled", "paused", "restarted", "superseded", "ownership-conflict", "model-not-in-plan",
    }
)  # fmt: skip
_ADDED = {"steps", "gates", "loops", "blocks"}

Wish = Callable[[RunState], Sequence[Payload]]


def carry_out(connection: sqlite3.Connection, run_id: str, wish: Wish, *, now: datetime) -> RunState:
    """Check a wish against the run as it is now, append what it comes to, and return the state after it."""
    journal = Journal(connection)
    with transaction(connection):
        state = journal.state(run_id)
        if state.is_single:
            raise UsageError(
                f"run {state.created.short_id} is a single run: there is nothing in it to steer",
                hint="its verdict: bullswarm runs result, to end it: bullswarm runs stop",
            )
        journal.append(run_id, list(wish(state)), at=now)
        return journal.read_on(state)


def continue_node(name: str, *, rounds: int | None = None, by: str) -> Wish:
    """Open a waiting gate, or give a loop that is out of rounds more of them; without ``rounds`` the loop is left unmet."""

    def wish(state: RunState) -> list[Payload]:
        _refuse_finished(state)
        status = statuses(state).get(name)
        if name in state.gates:
            if rounds is not None:
                raise UsageError(f"{name} is a gate and has no rounds", hint="leave --rounds out")
            if status != "waiting":
                raise UsageError(f"gate {name} is {status}, not waiting", hint=_see(state))
            return [GatePassed(name, how="continued", by=by)]
        if name in state.loops:
            if rounds is not None and not 1 <= rounds <= MOST_ROUNDS:
                raise UsageError(
                    f"--rounds {rounds} is not between 1 and {MOST_ROUNDS}", hint="give more later if needed"
                )
            if status != "waiting":
                raise UsageError(f"loop {name} is {status}, not waiting", hint=_see(state))
            return [LoopContinued(name, rounds=rounds, by=by)]
        raise UsageError(
            f'"{name}" is no gate and no loop of this run', hint=_names("gates and loops", (*state.gates, *state.loops))
        )

    return wish


def pause(*, at_once: bool, by: str) -> Wish:
    """Start nothing more; ``at_once`` also stops what runs, to begin anew later."""

    def wish(state: RunState) -> list[Payload]:
        _refuse_finished(state)
        if state.paused is not None and (state.paused.at_once or not at_once):
            raise UsageError(
                "the run is paused already", hint=f"go on: bullswarm workflow resume {state.created.short_id}"
            )
        return [PauseRequested(by=by, at_once=at_once)]

    return wish


def resume(*, by: str) -> Wish:
    """Lift a pause; of a finished run, try again what may end otherwise, and what waits behind it."""

    def wish(state: RunState) -> list[Payload]:
        if state.finished is None:
            return [PauseLifted(by=by)] if state.paused is not None else []
        known = statuses(state)
        again = [name for name in state.steps if may_be_tried_again(state, name, known[name])]
        if not again and not any(status == "pending" for status in known.values()):
            raise NothingToRetryError(
                f"run {state.created.short_id} is over and has nothing to retry", hint=_see(state)
            )
        resets = [StepReset(name, why="resume", by=by) for name in again]
        return [RunReopened(by=by, why=f"retry of {', '.join(again) or 'what was pending'}"), *resets]

    return wish


def rerun(name: str, *, avoid: Sequence[str] = (), by: str) -> Wish:
    """Begin a step anew, kept from some pools for good."""

    def wish(state: RunState) -> list[Payload]:
        _known_step(state, name)
        status = statuses(state)[name]
        if status == "running":
            raise UsageError(
                f"step {name} is running", hint=f"bullswarm workflow step restart {state.created.short_id} {name}"
            )
        if status in ("pending", "blocked"):
            raise UsageError(f"step {name} is {status}: it has not run", hint=_see(state))
        if status == "succeeded" and state.steps[name].accepted is None:
            began = sorted(
                each for each in state.plan.behind([name]) if each in state.steps and state.steps[each].counted
            )
            if began:
                raise UsageError(
                    f"step {name} succeeded, and {', '.join(began)} went on from it",
                    hint="add a step, or start a new run",
                )
        return [*_reopened(state, by, f"rerun of {name}"), StepReset(name, why="rerun", by=by, avoid=tuple(avoid))]

    return wish


def accept(name: str, *, reason: str, by: str) -> Wish:
    """Take a failed step's work as it is: a choice that is recorded with its reason, never a proof."""

    def wish(state: RunState) -> list[Payload]:
        _known_step(state, name)
        if not reason.strip() or len(reason) > MOST_REASON or not reason.isprintable():
            raise UsageError(
                f"--reason must be one line of 1 to {MOST_REASON} characters", hint="say why it is good enough"
            )
        status = statuses(state)[name]
        if status not in ("failed", "cancelled"):
            raise UsageError(f"step {name} is {status}: only what failed is accepted", hint=_see(state))
        return [*_reopened(state, by, f"{name} was accepted"), StepAccepted(name, reason=reason, by=by)]

    return wish


def restart(name: str, *, pool: str | None = None, by: str) -> Wish:
    """Stop a step's running worker and begin the step anew, on ``pool`` if one is named."""

    def wish(state: RunState) -> list[Payload]:
        _known_step(state, name)
        _refuse_finished(state)
        if state.steps[name].running is None:
            raise UsageError(
                f"step {name} is not running",
                hint=_see(state)
                if statuses(state)[name] in ("pending", "blocked")
                else f"bullswarm workflow step rerun {state.created.short_id} {name}",
            )
        return [StepReset(name, why="restart", by=by, pool=pool)]

    return wish


def steer(message: str, *, by: str) -> Wish:
    """Leave a message for whoever watches the run."""

    def wish(state: RunState) -> list[Payload]:
        _refuse_finished(state)
        if not message.strip() or len(message) > MOST_MESSAGE:
            raise UsageError(f"--message must have 1 to {MOST_MESSAGE} characters", hint="say what is to change")
        if not is_text(message):
            raise UsageError("--message holds bytes that are not UTF-8", hint="write it in UTF-8")
        return [SteeringAdded(message=message, by=by)]

    return wish


def add(fragment: Mapping[str, Any], *, by: str) -> Wish:
    """Let the program grow by new steps, gates and loops; what is there stays as it is.

    ``fragment`` is ``{steps, gates?, loops?, blocks?: {new step: [steps that have not started]}}``.
    """

    def wish(state: RunState) -> list[Payload]:
        program, added = grown(state, fragment)
        issues = issues_of(program)
        if issues:
            raise UsageError(
                f"nothing was added to {state.created.short_id}: {'; '.join(issues)}",
                hint="correct it and add it again",
            )
        return [*_reopened(state, by, f"{', '.join(added)} added"), StepsAdded(program=program, added=added, by=by)]

    return wish


def grown(state: RunState, fragment: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the run's program with ``fragment`` in it, unchecked, and the new ids. Raises UsageError for a wrong form."""
    if not isinstance(fragment, Mapping) or (other := sorted(set(fragment) - _ADDED)):
        without = f", without {', '.join(other)}" if isinstance(fragment, Mapping) else ""
        raise UsageError(
            f"what is added must be an object of steps, gates, loops and blocks{without}",
            hint="see the contract: bullswarm workflow plan contract",
        )
    program = dict(state.program_document)
    added: list[str] = []
    for part in ("steps", "gates", "loops"):
        new = fragment.get(part) or []
        if not isinstance(new, list):
            raise UsageError(f"{part} must be an array", hint="see the contract: bullswarm workflow plan contract")
        if new:
            program[part] = [*(program.get(part) or ()), *new]
        added += [str(item.get("id")) for item in new if isinstance(item, Mapping)]
    if not added:
        raise UsageError("there is nothing to add: no step, gate or loop", hint='{"steps": [{"id": …, "prompt": …}]}')
    _refuse_loops_around_old_steps(state, fragment.get("loops") or [])
    program["steps"] = _blocked_by(state, program["steps"], fragment.get("blocks") or {}, added)
    return program, tuple(added)


def may_be_tried_again(state: RunState, name: str, status: str) -> bool:
    """Tell whether another try of a failed step may end otherwise: a resume tries it, and no step that may have acted."""
    step = state.steps[name]
    if status not in ("failed", "cancelled"):
        return False
    if any(may_have_acted(state.program.step(name), each) for each in step.counted):
        return False
    if step.unplaced is not None:
        return step.unplaced.failure_kind in RETRYABLE
    finished = step.current.finished if step.current else None
    return finished is None or finished.failure_kind in RETRYABLE


def _refuse_loops_around_old_steps(state: RunState, loops: Sequence[Any]) -> None:
    """A loop begins its steps anew, and a step that is there already may be done, with others that went on from it."""
    for loop in loops:
        named = loop.get("steps") if isinstance(loop, Mapping) else None
        old = [
            name for name in (named if isinstance(named, list) else ()) if isinstance(name, str) and name in state.steps
        ]
        if old:
            raise UsageError(
                f'loop "{loop.get("id")}" names {", ".join(old)}, which the run has already',
                hint="a new loop has new steps",
            )


def _blocked_by(state: RunState, steps: list[Any], blocks: Any, added: Sequence[str]) -> list[Any]:
    """Let steps that have not started wait for new ones."""
    if not isinstance(blocks, Mapping):
        raise UsageError("blocks must be an object: {new step: [existing steps]}", hint="see the contract")
    waits: dict[str, list[str]] = {}
    for new, names in blocks.items():
        if new not in added or not isinstance(names, list):
            raise UsageError(f'blocks names "{new}", which is none of the new steps', hint=_names("new", added))
        for name in names:
            known = state.steps.get(name) if isinstance(name, str) else None
            if known is None or known.attempts:
                raise UsageError(
                    f'blocks.{new} names "{name}", which is no step that has not started', hint=_see(state)
                )
            waits.setdefault(name, []).append(new)
    return [
        {**step, "dependsOn": [*(step.get("dependsOn") or ()), *waits[step["id"]]]}
        if isinstance(step, Mapping) and step.get("id") in waits
        else step
        for step in steps
    ]


def _reopened(state: RunState, by: str, why: str) -> list[Payload]:
    return [] if state.finished is None else [RunReopened(by=by, why=why)]


def _known_step(state: RunState, name: str) -> None:
    if name not in state.steps:
        raise UsageError(
            f'"{name}" is no step of run {state.created.short_id}', hint=_names("steps", tuple(state.steps))
        )


def _refuse_finished(state: RunState) -> None:
    if state.finished is not None:
        again = f"try again what failed: bullswarm workflow resume {state.created.short_id}"
        raise UsageError(
            f"run {state.created.short_id} is over ({state.finished.outcome})",
            hint=_see(state) if state.finished.outcome == "completed" else again,
        )


def _see(state: RunState) -> str:
    return f"bullswarm runs show {state.created.short_id}"


def _names(what: str, names: Sequence[str]) -> str:
    return f"{what}: {', '.join(names) or 'none'}"
