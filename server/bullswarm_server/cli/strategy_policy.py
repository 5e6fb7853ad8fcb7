"""`bullswarm strategy set-policy`: by which rules a pool is picked."""

from __future__ import annotations

from bullswarm_core.pools.settings import Document, Settings
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.strategy_writing import Options, change
from bullswarm_server.ops.decisions import section


def set_policy(options: Options, context: CommandContext) -> None:
    """Choose the routing policy; the default one is written only where another one stood."""
    name: str = options.policy

    def apply(state: Document) -> None:
        if Settings.load(context.home).routing_policy != name:
            section(state, "config")["routingPolicy"] = name

    what = f"pools are picked by the {name} policy"
    change(apply, options, context, done=f"{what} now", nothing=f"{what} already")
