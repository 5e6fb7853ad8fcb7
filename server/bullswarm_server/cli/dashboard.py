"""`bullswarm dashboard`: what needs you, what runs, the pools; on a whole terminal, until you leave it."""

from __future__ import annotations

import argparse
import sys

from bullswarm_core.errors import UsageError
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.displays.terminal import can_redraw


def run(arguments: list[str], context: CommandContext) -> int:
    """Open the dashboard on the terminal. Raises UsageError where there is none."""
    _parser().parse_args(arguments)
    if not can_redraw(context.out, context.environ) or not sys.stdin.isatty():
        raise UsageError(
            "the dashboard needs a terminal to draw on", hint="bullswarm pools and bullswarm runs list print lines"
        )
    from bullswarm_server.dashboard.app import Dashboard
    from bullswarm_server.dashboard.source import Source

    dashboard = Dashboard(Source(context.home, context.environ))
    dashboard.run()
    return dashboard.return_code or 0


def _parser() -> argparse.ArgumentParser:
    return Parser(
        prog="bullswarm dashboard",
        description="What needs you, what runs, and the pools, on a whole terminal; ? lists the keys. After `bullswarm setup`"
        " bare `bullswarm` opens it.",
    )
