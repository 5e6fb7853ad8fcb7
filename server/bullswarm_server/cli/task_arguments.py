"""The arguments that describe a task, shared by `run` and `route`."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

from bullswarm_core.errors import UsageError
from bullswarm_core.pools import EFFORTS, LANES, Lane
from bullswarm_core.runs.task import MAX_PROMPT_BYTES, Task
from bullswarm_server.ops.files import decoded, limited, read_regular
from bullswarm_server.ops.tasks import PoolNames

# Where a command is typed, when it names no folder.
HERE = "."
LARGEST_TIMEOUT_SEC = 30 * 24 * 3600
TOO_LARGE = "put the material into a file in the folder"


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
    from bullswarm_core.judging.answer_schema import read_schema

    if text.lstrip().startswith("{"):
        return read_schema(text, what="--answer-schema")
    what = f"the answer schema {text}"
    data = read_regular(
        Path(text),
        what=what,
        most=MAX_PROMPT_BYTES,
        irregular="give a file that holds a JSON Schema",
        too_large=TOO_LARGE,
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
    return decoded(limited(data, what=what, most=MAX_PROMPT_BYTES, too_large=TOO_LARGE), what=what)


def task_file_text(path: Path, *, what: str) -> str:
    """Return the text of a regular file of at most 8 MiB; ``what`` names it in an error. Raises UsageError."""
    irregular = "give a file that holds the task"
    data = read_regular(path, what=what, most=MAX_PROMPT_BYTES, irregular=irregular, too_large=TOO_LARGE)
    return decoded(data, what=what)


def working_folder(name: str, *, lane: Lane) -> str:
    """Return the real path of the folder to work in.

    Raises UsageError when it is no folder, when it is the whole machine, and when a worker would write in the person's
    home only because the command was typed there.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise UsageError(f"--add-dir {name} {what}", hint="give the folder that the task is about")
    try:
        real = folder.resolve()
    except FileNotFoundError as error:
        raise UsageError(
            "the folder that this was called in has been deleted", hint="cd to one that exists, or give --add-dir"
        ) from error
    if real == Path("/"):
        raise UsageError(
            "/ is the whole machine, no project", hint="give the folder that the task is about with --add-dir"
        )
    if name == HERE and lane != "analyze" and real == Path.home().resolve():
        raise UsageError(
            f"{real} is your home, no project", hint="give the folder that the task is about with --add-dir"
        )
    return str(real)


def build_task(options: argparse.Namespace, *, prompt: str, names: PoolNames, avoid_also: tuple[str, ...] = ()) -> Task:
    """Return the task that the arguments describe, with labels turned into ids and unknown names refused."""
    return Task(
        prompt=prompt,
        lane=options.lane,
        cwd=working_folder(options.cwd, lane=options.lane),
        effort=options.effort,
        reasoning=options.reasoning,
        model=options.model,
        pool=names.pool(options.pool) if options.pool is not None else None,
        use_pools=tuple(names.pool(name) for name in options.use_pool),
        avoid_pools=tuple(names.pool(name) for name in options.avoid_pool),
        use_providers=tuple(names.provider(name) for name in options.use_provider),
        avoid_providers=tuple(dict.fromkeys((*map(names.provider, options.avoid_provider), *avoid_also))),
        independent_of=tuple(options.independent_of),
        capabilities=tuple(options.capability),
        timeout_sec=getattr(options, "timeout", None),
        shared_tree=getattr(options, "shared_tree", False),
        answer=getattr(options, "answer_schema", None),
    )
