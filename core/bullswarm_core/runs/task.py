"""What one `run` asks for, and the one-step program that it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bullswarm_core.errors import UsageError
from bullswarm_core.pools import DEFAULT_EFFORT, Effort, Lane, Rung
from bullswarm_core.program.text_issues import MAX_PROMPT_BYTES as MAX_PROMPT_BYTES
from bullswarm_core.program.text_issues import is_model_name, is_text
from bullswarm_core.routing import Request
from bullswarm_core.runs.events import RunCreated
from bullswarm_core.values import dataclass, replace

PROGRAM_VERSION = "bullswarm.workflow.program.v3"
RUN_STEP = "run"
_GOAL_LENGTH = 120


@dataclass(frozen=True, slots=True)
class Task:
    """One bounded task: what is to be done, where, and what the caller demands of the pool. Pools are named by id.

    ``timeout_sec`` is the wall clock, None for none; ``shared_tree`` allows a second writer in the same tree;
    ``independent_of`` names earlier work whose providers are avoided, for the record (the avoiding is in the filters).
    ``answer`` is the JSON Schema of a typed answer, checked by `judging.answer_schema` where it came in. ``workflow`` marks
    the step of a program, ``pin_reason`` says who pinned ``pool``.
    """

    prompt: str
    lane: Lane
    cwd: str
    effort: Effort | None = None
    reasoning: str | None = None
    model: str | None = None
    pool: str | None = None
    use_pools: tuple[str, ...] = ()
    avoid_pools: tuple[str, ...] = ()
    use_providers: tuple[str, ...] = ()
    avoid_providers: tuple[str, ...] = ()
    independent_of: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    timeout_sec: float | None = None
    shared_tree: bool = False
    answer: Mapping[str, Any] | None = None
    workflow: bool = False
    pin_reason: str | None = None

    def __post_init__(self) -> None:
        if not self.prompt.strip():
            raise UsageError("the task is empty", hint="say what is to be done, as words, --prompt or --task-file")
        for what, text in (("the task", self.prompt), ("the folder's name", self.cwd)):
            if not is_text(text):
                raise UsageError(
                    f"{what} holds bytes that are not UTF-8", hint="write it in UTF-8, or rename the folder"
                )
        if self.model is not None and not is_model_name(self.model):
            raise UsageError(f"{self.model!r} is no name of a model", hint="give one of `bullswarm strategy inventory`")
        size = len(self.prompt.encode())
        if size > MAX_PROMPT_BYTES:
            raise UsageError(
                f"the task has {size} bytes and may have {MAX_PROMPT_BYTES}",
                hint="put the material into a file in the folder",
            )

    @property
    def tier(self) -> Effort:
        """The effort tier asked for, else the lane's customary one."""
        return self.effort or DEFAULT_EFFORT[self.lane]

    @property
    def goal(self) -> str:
        """The task's first line, for lists."""
        return self.prompt.strip().splitlines()[0][:_GOAL_LENGTH]

    @property
    def route_summary(self) -> str | None:
        """The caller's filters in words, for the reason; None without any."""
        named = (
            ("use pool", self.use_pools),
            ("avoid pool", self.avoid_pools),
            ("use provider", self.use_providers),
            ("avoid provider", self.avoid_providers),
            ("independent of", self.independent_of),
        )
        return "; ".join(f"{words} {', '.join(names)}" for words, names in named if names) or None

    def asked_of(self, rung: Rung) -> Rung:
        """Return what the picked pool is to run: its rung, with the reasoning level that the caller asked for."""
        return rung if self.reasoning is None else replace(rung, reasoning=self.reasoning, level_source="request")

    def request(self, *, caller: str | None, candidate_minutes: float | None) -> Request:
        """Return the question that routing answers."""
        return Request(
            lane=self.lane,
            effort=self.effort,
            capabilities=self.capabilities,
            model=self.model,
            use_pools=self.use_pools,
            avoid_pools=self.avoid_pools,
            use_providers=self.use_providers,
            avoid_providers=self.avoid_providers,
            pin=self.pool,
            pin_reason=(self.pin_reason or "--pool") if self.pool else None,
            caller=caller,
            candidate_minutes=candidate_minutes,
            workflow=self.workflow,
        )


def to_program(task: Task) -> dict[str, Any]:
    """Return the one-step program.v3 document of a task."""
    step: dict[str, Any] = {"id": RUN_STEP, "prompt": task.prompt, "lane": task.lane, "effort": task.tier, "retry": 0}
    step |= {key: value for key, value in (("model", task.model), ("reasoning", task.reasoning)) if value}
    route = {
        "pools": {"use": list(task.use_pools), "avoid": list(task.avoid_pools)},
        "providers": {"use": list(task.use_providers), "avoid": list(task.avoid_providers)},
    }
    if any(names for group in route.values() for names in group.values()):
        step["route"] = route
    if task.answer is not None:
        step["answer"] = dict(task.answer)
    return {"schemaVersion": PROGRAM_VERSION, "steps": [step]}


def to_options(task: Task) -> dict[str, Any]:
    """Return the run-wide choices of a task, which are no part of its program."""
    return {
        "pool": task.pool,
        "independentOf": list(task.independent_of),
        "capabilities": list(task.capabilities),
        "timeoutSec": task.timeout_sec,
        "sharedTree": task.shared_tree,
    }


def from_step(step: Mapping[str, Any], options: Mapping[str, Any], *, cwd: str) -> Task:
    """Return the task of a program's step under the run's options."""
    route = step.get("route") or {}
    pools, providers = route.get("pools") or {}, route.get("providers") or {}
    return Task(
        prompt=step["prompt"],
        lane=step["lane"],
        cwd=cwd,
        effort=step.get("effort"),
        reasoning=step.get("reasoning"),
        model=step.get("model"),
        pool=options.get("pool"),
        use_pools=tuple(pools.get("use", ())),
        avoid_pools=tuple(pools.get("avoid", ())),
        use_providers=tuple(providers.get("use", ())),
        avoid_providers=tuple(providers.get("avoid", ())),
        independent_of=tuple(options.get("independentOf", ())),
        capabilities=tuple(options.get("capabilities", ())),
        timeout_sec=options.get("timeoutSec"),
        shared_tree=bool(options.get("sharedTree")),
        answer=step.get("answer"),
    )


def task_of(created: RunCreated, step_id: str) -> Task:
    """Return the task of a step of the run's program."""
    step = next(step for step in created.program["steps"] if step["id"] == step_id)
    return from_step(step, created.options, cwd=created.cwd)
