"""`bullswarm run`: give one bounded task to one worker, wait for it, and print its verdict."""

from __future__ import annotations

import argparse
import time
from typing import Any

from bullswarm_core.errors import RunConflictError, UsageError
from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.verdict import SCHEMA_VERSION, running_document
from bullswarm_core.routing import Decision
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.state import RunState
from bullswarm_core.store.database import open_database
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.cli.meter_argument import add_meter_argument
from bullswarm_server.cli.task_arguments import add_task_arguments, answer_schema, seconds, task_request
from bullswarm_server.displays.route import forecast_line, pick_line
from bullswarm_server.displays.text import Style
from bullswarm_server.displays.verdict import verdict_lines
from bullswarm_server.ops.launch import request_stop, start_kernel, wait_for
from bullswarm_server.ops.tasks import PreparedTask, prepare_task, record_task

EXIT_INTERRUPTED = 130
_EXIT_STILL_RUNNING = 2


def run(arguments: list[str], context: CommandContext) -> int:
    """Run the task and print the verdict; exit 0 when it is good, 1 when the work failed, 2 when the call was wrong."""
    options = _parser().parse_args(arguments)
    if options.meter and not options.dry_run:
        raise UsageError("--meter supposes a reading", hint="use it with --dry-run or `bullswarm route`")
    request = task_request(options, prompt_required=True)
    with prepare_task(context.ops, request, write_cache=not options.dry_run) as prepared:
        if options.dry_run:
            return _dry_run(prepared, options, context)
        _refuse_second_writer(prepared)
    created = record_task(context.ops, prepared)
    return follow(context, created.run_id, start=True, heartbeat_sec=options.heartbeat, as_json=options.json)


def follow(
    context: CommandContext, run_id: str, *, start: bool = False, heartbeat_sec: float | None = None,
    as_json: bool = False, timeout_sec: float | None = None,
) -> int:  # fmt: skip
    """Wait for a run's verdict and print it. Ctrl-C asks for the work to be stopped; a second one only ends the wait.

    ``start`` is for a run that has no kernel yet; one whose kernel is gone gets another by itself.
    """
    heart = _Heartbeat(context, heartbeat_sec, announces=start and not as_json)

    def wait() -> int:
        state = wait_for(context.home, run_id, environ=context.environ, tick=heart.tick, timeout_sec=timeout_sec)
        return show(context, state, as_json=as_json)

    asked_to_stop = False
    try:
        try:
            if start:
                start_kernel(context.home, run_id, environ=context.environ)
            return wait()
        except KeyboardInterrupt:
            _stop(context, run_id)
            asked_to_stop = True
            context.note("stopping the worker; Ctrl-C again leaves at once")
            return wait()
    except KeyboardInterrupt:
        what = "is being stopped" if asked_to_stop else "goes on"
        context.note(f"left to itself: the work {what} · bullswarm runs show {run_id}")
        return EXIT_INTERRUPTED


def show(context: CommandContext, state: RunState, *, as_json: bool) -> int:
    """Print a run's verdict, or how far it is; return the exit code, 2 for work that goes on.

    A workflow that waits for somebody is not done: exit code 1.
    """
    if not state.is_single:
        return _show_workflow(context, state, as_json=as_json)
    verdict = _verdict(context, state)
    if as_json:
        context.print_json(verdict)
    else:
        context.print(*verdict_lines(verdict, style=Style(colour=context.colour), labels=Labels.load(context.home)))
    return _EXIT_STILL_RUNNING if verdict["ok"] is None else 0 if verdict["ok"] else 1


def _show_workflow(context: CommandContext, state: RunState, *, as_json: bool) -> int:
    from bullswarm_server.cli.runs_reading import print_run
    from bullswarm_server.ops.runs import is_good

    document = print_run(context, state, as_json=as_json)
    if state.finished is None and state.parked is None:
        return _EXIT_STILL_RUNNING
    return 0 if is_good(document) else 1


def _verdict(context: CommandContext, state: RunState) -> dict[str, Any]:
    if state.finished is not None:
        return dict(state.finished.verdict)
    step = next(iter(state.steps.values()))
    label = Labels.load(context.home).shown(step.current.picked.pool) if step.current else None
    return running_document(state, kernel_alive=True, label=label)


