"""Reads what an ended attempt left in its files, for the handoff to the next one: the only part of it that touches a disk."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.errors import BullswarmError
from bullswarm_core.runs.attempt_result import JudgementRecord
from bullswarm_core.runs.folder import AttemptFiles
from bullswarm_core.runs.handoff import Prior
from bullswarm_core.runs.quoting import short
from bullswarm_core.runs.state import AttemptState

# The last three response events, one line each.
_MOST_SAID = 3
_SAID_CHARS = 300
# The last of a stream: some hundred events, read in a few hundredths of a second.
_TAIL_BYTES = 256 * 1024
_MOST_LINES = 400


def read_prior(attempt: AttemptState, files: AttemptFiles, table: Mapping[str, Any]) -> Prior:
    """Gather an attempt for its handoff. ``table`` teaches the events of its CLI; empty for one that prints plain text."""
    judgement = attempt.finished.judgement if attempt.finished else JudgementRecord()
    stream = next((file for file in (files.stream, files.stdout) if file.exists()), None)
    return Prior(
        attempt=attempt,
        stream=str(stream) if stream else None,
        said=last_said(stream, table) if stream else (),
        diff=judgement.diff_file or None,
        diff_stat=judgement.diff_stat,
    )


def last_said(stream: Path, table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the last three texts that the agent said, each as one line of 300 characters at most; nothing if unreadable."""
    lines = _last_lines(stream)
    if table:
        with contextlib.suppress(BullswarmError):
            return tuple(short(text, _SAID_CHARS) for text in _messages(lines, table)[-_MOST_SAID:])
        return ()
    texts = [short(line.decode("utf-8", "replace"), _SAID_CHARS) for line in lines]
    return tuple([text for text in texts if text][-_MOST_SAID:])


def _messages(lines: list[bytes], table: Mapping[str, Any]) -> list[str]:
    """Read the events one by one and note each message of the agent; one that grows from event to event is one message."""
    from bullswarm_core.workers.streams import StreamReader

    reader, said = StreamReader(table), [""]
    for line in lines:
        reader.feed(line + b"\n")
        answer = reader.snapshot().answer.strip()
        if answer and answer not in said[-_MOST_SAID:]:
            said[-1:] = [answer] if answer.startswith(said[-1]) else [said[-1], answer]
    return [text for text in said if text]


def _last_lines(stream: Path) -> list[bytes]:
    from bullswarm_core.workers.capture import segments

    tail, cut = b"", False
    try:
        for segment in reversed(segments(stream)):
            with segment.path.open("rb") as file:
                size = file.seek(0, 2)
                start = max(0, size - (_TAIL_BYTES - len(tail)))
                file.seek(start)
                tail = file.read(size - start) + tail
            cut = start > 0 or segment.start > 0
            if len(tail) >= _TAIL_BYTES:
                break
    except OSError:
        return []
    # Where the tail begins in the middle of an event, its rest is none.
    return tail.split(b"\n")[1 if cut else 0 :][-_MOST_LINES:]
