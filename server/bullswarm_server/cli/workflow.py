"""`bullswarm workflow`: a program of dependent steps towards a goal, started, followed and steered.

`goal` and `plan` are its own; everything else is what `bullswarm runs` takes, too.
"""

from __future__ import annotations

import argparse

from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.cli.runs import add_operations, carry_out
from bullswarm_server.cli.workflow_arguments import add_goal, add_plan


def run(arguments: list[str], context: CommandContext) -> int:
    """Carry out one operation on workflows."""
    options = _parser().parse_args(arguments)
    # A refusal that prints the same command with one word more needs it as it was typed.
    options.typed = arguments
    return carry_out(options, context)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm workflow",
        description="Run a program of dependent steps, which the caller writes, each on the right pool.",
    )
    verbs = parser.add_subparsers(required=True, metavar="OPERATION")
    add_goal(verbs)
    add_plan(verbs)
    add_operations(verbs)
    text = "stop all of a run's work (the same as stop)"
    cancel = verbs.add_parser("cancel", help=text, description=text)
    cancel.set_defaults(operation="workflow_driving.stop")
    cancel.add_argument("run_id", metavar="RUN", help="a run id, its short id, the start of one, or `last`")
    cancel.add_argument("--json", action="store_true", help="print one JSON document")
    return parser