def _stop(context: CommandContext, run_id: str) -> None:
    connection = open_database(context.home)
    try:
        from bullswarm_core.dispatch.services import utc_now

        request_stop(context.home, connection, Journal(connection).state(run_id), by="Ctrl-C", now=utc_now())
    finally:
        connection.close()


def _refuse_second_writer(prepared: PreparedTask) -> None:
    """Refuse early, with nothing created, what the kernel would refuse for good inside its transaction."""
    conflict = prepared.conflict()
    if conflict is not None:
        raise RunConflictError(conflict.text())


def _dry_run(prepared: PreparedTask, options: argparse.Namespace, context: CommandContext) -> int:
    decision = prepared.decide()
    command = _command(prepared, decision)
    if options.json:
        context.print_json(_dry_document(prepared, decision, command))
        return 0 if decision.pool else 1
    context.print(pick_line(decision, style=Style(colour=context.colour)))
    if decision.pool:
        context.print(f"command: {command}", *filter(None, [forecast_line(decision)]))
    return 0 if decision.pool else 1


def _command(prepared: PreparedTask, decision: Decision) -> str | None:
    from bullswarm_core.attempts.prepare import preview

    return preview(prepared.services, prepared.view.settings, prepared.task, decision) if decision.pool else None


def _dry_document(prepared: PreparedTask, decision: Decision, command: str | None) -> dict[str, Any]:
    answer = decision.to_json()
    return {
        "schemaVersion": SCHEMA_VERSION,
        "dryRun": True,
        "state": "finished",
        "ok": decision.pool is not None,
        "why": decision.reason,
        "failureKind": decision.failure_kind,
        "backAt": answer["backAt"],
        "pick": {
            "pool": decision.pool,
            "poolLabel": prepared.services.label(decision.pool),
            "lane": prepared.task.lane,
            "effort": prepared.task.tier,
            "model": answer["model"],
            "command": command,
        }
        if decision.pool
        else None,
        "routeWhy": decision.reason,
        "forecast": answer["forecast"],
        "candidates": answer["candidates"],
        "excluded": answer["excluded"],
    }


class _Heartbeat:
    """Says on standard error that work goes on: once where it went, and then as often as was asked for."""

    def __init__(self, context: CommandContext, every_sec: float | None, *, announces: bool) -> None:
        self._context = context
        self._every = every_sec
        self._last = time.monotonic()
        self._to_announce = announces

    def tick(self, state: RunState, waited_sec: float) -> None:
        launched = any(step.current is not None and step.current.launched for step in state.steps.values())
        if self._to_announce and launched:
            self._to_announce = False
            self._context.note(f"{self._where(state)} · bullswarm runs show {state.created.short_id}")
        if self._every is not None and time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            self._context.note(f"{self._where(state)}, {waited_sec:.0f} s")

    def _where(self, state: RunState) -> str:
        if not state.is_single:
            done = sum(step.status == "succeeded" for step in state.steps.values())
            return f"run {state.created.short_id}: {done} of {len(state.steps)} steps done"
        attempt = next(iter(state.steps.values())).current
        if attempt is None:
            return f"run {state.created.short_id} waits for a pick"
        return f"run {state.created.short_id} on {Labels.load(self._context.home).shown(attempt.picked.pool)}"


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm run",
        description="Give one bounded task to one worker, wait for it, and print its verdict. One attempt: no retry.",
    )
    add_task_arguments(parser, prompt_required=True)
    parser.add_argument(
        "--timeout", type=seconds, metavar="SEC", help="stop the worker after this long (default: no limit)"
    )
    parser.add_argument("--heartbeat", type=seconds, metavar="SEC", help="say this often, on stderr, that work goes on")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the pick and the command; write and start nothing"
    )
    parser.add_argument(
        "--answer-schema", metavar="FILE|JSON", type=answer_schema,
        help="the answer must be JSON that matches this JSON Schema; the verdict carries it",
    )  # fmt: skip
    parser.add_argument("--shared-tree", action="store_true", help="allow a second writer in this working tree")
    add_meter_argument(parser)
    return parser
