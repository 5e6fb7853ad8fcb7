"""`workflow_goal`: checks a program of dependent tasks, and runs one of a single step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anyio.to_thread
from mcp_types import CallToolResult

from bullswarm_core.errors import UsageError
from bullswarm_core.program.issues import issues_of
from bullswarm_core.runs.task import from_step
from bullswarm_server.mcp.arguments import RunArguments, WorkflowGoalArguments
from bullswarm_server.mcp.asking import working_folder
from bullswarm_server.mcp.results import answer, clipped, fitted, without_empty
from bullswarm_server.mcp.session import Call, absolute_file
from bullswarm_server.mcp.tools.run import start as start_run
from bullswarm_server.mcp.tools.run import state_answer
from bullswarm_server.mcp.tools.tool import ACTS, Tool
from bullswarm_server.mcp.waiting import Report

SCHEMA_VERSION = "bullswarm.workflow-goal.v1"
CONTRACT = "bullswarm://program-contract"
_MOST_PROGRAM_BYTES = 16 * 1024 * 1024
_MOST_ISSUES = 40
# What a single run can do today; anything else in the step would be promised and not done.
_RUNNABLE = frozenset(
    {"id", "prompt", "label", "phase", "lane", "effort", "reasoning", "model", "route", "retry", "dependsOn"}
)


async def _workflow_goal(call: Call, given: WorkflowGoalArguments, _: Report) -> CallToolResult:
    return await anyio.to_thread.run_sync(_work, call, given)


def _work(call: Call, given: WorkflowGoalArguments) -> CallToolResult:
    cwd = working_folder(given.cwd, call.machine.environ)
    program = _program(given.program)
    issues = issues_of(program)
    if issues:
        return _invalid(issues)
    assert isinstance(program, dict), "a program without issues is an object"
    missing = _not_yet(program)
    if missing:
        return _not_started(given.goal, program, missing)
    return _started(call, given, program, cwd)


def _program(given: dict[str, Any] | str) -> Any:
    if not isinstance(given, str):
        return given
    if given.lstrip().startswith("{"):
        # Some clients send an object as its JSON text.
        return _parsed(given.encode(), "program")
    file = absolute_file(given, "program")
    try:
        if file.stat().st_size > _MOST_PROGRAM_BYTES:
            raise UsageError(f"program {file} has more than {_MOST_PROGRAM_BYTES} bytes", hint=f"see {CONTRACT}")
        return _parsed(file.read_bytes(), f"program {file}")
    except OSError as error:
        raise UsageError(f"cannot read program {file}: {error.strerror}", hint="give a file that exists") from error


def _parsed(data: bytes, what: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} is not JSON: {error}", hint=f"see {CONTRACT}") from error


def _not_yet(program: Mapping[str, Any]) -> str | None:
    """Say what of the program this version cannot carry out, or None."""
    steps = program["steps"]
    if len(steps) > 1:
        return f"it has {len(steps)} steps"
    for key in ("gates", "loops"):
        if program.get(key):
            return f"it has {key}"
    asked = sorted(set(steps[0]) - _RUNNABLE)
    if asked:
        return f"its step has {', '.join(asked)}"
    if (program.get("defaults") or {}).get("timeBox"):
        return "its defaults have a timeBox"
    if (steps[0].get("route") or {}).get("independentOf"):
        return "its step has route.independentOf"
    return None


def _invalid(issues: list[str]) -> CallToolResult:
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
        lines = [f"the program is not valid, nothing was started: {len(issues)} issues", f"next: {follow}", *shown]
        return answer(lines, without_empty(document), error=True)

    return fitted(build, min(len(issues), _MOST_ISSUES))


def _not_started(goal: str, program: Mapping[str, Any], missing: str) -> CallToolResult:
    why = (
        f"the program is valid, and nothing was started: {missing}; this version runs programs of one plain step, a "
        "later one runs the rest"
    )
    follow = "give the steps one by one to `run`, each when the verdicts that it depends on are there"
    document = {
        "schemaVersion": SCHEMA_VERSION,
        "state": "not-started",
        "valid": True,
        "issues": [],
        "goal": clipped(goal, 200),
        "steps": len(program["steps"]),
        "gates": len(program.get("gates") or ()),
        "loops": len(program.get("loops") or ()),
        "why": why,
        "next": follow,
    }
    return answer([why, f"next: {follow}"], document, error=True)


def _started(call: Call, given: WorkflowGoalArguments, program: Mapping[str, Any], cwd: str) -> CallToolResult:
    step = {"lane": "analyze", **(program.get("defaults") or {}), **program["steps"][0]}
    task = from_step(step, {}, cwd=cwd)
    asked = {
        "lane": task.lane,
        "prompt": task.prompt,
        "cwd": cwd,
        "effort": task.effort,
        "reasoning": task.reasoning,
        "model": task.model,
        "use_pools": list(task.use_pools),
        "avoid_pools": list(task.avoid_pools),
        "use_providers": list(task.use_providers),
        "avoid_providers": list(task.avoid_providers),
        "idempotency_key": given.idempotency_key,
    }
    started = start_run(call, RunArguments.model_validate(asked))
    if isinstance(started, CallToolResult):
        return started
    found = state_answer(call, call.state_of(started.run_id))
    return found.model_copy(update={"structured_content": {**(found.structured_content or {}), "valid": True}})


TOOL = Tool(
    model=WorkflowGoalArguments,
    description=(
        f"Check a program.v3 of dependent tasks (rules: resource {CONTRACT}) and start it; returns issues or a run_id. This "
        "version executes programs of one step only and says so for others. For a single task use `run`."
    ),
    annotations=ACTS,
    work=_workflow_goal,
)
