"""`workflow_goal`: checks a program of dependent tasks, starts it, and waits a while for it."""

from __future__ import annotations

import json
from typing import Any

import anyio.to_thread
from mcp_types import CallToolResult

from bullswarm_core.database import open_database
from bullswarm_core.errors import UsageError
from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.program.issues import issues_of
from bullswarm_core.runs.services import utc_now
from bullswarm_server.mcp.arguments import WorkflowGoalArguments
from bullswarm_server.mcp.results import answer, clipped, fitted, without_empty
from bullswarm_server.mcp.session import Call, absolute_file
from bullswarm_server.mcp.task_requests import absolute_folder
from bullswarm_server.mcp.tools.run import wait_on
from bullswarm_server.mcp.tools.tool import ACTS, Tool
from bullswarm_server.mcp.waiting import Report
from bullswarm_server.ops.launch import create_workflow
from bullswarm_server.ops.tasks import working_folder
from bullswarm_server.ops.workflows import here

SCHEMA_VERSION = "bullswarm.workflow-goal.v1"
CONTRACT = "bullswarm://program-contract"
_MOST_PROGRAM_BYTES = 16 * 1024 * 1024
_MOST_ISSUES = 40


async def _workflow_goal(call: Call, given: WorkflowGoalArguments, report: Report) -> CallToolResult:
    started = await anyio.to_thread.run_sync(_start, call, given)
    if isinstance(started, CallToolResult):
        return started
    run_id, repeated = started
    return await wait_on(call, run_id, given.wait_s, report, repeated=repeated)


def _start(call: Call, given: WorkflowGoalArguments) -> tuple[str, bool] | CallToolResult:
    """Record a valid program and start its kernel; answer with the issues of one that is not, with nothing recorded."""
    cwd = working_folder(absolute_folder(given.cwd), lane="build", environ=call.machine.environ)
    program = _program(given.program)
    issues = issues_of(program)
    if issues:
        return _invalid(issues)
    machine = here(call.home, call.machine.environ, client=call.client.name)
    origin = machine.origin()
    options = without_empty(
        {"concurrency": given.concurrency, "retryAttempts": given.retry_attempts, "isolation": given.isolation}
    )
    earlier = call.run_of_key(given.idempotency_key)
    # What was started by this key is told as it is, whatever has become of the machine.
    blocked = machine.issues(program, cwd=cwd, options=options, now=utc_now()) if earlier is None else []
    if blocked:
        return _invalid(blocked, what="cannot run here")
    connection = open_database(call.home)
    try:
        created = create_workflow(
            call.home,
            connection,
            program,
            goal=clipped(given.goal, 2000),
            cwd=cwd,
            options=options,
            environ=call.machine.environ,
            origin=origin,
            now=utc_now(),
            idempotency_key=given.idempotency_key,
        )
    finally:
        connection.close()
    if earlier is None:
        call.machine.start(created.run_id)
    return created.run_id, earlier is not None


def _program(given: dict[str, Any] | str) -> Any:
    if not isinstance(given, str):
        return given
    if given.lstrip().startswith("{"):
        # Some clients send an object as its JSON text.
        return _parsed(given.encode(), "program")
    file = absolute_file(given, "program")
    try:
        with open_ordinary(file) as opened:
            data = opened.read(_MOST_PROGRAM_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read program {file}: {error.strerror}", hint="give a file that exists") from error
    if len(data) > _MOST_PROGRAM_BYTES:
        raise UsageError(f"program {file} has more than {_MOST_PROGRAM_BYTES} bytes", hint=f"see {CONTRACT}")
    return _parsed(data, f"program {file}")


def _parsed(data: bytes, what: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} is not JSON: {error}", hint=f"see {CONTRACT}") from error


def _invalid(issues: list[str], *, what: str = "is not valid") -> CallToolResult:
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
        lines = [f"the program {what}, nothing was started: {len(issues)} issues", f"next: {follow}", *shown]
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
