"""The arguments that describe a task, shared by `run` and `route`."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

from bullswarm_core.errors import UsageError
from bullswarm_core.pools import EFFORTS, LANES, Lane
from bullswarm_core.program.model import MAX_PROMPT_BYTES
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.ops.files import decoded, limited, read_regular
from bullswarm_server.ops.tasks import LARGER_THAN_A_TASK, TaskRequest, Terms, task_file_text, working_folder

# Where a command is typed, when it names no folder.
HERE = "."
LARGEST_TIMEOUT_SEC = 30 * 24 * 3600
TERMS = Terms(folder="--add-dir", independent_of="--independent-of")


def add_task_arguments(parser: argparse.ArgumentParser, *, prompt_required: bool) -> None:
    """Declare the arguments of a task on ``parser``."""
    optional = "" if prompt_required else " (may be left out: only the pick is shown)"
    parser.add_argument("words", nargs="*", metavar="WORD", help=f"the task, in words{optional}")
    parser.add_argument("--lane", required=True, choices=LANES, help="the nature of the work")
    parser.add_argument(
        "--add-dir", "--cwd", dest="cwd", metavar="DIR", default=HERE, help="the folder to work in (default: .)"
    )
    parser.add_argument("--prompt", metavar="TEXT", help="the task, as one text")
    parser.add_argument("--task-file", metavar="FILE", help="a file that holds the task; - reads standard input")
    parser.add_argument("--effort", choices=EFFORTS, help="the effort tier (default: the lane's)")
    parser.add_argument("--reasoning", metavar="LEVEL", help="reasoning level; `default` passes none")
    parser.add_argument("--model", metavar="ID", help="only pools that can run this model")
    parser.add_argument("--pool", metavar="POOL", help="this pool and no other, by id or label")
    parser.add_argument(
        "--use-pool", action="append", default=[], metavar="POOL", help="choose among these (repeatable)"
    )
    parser.add_argument(
        "--avoid-pool", action="append", default=[], metavar="POOL", help="leave this one out (repeatable)"
    )
    parser.add_argument(
        "--use-provider", action="append", default=[], metavar="NAME", help="choose among these providers"
    )
    parser.add_argument("--avoid-provider", action="append", default=[], metavar="NAME", help="leave this provider out")
    parser.add_argument(
        "--capability", action="append", default=[], metavar="NAME", help="only pools that declare this capability"
    )
    parser.add_argument(
        "--independent-of", action="append", default=[], metavar="RUN",
        help="leave out the providers that did this earlier work: a run, or the path of its output",
    )  # fmt: skip
    parser.add_argument("--no-caller", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def seconds(text: str) -> float:
    """Read a positive number of seconds; the type of a time limit."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= LARGEST_TIMEOUT_SEC:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a number of seconds above 0 and at most {LARGEST_TIMEOUT_SEC}'
        )
    return value


def answer_schema(text: str) -> dict[str, Any]:
    """Read a JSON Schema: JSON itself where it begins with ``{``, else the name of a file that holds it.

    Raises UsageError for a file that can't be read and for a schema that is refused.
    """
    from bullswarm_core.answers.schema import read_schema

    if text.lstrip().startswith("{"):
        return read_schema(text, what="--answer-schema")
    what = f"the answer schema {text}"
    data = read_regular(
        Path(text),
        what=what,
        most=MAX_PROMPT_BYTES,
        irregular="give a file that holds a JSON Schema",
        too_large=LARGER_THAN_A_TASK,
    )
    return read_schema(data, what=what)


def read_prompt(options: argparse.Namespace) -> str:
    """Return the task's text from words, ``--prompt`` or ``--task-file``. Raises UsageError unless exactly one is given."""
    given = [bool(options.words), options.prompt is not None, options.task_file is not None]
    if sum(given) > 1:
        raise UsageError("the task is given twice", hint="use words, --prompt or --task-file, one of them")
    if options.prompt is not None:
        return str(options.prompt)
    if options.task_file is not None:
        return _read_task_file(options.task_file)
    return " ".join(options.words)


def _read_task_file(name: str) -> str:
    if name != "-":
        return task_file_text(Path(name), what=f"the task file {name}")
    what, data = "the task on standard input", sys.stdin.buffer.read(MAX_PROMPT_BYTES + 1)
    return decoded(limited(data, what=what, most=MAX_PROMPT_BYTES, too_large=LARGER_THAN_A_TASK), what=what)


def task_request(options: argparse.Namespace, *, prompt_required: bool) -> TaskRequest:
    """Return what the arguments ask for. Raises UsageError where the task is given twice or can't be read."""
    return TaskRequest(
        lane=options.lane,
        cwd=options.cwd,
        folder_is_chosen=options.cwd != HERE,
        prompt=read_prompt(options) or ("" if prompt_required else None),
        effort=options.effort,
        reasoning=options.reasoning,
        model=options.model,
        pool=options.pool,
        use_pools=options.use_pool,
        avoid_pools=options.avoid_pool,
        use_providers=options.use_provider,
        avoid_providers=options.avoid_provider,
        independent_of=options.independent_of,
        capabilities=options.capability,
        timeout_sec=getattr(options, "timeout", None),
        shared_tree=getattr(options, "shared_tree", False),
        answer=getattr(options, "answer_schema", None),
        meters=options.meter,
        terms=TERMS,
    )


def folder_of(options: argparse.Namespace, context: CommandContext, *, lane: Lane) -> str:
    """Return the real path of the folder that ``--add-dir`` names, or the one here. Raises UsageError."""
    return working_folder(
        options.cwd, lane=lane, environ=context.environ, called=TERMS.folder, is_chosen=options.cwd != HERE
    )
