"""Waits for a verdict on behalf of a client: with signs of life, and never longer than it has patience for."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import BullswarmError
from bullswarm_core.pools.labels import Labels
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_server.mcp.session import Call
from bullswarm_server.mcp.waits import PROGRESS_EVERY_SEC
from bullswarm_server.ops.launch import wait_for

# (seconds so far, seconds expected or None, one line)
Report = Callable[[float, float | None, str], Awaitable[None]]
# A thread each: more waits at once than this from one client are no use to anybody, the rest queue.
_MOST_WAITS = 128
_MOST_NAMED = 6


class _WaitIsOverError(Exception):
    """Raised inside the waiting thread when its client has gone or has taken the request back."""


async def wait_for_verdict(call: Call, run_id: str, *, seconds: float, report: Report) -> RunState:
    """Wait up to ``seconds`` and return the run's state then; cancelling ends this wait alone, never the work."""
    over = False
    latest: RunState | None = None

    def tick(state: RunState, _: float) -> None:
        nonlocal latest
        latest = state
        if over:
            raise _WaitIsOverError

    async def report_on() -> None:
        started = time.monotonic()
        while True:
            await anyio.sleep(PROGRESS_EVERY_SEC)
            # A sign of life is a bonus: what can't be read just now spoils no wait.
            with contextlib.suppress(BullswarmError, OSError):
                if latest is not None:
                    signs = await anyio.to_thread.run_sync(signs_of_life, call, latest)
                    done, expected = round(time.monotonic() - started, 1), _expected_sec(latest)
                    await report(done, expected if expected and done < expected else None, progress_line(signs))

    wait = partial(wait_for, call.home, run_id, environ=call.machine.environ, timeout_sec=seconds, tick=tick)
    failure: BullswarmError | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(report_on)
            try:
                state = await anyio.to_thread.run_sync(wait, abandon_on_cancel=True, limiter=_limiter())
            except BullswarmError as error:
                # Kept for after the group, which would wrap it and hide its words.
                failure = error
            group.cancel_scope.cancel()
    finally:
        over = True
    if failure is not None:
        raise failure
    return state


def signs_of_life(call: Call, state: RunState) -> dict[str, Any]:
    """Say how far an unfinished run is: who works, since when, what it has written and how long ago."""
    if not state.is_single:
        return _signs_of_workflow(state)
    step = next(iter(state.steps.values()))
    attempt = step.current
    if attempt is None:
        return {"elapsedSec": _since(state.created_at.timestamp()), "doing": "looking for a pool"}
    began = attempt.launched_at or attempt.picked_at
    files = RunFolder.of(call.home, state.created.run_id).attempt(step.id, attempt.picked.ordinal)
    written = [found for path in (files.stream, files.stdout) if (found := _written(path)) is not None]
    doing = "stopping" if state.stop_requested else "working" if attempt.launched else "starting"
    return {
        "elapsedSec": _since(began.timestamp()),
        "doing": doing,
        "pool": attempt.picked.pool,
        "poolLabel": Labels.load(call.home).shown(attempt.picked.pool),
        "expectedSec": _expected_sec(state),
        "writtenBytes": sum(count for count, _ in written),
        "quietSec": min((_since(moment) for _, moment in written), default=None),
    }


def _signs_of_workflow(state: RunState) -> dict[str, Any]:
    running = [step.id for step in state.steps.values() if step.running]
    done = sum(step.status == "succeeded" for step in state.steps.values())
    doing = f"{done} of {len(state.steps)} steps done" + (
        f", at work: {', '.join(running[:_MOST_NAMED])}" if running else ""
    )
    return {"elapsedSec": _since(state.created_at.timestamp()), "doing": doing}


def progress_line(signs: dict[str, Any]) -> str:
    """Say the same in one line."""
    if "pool" not in signs:
        return f"{signs['doing']}, {signs['elapsedSec']} s"
    expected = signs["expectedSec"]
    usual = f" of about {expected / 60:.1f} min" if expected else ""
    quiet = "" if signs["quietSec"] is None else f", last {signs['quietSec']} s ago"
    return (
        f"[{signs['poolLabel']}] {signs['doing']}, {signs['elapsedSec']} s{usual}, {signs['writtenBytes']} bytes{quiet}"
    )


def _written(path: Path) -> tuple[int, float] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime


def _since(moment: float) -> int:
    return max(0, math.floor(utc_now().timestamp() - moment))


def _expected_sec(state: RunState) -> float | None:
    attempt = next(iter(state.steps.values())).current if state.is_single else None
    minutes = attempt.picked.expected_minutes if attempt else None
    return minutes * 60 if minutes else None


_limiters: list[anyio.CapacityLimiter] = []


def _limiter() -> anyio.CapacityLimiter:
    # The default one is shared with every short call, which long waits must not hold up.
    if not _limiters:
        _limiters.append(anyio.CapacityLimiter(_MOST_WAITS))
    return _limiters[0]
