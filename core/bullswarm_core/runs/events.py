"""Everything that a journal can say: the closed list of event types and the payload of each.

An event is a fact that has happened. State is a fold of them (`runs.state`); nothing else is stored about a run. A type that
this version does not know is kept and skipped, so that a newer program's journal still reads. When a payload changes its
meaning, its version goes up and an upcaster here turns the old form into the new one; the stored rows never change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.runs.attempt_result import JudgementRecord, LaunchRecord, MetaRecord
from bullswarm_core.wire import from_wire, to_wire

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Payload:
    """Base of all payloads; ``type`` and ``version`` name the event."""

    type: ClassVar[str]
    version: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class RunCreated(Payload):
    """A run was asked for. ``program`` is a program.v3 document; ``options`` are the run-wide choices.

    ``environment`` holds the names and values that the caller's environment had at launch, but for ``secret_names``, whose
    values are never stored. ``idempotency_key`` is the caller's name for this very request. ``workspace`` says
    which folder ``cwd`` was then (``runs.workspace``).
    """

    type: ClassVar[str] = "run.created"
    run_id: str
    short_id: str
    kind: str
    goal: str
    cwd: str
    program: Document
    options: Document = field(default_factory=dict)
    caller: str | None = None
    caller_pool: str | None = None
    root: str | None = None
    depth: int = 0
    environment: Document = field(default_factory=dict)
    secret_names: tuple[str, ...] = ()
    idempotency_key: str | None = None
    workspace: Document | None = None


@dataclass(frozen=True, slots=True)
class KernelStarted(Payload):
    """A kernel took the run over; ``identity`` is its process."""

    type: ClassVar[str] = "kernel.started"
    identity: Document
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class AttemptPicked(Payload):
    """Routing chose a pool, and the attempt was booked in the same transaction.

    ``generation`` counts how often the step was begun anew (a loop's round, a rerun). ``retry_how`` says what made this
    attempt follow the one before it (``failure_rule.RetryHow``); None for a first one.
    """

    type: ClassVar[str] = "attempt.picked"
    step: str
    ordinal: int
    pool: str
    provider: str
    model: str | None
    reasoning: str | None
    lane: str
    effort: str
    reason: str
    decision: Document
    booking: int
    tree: str
    free: bool = False
    rung_source: str = "connector"
    level_source: str = "cli-default"
    shared_tree: bool = False
    expected_minutes: float | None = None
    generation: int = 0
    retry_how: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptLaunched(Payload):
    """The keeper is running; ``launch`` says how the CLI was started and in which folder, with nothing secret in it."""

    type: ClassVar[str] = "attempt.launched"
    step: str
    ordinal: int
    keeper: Document
    launch: LaunchRecord


@dataclass(frozen=True, slots=True)
class AttemptTakenOver(Payload):
    """A new kernel found an unfinished attempt: ``how`` is ``re-attached``, ``harvested`` or ``lost``."""

    type: ClassVar[str] = "attempt.taken-over"
    step: str
    ordinal: int
    how: str


@dataclass(frozen=True, slots=True)
class AttemptFinished(Payload):
    """The attempt has ended and was judged; ``judgement`` and ``meta`` are the verdict's parts.

    ``workspace`` is the folder as it left it, or the one in which it refused to start.
    """

    type: ClassVar[str] = "attempt.finished"
    step: str
    ordinal: int
    ok: bool
    why: str
    failure_kind: str | None
    judgement: JudgementRecord
    meta: MetaRecord
    output_file: str | None = None
    workspace: Document | None = None


@dataclass(frozen=True, slots=True)
class StepUnplaced(Payload):
    """No pool could take the step's next attempt, or it could not be started at all."""

    type: ClassVar[str] = "step.unplaced"
    step: str
    why: str
    failure_kind: str
    back_at: datetime | None = None
    back_at_source: str | None = None
    decision: Document = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StopRequested(Payload):
    """Somebody asked for the work to be stopped; an intent that the kernel carries out."""

    type: ClassVar[str] = "run.stop-requested"
    by: str


@dataclass(frozen=True, slots=True)
class StepReset(Payload):
    """A step begins anew: ``why`` is ``rerun``, ``restart``, ``resume`` or ``round`` (of its loop).

    ``avoid`` are pools that it is kept from for good, ``pool`` the one that it is pinned to. Earlier attempts stay as they
    were, superseded; one that still runs is stopped.
    """

    type: ClassVar[str] = "step.reset"
    step: str
    why: str
    by: str | None = None
    avoid: tuple[str, ...] = ()
    pool: str | None = None


@dataclass(frozen=True, slots=True)
class StepAccepted(Payload):
    """The person took a failed step's work as it is; that is a choice, never a proof."""

    type: ClassVar[str] = "step.accepted"
    step: str
    reason: str
    by: str | None = None


@dataclass(frozen=True, slots=True)
class GateWaiting(Payload):
    """Everything before the gate is done, and it waits for the person; ``why`` says what its condition read."""

    type: ClassVar[str] = "gate.waiting"
    gate: str
    why: str | None = None


@dataclass(frozen=True, slots=True)
class GatePassed(Payload):
    """The gate is open: ``how`` is ``when-false`` (its condition does not hold) or ``continued`` (the person said so)."""

    type: ClassVar[str] = "gate.passed"
    gate: str
    how: str
    by: str | None = None


@dataclass(frozen=True, slots=True)
class LoopRound(Payload):
    """A loop goes into round ``round`` because its condition did not hold after the one before; all its steps begin anew."""

    type: ClassVar[str] = "loop.round"
    loop: str
    round: int


@dataclass(frozen=True, slots=True)
class LoopPassed(Payload):
    """The loop's condition held after round ``round``."""

    type: ClassVar[str] = "loop.passed"
    loop: str
    round: int


@dataclass(frozen=True, slots=True)
class LoopOutOfRounds(Payload):
    """The loop's condition did not hold after its last round, and it waits for the person."""

    type: ClassVar[str] = "loop.out-of-rounds"
    loop: str
    round: int
    why: str | None = None


@dataclass(frozen=True, slots=True)
class LoopContinued(Payload):
    """The person gave the loop ``rounds`` more rounds, or with None went on although its condition was not met."""

    type: ClassVar[str] = "loop.continued"
    loop: str
    rounds: int | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class StepsAdded(Payload):
    """The program grew: ``program`` is the whole of it from now on, ``added`` are the new ids."""

    type: ClassVar[str] = "steps.added"
    program: Document
    added: tuple[str, ...]
    by: str | None = None


@dataclass(frozen=True, slots=True)
class SteeringAdded(Payload):
    """Somebody left a message for whoever watches the run; it stops nothing."""

    type: ClassVar[str] = "steering.added"
    message: str
    by: str | None = None


@dataclass(frozen=True, slots=True)
class PauseRequested(Payload):
    """No further step is to start; with ``at_once`` running workers are stopped and begin anew later."""

    type: ClassVar[str] = "pause.requested"
    by: str
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class PauseLifted(Payload):
    """The run goes on after a pause."""

    type: ClassVar[str] = "pause.lifted"
    by: str


@dataclass(frozen=True, slots=True)
class RunParked(Payload):
    """Nothing runs and nothing can start until somebody acts; the kernel ends. ``reason`` is ``waiting`` or ``paused``."""

    type: ClassVar[str] = "run.parked"
    reason: str
    waiting_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunReopened(Payload):
    """A finished run has work again; what it had for a verdict stands in its earlier events."""

    type: ClassVar[str] = "run.reopened"
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class RunFinished(Payload):
    """The run has its verdict: the one document that every reader is given."""

    type: ClassVar[str] = "run.finished"
    outcome: str
    verdict: Document


PAYLOADS: dict[str, type[Payload]] = {
    payload.type: payload
    for payload in (
        RunCreated,
        KernelStarted,
        AttemptPicked,
        AttemptLaunched,
        AttemptTakenOver,
        AttemptFinished,
        StepUnplaced,
        StopRequested,
        StepReset,
        StepAccepted,
        GateWaiting,
        GatePassed,
        LoopRound,
        LoopPassed,
        LoopOutOfRounds,
        LoopContinued,
        StepsAdded,
        SteeringAdded,
        PauseRequested,
        PauseLifted,
        RunParked,
        RunReopened,
        RunFinished,
    )
}

# The parts of a payload that have a type of their own, by their JSON key.
_PARTS: dict[type[Payload], dict[str, Callable[[object], object]]] = {
    AttemptLaunched: {"launch": LaunchRecord.from_wire},
    AttemptFinished: {"judgement": JudgementRecord.from_wire, "meta": MetaRecord.from_wire},
}

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
# (type, version it turns into the next one) -> how; empty until a payload first changes its meaning.
UPCASTERS: dict[tuple[str, int], Upcaster] = {}


@dataclass(frozen=True, slots=True)
class Event:
    """One row of a journal; ``payload`` is None for a type that this version does not know."""

    run: str
    seq: int
    at: datetime
    type: str
    payload: Payload | None


def encode(payload: Payload) -> tuple[str, int, Any]:
    """Return the type, version and JSON value to store."""
    return payload.type, payload.version, to_wire(payload)


def decode(kind: str, version: int, document: Any) -> Payload | None:
    """Read a stored payload; None when the type or its version is from a newer program.

    Raises ValueError when a payload of a known version does not have its form, DamagedRunError when a typed part of it has not.
    """
    model = PAYLOADS.get(kind)
    if model is None or version > model.version:
        return None
    while version < model.version:
        document = UPCASTERS[kind, version](document)
        version += 1
    parts = _PARTS.get(model)
    if parts and isinstance(document, dict):
        document = document | {key: read(document[key]) for key, read in parts.items() if key in document}
    return from_wire(model, document)
