"""`bullswarm workflow goal`: check a program against its rules and this machine, and start it as a run of its own."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import Any

from bullswarm_core import ledger
from bullswarm_core.database import open_database
from bullswarm_core.errors import RunConflictError, UsageError
from bullswarm_core.home import file_lock
from bullswarm_core.program.advisories import advisories
from bullswarm_core.program.issues import issues_of
from bullswarm_core.program.model import Program, program_from
from bullswarm_core.runs import commands
from bullswarm_core.runs.events import RunCreated
from bullswarm_core.runs.journal import Journal, RunRow
from bullswarm_core.runs.pick import conflict_text, second_writer
from bullswarm_core.runs.services import utc_now
from bullswarm_core.runs.task import Task
from bullswarm_core.wire import iso
from bullswarm_core.workers.tree import tree_of
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.run import follow
from bullswarm_server.cli.task_arguments import folder_of
from bullswarm_server.cli.workflow_driving import follow_live
from bullswarm_server.cli.workflow_program import read_document
from bullswarm_server.displays.workflow import launch_lines
from bullswarm_server.ops.launch import create_workflow, start_kernel
from bullswarm_server.ops.workflows import Here, here

LAUNCH_VERSION = "bullswarm.workflow-launch.v1"
REFUSAL_VERSION = "bullswarm.workflow-refusal.v1"
EXIT_USAGE = 2
MOST_GOAL = 4000
_CONTRACT = "bullswarm workflow plan contract"
_FILE = "program.json"


def goal(options: argparse.Namespace, context: CommandContext) -> int:
    """Start a workflow; exit 0 once it is started (with ``--foreground``: done well), 1 when it failed, 2 when the call was
    wrong and nothing was started.
    """
    if options.program is None:
        return _refuse_without_program(options, context)
    program = read_document(options.program, what="--program")
    issues = issues_of(program)
    if issues:
        return refuse_invalid(issues, options, context)
    plan = program_from(program)
    cwd = folder_of(options, context, lane="build" if _writers(plan) else "analyze")
    _check_goal(options.goal)
    machine = here(context.home, context.environ)
    origin, chosen = machine.origin(), _chosen(options, machine)
    issues = machine.issues(program, cwd=cwd, options=chosen, now=utc_now())
    if issues:
        return refuse_invalid(issues, options, context, what="cannot run here")
    context.home.ensure()
    # Two calls at once must not both find that nothing is under way.
    with file_lock(context.home.root / "goal.lock"):
        connection = open_database(context.home)
        try:
            if not options.again and (twin := _under_way(Journal(connection), options.goal, cwd)):
                return _refuse_twin(twin, options, context)
            _refuse_second_writer(connection, plan, cwd, chosen)
            created = create_workflow(
                context.home, connection, program, goal=options.goal, cwd=cwd, options=chosen, environ=context.environ,
                origin=origin, now=utc_now(),
            )  # fmt: skip
        finally:
            connection.close()
    return _begin(options, context, created, plan)


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


def _chosen(options: argparse.Namespace, machine: Here) -> dict[str, Any]:
    """Return the run-wide options as the journal keeps them, pools by id."""
    pool = machine.pool_named(options.worker_pool) if options.worker_pool is not None else None
    return {
        "concurrency": options.concurrency,
        "retryAttempts": options.retry_attempts,
        "workerPool": pool,
        "workerModel": options.worker_model,
        "workerReasoning": options.worker_reasoning,
        "isolation": options.isolation,
        "sharedTree": options.shared_tree,
    }


def _check_goal(text: str) -> None:
    if not text.strip() or len(text) > MOST_GOAL:
        raise UsageError(
            f"the goal must have 1 to {MOST_GOAL} characters", hint="say in a line what the program is for"
        )
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError("the goal holds bytes that are not UTF-8", hint="write it in UTF-8")


def _writers(plan: Program) -> list[Any]:
    return [step for step in plan.steps if step.lane != "analyze"]


def _under_way(journal: Journal, text: str, cwd: str) -> RunRow | None:
    rows = journal.rows(unfinished_only=True)
    return next((row for row in rows if row.kind == "workflow" and (row.goal, row.cwd) == (text, cwd)), None)


def _refuse_second_writer(connection: Any, plan: Program, cwd: str, chosen: Mapping[str, Any]) -> None:
    """Refuse early, with nothing created, what every writing step would be refused for."""
    if not _writers(plan) or chosen["isolation"] == "worktree":
        return
    tree = tree_of(cwd)
    task = Task(prompt="-", lane="build", cwd=cwd, shared_tree=chosen["sharedTree"])
    booking = second_writer(ledger.entries(connection, now=utc_now()), task, tree)
    if booking is not None:
        raise RunConflictError(conflict_text(booking, tree, run=Journal(connection).short_id(booking.run)))


def _refuse_without_program(options: argparse.Namespace, context: CommandContext) -> int:
    command = ["bullswarm", "workflow", "goal", options.goal, "--program", _FILE]
    follow_up = {
        "contract": _CONTRACT,
        "validate": f"bullswarm workflow plan validate --program {_FILE}",
        "goal": shlex.join(command),
    }
    text = "a workflow needs a program: the steps that lead to the goal, which you write"
    return _refused("program-required", text, follow_up, {}, options, context)


def _refuse_twin(twin: RunRow, options: argparse.Namespace, context: CommandContext) -> int:
    follow_up = {
        "watch": commands.watch(twin.short_id),
        "again": shlex.join(["bullswarm", "workflow", *options.typed, "--again"]),
    }
    facts = {"shortId": twin.short_id, "runId": twin.run_id, "startedAt": iso(twin.created_at)}
    text = f"the same goal is under way in {twin.cwd}: run {twin.short_id}, started {facts['startedAt']}"
    return _refused("duplicate-goal", text, follow_up, facts, options, context)


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


def refuse_invalid(
    issues: list[str], options: argparse.Namespace, context: CommandContext, *, what: str = "is not valid"
) -> int:
    """Print every issue of a program; exit code 2, nothing was started."""
    count = f"{len(issues)} issue{'' if len(issues) == 1 else 's'}"
    if options.json:
        context.print_json(
            {
                "schemaVersion": REFUSAL_VERSION,
                "error": "invalid-program",
                "valid": False,
                "why": f"the program {what}: {count}",
                "issues": issues,
                "next": {"contract": _CONTRACT},
            }
        )
    else:
        context.note(f"✗ the program {what}: {count} (nothing launched)", *(f"  {issue}" for issue in issues))
        context.note(f"the rules: {_CONTRACT}")
    return EXIT_USAGE
