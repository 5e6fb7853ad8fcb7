"""Programs as they come in: a file or standard input, read whole, parsed, and checked."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

from bullswarm_core.errors import UsageError
from bullswarm_core.wire import repeated_key

STDIN = "-"
# A program carries its prompts, of which each may have 8 MiB; beyond this somebody has given the wrong file.
MOST_BYTES = 64 * 1024 * 1024
# Far beyond any number that a program or a schema holds, and within what Python reads (4300).
_MOST_DIGITS = 1000


def read_document(name: str, *, what: str) -> Any:
    """Return the JSON value in the file ``name``, or on standard input for ``-``; ``what`` names the option in an error.

    A device or a FIFO is never opened. Raises UsageError for what is no file, no UTF-8, no JSON or too large.
    """
    shown = "standard input" if name == STDIN else name
    data = sys.stdin.buffer.read(MOST_BYTES + 1) if name == STDIN else _bytes_of(name, what)
    if len(data) > MOST_BYTES:
        raise UsageError(f"{what} {shown} has more than {MOST_BYTES} bytes", hint="is it the right file?")
    try:
        return json.loads(
            data.decode("utf-8-sig"), parse_constant=_refuse_constant, parse_int=_whole, object_pairs_hook=_no_twins
        )
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} {shown} is not UTF-8 (byte {error.start})", hint="save it as UTF-8") from error
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{what} {shown} is not JSON: line {error.lineno} column {error.colno}: {error.msg}",
            hint="see the form: bullswarm workflow plan contract",
        ) from error
    except (ValueError, RecursionError) as error:
        told = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"{what} {shown} is not JSON: {told}", hint="correct it") from error


def _bytes_of(name: str, what: str) -> bytes:
    path = Path(name).expanduser()
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{what} {name} is no regular file", hint="give a JSON file, or - for standard input")
        # It may have become a FIFO since: opening one without this waits for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {what} {name}: {words}", hint="give a file that exists") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that stands twice: one of the two would silently count for nothing."""
    if (twice := repeated_key(pairs)) is not None:
        raise ValueError(f'the key "{twice}" stands twice in one object')
    return dict(pairs)
