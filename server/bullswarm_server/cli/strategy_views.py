"""`bullswarm strategy`: what there is to decide about, and what the decisions come to; changes none of them."""

from __future__ import annotations

from bullswarm_core.errors import UsageError
from bullswarm_core.pools import EFFORTS, LANES
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.strategy_machine import this_machine
from bullswarm_server.cli.strategy_writing import Options, pool_named
from bullswarm_server.displays import strategy_views as shown


def inventory(options: Options, context: CommandContext) -> None:
    """Show every pool with the models that its CLI offers; asks the CLIs whose list is older than a day."""
    with this_machine(context) as machine:
        live = machine.ask_for_models(everybody=options.refresh, tell=context.note)
        lists = {**machine.model_lists(), **live}
        rows = shown.inventory_rows(
            machine.pools, machine.profiles, lists, frozenset(live), machine.view.settings, now=machine.view.now
        )
    if options.json:
        context.print_json(shown.inventory_document(rows, now=machine.view.now))
    else:
        context.print(*shown.inventory_lines(rows))


def routes(options: Options, context: CommandContext) -> None:
    """Show where work of each tier would go now; lanes with the same answer stand together."""
    with this_machine(context) as machine:
        found = [(tier, lane, machine.decide(lane, tier)) for tier in EFFORTS for lane in LANES]
    rows = shown.route_rows(found)
    if options.json:
        context.print_json(shown.routes_document(rows, now=machine.view.now))
    else:
        context.print(*shown.route_lines(rows))


def rungs(options: Options, context: CommandContext) -> None:
    """Show what each pool runs on each tier."""
    wanted = pool_named(options.pool, context) if options.pool else None
    with this_machine(context) as machine:
        rows = [
            shown.rung_row(pool, profile, machine.view.settings)
            for pool, profile in zip(machine.pools, machine.profiles, strict=True)
            if wanted in (None, pool.id)
        ]
    if wanted is not None and not rows:
        raise UsageError(f"{wanted} is not on this machine now", hint="bullswarm strategy show has what you decided")
    if options.json:
        context.print_json(shown.rungs_document(rows))
    else:
        context.print(*shown.rung_lines(rows))
