"""`bullswarm delegation`: whether hooks may give an agent's subagents to other pools (off until the person says so)."""

from __future__ import annotations

import argparse

from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.hook_state import delegation_is_on, refresh, switch_delegation

SCHEMA_VERSION = "bullswarm.delegation.v1"


def run(arguments: list[str], context: CommandContext) -> int:
    """Switch delegation, show how it is, or hand one subagent's task on."""
    options = _parser().parse_args(arguments)
    if options.state == "give":
        from bullswarm_server import delegate

        return delegate.main()
    if options.state != "status":
        switch_delegation(context.home, on=options.state == "on")
        refresh(context.home, context.environ)
    on = delegation_is_on(context.home)
    if options.json:
        context.print_json({"schemaVersion": SCHEMA_VERSION, "delegation": on})
    elif on:
        context.print(
            "delegation is on: hooks give general-purpose and exploring subagents to the pool with most surplus"
        )
    else:
        context.print("delegation is off: every agent runs its own subagents")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm delegation",
        description="Whether the hooks of your agents may give their subagents to the pool with most surplus.",
    )
    parser.add_argument(
        "state", nargs="?", choices=("on", "off", "status", "give"), default="status",
        help="default: status; give reads one subagent's task as JSON from standard input (for the Claude Mod)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON document (bullswarm.delegation.v1)")
    return parser
