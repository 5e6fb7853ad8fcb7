"""The state of a run: a pure fold of its journal."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.program.model import Program
from bullswarm_core.program.plan import Plan
from bullswarm_core.runs.events import (
    AttemptFinished,
    AttemptLaunched,
    AttemptPicked,
    GatePassed,
    GateWaiting,
    KernelStarted,
    PauseRequested,
    RunCreated,
    RunFinished,
    RunParked,
    SteeringAdded,
    StepAccepted,
    StepUnplaced,
    StopRequested,
)


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

    @property
    def running(self) -> bool:
        """Whether the attempt has no end yet."""
        return self.finished is None

    @property
    def left_something(self) -> bool:
        """Whether it ended with a reply, a changed file or a commit."""
        if self.finished is None:
            return False
        judgement = self.finished.judgement
        return bool(self.finished.output_file or judgement.changed_files or judgement.commits)


@dataclass(frozen=True, slots=True)
class StepState:
    """One step of the program and its attempts, oldest first.

    ``generation`` counts how often the step was begun anew; attempts of earlier generations are superseded. With
    ``round_generation`` the present round of its loop began. ``avoid`` are pools that it is kept from, ``pool`` the one that a
    restart pinned it to.
    """

    id: str
    attempts: tuple[AttemptState, ...] = ()
    unplaced: StepUnplaced | None = None
    generation: int = 0
    round_generation: int = 0
    reset_why: str | None = None
    avoid: tuple[str, ...] = ()
    pool: str | None = None
    accepted: StepAccepted | None = None

    @property
    def current(self) -> AttemptState | None:
        """The newest attempt that counts: none when the step was begun anew since."""
        newest = self.attempts[-1] if self.attempts else None
        return newest if newest is not None and newest.picked.generation == self.generation else None

    @property
    def standing(self) -> AttemptState | None:
        """The attempt whose work is the step's: the current one, of an accepted step the newest that left something.

        A step that was begun anew, found no pool and was accepted then is accepted for what had been made before.
        """
        if self.accepted is None:
            return self.current
        left = (attempt for attempt in reversed(self.attempts) if attempt.left_something)
        return next(left, self.current)

    @property
    def counted(self) -> tuple[AttemptState, ...]:
        """The attempts that count: those of the present generation."""
        return tuple(attempt for attempt in self.attempts if attempt.picked.generation == self.generation)

    @property
    def of_this_round(self) -> tuple[AttemptState, ...]:
        """The attempts since the present round of the step's loop began; all of them for a step in no loop."""
        return tuple(attempt for attempt in self.attempts if attempt.picked.generation >= self.round_generation)

    @property
    def before_this_round(self) -> AttemptState | None:
        """The last attempt of the round before, or None."""
        earlier = self.attempts[: len(self.attempts) - len(self.of_this_round)]
        return earlier[-1] if earlier else None

    @property
    def running(self) -> AttemptState | None:
        """The attempt that has no end yet, whether it counts or is superseded."""
        newest = self.attempts[-1] if self.attempts else None
        return newest if newest is not None and newest.running else None

    @property
    def status(self) -> str:
        """``pending`` | ``running`` | ``succeeded`` | ``failed``, by the newest attempt alone, whatever may follow it."""
        if self.accepted is not None:
            return "succeeded"
        if self.running is not None:
            return "running"
        if self.unplaced is not None:
            return "failed"
        attempt = self.current
        if attempt is None or attempt.finished is None:
            return "pending"
        return "succeeded" if attempt.finished.ok else "failed"


@dataclass(frozen=True, slots=True)
class GateState:
    """One gate: waiting for the person, or passed, or not reached yet."""

    id: str
    waiting: GateWaiting | None = None
    waiting_since: datetime | None = None
    passed: GatePassed | None = None


@dataclass(frozen=True, slots=True)
class LoopState:
    """One loop: the round it is in, how many it may have, and what came of it.

    ``outcome`` is None | ``passed`` | ``continued-unmet``; ``out_of_rounds`` says that it waits for the person.
    """

    id: str
    round: int = 1
    max_rounds: int = 1
    outcome: str | None = None
    out_of_rounds: bool = False
    waiting_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything that a journal says about its run, up to event ``seq``."""

    created: RunCreated
    created_at: datetime
    seq: int
    program: Program
    plan: Plan = field(repr=False)
    steps: Mapping[str, StepState]
    gates: Mapping[str, GateState] = field(default_factory=dict)
    loops: Mapping[str, LoopState] = field(default_factory=dict)
    program_document: Mapping[str, Any] = field(default_factory=dict, repr=False)
    kernel: KernelStarted | None = None
    stop_requested: StopRequested | None = None
    paused: PauseRequested | None = None
    parked: RunParked | None = None
    steering: tuple[SteeringAdded, ...] = ()
    finished: RunFinished | None = None
    finished_at: datetime | None = None
    skipped: int = 0

    @property
    def is_single(self) -> bool:
        """Whether this is a `run`: one step with one attempt, and no second try of any kind."""
        return self.created.kind == "run"
