"""A program of its own: checks a file of JSON, or of one JSON value a line, against a schema, and prints what it found.

Apart from the kernel for the reasons of `validate_child`, and because data may be large: a file of lines is read line by
line, whatever its size, and a file of one value may have 64 MiB. It follows a link only inside of the working folder and
opens nothing but regular files.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from bullswarm_core.answers import validate_child
from bullswarm_core.answers.strict_json import AnswerTextError, decoded, read_value, unfenced

# One value is held whole, at some ten times its size.
MOST_VALUE_BYTES = 64 * 1024 * 1024
MOST_LINE_BYTES = 16 * 1024 * 1024
# An answer's errors are at most 100; a file with that many needs no more.
MOST_ERRORS = 100


class UnreadableError(Exception):
    """The data can't be read as what it has to be, which is the worker's to mend."""


class TooLargeError(Exception):
    """The data is more than this check can hold."""


def check(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``unreadable``, ``unchecked``, ``errors`` (place, problem), ``errorCount`` and ``records``.

    ``given`` has ``schema``, ``file`` (absolute), ``within`` (the folder that it must lie in), ``shown`` (its name for
    people), ``format`` and ``fenced`` (a reply, whose one code fence is unwrapped).
    """
    shown = str(given["shown"])
    errors: list[tuple[str, str]] = []
    records = 0
    answer: dict[str, Any] = {"unreadable": None, "unchecked": None}
    try:
        with _opened(given["file"], given["within"]) as file:
            validator = validate_child.validator_of(given["schema"])
            for place, text in _texts(file, lines=given["format"] == "jsonl", fenced=given["fenced"]):
                records += 1
                errors += _errors(validator, place, text, alone=given["format"] == "json")
                if len(errors) >= MOST_ERRORS:
                    break
    except (AnswerTextError, UnreadableError) as error:
        answer["unreadable"] = f"{shown}: {error}"
    except (TooLargeError, MemoryError) as error:
        answer["unchecked"] = f"{shown}: {error or 'it is too large for the memory'}"
    return answer | {"errors": errors[:MOST_ERRORS], "errorCount": len(errors[:MOST_ERRORS]), "records": records}


def _errors(validator: Any, place: str, text: str, *, alone: bool) -> Iterator[tuple[str, str]]:
    """Give the errors of one value; a line that is no JSON is one error, a whole file that is none can't be read."""
    try:
        value = read_value(text)
    except AnswerTextError as error:
        if alone:
            raise
        yield place, str(error)
        return
    for path, problem in validate_child.problems_of(validator, value):
        pointer = "#" + "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)
        yield f"{place} {pointer}".strip(), problem


def _texts(file: BinaryIO, *, lines: bool, fenced: bool) -> Iterator[tuple[str, str]]:
    """Give each value's text with its place."""
    if lines and not fenced:
        yield from _lines(file)
        return
    data = file.read(MOST_VALUE_BYTES + 1)
    if len(data) > MOST_VALUE_BYTES:
        raise TooLargeError(
            f"it has {os.fstat(file.fileno()).st_size} bytes, and one value may have {MOST_VALUE_BYTES}"
        )
    text = decoded(data)
    text = unfenced(text).strip() if fenced else text
    if not lines:
        yield "", text
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"line {number}", line


def _lines(file: BinaryIO) -> Iterator[tuple[str, str]]:
    number = 0
    while line := file.readline(MOST_LINE_BYTES + 1):
        number += 1
        if len(line) > MOST_LINE_BYTES:
            raise TooLargeError(f"line {number} has more than {MOST_LINE_BYTES} bytes")
        try:
            text = decoded(line)
        except AnswerTextError as error:
            raise UnreadableError(f"line {number}: {error}") from None
        if text.strip():
            yield f"line {number}", text


def _opened(name: str, within: str) -> BinaryIO:
    """Open a regular file. Raises UnreadableError for whatever else stands there, or that can't be read."""
    try:
        real = Path(name).resolve(strict=True)
        if not real.is_relative_to(Path(within).resolve()):
            raise UnreadableError("it is a link that leads out of the working folder")
        # Not waited for: a FIFO without a writer would be waited for until the time is up.
        handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise UnreadableError("it is missing") from None
    except OSError as error:
        words = (
            "it is a link that leads to itself"
            if error.errno == errno.ELOOP
            else f"it cannot be read: {error.strerror}"
        )
        raise UnreadableError(words) from None
    except RuntimeError:  # Python 3.11 and 3.12 say so of a link that leads to itself
        raise UnreadableError("it is a link that leads to itself") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UnreadableError("it is no regular file")
    return os.fdopen(handle, "rb")


def main() -> None:
    """Read what to check from standard input and print what was found."""
    sys.setrecursionlimit(validate_child.FRAMES)
    sys.stdout.write(json.dumps(check(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
