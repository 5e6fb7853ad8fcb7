"""`bullswarm runs`: list, show, read, steer and delete what was started.

`list`, `show` and `result` only read: they write nothing and start nothing. `wait`, `resume` and every wish start a kernel
again where it is gone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from typing import Any

from bullswarm_core.program.validate import MOST_ROUNDS
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.cli.task_arguments import seconds

_DEFAULT_ROWS = 20
Operation = Callable[[argparse.Namespace, CommandContext], int]


def run(arguments: list[str], context: CommandContext) -> int:
    """Carry out one operation on runs; ``bullswarm runs`` alone lists them."""
    lists = not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help"))
    return carry_out(_parser().parse_args(["list", *arguments] if lists else arguments), context)


def carry_out(options: argparse.Namespace, context: CommandContext) -> int:
    """Call the operation that the arguments chose."""
    return operation_of(options.operation)(options, context)


def operation_of(name: str) -> Operation:
    """Load the operation ``module.function``: driving a run takes ten times what reading one does, so each loads its own."""
    module, _, function = name.rpartition(".")
    operation: Operation = getattr(import_module(f"bullswarm_server.cli.{module}"), function)
    return operation


def add_operations(verbs: Any) -> None:
    """Declare every operation on runs below a parser's ``add_subparsers``: `runs` and `workflow` take the same ones."""
    listing = _verb(verbs, "list", "runs_list.list_runs", "the newest runs, a line each", of_run=False)
    listing.add_argument("--limit", type=_positive_number, default=_DEFAULT_ROWS, metavar="N", help="at most N runs")
    listing.add_argument("--name", metavar="TEXT", help="only runs whose goal holds these words, in any case")
    listing.add_argument(
        "--since", type=_moment, metavar="TIME",
        help="only runs that began since then: 30m, 24h, 7d or 2w ago, or an ISO-8601 time (UTC without an offset)",
    )  # fmt: skip
    showing = _verb(verbs, "show", "runs_reading.show_run", "one run: its verdict or result, or how far it is")
    showing.add_argument("--graph", action="store_true", help="draw a workflow: what waits for what, and how it stands")
    _add_result(verbs)
    _add_wait(verbs)
    _add_watch(verbs)
    _verb(
        verbs,
        "report",
        "runs_report.report_run",
        "write report.html, a page of its own, into the folder of an ended workflow",
    )
    _verb(verbs, "stop", "workflow_driving.stop", "stop the work of a run and everything that it started")
    _add_resume(verbs)
    _add_wishes(verbs)
    _add_step(verbs)
    deleting = _verb(
        verbs, "delete", "runs_deleting.delete",
        "delete an ended run, its journal and its files; never one that keeps a worktree",
    )  # fmt: skip
    deleting.add_argument("--yes", action="store_true", help="delete without asking")


def _add_result(verbs: Any) -> None:
    verb = _verb(verbs, "result", "runs_reading.print_result", "the output of a run, or the result of a workflow")
    verb.add_argument("--step", metavar="STEP", help="the output of one step of a workflow")
    verb.add_argument("--cursor", type=_whole_number, default=0, metavar="BYTE", help="where to read on from")
    verb.add_argument("--summary", action="store_true", help="a workflow's result in one line of at most 4,096 bytes")


def _add_wait(verbs: Any) -> None:
    verb = _verb(
        verbs, "wait", "workflow_driving.wait",
        "wait for a run's end or for where it waits for you; exit 0 good, 1 not, 2 when --timeout is over first",
    )  # fmt: skip
    verb.add_argument("names", nargs="*", metavar="ID", help="only until these steps, gates and loops are settled")
    verb.add_argument(
        "--timeout", type=seconds, metavar="SEC", help="wait no longer than this; exit 2 when it still runs"
    )


def _add_watch(verbs: Any) -> None:
    verb = _verb(
        verbs, "watch", "workflow_watch.watch",
        "follow a run: what happens, what needs you, how it ends; exit 0 while it runs or when it delivered, 1 when it did"
        " not or its kernel is gone",
        as_json=False,
    )  # fmt: skip
    verb.add_argument(
        "--until", choices=("trouble", "outcome"),
        help="tell only what needs somebody: and return at the first of it (trouble) or at the end (outcome)",
    )  # fmt: skip
    verb.add_argument("--next", action="store_true", help="return after the first look that had something to tell")
    verb.add_argument("--once", action="store_true", help="look once and return; starts nothing")
    verb.add_argument(
        "--after", type=_whole_number, metavar="SEQ", help="tell the events behind this one, old ones too"
    )
    verb.add_argument("--since", metavar="TIME", help="tell no silence that began before this time")
    verb.add_argument("--timeout", type=seconds, metavar="SEC", help="follow no longer than this")
    verb.add_argument("--jsonl", action="store_true", help="one JSON object a line, each with its sequence")
    verb.add_argument("--verbose", action="store_true", help="every event, with its time")
    verb.add_argument("--interval", type=seconds, metavar="SEC", default=2.0, help="how often to look (default: 2)")
    verb.add_argument(
        "--stall-after", type=seconds, metavar="SEC", default=300.0,
        help="tell of a worker that has been quiet for this long (default: 300)",
    )  # fmt: skip
    verb.add_argument(
        "--heartbeat", type=seconds, metavar="SEC", help="after so long without a line, say that it lives"
    )


