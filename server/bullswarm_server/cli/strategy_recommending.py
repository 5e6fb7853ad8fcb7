"""`bullswarm strategy recommend` and `apply`: advice on models and levels, and its way into the decisions and out again."""

from __future__ import annotations

from bullswarm_core.dispatch.advice import PoolAdvice, advise
from bullswarm_core.dispatch.assemble import routing_context
from bullswarm_core.pools import EFFORTS
from bullswarm_core.pools.model_catalog import ModelList
from bullswarm_core.pools.settings import Document
from bullswarm_core.store.home import read_json
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.strategy_machine import Machine, this_machine
from bullswarm_server.cli.strategy_writing import Options, change, note
from bullswarm_server.displays import strategy_advice as shown
from bullswarm_server.ops import decisions as edits

_RECOMMENDED = "recommended"


def recommend(options: Options, context: CommandContext) -> None:
    """Show what would be set for each tier, and why; decides nothing and asks no CLI."""
    with this_machine(context) as machine:
        advice = _advice(machine, context)
        firsts = [(tier, machine.decide("build", tier)) for tier in EFFORTS]
        now = machine.view.now
    if options.json:
        context.print_json(shown.document(advice, firsts, now=now))
    else:
        context.print(*shown.lines(advice, firsts))


def apply(options: Options, context: CommandContext) -> None:
    """Write the recommendation as rungs and reasoning levels; what the person set is never replaced, no pool is assigned."""
    with this_machine(context) as machine:
        advice = _advice(machine, context)
    written = [each for each in advice if each.kept is None]

    def write(state: Document) -> None:
        for each in written:
            # Between the advice and the lock the person may have set rungs of their own.
            if not _own_rungs(state, each.pool):
                _write(state, each, _connector_levels(machine, each.pool))

    names = ", ".join(each.pool for each in written) or "no pool"
    what = f"the recommendation for {names} is in force"
    change(write, options, context, done=what, nothing=f"{what} already")
    for each in advice:
        if each.kept is not None:
            note(f"{each.pool} stays as it is: {each.kept}", context)
    if written:
        note(
            "the way back, pool by pool: bullswarm strategy clear-rungs POOL and "
            "bullswarm strategy reset-reasoning --pool POOL",
            context,
        )


def _advice(machine: Machine, context: CommandContext) -> list[PoolAdvice]:
    lists, settings = machine.model_lists(), machine.view.settings
    state = read_json(context.home.state_file, default={})
    return [
        advise(
            pool,
            profile,
            lists.get(pool.id, ModelList()),
            settings,
            now=machine.view.now,
            own_rungs=_own_rungs(state, pool.id),
            context=routing_context(settings),
        )
        for pool, profile in zip(machine.pools, machine.profiles, strict=True)
    ]


def _own_rungs(state: Document, pool: str) -> bool:
    """Say whether the pool has rungs that no recommendation wrote."""
    rungs = edits.rungs_in_force(state, pool)
    return rungs is not None and (not rungs or any(rung.get("source") != _RECOMMENDED for rung in rungs.values()))


def _connector_levels(machine: Machine, pool: str) -> dict[str, str | None]:
    profile = next(each for each in machine.profiles if each.id == pool)
    return {tier: rung.reasoning for tier, rung in profile.connector.tiers.items()}


def _write(state: Document, advice: PoolAdvice, standing: dict[str, str | None]) -> None:
    """Write one pool's advice; what only repeats the connector is left to it, so that its changes still arrive."""
    if advice.names_models:
        for tier, each in advice.tiers.items():
            rung = {"model": each.model, "reasoning": None, "source": _RECOMMENDED}
            edits.section(state, "strategy", "rungs", advice.pool)[tier] = rung
    else:
        edits.clear_rungs(state, advice.pool)
    for tier, each in advice.tiers.items():
        level = None if each.level == standing.get(tier) else each.level
        edits.put(state, tier, level, "strategy", "recommendedReasoning", advice.pool)
