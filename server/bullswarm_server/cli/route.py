"""`bullswarm route`: the pick that a task would get, and why; starts nothing and writes nothing."""

from __future__ import annotations

import argparse

from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.cli.meter_argument import add_meter_argument
from bullswarm_server.cli.task_arguments import add_task_arguments, task_request
from bullswarm_server.displays.route import decision_lines
from bullswarm_server.displays.text import Style
from bullswarm_server.ops.tasks import prepare_task, route_document


def run(arguments: list[str], context: CommandContext) -> int:
    """Print the decision; exit 1 when no pool can take the task."""
    options = _parser().parse_args(arguments)
    request = task_request(options, prompt_required=False)
    with prepare_task(context.ops, request, write_cache=False) as prepared:
        decision = prepared.decide()
    if options.json:
        context.print_json(route_document(prepared, decision))
    else:
        context.print(*decision_lines(decision, style=Style(colour=context.colour)))
    return 0 if decision.pool else 1


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm route",
        description="Show the pick that a task would get, and why. Starts nothing.",
    )
    add_task_arguments(parser, prompt_required=False)
    add_meter_argument(parser)
    return parser
