"""`bullswarm pools --watch`: follows the pools, redrawn in place on a terminal, one line per change elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bullswarm_core.errors import BullswarmError
from bullswarm_core.routing.overview import PoolOverview
from bullswarm_core.wire import whole_second
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.pools_lines import shown_lines
from bullswarm_server.cli.screen import draw_frame, own_screen, wake_ups
from bullswarm_server.displays.pools import pool_lines
from bullswarm_server.displays.terminal import can_redraw, terminal_of
from bullswarm_server.displays.text import one_line
from bullswarm_server.ops.pools import PoolsNow

LookNow = Callable[[], PoolsNow]


def follow(look: LookNow, *, seconds: float, context: CommandContext) -> int:
    """Show the pools every ``seconds`` until Ctrl-C, and return 0 then; what was shown last stays on the terminal.

    Raises what the first look raises; a later one that fails is told and tried again.
    """
    seen = look()
    if can_redraw(context.out, context.environ):
        return _redraw(seen, look, seconds=seconds, context=context)
    try:
        return _append(seen, look, seconds=seconds, context=context)
    except KeyboardInterrupt:
        return 0


def _append(seen: PoolsNow, look: LookNow, *, seconds: float, context: CommandContext) -> int:
    known: dict[str, Any] = {}
    with wake_ups() as wait:
        while True:
            changed = [row for row in seen.rows if known.get(row.pool.id) != essence(row)]
            gone = known.keys() - {row.pool.id for row in seen.rows}
            context.print(*(f"{whole_second(seen.now)} {line}" for line in pool_lines(changed)))
            context.print(*(f"{whole_second(seen.now)} {one_line(pool_id)} is gone" for pool_id in sorted(gone)))
            context.out.flush()
            known = {row.pool.id: essence(row) for row in seen.rows}
            wait(seconds)
            try:
                seen = look()
            except BullswarmError as error:
                context.note(f"bullswarm: {error}")


def essence(row: PoolOverview) -> tuple[object, ...]:
    """What makes a change of a pool worth a line: everything that is shown but what the clock alone moves."""
    pool, numbers = row.pool, row.row
    return (
        pool.label, pool.enabled, pool.unavailable, pool.billing, pool.billing_granted, pool.overage, row.state,
        numbers.inflight, numbers.pacing_used_pct, numbers.five_hour_used_pct, numbers.daily_used_pct, numbers.near_window,
        numbers.pacing_window, numbers.pacing_source, numbers.pacing_resets_at, numbers.urgency_state, numbers.reserved,
        row.spent, tuple(sorted(row.free_models.items())), pool.meter_error,
    )  # fmt: skip


def _redraw(seen: PoolsNow, look: LookNow, *, seconds: float, context: CommandContext) -> int:
    problem = ""
    with own_screen(context), wake_ups() as wait:
        try:
            while True:
                _draw(shown_lines(seen.rows, context, notes=False), problem, seconds=seconds, context=context)
                if wait(seconds):
                    continue  # the window has another size: the same pools in it
                try:
                    seen, problem = look(), ""
                except BullswarmError as error:
                    problem = one_line(str(error))
        except KeyboardInterrupt:
            pass
    context.print(*shown_lines(seen.rows, context))
    return 0


def _draw(lines: Sequence[str], problem: str, *, seconds: float, context: CommandContext) -> None:
    terminal = terminal_of(context.out, context.environ, colour=context.colour)
    foot = problem or f"every {seconds:g} s, Ctrl-C ends"
    room = max(1, terminal.height - 1)
    kept = list(lines[:room])
    if len(lines) > room:
        foot = f"{len(lines) - room} more lines below, {foot}"
    paint = terminal.style.bad if problem else terminal.style.faint
    draw_frame(context, [*kept, paint(terminal.clipped(foot, terminal.width))])
