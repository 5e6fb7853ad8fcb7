"""The arguments that describe a task, shared by `run` and `route`."""

from __future__ import annotations

import argparse
import math
import os
import stat
import sys
from pathlib import Path
from typing import Any

from bullswarm_core.errors import UsageError
from bullswarm_core.pools import EFFORTS, LANES, Lane
from bullswarm_core.runs.task import MAX_PROMPT_BYTES, Task
from bullswarm_server.ops.tasks import PoolNames

# Where a command is typed, when it names no folder.
HERE = "."
LARGEST_TIMEOUT_SEC = 30 * 24 * 3600


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
    return read_schema(_bytes_of(Path(text), what=what, hint="give a file that holds a JSON Schema"), what=what)


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
    data = sys.stdin.buffer.read(MAX_PROMPT_BYTES + 1)
    return _decoded(data, what="the task on standard input")


def task_file_text(path: Path, *, what: str) -> str:
    """Return the text of a regular file of at most 8 MiB; ``what`` names it in an error.

    A device or a FIFO is never opened: it would be read for ever, or waited for. Raises UsageError.
    """
    return _decoded(_bytes_of(path, what=what, hint="give a file that holds the task"), what=what)


def _bytes_of(path: Path, *, what: str, hint: str) -> bytes:
    """Return what a regular file holds, and a byte more than a task may have where it holds more."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{what} is no regular file", hint=hint)
        # It may have become a FIFO since: opening one without this waits for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return file.read(MAX_PROMPT_BYTES + 1) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {what}: {words}", hint="give a file that exists") from error


def _decoded(data: bytes, *, what: str) -> str:
    if len(data) > MAX_PROMPT_BYTES:
        raise UsageError(
            f"{what} has more than {MAX_PROMPT_BYTES} bytes", hint="put the material into a file in the folder"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} is not UTF-8 (byte {error.start})", hint="save it as UTF-8") from error


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
