"""A pool's earlier readings, one a line in ``meters/history/<pool>.jsonl``: what rates are fitted from and what is drawn.

A line is ``{capturedAt, windows, readBy}`` with the windows as a meter file holds them. A line that can't be
understood is skipped and counted, so that a torn write or a foreign line never costs the others.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast, get_args

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.errors import StorageError
from bullswarm_core.pools.model import WINDOW_KINDS, ResetSource, Window, WindowSource
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.reading import window_document
from bullswarm_core.store.home import PRIVATE_FILE, Home, file_lock, make_folder, write_bytes_atomic
from bullswarm_core.wire import iso, parse_iso

KEPT_LINES = 500
"""Readings that stay when the file is rewritten: two days of one every five minutes."""
REWRITE_AT_LINES = 600
"""Lines at which it is, so that ninety-nine appends in a hundred write one line."""
LARGEST_BYTES = 4 << 20
"""Six hundred lines are 0.3 MB. Of a larger file only the end is read: it holds the newest."""
CLOCK_TOLERANCE = timedelta(minutes=5)
"""A reading from further ahead than this was stamped by a clock that was wrong, and would be the newest for ever."""


@dataclass(frozen=True, slots=True)
class History:
    """Readings of one pool, oldest first; ``skipped`` counts the lines that could not be understood."""

    observations: tuple[Observation, ...] = ()
    skipped: int = 0


def append_history(home: Home, pool_id: str, observation: Observation, *, now: datetime) -> bool:
    """Add what a source told to the pool's history and tell whether that was new.

    Nothing is added without a number that was read (a refusal marker holds none), for a capture time that is there
    already, or for one ahead of ``now``. Raises StorageError when the disk refuses, LockTimeoutError when another
    process holds the file for seconds; the file is then as it was.
    """
    windows = [_normalised(window) for window in observation.windows if _was_read(window)]
    if not windows or observation.captured_at - now > CLOCK_TOLERANCE:
        return False
    path = home.meter_history_file(pool_id)
    head = _head(observation.captured_at)
    told = {
        "windows": [_document(window, observation.captured_at) for window in windows],
        "readBy": observation.read_by,
    }
    line = head + json.dumps(told).encode()[1:] + b"\n"
    make_folder(path.parent)
    with file_lock(path.with_suffix(".lock")):
        known = _read_end(path)
        if any(line.startswith(head) and _observation(line) for line in known.split(b"\n")):
            return False
        if known.count(b"\n") + 1 >= REWRITE_AT_LINES:
            write_bytes_atomic(path, _newest_lines(known + _break_of(known) + line, now))
        else:
            _append(path, _break_of(known) + line)
    return True


def read_history(home: Home, pool_id: str) -> History:
    """Return the pool's readings, oldest first; of two with one capture time the first that was written. Never fails."""
    found: dict[datetime, Observation] = {}
    skipped = 0
    for _, observation in _parsed(_read_end(home.meter_history_file(pool_id))):
        if observation is None:
            skipped += 1
        else:
            found.setdefault(observation.captured_at, observation)
    return History(tuple([found[moment] for moment in sorted(found)]), skipped)


def _was_read(window: Window) -> bool:
    return window.used_pct is not None and window.source != "refusal"


def _normalised(window: Window) -> Window:
    """Date the reset to the whole second: some providers make up its milliseconds anew at every reading."""
    if window.resets_at is None:
        return window
    whole = (window.resets_at + timedelta(milliseconds=500)).replace(microsecond=0)
    return replace(window, resets_at=whole)


def _head(captured_at: datetime) -> bytes:
    return f'{{"capturedAt": "{iso(captured_at)}", '.encode()


def _document(window: Window, captured_at: datetime) -> dict[str, Any]:
    document = {name: value for name, value in window_document(window).items() if value is not None}
    if window.captured_at is not None and window.captured_at != captured_at:
        document["capturedAt"] = iso(window.captured_at)
    return {**document, "unstable": True} if window.unstable else document


def _break_of(known: bytes) -> bytes:
    """A line end for a last line that a killed process left without one."""
    return b"" if not known or known.endswith(b"\n") else b"\n"


def _append(path: Path, data: bytes) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, PRIVATE_FILE)
    except OSError as error:
        raise _refused(path, error) from error
    with os.fdopen(handle, "wb", buffering=0) as file:
        size = os.fstat(handle).st_size
        try:
            if file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            # Half a line would make the next one foreign, too.
            with contextlib.suppress(OSError):
                os.ftruncate(handle, size)
            raise _refused(path, error) from error


def _refused(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"cannot add a reading to {path}: {error.strerror or error}",
        hint="check the free space and who may write there; forecasts go on without it",
    )


def _read_end(path: Path) -> bytes:
    """Return the file, or its last LARGEST_BYTES; nothing where it is missing, unreadable or no ordinary file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                return b""
            file.seek(max(0, status.st_size - LARGEST_BYTES))
            return file.read(LARGEST_BYTES)
    except OSError:
        return b""


def _newest_lines(data: bytes, now: datetime) -> bytes:
    """Return the newest lines, oldest first; what is damaged or from a clock that was wrong is not carried on."""
    kept: dict[datetime, bytes] = {}
    for line, observation in _parsed(data):
        if observation is not None and observation.captured_at - now <= CLOCK_TOLERANCE:
            kept.setdefault(observation.captured_at, line)
    return b"".join([kept[moment] + b"\n" for moment in sorted(kept)[-KEPT_LINES:]])


def _parsed(data: bytes) -> Iterator[tuple[bytes, Observation | None]]:
    for line in data.split(b"\n"):
        if line.strip():
            yield line, _observation(line)


def _observation(line: bytes) -> Observation | None:
    try:
        document = json.loads(line)
        captured_at = parse_iso(document["capturedAt"])
        windows = tuple([_window(entry, captured_at) for entry in document["windows"]])
        read_by = document.get("readBy")
        return Observation(captured_at, windows, read_by if isinstance(read_by, str) else "")
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _window(entry: dict[str, Any], captured_at: datetime) -> Window:
    """Read a window; raises one of the errors of :func:`_observation` for what it can't be."""
    if entry["kind"] not in WINDOW_KINDS:
        raise ValueError(f"unknown window {entry['kind']!r}")
    used, resets_at, length = entry["usedPct"], entry.get("resetsAt"), entry.get("lengthSec")
    if isinstance(used, bool) or not isinstance(used, (int, float)):
        raise TypeError(f"usedPct {used!r} is no number")
    source, reset_source, scope = entry.get("source"), entry.get("resetSource"), entry.get("scope")
    own = entry.get("capturedAt")
    return Window(
        entry["kind"],
        float(used),
        None if resets_at is None else parse_iso(resets_at),
        source=cast(WindowSource, source) if source in get_args(WindowSource) else "cache",
        captured_at=captured_at if own is None else parse_iso(own),
        length=None if length is None else timedelta(seconds=length),
        reset_source=reset_source if reset_source in get_args(ResetSource) else None,
        scope=scope if isinstance(scope, str) and scope else None,
        unstable=entry.get("unstable") is True,
    )