def _add_resume(verbs: Any) -> None:
    verb = _verb(
        verbs, "resume", "workflow_driving.resume",
        "go on with a run whose kernel is gone or that is paused, or once more with what failed and may end otherwise",
    )  # fmt: skip
    ways = verb.add_mutually_exclusive_group()
    ways.add_argument("--foreground", action="store_true", help="wait for a workflow here (a single run always is)")
    ways.add_argument("--watch", action="store_true", help="follow a workflow here; Ctrl-C leaves it running")


def _add_wishes(verbs: Any) -> None:
    going_on = _verb(
        verbs, "continue", "workflow_driving.go_on", "open a waiting gate, or go on with a loop out of rounds"
    )
    going_on.add_argument("node", metavar="GATE|LOOP", help="the gate or loop that waits")
    going_on.add_argument(
        "--rounds", type=_whole_number, metavar="N",
        help=f"give the loop 1 to {MOST_ROUNDS} more rounds; without it the loop goes on unmet",
    )  # fmt: skip
    pausing = _verb(verbs, "pause", "workflow_driving.pause", "start no further step of a workflow")
    pausing.add_argument("--now", action="store_true", help="stop running workers too; they begin anew later")
    steering = _verb(verbs, "steer", "workflow_driving.steer", "leave a message for whoever watches the run")
    steering.add_argument("--message", required=True, metavar="TEXT", help="what to tell them; it stops nothing")
    adding = _verb(verbs, "add", "workflow_driving.add", "add steps, gates and loops to a workflow, ended ones too")
    where = adding.add_mutually_exclusive_group(required=True)
    where.add_argument("--steps", metavar="FILE", help="{steps, gates, loops, blocks} as JSON; - reads standard input")
    where.add_argument("--from-answer", metavar="STEP", help="take them from this step's typed answer")


def _add_step(verbs: Any) -> None:
    text = "begin a step anew, accept it as it is, or restart it while it runs"
    step = verbs.add_parser("step", help=text, description=text)
    choices = step.add_subparsers(required=True, metavar="rerun|accept|restart")
    rerun = _verb(choices, "rerun", "workflow_driving.rerun", "begin a step anew that is over")
    rerun.add_argument("step", metavar="STEP")
    rerun.add_argument(
        "--avoid", action="append", default=[], metavar="POOL,…", help="keep the step from these pools for good"
    )
    accept = _verb(
        choices, "accept", "workflow_driving.accept", "take a failed step's work as it is: a choice, no proof"
    )
    accept.add_argument("step", metavar="STEP")
    accept.add_argument("--reason", required=True, metavar="TEXT", help="why it is good enough, in one line")
    restart = _verb(choices, "restart", "workflow_driving.restart", "stop a step's worker and begin the step anew")
    restart.add_argument("step", metavar="STEP")
    restart.add_argument("--pool", metavar="POOL", help="on this pool, by id or label")


def _verb(
    verbs: Any, name: str, operation: str, text: str, *, of_run: bool = True, as_json: bool = True
) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    verb.set_defaults(operation=operation)
    if as_json:
        verb.add_argument("--json", action="store_true", help="print one JSON document")
    if of_run:
        verb.add_argument("run_id", metavar="RUN", help="a run id, its short id, the start of one, or `last`")
    return verb


def _moment(text: str) -> datetime:
    from bullswarm_server.cli.runs_list import moment

    return moment(text)


def _whole_number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of 0 or more')
    # Beyond it SQLite counts no more, and there is nothing to be had.
    return min(int(text), 2**63 - 1)


def _positive_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not text.strip("0"):
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of 1 or more')
    return _whole_number(text)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="bullswarm runs", description="What was started: single runs and workflows.")
    add_operations(parser.add_subparsers(required=True, metavar="OPERATION"))
    return parser
