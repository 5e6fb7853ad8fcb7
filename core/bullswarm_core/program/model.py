"""A program.v3 as values: steps, gates and loops with every default filled in.

Built only from a document without issues (``program.issues``); reading one never fails then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.pools.model import DEFAULT_EFFORT, Effort, Lane

# A prompt is kept in the journal and handed over as a file; beyond this somebody has piped in the wrong thing.
MAX_PROMPT_BYTES = 8 * 1024 * 1024


PROGRAM_VERSION = "bullswarm.workflow.program.v3"
MAX_RETRY = 1
DEFAULT_EVIDENCE_SEC = 120.0

DeliverableType = Literal["files", "report", "data", "media", "outward", "none"]


@dataclass(frozen=True, slots=True)
class Route:
    """Which pools may take a step, by id and by provider; ``independent_of`` are steps whose providers are avoided."""

    use_pools: tuple[str, ...] = ()
    avoid_pools: tuple[str, ...] = ()
    use_providers: tuple[str, ...] = ()
    avoid_providers: tuple[str, ...] = ()
    independent_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One check that bullswarm runs itself: a command that must exit 0, or data that must fit a schema.

    ``file`` is relative to the working folder, or ``$output`` for the saved final reply. ``timeout_sec`` is 1 to 600.
    """

    type: Literal["command", "schema"]
    cmd: str = ""
    file: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    format: Literal["json", "jsonl"] = "json"
    timeout_sec: float = DEFAULT_EVIDENCE_SEC

    @property
    def shown(self) -> str:
        """What people read: the command, or the file that is checked."""
        return self.cmd if self.type == "command" else f"schema of {self.file}"


@dataclass(frozen=True, slots=True)
class Deliverable:
    """What a step must leave behind; ``paths`` are relative files."""

    type: DeliverableType
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """What a gate or a loop reads of a step: a boolean of its answer, or whether its evidence passed."""

    step: str
    field: str | None = None
    equals: bool = True

    @property
    def shown(self) -> str:
        """The condition in a few words."""
        if self.field is None:
            return f"evidence of {self.step} passed"
        return f"{self.step}.{self.field} = {'true' if self.equals else 'false'}"


