"""The typed answer of an ended attempt: found in the first source that has one, checked, and kept in a file."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.answers.answer import (
    AnswerCheck,
    AnswerProblem,
    Found,
    Validate,
    in_file,
    in_output,
    in_reply,
    is_value,
    judge_answer,
    text_of,
)
from bullswarm_core.errors import StorageError
from bullswarm_core.pools.launch_rules import StructuredOutput
from bullswarm_core.pools.model import writes
from bullswarm_core.runs.run_files import AttemptFiles
from bullswarm_core.store.home import write_bytes_atomic
from bullswarm_core.streams.facts import StreamFacts


@dataclass(frozen=True, slots=True)
class Harvest:
    """The value of a typed answer (None where the check is not ok), and what came of its check."""

    value: Any
    check: AnswerCheck


def remove_draft(path: Path) -> None:
    """Take an answer file of an earlier start away."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def harvest(
    schema: Mapping[str, Any],
    *,
    lane: str,
    files: AttemptFiles,
    stream: StreamFacts,
    structured: StructuredOutput | None,
    validate: Validate,
) -> Harvest:
    """Find, check and keep the answer. ``structured`` is how the CLI was given the schema, None where it was not.

    An answer that the disk refuses to keep is none that can be handed on: the check says so.
    """
    draft = in_file(files.answer_draft) if writes(lane) else Found("answer-file")
    sources = (draft, _own_output(stream, structured), in_reply(stream.answer))
    value, check, found = judge_answer(schema, sources, validate=validate)
    try:
        return Harvest(value, replace(check, file=_kept(files, value, check, found)))
    except StorageError as error:
        problem = AnswerProblem("#", f"it is valid and could not be kept: {error}" if check.ok else str(error))
        return Harvest(None, replace(check, ok=False, problems=(*check.problems, problem), checked=not check.ok))


def _own_output(stream: StreamFacts, structured: StructuredOutput | None) -> Found:
    """Take what the CLI's structured output gave; some CLIs give it as the final reply, which is then nothing but JSON."""
    if structured is None:
        return Found("structured-output")
    if not structured.reply:
        return in_output(stream.structured)
    return in_output(stream.answer if is_value(stream.answer) else None)


def _kept(files: AttemptFiles, value: Any, check: AnswerCheck, found: Found | None) -> str | None:
    """Keep what was given, since the worker's own temp folder goes away; None where that is in the output file anyway."""
    if check.ok:
        write_bytes_atomic(files.answer, text_of(value))
        return str(files.answer)
    if found is None or found.source != "answer-file":
        return None
    if found.text is not None:
        write_bytes_atomic(files.answer, found.text.encode())
        return str(files.answer)
    return str(files.answer) if _moved(files.answer_draft, files.answer) else None


def _moved(draft: Path, target: Path) -> bool:
    """Move a file that can't be taken for an answer out of the temp folder; nothing but a regular file is kept."""
    with contextlib.suppress(OSError):
        if stat.S_ISREG(os.lstat(draft).st_mode):
            os.replace(draft, target)  # noqa: PTH105 - a rename of the very file that was looked at
            return True
    return False
