"""`runs`: list what was started, show one, read its output, wait for it, stop it."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
from mcp_types import CallToolResult

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import UsageError
from bullswarm_core.runs.intents import Wish, accept, add, continue_node, pause, rerun, restart, resume, steer
from bullswarm_core.runs.journal import Journal, RunRow
from bullswarm_core.runs.state import RunState
from bullswarm_core.store.database import open_database
from bullswarm_server.mcp.arguments import RunsArguments
from bullswarm_server.mcp.results import Document, answer, clipped, fence, fitted, path_text, without_empty
from bullswarm_server.mcp.session import Call
from bullswarm_server.mcp.tools.run import state_answer, wait_on
from bullswarm_server.mcp.tools.tool import ACTS, Tool
from bullswarm_server.mcp.verdicts import Output
from bullswarm_server.mcp.waiting import Report
from bullswarm_server.mcp.workflow_answers import workflow_answer
from bullswarm_server.ops.launch import request_stop
from bullswarm_server.ops.runs import DAMAGED, LIST_VERSION, RESULT_VERSION, refuse_own_worker, row_document
from bullswarm_server.ops.tasks import names_of_pools
from bullswarm_server.ops.workflows import refuse_additions

# A page for reading on: text and document each carry it.
_PAGE_BYTES = 3400
# Long enough for a worker to be ended with its tree (5 s of grace) and judged; the stop itself needs no waiting for.
_STOP_WAIT_SEC = 15.0
# Enough to see that the kernel goes on by it; what follows takes minutes and is waited for by another call.
_WISH_WAIT_SEC = 2.0
# Of a row: what an agent chooses a run by.
_ROW_KEYS = (
    "runId", "shortId", "state", "ok", "why", "failureKind", "pool", "poolLabel", "lane", "createdAt", "finishedAt", "goal",
    "cwd", "caller",
)  # fmt: skip
_WISHES = frozenset({"rerun", "restart", "accept", "continue", "pause", "resume", "steer", "add"})


async def _runs(call: Call, given: RunsArguments, report: Report) -> CallToolResult:
    if given.op == "list":
        return await anyio.to_thread.run_sync(_list, call, given.limit)
    if given.run_id is None:
        raise UsageError(f"run_id is missing for {given.op}", hint="give an id, a short id, or last")
    state = await anyio.to_thread.run_sync(call.state_of, given.run_id)
    run_id = state.created.run_id
    if given.op == "show":
        return await anyio.to_thread.run_sync(state_answer, call, state)
    if given.op == "result":
        return await anyio.to_thread.run_sync(_result, state, given.cursor)
    if given.op in _WISHES:
        await anyio.to_thread.run_sync(call.carry_out, state, _wish(call, state, given))
        return await wait_on(call, run_id, _WISH_WAIT_SEC if given.wait_s is None else given.wait_s, report)
    if given.op == "stop":
        await anyio.to_thread.run_sync(_stop, call, state)
        return await wait_on(call, run_id, _STOP_WAIT_SEC if given.wait_s is None else given.wait_s, report)
    return await wait_on(call, run_id, given.wait_s, report)


def _wish(call: Call, state: RunState, given: RunsArguments) -> Wish:
    """Return what an operation asks of a workflow. Raises UsageError where an argument of it is missing or wrong."""
    by = call.ops.caller().provider or "MCP"
    if given.op == "pause":
        return pause(at_once=given.at_once, by=by)
    if given.op == "resume":
        return resume(by=by)
    if given.op == "steer":
        return steer(given.message or "", by=by)
    if given.op == "add":
        refuse_additions(call.ops, state, given.steps or {})
        return add(given.steps or {}, by=by)
    if given.node is None:
        raise UsageError(f"node is missing for {given.op}", hint=f"steps: {', '.join(state.steps)}")
    if given.op == "continue":
        return continue_node(given.node, rounds=given.rounds, by=by)
    if given.op == "accept":
        return accept(given.node, reason=given.reason or "", by=by)
    pools = _pool_ids(call, [*given.avoid, *([given.pool] if given.pool else [])])
    if given.op == "restart":
        return restart(given.node, pool=pools[-1] if given.pool else None, by=by)
    return rerun(given.node, avoid=pools, by=by)


def _pool_ids(call: Call, named: list[str]) -> list[str]:
    """Return the ids of pools that were named by id or label. Raises UnknownNameError."""
    if not named:
        return []
    names = names_of_pools(call.ops)
    return [names.pool(name) for name in named]


def _list(call: Call, limit: int) -> CallToolResult:
    rows = _rows(call, limit)

    def build(count: int) -> CallToolResult:
        kept = rows[:count]
        document: dict[str, Any] = {"schemaVersion": LIST_VERSION, "runs": kept}
        if len(kept) < len(rows):
            document["omittedRuns"] = len(rows) - len(kept)
        lines = [_line(row) for row in kept] or ["no runs yet"]
        return answer(lines, document)

    return fitted(build, len(rows))


def _rows(call: Call, limit: int) -> list[Document]:
    with call.reading() as journal:
        return [_row(call, journal, row) for row in journal.rows(limit=limit)] if journal else []


def _row(call: Call, journal: Journal, row: RunRow) -> Document:
    whole = row_document(call.home, journal, row)
    short = {
        "why": clipped(str(whole["why"]), 300) if whole["state"] == DAMAGED else None,
        "goal": clipped(whole["goal"], 80),
        "cwd": path_text(whole["cwd"]),
    }
    return without_empty({**{key: whole[key] for key in _ROW_KEYS}, **short})


def _line(row: dict[str, Any]) -> str:
    why = f" · {row['why']}" if row["state"] == DAMAGED else ""
    return (
        f"{row['shortId']} {row['state']} [{row.get('poolLabel', '-')}] {row['goal']} (started {row['createdAt']}){why}"
    )


def _result(state: RunState, cursor: int) -> CallToolResult:
    if state.finished is None:
        raise UsageError(
            f"run {state.created.short_id} has no result yet",
            hint=f'run {{"run_id":"{state.created.short_id}"}} waits for it',
        )
    if not state.is_single:
        return workflow_answer(dict(state.finished.verdict), state)
    verdict = state.finished.verdict
    output = Output(verdict.get("outFile"), verdict.get("excerpt"))
    name = state.created.short_id

    def build(budget: int) -> CallToolResult:
        text, after = output.page(cursor, budget)
        more = after if after < output.size else None
        follow = f'runs {{"op":"result","run_id":"{name}","cursor":{more}}} reads on' if more else None
        fenced = fence(text)
        document = {
            "schemaVersion": RESULT_VERSION,
            "runId": state.created.run_id,
            "shortId": name,
            "ok": verdict["ok"],
            "outFile": path_text(verdict.get("outFile")),
            "outBytes": output.size,
            "cursor": more,
            "next": follow,
            "text": fenced,
        }
        head = (
            f"bytes {min(cursor, output.size)} to {after} of {output.size} of run {name}"
            if output.size
            else "there is no output"
        )
        return answer([line for line in (head, follow and f"next: {follow}", fenced) if line], without_empty(document))

    return fitted(build, _PAGE_BYTES)


def _stop(call: Call, state: RunState) -> None:
    if state.finished is not None:
        return
    refuse_own_worker(state, call.machine.environ)
    connection = open_database(call.home)
    try:
        request_stop(
            call.home, connection, Journal(connection).state(state.created.run_id), by="runs stop", now=utc_now()
        )
    finally:
        connection.close()


TOOL = Tool(
    model=RunsArguments,
    description=(
        "What was started: list; show one; result (its output, from cursor on); wait; stop (ends the worker and all it "
        "started; its files stay). Of a workflow: rerun, restart or accept a step; continue a gate or loop; pause; resume "
        "(of an ended one: try again what failed); steer; add steps."
    ),
    # `stop` ends only work that bullswarm started, and `wait` may start a kernel again: neither read-only nor destructive.
    annotations=ACTS,
    work=_runs,
)
