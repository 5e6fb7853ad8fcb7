"""What is wrong with a valid program on this machine, now: found before anything is started.

Pure. Only what time does not heal is refused: a pool that is off, lacks the lane, the tier or the model, or is signed out. A
spent window is no reason, since it comes back by itself; the engine hands such a step back when it gets there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

from bullswarm_core.labels import Labels
from bullswarm_core.pools import Pool
from bullswarm_core.program.model import Step
from bullswarm_core.routing import Decision, RoutingContext, decide
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.step_task import step_task
from bullswarm_core.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Machine:
    """The pools as they are now, what the person decided, and the caller's own pool."""

    pools: Sequence[Pool]
    context: RoutingContext
    policy: str
    labels: Labels
    now: datetime
    caller_pool: str | None = None


def precheck(state: RunState, machine: Machine, *, only: Collection[str] | None = None) -> list[str]:
    """Return what keeps the steps of a run that were not started yet from working: all of them, or the named ones.

    One issue per step: an unknown name first, since nothing else can be told then.
    """
    asked = [step for step in state.program.steps if only is None or step.id in only]
    issues = [issue for step in asked for issue in _unknown_names(step, machine)]
    unknown = {step.id for step in state.program.steps if any(_unknown_names(step, machine))}
    decisions = {step.id: _decision(state, step.id, machine) for step in state.program.steps if step.id not in unknown}
    for step in asked:
        decision = decisions.get(step.id)
        if decision is not None and decision.pool is None:
            issues.append(_nobody(state, step.id, decision, machine.labels))
    issues += _dependent_reviews(asked, decisions)
    return issues


def _decision(state: RunState, step_id: str, machine: Machine) -> Decision:
    """Ask routing as if every window were fresh and nothing were running."""
    fresh = [replace(pool, windows=(), inflight=(), rates={}) for pool in machine.pools]
    task = step_task(state, step_id)
    request = task.request(caller=machine.caller_pool, candidate_minutes=None)
    return decide(request, fresh, now=machine.now, policy=machine.policy, context=machine.context)


def _unknown_names(step: Step, machine: Machine) -> Iterator[str]:
    pools = {pool.id for pool in machine.pools}
    providers = {pool.provider for pool in machine.pools}
    by_label = {label: pool for pool, label in machine.labels.items() if pool in pools}
    route = step.route
    for place, names in (("use", route.use_pools), ("avoid", route.avoid_pools)):
        for name in names:
            if name not in pools:
                told = (
                    f"is the label of {by_label[name]}; a program names pools by id"
                    if name in by_label
                    else "is no pool"
                )
                yield f'step {step.id}: route.pools.{place} names "{name}", which {told} (pools: {", ".join(sorted(pools))})'
    for place, names in (("use", route.use_providers), ("avoid", route.avoid_providers)):
        for name in names:
            if name not in providers:
                known = ", ".join(sorted(providers))
                yield f'step {step.id}: route.providers.{place} names "{name}", of which there is no pool (providers: {known})'


def _nobody(state: RunState, step_id: str, decision: Decision, labels: Labels) -> str:
    """Say why no pool could ever take a step as things stand."""
    task = step_task(state, step_id)
    reasons = {entry.pool: entry.reason for entry in decision.excluded}
    if task.pool is not None:
        why = reasons.get(task.pool, decision.reason)
        return f"step {step_id}: the pinned pool {labels.shown(task.pool)} cannot run it: it {why}"
    told = "; ".join(f"{labels.shown(pool)} {reason}" for pool, reason in reasons.items()) or "there is no pool"
    if task.model is not None:
        return f"step {step_id}: no enabled pool can run the model {task.model}: {told}"
    return f"step {step_id}: no pool can take it: {told}"


def _dependent_reviews(steps: Sequence[Step], decisions: Mapping[str, Decision]) -> Iterator[str]:
    """Find steps that must be done by another provider than earlier ones where only one provider can do both."""
    for step in steps:
        mine = _providers(decisions.get(step.id))
        for other in step.route.independent_of:
            theirs = _providers(decisions.get(other))
            if len(theirs) == 1 and mine == theirs:
                (only,) = mine
                yield (
                    f"step {step.id}: route.independentOf names {other}, and only {only} can take either of them;"
                    " enable a pool of another provider or drop independentOf"
                )


def _providers(decision: Decision | None) -> frozenset[str]:
    return frozenset(row.provider for row in decision.candidates) if decision is not None else frozenset()
