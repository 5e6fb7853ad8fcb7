"""Carries a wish out on a workflow and sees to it that a kernel does what it comes to (design D4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from bullswarm_core.database import open_database
from bullswarm_core.home import Home
from bullswarm_core.runs.events import Payload
from bullswarm_core.runs.intents import Wish, carry_out
from bullswarm_core.runs.liveness import KernelState, kernel_state
from bullswarm_core.runs.state import RunState
from bullswarm_server.launch import start_kernel


def act(home: Home, run_id: str, wish: Wish, *, environ: Mapping[str, str], now: datetime) -> RunState:
    """Append what the wish comes to, start a kernel where none is there to do it, and return the state after it.

    Raises UsageError, with nothing changed, when the wish makes no sense in the run's state.
    """
    seen: list[RunState] = []

    def noting(state: RunState) -> Sequence[Payload]:
        seen.append(state)
        return wish(state)

    connection = open_database(home)
    try:
        after = carry_out(connection, run_id, noting, now=now)
    finally:
        connection.close()
    if needs_kernel(home, before=seen[-1], after=after, now=now):
        start_kernel(home, run_id, environ=environ)
    return after


def needs_kernel(home: Home, *, before: RunState, after: RunState, now: datetime) -> bool:
    """Tell whether nobody would drive the run on.

    A run that was at rest may still have the lock of the kernel that put it to rest: that one does not look again, and a new
    one waits for the lock. One kernel too many ends by itself.
    """
    if after.finished is not None or after.parked is not None:
        return False
    at_rest = before.finished is not None or before.parked is not None
    return at_rest or kernel_state(home, after, now=now) is KernelState.GONE
