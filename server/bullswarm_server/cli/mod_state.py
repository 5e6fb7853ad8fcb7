"""`bullswarm mod-state`: write and print what the Claude Mod draws; with --run and --step, one step from close by."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import StateError, UnknownNameError
from bullswarm_core.fast.text import clipped, plain
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Settings
from bullswarm_core.reports.stalls import Activity, Life
from bullswarm_core.runs.run_files import AttemptFiles, RunFolder
from bullswarm_core.runs.state import AttemptState, RunState, StepState
from bullswarm_core.wire import iso
from bullswarm_server import mod_state
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.cli.runs_reading import state_named
from bullswarm_server.hook_state import refresh
from bullswarm_server.ops.files import tail
from bullswarm_server.ops.meters import renew

if TYPE_CHECKING:
    from bullswarm_core.streams.table import StreamTable

STEP_VERSION = "bullswarm.mod-step.v1"
# A pane shows a screenful; whoever wants all of it opens the file that is named beside it.
_EXCERPT_BYTES = 6000
_TASK_LENGTH = 1200


def run(arguments: list[str], context: CommandContext) -> int:
    """Print one JSON document: the whole state, which is written anew, or one step."""
    options = _parser().parse_args(arguments)
    if options.run is not None:
        context.print_json(step_document(state_named(options.run, context), options.step, context))
        return 0
    if options.refresh:
        _read_meters(context)
    if not refresh(context.home, context.environ):
        raise StateError(
            f"{mod_state.state_file(context.home)} can't be written",
            hint="bullswarm doctor says what is wrong with the home",
        )
    context.print_json(json.loads(mod_state.state_file(context.home).read_bytes()))
    return 0


def _read_meters(context: CommandContext) -> None:
    from bullswarm_providers.registry import load

    profiles, settings = load(context.home, context.environ).profiles, Settings.load(context.home)
    renew(context.home, profiles, settings, environ=context.environ, labels=Labels.load(context.home), force=False)


def step_document(state: RunState, name: str | None, context: CommandContext) -> dict[str, Any]:
    """Return what can be seen of one step: its task, what its worker does now, and the end of what it wrote.

    Raises UnknownNameError for a step that the run doesn't have; None is the only or the first running one.
    """
    step = _step(state, name)
    attempt = step.attempts[-1] if step.attempts else None
    folder = RunFolder.of(context.home, state.created.run_id)
    files = folder.attempt(step.id, attempt.picked.ordinal) if attempt else None
    return {
        "schemaVersion": STEP_VERSION,
        "runId": state.created.run_id,
        "shortId": state.created.short_id,
        "step": step.id,
        "status": step.status,
        "pool": attempt.picked.pool if attempt else None,
        "poolLabel": Labels.load(context.home).shown(attempt.picked.pool) if attempt else None,
        "model": attempt.picked.model if attempt else None,
        "attempts": len(step.attempts),
        "startedAt": iso(attempt.launched_at) if attempt and attempt.launched_at else None,
        "activity": _activity(state, step, folder, context),
        "why": attempt.finished.why if attempt and attempt.finished else None,
        "outFile": attempt.finished.output_file if attempt and attempt.finished else None,
        "task": clipped(plain(state.program.step(step.id).prompt), _TASK_LENGTH),
        "excerpt": _excerpt(attempt, files),
    }


def _step(state: RunState, name: str | None) -> StepState:
    if name is None:
        running = (step for step in state.steps.values() if step.running is not None)
        return next(running, next(iter(state.steps.values())))
    if name not in state.steps:
        steps = ", ".join(state.steps)
        raise UnknownNameError(f'"{name}" is no step of run {state.created.short_id}', hint=f"steps: {steps}")
    return state.steps[name]


def _activity(state: RunState, step: StepState, folder: RunFolder, context: CommandContext) -> dict[str, Any] | None:
    """Return the signs of life of a running worker; None for a step that doesn't run."""
    if step.running is None or step.running.launched_at is None:
        return None
    now = utc_now()
    activity = Activity(folder, table_of=_tables(context))
    life = next((life for life in activity.lives(state, now=now) if life.step == step.id), None)
    return None if life is None else _signs(life, now)


def _signs(life: Life, now: datetime) -> dict[str, Any]:
    return {
        "commands": life.commands,
        "lastCommand": life.last_command,
        "inFlight": life.in_flight,
        "checking": life.checking,
        "quietSec": round(life.quiet(now).total_seconds()),
    }


def _tables(context: CommandContext) -> Callable[[str], StreamTable | None]:
    from bullswarm_core.streams.table import compile_table
    from bullswarm_providers.registry import load

    connectors = {profile.id: profile.connector for profile in load(context.home, context.environ).profiles}

    def table_of(pool: str) -> StreamTable | None:
        table = connectors[pool].stream_table() if pool in connectors else None
        return compile_table(table) if table else None

    return table_of


def _excerpt(attempt: AttemptState | None, files: AttemptFiles | None) -> str:
    """Return the end of a finished worker's output, or of what a running one has written so far, without control sequences."""
    if attempt is None or files is None:
        return ""
    finished = attempt.finished
    if finished is not None:
        places = [Path(finished.output_file)] if finished.output_file else []
    else:
        places = [files.stdout, files.stderr]
    texts = (_tail(place) for place in places)
    return next((text for text in texts if text), "")


def _tail(path: Path) -> str:
    try:
        data, is_cut = tail(path, _EXCERPT_BYTES)
    except OSError:
        return ""
    text = plain(data.decode("utf-8", "replace")).strip()
    # A line that was cut at its head says less than none.
    return text.partition("\n")[2] if is_cut and "\n" in text else text


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm mod-state",
        description="Write cache/mod-state.json anew and print it: the pools, runs and verdicts that the Claude Mod draws.",
    )
    parser.add_argument("--run", metavar="RUN", help="print one step of this run instead (bullswarm.mod-step.v1)")
    parser.add_argument("--step", metavar="STEP", help="which one (default: the one that runs)")
    parser.add_argument("--refresh", action="store_true", help="read the meters that are due first")
    return parser
