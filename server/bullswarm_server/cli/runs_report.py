"""`bullswarm runs report`: write the page of an ended workflow, again or for the first time."""

from __future__ import annotations

import argparse

from bullswarm_core.errors import UsageError
from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports import commands
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.runs_reading import state_named
from bullswarm_server.ops.runs import document_of
from bullswarm_server.report import write_report

REPORT_VERSION = "bullswarm.report.v1"


def report_run(options: argparse.Namespace, context: CommandContext) -> int:
    """Write report.html into the run's folder and print its path; a run that goes on has none yet."""
    state = state_named(options.run_id, context)
    short = state.created.short_id
    if state.is_single:
        raise UsageError(f"run {short} is a single run, and has no report", hint=commands.show(short))
    if state.finished is None and state.parked is None:
        raise UsageError(f"run {short} is not over yet", hint=commands.wait(short))
    folder = RunFolder.of(context.home, state.created.run_id)
    path = write_report(folder, state, document_of(context.home, state), labels=Labels.load(context.home))
    if options.json:
        context.print_json({"schemaVersion": REPORT_VERSION, "runId": state.created.run_id, "report": str(path)})
    else:
        context.print(str(path))
    return 0