@dataclass(frozen=True, slots=True)
class Step:
    """One task of a program. ``time_box`` None is computed at the start, 0 leaves it out; ``loop`` is the loop it is in."""

    id: str
    prompt: str
    lane: Lane
    effort: Effort
    depends_on: tuple[str, ...] = ()
    phase: str | None = None
    label: str = ""
    reasoning: str | None = None
    model: str | None = None
    route: Route = Route()
    blind_to: tuple[str, ...] = ()
    answer: Mapping[str, Any] | None = None
    evidence: tuple[Evidence, ...] = ()
    deliverable: Deliverable = Deliverable("none")
    files: tuple[str, ...] = ()
    retry: int | None = None
    time_box: int | None = None
    loop: str | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """A point that waits for the person while ``when`` holds; without ``when`` it always does."""

    id: str
    depends_on: tuple[str, ...]
    when: Condition | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps that run in rounds until a condition on one of them holds; ``max_rounds`` is 1 to 5."""

    id: str
    steps: tuple[str, ...]
    until: Condition
    max_rounds: int

    def until_by_evidence(self, step_id: str) -> bool:
        """Tell whether the loop ends by this step's evidence: failed checks then mean another round, not a failed step."""
        return self.until.step == step_id and self.until.field is None


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program, in the order of its document; steps, gates and loops share one id space."""

    steps: tuple[Step, ...]
    gates: tuple[Gate, ...] = ()
    loops: tuple[Loop, ...] = ()

    def step(self, step_id: str) -> Step:
        """Return the step of this id; KeyError without one."""
        return {step.id: step for step in self.steps}[step_id]

    def loop(self, loop_id: str) -> Loop:
        """Return the loop of this id; KeyError without one."""
        return {loop.id: loop for loop in self.loops}[loop_id]

    def ids(self) -> tuple[str, ...]:
        """Return every id: steps, then gates, then loops."""
        return (*(step.id for step in self.steps), *(gate.id for gate in self.gates), *(loop.id for loop in self.loops))


def program_from(document: Mapping[str, Any]) -> Program:
    """Read a valid program document."""
    loops = tuple(_loop(entry) for entry in document.get("loops") or ())
    owner = {step: loop.id for loop in loops for step in loop.steps}
    defaults = document.get("defaults") or {}
    return Program(
        steps=tuple(_step(entry, defaults, owner) for entry in document["steps"]),
        gates=tuple(_gate(entry) for entry in document.get("gates") or ()),
        loops=loops,
    )


def lane_of(step: Mapping[str, Any], defaults: Mapping[str, Any]) -> Lane:
    """Return the lane of a step's document: its own, the program's, else analyze."""
    return cast(Lane, step.get("lane") or defaults.get("lane") or "analyze")


def effort_of(step: Mapping[str, Any], defaults: Mapping[str, Any]) -> Effort:
    """Return the effort tier of a step's document: its own, the program's, else the customary one of its lane."""
    return cast(Effort, step.get("effort") or defaults.get("effort") or DEFAULT_EFFORT[lane_of(step, defaults)])


def deliverable_of(step: Mapping[str, Any], defaults: Mapping[str, Any]) -> Deliverable:
    """Return what the step must leave: its own word, else files for a writing lane, else the answer or a report."""
    given = step.get("deliverable")
    if isinstance(given, str):
        return Deliverable(cast(DeliverableType, given))
    if isinstance(given, Mapping):
        return Deliverable(given["type"], tuple(given.get("paths") or ()))
    if lane_of(step, defaults) != "analyze":
        return Deliverable("files")
    return Deliverable("none" if step.get("answer") else "report")


def _step(entry: Mapping[str, Any], defaults: Mapping[str, Any], owner: Mapping[str, str]) -> Step:
    return Step(
        id=entry["id"],
        prompt=entry.get("prompt", ""),
        lane=lane_of(entry, defaults),
        effort=effort_of(entry, defaults),
        depends_on=tuple(entry.get("dependsOn") or ()),
        phase=entry.get("phase"),
        label=entry.get("label") or entry["id"],
        reasoning=entry.get("reasoning") or defaults.get("reasoning"),
        model=entry.get("model"),
        route=_route(entry.get("route") or {}),
        blind_to=tuple(entry.get("blindTo") or ()),
        answer=entry.get("answer"),
        evidence=tuple(_evidence(item) for item in entry.get("evidence") or ()),
        deliverable=deliverable_of(entry, defaults),
        files=tuple(entry.get("files") or ()),
        retry=_first(entry.get("retry"), defaults.get("retry")),
        time_box=_first(entry.get("timeBox"), defaults.get("timeBox")),
        loop=owner.get(entry["id"]),
    )


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _route(entry: Mapping[str, Any]) -> Route:
    pools, providers = entry.get("pools") or {}, entry.get("providers") or {}
    return Route(
        use_pools=tuple(pools.get("use") or ()),
        avoid_pools=tuple(pools.get("avoid") or ()),
        use_providers=tuple(providers.get("use") or ()),
        avoid_providers=tuple(providers.get("avoid") or ()),
        independent_of=tuple(entry.get("independentOf") or ()),
    )


def _evidence(entry: Mapping[str, Any]) -> Evidence:
    return Evidence(
        type=entry["type"],
        cmd=entry.get("cmd", ""),
        file=entry.get("file", ""),
        schema=entry.get("schema") or {},
        format=entry.get("format", "json"),
        timeout_sec=float(entry.get("timeoutSec", DEFAULT_EVIDENCE_SEC)),
    )


def _condition(entry: Mapping[str, Any]) -> Condition:
    return Condition(entry["step"], entry.get("field"), entry.get("equals", True))


def _gate(entry: Mapping[str, Any]) -> Gate:
    when = entry.get("when")
    return Gate(entry["id"], tuple(entry["dependsOn"]), _condition(when) if when else None, entry.get("note"))


def _loop(entry: Mapping[str, Any]) -> Loop:
    return Loop(entry["id"], tuple(entry["steps"]), _condition(entry["until"]), entry["maxRounds"])


def files_of(step: Step) -> Iterator[str]:
    """Every relative file that the step says it writes."""
    yield from dict.fromkeys((*step.files, *step.deliverable.paths))
