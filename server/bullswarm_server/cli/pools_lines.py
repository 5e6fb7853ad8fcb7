"""The lines that show the pools, once or again and again: as the output of the command can draw them."""

from __future__ import annotations

from collections.abc import Sequence

from bullswarm_core.routing.overview import PoolOverview
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.displays.pools import pool_lines
from bullswarm_server.displays.text import Style


def shown_lines(rows: Sequence[PoolOverview], context: CommandContext, *, notes: bool = True) -> list[str]:
    """Return a table with bars for a terminal, and for everything else one line a pool.

    ``notes`` are the commands that would open a pool; whole, to be copied, they may be longer than a line.
    """
    if not context.out.isatty():
        return pool_lines(rows, style=Style(colour=context.colour))
    from bullswarm_server.displays.pools_terminal import permission_notes, pool_table
    from bullswarm_server.displays.terminal import terminal_of

    terminal = terminal_of(context.out, context.environ, colour=context.colour)
    return [*pool_table(rows, terminal), *(map(terminal.spelled, permission_notes(rows)) if notes else ())]
