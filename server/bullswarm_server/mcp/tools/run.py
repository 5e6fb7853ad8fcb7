"""`run`: one bounded task to one worker, or with ``run_id`` the wait for a run's verdict."""

from __future__ import annotations

import time
from dataclasses import dataclass

import anyio.to_thread
from mcp_types import CallToolResult, TextContent

from bullswarm_core.errors import UsageError
from bullswarm_core.runs.state import RunState
from bullswarm_server.mcp.arguments import RunArguments
from bullswarm_server.mcp.results import plain_text
from bullswarm_server.mcp.session import Call
from bullswarm_server.mcp.task_requests import (
    absolute_folder,
    check_answer_schema,
    prepare,
    refuse_second_writer,
    task_text,
)
from bullswarm_server.mcp.tools.route import pick_answer, without_worker
from bullswarm_server.mcp.tools.tool import ACTS, Tool
from bullswarm_server.mcp.verdicts import running_answer, verdict_answer
from bullswarm_server.mcp.waiting import Report, signs_of_life, wait_for_verdict
from bullswarm_server.mcp.waits import patience_of
from bullswarm_server.mcp.workflow_answers import workflow_answer
from bullswarm_server.ops.tasks import record_task

_WITH_RUN_ID = frozenset({"run_id", "wait_s", "cursor"})
_CODE_MODE_TIP = (
    'A script whose first line is // @exec: {"yield_time_ms": 300000} may wait longer in one go: pass "wait_s": 280'
)


@dataclass(frozen=True, slots=True)
class Started:
    run_id: str
    repeated: bool


async def _run(call: Call, given: RunArguments, report: Report) -> CallToolResult:
    if given.run_id is not None:
        _only_waiting(given)
        state = await anyio.to_thread.run_sync(call.state_of, given.run_id)
        return await wait_on(call, state.created.run_id, given.wait_s, report, cursor=given.cursor or 0)
    if given.cursor is not None:
        raise UsageError("cursor goes with run_id", hint="leave it out to start a task")
    started = await anyio.to_thread.run_sync(start, call, given)
    if isinstance(started, CallToolResult):
        return started
    return await wait_on(call, started.run_id, given.wait_s, report, repeated=started.repeated)


async def wait_on(
    call: Call, run_id: str, asked_sec: float | None, report: Report, *, cursor: int = 0, repeated: bool = False
) -> CallToolResult:
    """Wait for a run as long as the client has patience for, and answer with what is known then."""
    spent = time.monotonic() - call.came
    seconds = patience_of(call.client, call.machine.environ).seconds(asked_sec, spent_sec=spent)
    state = await wait_for_verdict(call, run_id, seconds=seconds, report=report)
    return await anyio.to_thread.run_sync(
        lambda: state_answer(call, state, waited_sec=seconds, cursor=cursor, repeated=repeated)
    )


def state_answer(
    call: Call, state: RunState, *, waited_sec: float | None = None, cursor: int = 0, repeated: bool = False
) -> CallToolResult:
    """Answer with a run as it is now."""
    document = call.document_of(state)
    more = {"repeated": True} if repeated else {}
    if not state.is_single:
        return workflow_answer(document, state, waited_sec=None if state.finished else waited_sec, more=more)
    if state.finished is not None:
        return verdict_answer(document, cursor=cursor, **more)
    tip = _CODE_MODE_TIP if call.client.code_mode else None
    return running_answer(document, signs_of_life(call, state), waited_sec=waited_sec, tip=tip)


def _only_waiting(given: RunArguments) -> None:
    surplus = sorted(given.model_fields_set - _WITH_RUN_ID)
    named = [name for name in surplus if getattr(given, name) not in (None, [], False)]
    if named:
        raise UsageError(
            f"run_id waits for a run that exists, and {', '.join(named)} would start another",
            hint="leave run_id out to start a task, or the rest to wait",
        )


def start(call: Call, given: RunArguments) -> Started | CallToolResult:
    """Record the task and start its kernel; answer at once where no pool can take it, with nothing recorded."""
    prompt = task_text(given)
    check_answer_schema(given.answer_schema)
    cwd = absolute_folder(given.cwd)
    with prepare(call, given, cwd=cwd, prompt=prompt, write_cache=True) as prepared:
        earlier = prepared.run_of_key(given.idempotency_key)
        if earlier is None:
            decision = prepared.decide()
            if decision.pool is None or without_worker(prepared, decision):
                return refused(pick_answer(prepared, decision))
            refuse_second_writer(prepared)
    created = record_task(call.ops, prepared, idempotency_key=given.idempotency_key)
    if earlier is None:
        # Where two requests with one key came at once, the second kernel finds the first at work and ends.
        call.machine.start(created.run_id)
    return Started(created.run_id, repeated=earlier is not None)


def refused(pick: CallToolResult) -> CallToolResult:
    """Turn the answer about a task that no worker can take into a refusal: nothing was started."""
    document = {"state": "refused", "ok": False, **(pick.structured_content or {}), "pool": None}
    text = TextContent(type="text", text=f"refused, nothing was started\n{plain_text(pick)}")
    return CallToolResult(content=[text], structured_content=document, is_error=True)


TOOL = Tool(
    model=RunArguments,
    description=(
        "Give one bounded, self-contained task to a worker: another coding-agent account with quota to spare. It works in cwd, "
        "and bullswarm judges what it left. Needs lane, cwd and prompt (or task_file). Returns the verdict, or state running "
        "with a run_id: call again with it to wait on. A build or chore worker changes files in cwd.\n"
        "Not for: what takes you a few minutes or one command, what needs this conversation, questions to the person, commits "
        "or deployments."
    ),
    # `destructive` and `open world` are false although a build worker edits files and asks its provider's model: it can no
    # more than the agent that calls can with its own tools, is confined to cwd, and never commits. With an honest-sounding
    # `true` Codex exec refuses the tool altogether; a person who wants to be asked sets that in the client.
    annotations=ACTS,
    work=_run,
)
