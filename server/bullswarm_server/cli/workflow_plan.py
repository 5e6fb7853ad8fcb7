"""`bullswarm workflow plan`: the rules of programs, the check of one, and their JSON Schema for editors; starts no step."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bullswarm_core.attempts.checks import start_checks
from bullswarm_core.fast.tree import temporary_folder
from bullswarm_core.program import describe
from bullswarm_core.program.describe import advisories
from bullswarm_core.program.json_schema import json_schema
from bullswarm_core.program.model import Program, Step, program_from
from bullswarm_core.program.validate import issues_of
from bullswarm_core.runs.run_files import AttemptFiles
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.task_arguments import HERE, folder_of
from bullswarm_server.cli.workflow_goal import refuse_invalid
from bullswarm_server.cli.workflow_program import read_document
from bullswarm_server.displays.text import one_line
from bullswarm_server.ops.workflows import InvalidProgramError

CHECK_VERSION = "bullswarm.program-check.v1"
# Only a step that has run has an output and a run: a check that reads one can't be tried before.
_NEEDS_A_RUN = ("BULLSWARM_STEP_OUTPUT", "BULLSWARM_RUN_DIR")
_LOOK_SEC = 0.2


def contract(options: argparse.Namespace, context: CommandContext) -> int:
    """Print the rules of programs."""
    from bullswarm_server.mcp.contract import TEXT

    context.print(TEXT.rstrip("\n"))
    return 0


def schema(options: argparse.Namespace, context: CommandContext) -> int:
    """Print the JSON Schema of programs."""
    context.print_json(json_schema())
    return 0


def validate(options: argparse.Namespace, context: CommandContext) -> int:
    """Check a program; exit 2 with every issue, or 0 with what it comes to. With ``--try-checks`` exit 1 when one fails."""
    program = read_document(options.program, what="--program")
    issues = issues_of(program)
    if issues:
        return refuse_invalid(InvalidProgramError(issues, what="is not valid"), options, context)
    plan = program_from(program)
    cwd = folder_of(options, context, lane="analyze")
    launch = _launch_line(options)
    if not options.json:
        _print_plan(plan, cwd, launch, context)
    tried = list(_tried(plan, cwd, options, context)) if options.try_checks else None
    if options.json:
        context.print_json(_document(plan, launch, tried))
    failed = [each for each in tried or () if each["status"] == "failed"]
    if failed:
        context.note("a check may fail before the work is there: look whether it fails for that, or for a slip in it")
    return 1 if failed else 0


def _print_plan(plan: Program, cwd: str, launch: str, context: CommandContext) -> None:
    context.print(f"✓ program v3 valid: {describe.summary(plan)} (nothing launched)")
    context.print(*(one_line(line) if "\n" in line else line for line in describe.lines(plan)))
    found = [(step.id, item.cmd) for step in plan.steps for item in step.evidence if item.type == "command"]
    if found:
        plural = "s run" if len(found) > 1 else " runs"
        context.print(f"{len(found)} evidence command{plural} as you, unconfined, in {cwd}:")
        context.print(*(f"  {step}: {one_line(cmd)}" for step, cmd in found))
    context.print(f"launch: {launch}")
    context.note(*(remark.line for remark in advisories(plan)))


def _document(plan: Program, launch: str, tried: list[dict[str, Any]] | None) -> dict[str, Any]:
    checks = [{"step": step.id, "cmd": item.cmd} for step in plan.steps for item in step.evidence if item.cmd]
    return {
        "schemaVersion": CHECK_VERSION,
        "valid": True,
        "issues": [],
        "steps": [{"id": step.id, "lane": step.lane, "effort": step.effort} for step in plan.steps],
        "gates": [gate.id for gate in plan.gates],
        "loops": [loop.id for loop in plan.loops],
        "advisories": [
            {"code": each.code, "actionId": each.step, "message": each.message} for each in advisories(plan)
        ],
        "evidenceCommands": {"confinement": "none", "runAs": "you", "commands": checks},
        "triedChecks": tried,
        "next": {"launch": launch},
    }


def _launch_line(options: argparse.Namespace) -> str:
    folder = [] if options.cwd == HERE else ["--cwd", options.cwd]
    return f'bullswarm workflow goal "<goal>" {shlex.join(["--program", options.program, *folder])}'


def _tried(plan: Program, cwd: str, options: argparse.Namespace, context: CommandContext) -> Iterator[dict[str, Any]]:
    """Run each command check once in the folder, as a run would, and say what came of it."""
    for step in plan.steps:
        for result in _tried_of(step, cwd, context):
            if not options.json:
                mark = {"passed": "✓", "failed": "✗"}.get(result["status"], "·")
                why = f" → {one_line(str(result['why']))}" if result.get("why") else ""
                context.print(f"{mark} {step.id}: {one_line(result['cmd'])}{why}")
            yield {"step": step.id, **result}


def _tried_of(step: Step, cwd: str, context: CommandContext) -> Iterator[dict[str, Any]]:
    found = [item for item in step.evidence if item.type == "command"]
    ready = [item for item in found if not any(name in item.cmd for name in _NEEDS_A_RUN)]
    for item in found:
        if item not in ready:
            yield {
                "type": "command",
                "cmd": item.cmd,
                "status": "not-run",
                "why": "it reads the output of a step that ran",
            }
    if not ready:
        return
    with temporary_folder("bullswarm-checks-") as folder:
        checks = start_checks(
            ready,
            cwd=cwd,
            environ=context.environ,
            files=AttemptFiles(Path(folder), step.id, 1),
            run_folder=Path(folder),
            step_id=step.id,
        )
        try:
            while not checks.wait(_LOOK_SEC):
                pass
        finally:
            checks.stop()
            checks.wait(10.0)
        # The logs go with the folder.
        yield from ({key: value for key, value in each.items() if key != "log"} for each in checks.results())
