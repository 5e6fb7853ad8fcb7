"""What one `run` asks for, the task of a step as routing is asked for it, and where an attempt works."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.errors import UsageError
from bullswarm_core.fast.text import is_text
from bullswarm_core.pools.model import DEFAULT_EFFORT, Effort, Lane, Rung, is_model_name
from bullswarm_core.program.model import MAX_PROMPT_BYTES
from bullswarm_core.routing import Request
from bullswarm_core.runs.events import RunCreated
from bullswarm_core.runs.retry import NextTry
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.store.home import Home
from bullswarm_core.trees.location import WORKTREES, tree_of

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


# What the reason line says of a pin.
PINNED_BY_RUN = "--worker-pool"
PINNED_BY_RESTART = "step restart"
PINNED_AGAIN = {"same-pool": "the same pool (gate retry)", "back-off": "the same pool (rate-limit back-off)"}


def step_tasks(
    state: RunState, step_id: str, again: NextTry | None = None, *, sharing: Iterable[str] = ()
) -> tuple[Task, ...]:
    """Return what to ask routing for the step's next attempt, best first; empty when its route leaves nothing to ask for.

    ``again`` is what the failure rule asks of the attempt; ``sharing`` are pools of a sign-in that was just found dead.
    """
    task = _independent(state, step_task(state, step_id))
    if task is None:
        return ()
    if again is None:
        return (task,)
    if again.pool is not None:
        reason = PINNED_AGAIN.get(again.how, PINNED_BY_RUN)
        return (replace(task, pool=again.pool, pin_reason=reason, use_pools=(), avoid_pools=()),)
    elsewhere = _without(task, (*again.avoid, *sharing))
    return tuple(each for each in (elsewhere, task if again.alone_is_fine else None) if each is not None)


def step_task(state: RunState, step_id: str) -> Task:
    """Return the task of a step, whatever came of its attempts so far."""
    if state.is_single:
        return task_of(state.created, step_id)
    step, known, options = state.program.step(step_id), state.steps[step_id], state.created.options
    route = step.route
    pool = known.pool or options.get("workerPool")
    return Task(
        prompt=step.prompt,
        lane=step.lane,
        cwd=state.created.cwd,
        effort=step.effort,
        reasoning=step.reasoning or options.get("workerReasoning"),
        model=step.model or options.get("workerModel"),
        pool=pool,
        pin_reason=PINNED_BY_RESTART if known.pool else PINNED_BY_RUN if pool else None,
        use_pools=route.use_pools,
        avoid_pools=tuple(
            name for name in _once((*route.avoid_pools, *known.avoid)) if name not in (pool, *route.use_pools)
        ),
        use_providers=route.use_providers,
        avoid_providers=route.avoid_providers,
        independent_of=route.independent_of,
        shared_tree=bool(options.get("sharedTree")),
        answer=step.answer,
        workflow=True,
    )


def _without(task: Task, avoid: Iterable[str]) -> Task | None:
    """Return the task kept from some pools; None when its route or its pin allows no other."""
    gone = set(avoid)
    left = tuple(name for name in task.use_pools if name not in gone)
    if task.pool in gone or (task.use_pools and not left):
        return None
    return replace(task, use_pools=left, avoid_pools=_once((*task.avoid_pools, *avoid)))


def _independent(state: RunState, task: Task) -> Task | None:
    """Keep the task from the providers that worked on the steps of ``independentOf``; None when its route allows no other.

    Accounts that one provider serves count as one family.
    """
    worked = [
        attempt.picked.provider
        for name in (task.independent_of if task.workflow else ())
        for attempt in state.steps[name].counted
        if attempt.launched is not None
    ]
    left = tuple(name for name in task.use_providers if name not in worked)
    if task.use_providers and not left:
        return None
    return replace(task, use_providers=left, avoid_providers=_once((*task.avoid_providers, *worked)))


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def is_apart(state: RunState, step_id: str) -> bool:
    """Tell whether the step works in a worktree of its own."""
    if state.is_single or state.created.options.get("isolation") != "worktree":
        return False
    return state.program.step(step_id).lane != "analyze"


def tree_written(home: Home, state: RunState, step_id: str, *, ordinal: int) -> str:
    """Return the real path of the tree that an attempt works in: its own worktree, else the one around the run's folder."""
    cwd = state.created.cwd
    if not is_apart(state, step_id):
        return tree_of(cwd)
    folder = RunFolder.of(home, state.created.run_id)
    return os.path.realpath(folder.path / WORKTREES / folder.attempt(step_id, ordinal).id)


def place_in(tree: str, cwd: str) -> str:
    """Return the folder in another tree of the same repository that is what ``cwd`` is in its own."""
    return os.path.normpath(os.path.join(tree, os.path.relpath(os.path.realpath(cwd), tree_of(cwd))))  # noqa: PTH118


def worktree_of_prior(cwd: str, *, tree: str, prior: str) -> str:
    """Return where the attempt before worked, whose tree was ``prior``, given where this one does, in ``tree``."""
    return str(Path(prior, os.path.relpath(cwd, tree))) if prior != tree else cwd
