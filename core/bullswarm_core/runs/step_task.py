"""The task of a step as routing is asked for it: its own route, the run's options, and what the failure rule adds."""

from __future__ import annotations

from collections.abc import Iterable

from bullswarm_core.runs.failure_rule import NextTry
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.task import Task, task_of
from bullswarm_core.values import replace

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
