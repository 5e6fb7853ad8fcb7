"""`bullswarm workflow watch`: follows a run, one line per event, or drawn in place on a terminal; it never touches the work.

A kernel that is gone is started again. Exit codes: 0 while the run goes on or when it was delivered, 1 when it
was not delivered or its kernel is dead for good, 2 when the call was wrong.
"""

from __future__ import annotations

import argparse

from bullswarm_core.errors import UsageError
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.runs_reading import state_named
from bullswarm_server.cli.workflow_follow import Watch
from bullswarm_server.displays.terminal import can_redraw


def watch(options: argparse.Namespace, context: CommandContext) -> int:
    """Follow a run until it ends or waits for somebody, or until what was asked for has happened."""
    state = state_named(options.run_id, context)
    if options.after is not None and options.after > state.seq:
        raise UsageError(
            f"--after {options.after} is beyond the newest event of run {state.created.short_id}, {state.seq}",
            hint="give the sequence number that the last watch printed",
        )
    plain = options.jsonl or options.once or options.next or options.until or options.verbose
    if not plain and can_redraw(context.out, context.environ):
        from bullswarm_server.cli.workflow_live import follow_live

        return follow_live(Watch(options, context, state))
    return Watch(options, context, state).follow()
