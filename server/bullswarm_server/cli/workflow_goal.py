"""`bullswarm workflow goal`: check a program against its rules and this machine, and start it as a run of its own."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import Any

from bullswarm_core.program.describe import advisories
from bullswarm_core.program.model import Program
from bullswarm_core.reports import commands
from bullswarm_core.runs.events import RunCreated
from bullswarm_core.wire import iso
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.run import follow
from bullswarm_server.cli.task_arguments import HERE, TERMS
from bullswarm_server.cli.workflow_driving import follow_live
from bullswarm_server.cli.workflow_program import read_document
from bullswarm_server.displays.workflow import launch_lines
from bullswarm_server.ops.launch import start_kernel
from bullswarm_server.ops.workflows import (
    DuplicateGoalError,
    InvalidProgramError,
    WorkflowRequest,
    prepare_workflow,
    record_workflow,
)

LAUNCH_VERSION = "bullswarm.workflow-launch.v1"
REFUSAL_VERSION = "bullswarm.workflow-refusal.v1"
EXIT_USAGE = 2
_CONTRACT = "bullswarm workflow plan contract"
_FILE = "program.json"


def goal(options: argparse.Namespace, context: CommandContext) -> int:
    """Start a workflow; exit 0 once it is started (with ``--foreground``: done well), 1 when it failed, 2 when the call was
    wrong and nothing was started.
    """
    if options.program is None:
        return _refuse_without_program(options, context)
    request = WorkflowRequest(
        goal=options.goal,
        program=read_document(options.program, what="--program"),
        cwd=options.cwd,
        folder_is_chosen=options.cwd != HERE,
        worker_pool=options.worker_pool,
        worker_model=options.worker_model,
        worker_reasoning=options.worker_reasoning,
        concurrency=options.concurrency,
        retry_attempts=options.retry_attempts,
        isolation=options.isolation,
        shared_tree=options.shared_tree,
        terms=TERMS,
    )
    try:
        prepared = prepare_workflow(context.ops, request)
        created, _ = record_workflow(context.ops, prepared, again=options.again)
    except InvalidProgramError as error:
        return refuse_invalid(error, options, context)
    except DuplicateGoalError as error:
        return _refuse_twin(error, options, context)
    return _begin(options, context, created, prepared.plan)


def _begin(options: argparse.Namespace, context: CommandContext, created: RunCreated, plan: Program) -> int:
    remarks = advisories(plan)
    context.note(*(remark.line for remark in remarks))
    if options.foreground:
        return follow(context, created.run_id, start=True, as_json=options.json)
    start_kernel(context.home, created.run_id, environ=context.environ)
    if options.watch:
        return follow_live(context, created.short_id, after=0, as_json=options.json)
    document = _launch_document(created, plan)
    document["advisories"] = [{"code": each.code, "actionId": each.step, "message": each.message} for each in remarks]
    if options.json:
        context.print_json(document)
    else:
        context.print(*launch_lines(document))
    return 0


def _rounds(most: int) -> str:
    return "its only round is" if most == 1 else f"its {most} rounds are"


def _launch_document(created: RunCreated, plan: Program) -> dict[str, Any]:
    run = created.short_id
    stops = [f"gate {gate.id}" + (f" · {gate.note}" if gate.note else "") for gate in plan.gates]
    stops += [f"loop {loop.id} when {_rounds(loop.max_rounds)} spent" for loop in plan.loops]
    return {
        "schemaVersion": LAUNCH_VERSION,
        "runId": created.run_id,
        "shortId": run,
        "goal": created.goal,
        "cwd": created.cwd,
        "status": "running",
        "steps": [{"id": step.id, "label": step.label, "phase": step.phase} for step in plan.steps],
        "gates": [gate.id for gate in plan.gates],
        "loops": [loop.id for loop in plan.loops],
        "stopsForYou": stops,
        "next": {
            "watch": commands.watch(run),
            "wait": commands.wait(run),
            "show": commands.show(run),
            "result": commands.result(run),
            "cancel": commands.stop(run),
        },
    }


def _refuse_without_program(options: argparse.Namespace, context: CommandContext) -> int:
    command = ["bullswarm", "workflow", "goal", options.goal, "--program", _FILE]
    follow_up = {
        "contract": _CONTRACT,
        "validate": f"bullswarm workflow plan validate --program {_FILE}",
        "goal": shlex.join(command),
    }
    text = "a workflow needs a program: the steps that lead to the goal, which you write"
    return _refused("program-required", text, follow_up, {}, options, context)


def _refuse_twin(error: DuplicateGoalError, options: argparse.Namespace, context: CommandContext) -> int:
    twin = error.twin
    follow_up = {
        "watch": commands.watch(twin.short_id),
        "again": shlex.join(["bullswarm", "workflow", *options.typed, "--again"]),
    }
    facts = {"shortId": twin.short_id, "runId": twin.run_id, "startedAt": iso(twin.created_at)}
    return _refused("duplicate-goal", error.message, follow_up, facts, options, context)


def _refused(
    error: str,
    text: str,
    follow_up: Mapping[str, str],
    facts: Mapping[str, str],
    options: argparse.Namespace,
    context: CommandContext,
) -> int:
    if options.json:
        context.print_json({"schemaVersion": REFUSAL_VERSION, "error": error, "why": text, **facts, "next": follow_up})
    else:
        context.note(f"bullswarm: {text} · nothing was started")
        context.note(*(f"  {name + ':':<10}{command}" for name, command in follow_up.items()))
    return EXIT_USAGE


def refuse_invalid(error: InvalidProgramError, options: argparse.Namespace, context: CommandContext) -> int:
    """Print every issue of a program; exit code 2, nothing was started."""
    if options.json:
        context.print_json(
            {
                "schemaVersion": REFUSAL_VERSION,
                "error": "invalid-program",
                "valid": False,
                "why": error.why,
                "issues": list(error.issues),
                "next": {"contract": _CONTRACT},
            }
        )
    else:
        context.note(f"✗ {error.why} (nothing launched)", *(f"  {issue}" for issue in error.issues))
        context.note(f"the rules: {_CONTRACT}")
    return EXIT_USAGE
