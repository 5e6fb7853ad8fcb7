"""Reads what a keeper captured, while it is being written or long after: the head, then the segments, and the gaps.

The names of the segments carry their place in the stream (``keeper_capture``), so a reader that comes too late for a
segment knows how many bytes it missed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from bullswarm_core.values import dataclass

# A piece of this size keeps a reader's memory flat whatever the size of the capture.
PIECE_BYTES = 1024 * 1024
# The clock of a file system moves in steps, 4 ms as a rule and up to 2 s: what came within the step of the look left no mark.
_SETTLED_NS = 3_000_000_000


@dataclass(frozen=True, slots=True)
class Gap:
    """So many bytes of the stream, at this place, are in no file."""

    size: int


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of a capture and the place of its first byte in the stream."""

    start: int
    path: Path


def segments(file: str | Path) -> list[Segment]:
    """Return the files of a capture in the order of the stream; nothing when it has not begun."""
    head = Path(file)
    found = [Segment(0, head)] if head.exists() else []
    prefix = f"{head.name}.tail-"
    try:
        # By name alone: twenty workers that start together look through the files of all twenty, several times a second.
        names = [name for name in os.listdir(head.parent) if name.startswith(prefix)]  # noqa: PTH208
    except OSError:
        return found
    for name in names:
        offset = name.removeprefix(prefix)
        if offset.isascii() and offset.isdigit():
            found.append(Segment(int(offset), head.with_name(name)))
    return sorted(found, key=lambda segment: (segment.start, segment.path != head))


class Stillness:
    """Tells that a capture has not grown, without a look through its folder, which may hold the files of 500 steps.

    A segment that comes makes the folder another one, and what is written makes the newest file longer.
    """

    def __init__(self, file: str | Path) -> None:
        self._file = file
        self._folder = Path(file).parent
        self._known: tuple[int, Path | None, int] | None = None

    def holds(self) -> bool:
        """Whether everything is as it was when it was looked through."""
        return self._known is not None and self._known == self._now(self._known[1])

    @contextlib.contextmanager
    def look(self) -> Iterator[list[Segment]]:
        """Look through the folder; how it stood before anything is read is what counts, once all of it was read."""
        self._known = None
        settled_ns = time.time_ns() - _SETTLED_NS
        folder_ns = self._folder_ns()
        found = segments(self._file)
        last = found[-1].path if found else None
        stood = (folder_ns, last, _size(last))
        yield found
        self._known = stood if 0 <= folder_ns < settled_ns else None

    def _now(self, last: Path | None) -> tuple[int, Path | None, int]:
        return self._folder_ns(), last, _size(last)

    def _folder_ns(self) -> int:
        try:
            return self._folder.stat().st_mtime_ns
        except OSError:
            return -1


class Follower:
    """Follows the capture of one stream from its first byte; a new one begins at the start again."""

    def __init__(self, file: str | Path) -> None:
        self._stillness = Stillness(file)
        self.position = 0

    def read(self) -> list[bytes | Gap]:
        """Return everything that has come since the last call, in pieces; an empty list when nothing has."""
        return list(self.pieces())

    def pieces(self) -> Iterator[bytes | Gap]:
        """Yield what has come since the last call, one piece at a time (for a capture too big to hold)."""
        if self._stillness.holds():
            return
        # Listed before any is read: a segment with a successor in the list is complete, so its end is really its end.
        with self._stillness.look() as found:
            for segment in found:
                yield from self._segment(segment)

    def _segment(self, segment: Segment) -> Iterator[bytes | Gap]:
        try:
            file = segment.path.open("rb")
        except OSError:
            return
        with file:
            if segment.start > self.position:
                missed = segment.start - self.position
                self.position = segment.start
                yield Gap(missed)
            file.seek(self.position - segment.start)
            while piece := file.read(PIECE_BYTES):
                self.position += len(piece)
                yield piece


def read_tail(file: str | Path, limit: int) -> bytes:
    """Return at most the last ``limit`` captured bytes, over the borders of segments but never over a gap."""
    tail = b""
    start: int | None = None
    for segment in reversed(segments(file)):
        try:
            size = segment.path.stat().st_size
            if start is not None and segment.start + size != start:
                break
            with segment.path.open("rb") as opened:
                opened.seek(max(0, size - (limit - len(tail))))
                tail = opened.read(limit - len(tail)) + tail
        except OSError:
            break
        start = segment.start
        if len(tail) >= limit:
            break
    return tail


def _size(path: Path | None) -> int:
    try:
        return -1 if path is None else path.stat().st_size
    except OSError:
        return -1


def captured_size(file: str | Path) -> int:
    """Return how many bytes of the stream are on disk."""
    total = 0
    for segment in segments(file):
        try:
            total += segment.path.stat().st_size
        except OSError:
            continue
    return total
