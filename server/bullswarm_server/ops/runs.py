"""A run as it is, as one document, and what may be asked of it; a kernel is started where none is there to do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import DamagedRunError, UnknownNameError, UsageError
from bullswarm_core.kernel.liveness import KernelState, kernel_state
from bullswarm_core.pools.labels import Labels
from bullswarm_core.process.child import MARKER
from bullswarm_core.process.environment import read_depth
from bullswarm_core.reports.verdict import running_document
from bullswarm_core.reports.workflow_result import OUTCOMES, running_result
from bullswarm_core.runs.events import Payload, SteeringAdded
from bullswarm_core.runs.intents import Wish, carry_out
from bullswarm_core.runs.journal import LAST, Journal, RunRow
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home
from bullswarm_core.wire import iso
from bullswarm_server.ops.context import Context
from bullswarm_server.ops.launch import ROOT_VARIABLE, start_kernel
from bullswarm_server.ops.run_forms import read_state, readable_rows

LIST_VERSION = "bullswarm.runs.v1"
RESULT_VERSION = "bullswarm.result.v1"
DAMAGED = "damaged"
"""The state of a run in a list whose journal can't be understood."""


def document_of(home: Home, state: RunState) -> dict[str, Any]:
    """Return a run's verdict or result, or how far it is."""
    if state.finished is not None:
        return dict(state.finished.verdict)
    labels = Labels.load(home)
    alive = kernel_state(home, state, now=utc_now()) is not KernelState.GONE
    if not state.is_single:
        folder = RunFolder.of(home, state.created.run_id)
        return running_result(state, kernel_alive=alive, folder=folder, label=labels.shown)
    step = next(iter(state.steps.values()))
    label = labels.shown(step.current.picked.pool) if step.current else None
    return running_document(state, kernel_alive=alive, label=label)


def is_good(document: Mapping[str, Any]) -> bool | None:
    """Tell whether a verdict or a result is good; None while there is none."""
    if "status" not in document:
        ok: bool | None = document.get("ok")
        return ok
    return document["status"] == "completed" if document["status"] in OUTCOMES else None


def find_run(ctx: Context, name: str) -> RunState:
    """Return the run of an id, a short id, the start of one, or ``last``, which is the newest of the caller.

    Raises UnknownNameError where there is none, DamagedRunError for one that can't be understood.
    """
    with ctx.reading() as connection:
        if connection is None:
            raise UnknownNameError(
                f'unknown run "{name}": nothing has been run in {ctx.home.root}', hint="start one: bullswarm run"
            )
        journal = Journal(connection)
        caller = ctx.caller().provider if name == LAST else None
        return read_state(journal, journal.find(name, caller=caller))


def row_document(home: Home, journal: Journal, row: RunRow) -> dict[str, Any]:
    """Return one run of a list as `runs list` shows it; of one that can't be understood why, and where its files are."""
    (row,), damaged = readable_rows([row])
    document: dict[str, Any]
    try:
        if damaged:
            raise DamagedRunError(f"the row of run {row.run_id} is damaged")
        document = document_of(home, read_state(journal, row.run_id))
        state = row.outcome or document.get("state") or document["status"]
    except (DamagedRunError, UnknownNameError) as error:
        document = {"ok": None, "why": f"{error.message} · what it wrote is in {home.workflows_dir / row.run_id}"}
        state = DAMAGED
    pick = document.get("pick") or {}
    steps = document.get("steps")
    return {
        "runId": row.run_id,
        "shortId": row.short_id,
        "kind": row.kind,
        "createdAt": iso(row.created_at),
        "finishedAt": iso(row.finished_at) if row.finished_at else None,
        "state": state,
        "ok": is_good(document),
        "why": document.get("why") or document.get("reason"),
        "failureKind": document.get("failureKind"),
        "pool": pick.get("pool"),
        "poolLabel": pick.get("poolLabel"),
        "lane": pick.get("lane"),
        "steps": {"done": sum(step["status"] == "succeeded" for step in steps), "all": len(steps)} if steps else None,
        "cwd": row.cwd,
        "goal": row.goal,
        "caller": row.caller,
    }


def act(
    home: Home,
    run_id: str,
    wish: Wish,
    *,
    environ: Mapping[str, str],
    now: datetime,
    start: Callable[[str], object] | None = None,
) -> RunState:
    """Append what the wish comes to, start a kernel where none is there to do it, and return the state after it.

    ``start`` is how a kernel is started, by a run's id. Raises UsageError, with nothing changed, when the wish makes no sense
    in the run's state, or when a worker of the run wishes for more than to leave a message.
    """
    seen: list[RunState] = []

    def noting(state: RunState) -> Sequence[Payload]:
        seen.append(state)
        payloads = wish(state)
        if not all(isinstance(payload, SteeringAdded) for payload in payloads):
            refuse_own_worker(state, environ)
        return payloads

    connection = open_database(home)
    try:
        after = carry_out(connection, run_id, noting, now=now)
    finally:
        connection.close()
    if needs_kernel(home, before=seen[-1], after=after, now=now):
        if start is None:
            start_kernel(home, run_id, environ=environ)
        else:
            start(run_id)
    return after


def refuse_own_worker(state: RunState, environ: Mapping[str, str]) -> None:
    """Raise UsageError in a worker or a check of this very run: it would pass its own gate and accept its own failure.

    A worker may steer the runs that it has started itself. Codex tells its MCP servers of the root task alone.
    """
    run_id = state.created.run_id
    own = {environ.get(ROOT_VARIABLE), *environ.get(MARKER, "").split("/")}
    if read_depth(environ) > 0 and run_id in own:
        raise UsageError(
            f"this is a worker of run {state.created.short_id}: whoever started the run decides about it",
            hint="say in your answer what should be done",
        )


def needs_kernel(home: Home, *, before: RunState, after: RunState, now: datetime) -> bool:
    """Tell whether nobody would drive the run on.

    A run that was at rest may still have the lock of the kernel that put it to rest: that one does not look again, and a new
    one waits for the lock. One kernel too many ends by itself.
    """
    if after.finished is not None or after.parked is not None:
        return False
    at_rest = before.finished is not None or before.parked is not None
    return at_rest or kernel_state(home, after, now=now) is KernelState.GONE
