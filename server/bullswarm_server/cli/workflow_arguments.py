"""The arguments of `workflow goal` and `workflow plan`; what they do is loaded when it is asked for."""

from __future__ import annotations

import argparse
from typing import Any

from bullswarm_core.program.step_checks import REASONING
from bullswarm_core.runs.scheduler import DEFAULT_CONCURRENCY
from bullswarm_server.cli.task_arguments import HERE

ISOLATIONS = ("shared", "worktree")
MOST_CONCURRENCY = 32
MOST_RETRIES = 3


def add_goal(verbs: Any) -> None:
    """Declare `workflow goal` and its options."""
    text = "start a program of dependent steps towards a goal; it runs detached unless told otherwise"
    note = "Evidence commands of the program run as you, unconfined, in the working folder."
    verb = verbs.add_parser("goal", help=text, description=f"{text}. {note}")
    verb.set_defaults(operation="workflow_goal.goal")
    verb.add_argument("goal", metavar="GOAL", help="what the program is for, in one text")
    verb.add_argument("--program", metavar="FILE", help="the program.v3, which you write; - reads standard input")
    verb.add_argument(
        "--cwd", "--add-dir", dest="cwd", metavar="DIR", default=HERE, help="the folder to work in (default: .)"
    )
    verb.add_argument("--worker-pool", metavar="POOL", help="every step on this pool, by id or label")
    verb.add_argument("--worker-model", metavar="ID", help="every step that names no model with this one")
    verb.add_argument(
        "--worker-reasoning", choices=REASONING, metavar="LEVEL", help="the level of steps that name none"
    )
    verb.add_argument(
        "--concurrency", type=_number(1, MOST_CONCURRENCY), default=DEFAULT_CONCURRENCY, metavar="N",
        help=f"at most so many steps at once (default: {DEFAULT_CONCURRENCY})",
    )  # fmt: skip
    verb.add_argument(
        "--retry-attempts", type=_number(0, MOST_RETRIES), default=1, metavar="N",
        help=f"automatic retries of a step that names none, 0 to {MOST_RETRIES} (default: 1)",
    )  # fmt: skip
    verb.add_argument(
        "--isolation", choices=ISOLATIONS, default="shared",
        help="worktree: each writing step in a git worktree of its own, merged back by its declared files",
    )  # fmt: skip
    verb.add_argument("--shared-tree", action="store_true", help="allow other runs to write in this working tree")
    _add_ways(verb)


def _add_ways(verb: argparse.ArgumentParser) -> None:
    ways = verb.add_mutually_exclusive_group()
    ways.add_argument("--foreground", action="store_true", help="wait here for the result; Ctrl-C stops the work")
    ways.add_argument("--watch", action="store_true", help="follow it here; Ctrl-C leaves it running")
    ways.add_argument("--detach", action="store_true", help="print how to follow it and return (the default)")
    verb.add_argument("--again", action="store_true", help="start although the same goal is under way in this folder")
    verb.add_argument("--json", action="store_true", help="print one JSON document")


def _number(least: int, most: int) -> Any:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text[:9]) <= most:
            raise argparse.ArgumentTypeError(f'"{text}" is not a whole number from {least} to {most}')
        return int(text)

    return read


def add_plan(verbs: Any) -> None:
    """Declare `workflow plan` and its operations."""
    text = "the rules of programs, the check of one, their JSON Schema"
    plan = verbs.add_parser("plan", help=text, description=text)
    choices = plan.add_subparsers(required=True, metavar="contract|validate|schema")
    rules = choices.add_parser("contract", help="print the rules", description="Print the rules of programs.")
    rules.set_defaults(operation="workflow_plan.contract")
    form = choices.add_parser(
        "schema",
        help="print the JSON Schema, for editors",
        description="Print the JSON Schema of programs, for editors.",
    )
    form.set_defaults(operation="workflow_plan.schema")
    text = "check a program: every issue at once, and what it would do; starts no step"
    check = choices.add_parser("validate", help=text, description=text)
    check.set_defaults(operation="workflow_plan.validate")
    check.add_argument("--program", required=True, metavar="FILE", help="the program.v3; - reads standard input")
    check.add_argument(
        "--try-checks", action="store_true",
        help="also run each command check once, as you, unconfined; exit 1 when one fails",
    )  # fmt: skip
    check.add_argument(
        "--cwd", "--add-dir", dest="cwd", metavar="DIR", default=HERE, help="the folder of the work (default: .)"
    )
    check.add_argument("--json", action="store_true", help="print one JSON document")
