"""A typed answer: where it is looked for, what was found there, and whether it is what the schema asks for.

Rule: docs/design/judging.md, "Typed answers".
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.answers.schema import asserted, place_text
from bullswarm_core.answers.strict_json import AnswerTextError, decoded, read_value, unfenced
from bullswarm_core.errors import BullswarmError
from bullswarm_core.wire import compact

AnswerFrom = Literal["answer-file", "structured-output", "final-reply"]
# Far more than an answer needs; larger results belong in files that the answer names.
MOST_ANSWER_BYTES = 256 * 1024
# A check takes 0.3 s; one that takes this long is caught in a pattern or in a nest of alternatives.
CHECK_SEC = 20.0
_LONGEST_TOKEN = 100
# Where the system can, a folder is opened to be entered and not to be listed: its mode may allow the one alone.
_ENTER = getattr(os, "O_PATH", os.O_RDONLY)
_IN_WORDS: Mapping[AnswerFrom, str] = {
    "answer-file": "answer file", "structured-output": "structured output", "final-reply": "final reply",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AnswerProblem:
    """One thing that is wrong with an answer: where in it (``#`` is the whole), and what."""

    path: str
    problem: str


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """What came of a typed answer. ``source`` None: none was given anywhere. ``bytes`` are of the text as it was given.

    ``file`` holds what was given, valid or not. ``problems`` are at most 100. ``checked`` False: it could not be checked,
    which is no fault of the answer.
    """

    ok: bool
    source: AnswerFrom | None = None
    file: str | None = None
    bytes: int = 0
    problems: tuple[AnswerProblem, ...] = ()
    checked: bool = True

    @property
    def where(self) -> str:
        """The source in words."""
        return _IN_WORDS[self.source] if self.source else "no answer"


@dataclass(frozen=True, slots=True)
class Found:
    """What stands at one source: its bytes, or why they can't be had. ``text`` None with no ``problem``: nothing is there."""

    source: AnswerFrom
    text: str | None = None
    size: int = 0
    problem: str | None = None

    @property
    def given(self) -> bool:
        """Tell whether the worker gave an answer here, good or bad."""
        return self.text is not None or self.problem is not None


class Child(Protocol):
    @property
    def exit_code(self) -> int | None: ...
    @property
    def stdout(self) -> bytes: ...
    @property
    def timed_out(self) -> bool: ...


class RunChild(Protocol):
    """The one spawn helper, :func:`bullswarm_core.process.child.run_child`."""

    def __call__(
        self,
        argv: list[str],
        *,
        cwd: str,
        environ: Mapping[str, str],
        timeout_sec: float,
        input: bytes,  # noqa: A002
    ) -> Child: ...


Validate = Callable[[Mapping[str, Any], Any], tuple[AnswerProblem, ...]]


class AnswerNotCheckedError(BullswarmError):
    """The check itself failed; whether the answer is valid is not known."""


def in_file(path: Path) -> Found:
    """Read an answer file, which a worker wrote: only a regular file, followed through no link, of at most 256 KiB.

    A FIFO would be waited for and a device be read for ever, so neither is opened for more than a look. A folder that is not
    there, or is a link, holds no answer; of one that may not be entered nobody knows, and the worker is told so.
    """
    source: AnswerFrom = "answer-file"
    try:
        folder = os.open(path.parent, _ENTER | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        nowhere = error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
        return Found(source, problem=None if nowhere else _why_unread(path, error))
    try:
        kind = os.lstat(path.name, dir_fd=folder).st_mode
        if not stat.S_ISREG(kind):
            return Found(source, problem=f"{path.name} is {_kind(kind)}, and has to be a regular file")
        handle = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with open(handle, "rb") as file:
            size = os.fstat(handle).st_size
            data = file.read(MOST_ANSWER_BYTES + 1) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    except FileNotFoundError:
        return Found(source)
    except OSError as error:
        return Found(source, problem=_why_unread(path, error))
    finally:
        os.close(folder)
    if len(data) > MOST_ANSWER_BYTES:
        return Found(source, size=size, problem=_too_large(size))
    try:
        return Found(source, decoded(data), len(data))
    except AnswerTextError as error:
        return Found(source, size=len(data), problem=str(error))


def _why_unread(path: Path, error: OSError) -> str:
    """Say why an answer file can't be read, with the folder on the way to it that may not be entered, if there is one."""
    for folder in reversed(path.parents):
        try:
            os.stat(f"{folder}/.")  # noqa: PTH116 - a Path drops the dot, which is what asks to enter it
        except PermissionError:
            mode = stat.S_IMODE(folder.lstat().st_mode)
            return f"{path.name} cannot be read: the folder {folder} may not be entered (its mode is {mode:04o})"
        except OSError:
            break
    return f"{path.name} cannot be read: {error.strerror}"


def in_output(structured: str | None) -> Found:
    """Take the answer that the CLI's own structured output gave, as JSON; None where it gave none."""
    return _bounded("structured-output", structured)


def in_reply(reply: str) -> Found:
    """Take the final reply, out of its one code fence; an empty reply is none."""
    if not reply.strip():
        return Found("final-reply")
    try:
        return _bounded("final-reply", unfenced(reply).strip())
    except AnswerTextError as error:
        return Found("final-reply", size=len(reply.encode("utf-8", "replace")), problem=str(error))


def is_value(text: str) -> bool:
    """Tell whether the whole of a text is one JSON value."""
    try:
        read_value(text)
    except AnswerTextError:
        return False
    return True


def judge_answer(
    schema: Mapping[str, Any], sources: tuple[Found, ...], *, validate: Validate
) -> tuple[Any, AnswerCheck, Found | None]:
    """Return the value, what came of its check, and the source that it is from.

    The first source where the worker gave anything is the one that counts, good or bad: a file that is wrong is not made
    good by a reply that says something else. The value is None where the check is not ok.
    """
    found = next((source for source in sources if source.given), None)
    if found is None:
        return None, AnswerCheck(False, problems=(AnswerProblem("#", "no answer was given"),)), None
    value, checked = None, True
    problems: tuple[AnswerProblem, ...]
    try:
        if found.text is None:
            raise AnswerTextError(found.problem or "it cannot be read")
        value = read_value(found.text)
        problems = validate(schema, value)
    except AnswerTextError as error:
        problems = (AnswerProblem("#", str(error)),)
    except AnswerNotCheckedError as error:
        problems, checked = (AnswerProblem("#", str(error)),), False
    check = AnswerCheck(not problems, found.source, None, found.size, problems, checked)
    return (value if check.ok else None), check, found


def validator(run: RunChild, *, environ: Mapping[str, str], timeout_sec: float = CHECK_SEC) -> Validate:
    """Return a check that runs in a process of its own and is ended after ``timeout_sec``.

    It raises AnswerNotCheckedError when it takes longer or fails.
    """

    def validate(schema: Mapping[str, Any], value: Any) -> tuple[AnswerProblem, ...]:
        import json

        program = str(Path(__file__).with_name("validate_child.py"))
        given = json.dumps({"schema": asserted(schema), "value": value}).encode()
        try:
            # -P: a file beside the program is no module of the check's.
            child = run([sys.executable, "-P", program], cwd="/", environ=environ, timeout_sec=timeout_sec, input=given)
            if child.timed_out:
                raise AnswerNotCheckedError(
                    f"the check took more than {timeout_sec:.0f} s: a pattern or the alternatives of the schema take too long"
                )
            rows = json.loads(child.stdout) if child.exit_code == 0 else None
        except ValueError:
            rows = None
        except AnswerNotCheckedError:
            raise
        except BullswarmError as error:
            raise AnswerNotCheckedError(f"it could not be checked: {error}") from error
        if rows is None:
            raise AnswerNotCheckedError("it could not be checked: the check itself failed")
        return tuple(AnswerProblem(_place(path), problem) for path, problem in rows)

    return validate


def text_of(value: Any) -> bytes:
    """Return a valid answer as a file holds it."""
    return f"{compact(value)}\n".encode()


def _bounded(source: AnswerFrom, text: str | None) -> Found:
    if text is None:
        return Found(source)
    size = len(text.encode("utf-8", "replace"))
    return Found(source, size=size, problem=_too_large(size)) if size > MOST_ANSWER_BYTES else Found(source, text, size)


def _too_large(size: int) -> str:
    return f"it has {size} bytes and may have {MOST_ANSWER_BYTES}"


def _place(path: list[str | int]) -> str:
    return place_text(tuple(str(token)[:_LONGEST_TOKEN] for token in path))


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a FIFO"))
    return next((name for is_kind, name in kinds if is_kind(mode)), "a device or a socket")
