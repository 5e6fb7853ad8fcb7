"""`workflow_goal`: checks a program of dependent tasks, starts it, and waits a while for it."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
from mcp_types import CallToolResult

from bullswarm_core.errors import UsageError
from bullswarm_server.mcp.arguments import WorkflowGoalArguments
from bullswarm_server.mcp.results import answer, clipped, fitted, without_empty
from bullswarm_server.mcp.session import Call, absolute_file
from bullswarm_server.mcp.task_requests import absolute_folder, second_writer_error
from bullswarm_server.mcp.tools.run import wait_on
from bullswarm_server.mcp.tools.tool import ACTS, Tool
from bullswarm_server.mcp.waiting import Report
from bullswarm_server.ops.files import parse_json_strict, read_regular
from bullswarm_server.ops.workflows import (
    MOST_PROGRAM_BYTES,
    DuplicateGoalError,
    InvalidProgramError,
    SecondWriterError,
    WorkflowRequest,
    prepare_workflow,
    record_workflow,
)

SCHEMA_VERSION = "bullswarm.workflow-goal.v1"
CONTRACT = "bullswarm://program-contract"
_SEE = f"see {CONTRACT}"
_MOST_ISSUES = 40


async def _workflow_goal(call: Call, given: WorkflowGoalArguments, report: Report) -> CallToolResult:
    started = await anyio.to_thread.run_sync(_start, call, given)
    if isinstance(started, CallToolResult):
        return started
    run_id, repeated = started
    return await wait_on(call, run_id, given.wait_s, report, repeated=repeated)


def _start(call: Call, given: WorkflowGoalArguments) -> tuple[str, bool] | CallToolResult:
    """Record a program and start its kernel; answer with the issues of one that is not valid, with nothing recorded."""
    request = WorkflowRequest(
        goal=given.goal,
        program=_program(given.program),
        cwd=absolute_folder(given.cwd),
        concurrency=given.concurrency,
        retry_attempts=given.retry_attempts,
        isolation=given.isolation,
        shared_tree=given.shared_tree,
        idempotency_key=given.idempotency_key,
    )
    try:
        prepared = prepare_workflow(call.ops, request)
        created, is_new = record_workflow(call.ops, prepared, again=given.again)
    except InvalidProgramError as error:
        return _invalid(error)
    except DuplicateGoalError as error:
        wait = f'wait for it: run {{"run_id": "{error.twin.short_id}"}}, or pass "again": true'
        raise UsageError(error.message, hint=wait) from error
    except SecondWriterError as error:
        raise second_writer_error(error.conflict) from error
    if is_new:
        call.machine.start(created.run_id)
    return created.run_id, not is_new


def _program(given: dict[str, Any] | str) -> Any:
    if not isinstance(given, str):
        return given
    if given.lstrip().startswith("{"):
        # Some clients send an object as its JSON text.
        return parse_json_strict(given.encode("utf-8", "surrogatepass"), what="program", contract=_SEE)
    file = absolute_file(given, "program")
    what = f"program {file}"
    data = read_regular(file, what=what, most=MOST_PROGRAM_BYTES, irregular="give a JSON file", too_large=_SEE)
    return parse_json_strict(data, what=what, contract=_SEE)


def _invalid(error: InvalidProgramError) -> CallToolResult:
    issues = error.issues
    follow = f"correct the program (its rules: resource {CONTRACT}) and call again"

    def build(count: int) -> CallToolResult:
        shown = [clipped(issue, 300) for issue in issues[:count]]
        more = len(issues) - len(shown)
        document = {
            "schemaVersion": SCHEMA_VERSION,
            "state": "refused",
            "valid": False,
            "issues": shown,
            "omittedIssues": more or None,
            "next": follow,
        }
        lines = [f"the program {error.what}, nothing was started: {len(issues)} issues", f"next: {follow}", *shown]
        return answer(lines, without_empty(document), error=True)

    return fitted(build, min(len(issues), _MOST_ISSUES))


TOOL = Tool(
    model=WorkflowGoalArguments,
    description=(
        f"Check a program.v3 of dependent tasks (rules: resource {CONTRACT}) and start it; returns issues, or a run_id and how "
        "it stands: wait on with `run`, act with `runs`. Evidence commands run as the person, unconfined. For a single task "
        "use `run`."
    ),
    annotations=ACTS,
    work=_workflow_goal,
)
