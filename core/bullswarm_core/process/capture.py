"""Bounded capture of a stream into files, and the reader of what was captured.

The head is ``FILE`` and is kept; then come segments of which only the newest are kept. A segment is ``FILE.tail-<offset>``,
where the offset is the place of its first byte in the stream. So the names alone say what is missing, also after bytes were
lost to a full disk, and a reader that comes too late for a segment knows how many bytes it missed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from bullswarm_core._dataclasses import dataclass

# What is remembered of a stream while the disk refuses it. The terminal event carries the answer: it should fit.
MEMORY_TAIL_BYTES = 256 * 1024
# How many bytes may pass between two tries on a disk that was full.
RETRY_BYTES = 1024 * 1024
SMALL_CHUNK = 4096


class MemoryTail:
    """The last bytes of a stream, at most twice ``limit`` of them in memory."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Append a chunk and forget what is older than the limit."""
        if len(chunk) > self._limit:
            chunk = chunk[-self._limit :]
        self._size += len(chunk)
        # A worker that writes byte by byte must not make one object of each byte.
        if self._chunks and len(self._chunks[-1]) + len(chunk) <= SMALL_CHUNK:
            chunk = self._chunks.pop() + chunk
        self._chunks.append(chunk)
        while self._size - len(self._chunks[0]) >= self._limit:
            self._size -= len(self._chunks.popleft())

    def value(self) -> bytes:
        """Return at most the last ``limit`` bytes."""
        return b"".join(self._chunks)[-self._limit :]


class BoundedCapture:
    """Takes in a stream of any length and never raises: what the disk refuses is counted in ``dropped``."""

    def __init__(self, path: str, *, head_bytes: int, segment_bytes: int, segments: int) -> None:
        self.path = path
        self.total = 0
        self.error: str | None = None
        self._segment_bytes = segment_bytes
        self._segments = segments
        self._kept: deque[tuple[str, int]] = deque()
        self._on_disk = 0
        self._tail = MemoryTail(MEMORY_TAIL_BYTES)
        self._retry_at: int | None = None
        self._fd: int | None = None
        self._name = path
        self._size = 0
        self._room = 0
        self._end = 0
        self._open(path, head_bytes)

    @property
    def dropped(self) -> int:
        """Bytes of the stream that are in no file: older segments, and what a full disk refused."""
        return self.total - self._on_disk

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes of the stream."""
        self._tail.add(chunk)
        start = self.total
        self.total += len(chunk)
        if self._retry_at is None:
            self._store(memoryview(chunk), start)
        elif self.total >= self._retry_at:
            self._recover()

    def tail(self, limit: int) -> bytes:
        """Return the last bytes of the stream from memory."""
        return self._tail.value()[-limit:]

    def close(self) -> None:
        """Write what only the memory holds, or at least its last words, if the disk takes them now; close the file."""
        limit = MEMORY_TAIL_BYTES
        while self._retry_at is not None and limit >= SMALL_CHUNK:
            self._recover(limit)
            limit //= 4
        self._close_file()

    def _store(self, data: memoryview, offset: int) -> None:
        while data:
            if self._room == 0 and not self._next_segment(offset):
                return
            taken = self._write(data[: self._room])
            if taken == 0:
                return
            data, offset = data[taken:], offset + taken
            self._end = offset
            self._evict()

    def _write(self, data: memoryview) -> int:
        if self._fd is None:
            return 0
        try:
            taken = os.write(self._fd, data)
        except OSError as problem:
            self._fail(problem)
            return 0
        self._room -= taken
        self._size += taken
        self._on_disk += taken
        return taken

    def _next_segment(self, offset: int) -> bool:
        self._close_file()
        return self._open(f"{self.path}.tail-{offset:015d}", self._segment_bytes)

    def _open(self, path: str, room: int) -> bool:
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            self._fail(problem)
            return False
        self._room, self._size = room, 0
        self._name = path
        return True

    def _close_file(self) -> None:
        if self._fd is None:
            return
        os.close(self._fd)
        self._fd = None
        if self._name == self.path:
            return
        if self._size:
            self._kept.append((self._name, self._size))
        else:
            self._unlink(self._name)

    def _evict(self) -> None:
        # Only once the newest segment holds something: a full disk must not cost the older ones too.
        writing = 1 if self._name != self.path else 0
        while len(self._kept) + writing > max(1, self._segments):
            path, size = self._kept.popleft()
            self._unlink(path)
            self._on_disk -= size

    def _unlink(self, path: str) -> None:
        try:
            os.unlink(path)
        except OSError as problem:
            self.error = self.error or f"{path}: {problem.strerror}"

    def _fail(self, problem: OSError) -> None:
        self.error = self.error or f"{self.path}: {problem.strerror}"
        self._close_file()
        self._room = 0
        self._retry_at = self.total + RETRY_BYTES

    def _recover(self, limit: int = MEMORY_TAIL_BYTES) -> None:
        """Try a new segment that begins with what memory still holds and no file has."""
        held = self._tail.value()[-limit:]
        start = max(self.total - len(held), self._end)
        self._retry_at = None
        self._store(memoryview(held)[len(held) - (self.total - start) :], start)


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
        names = [name for name in os.listdir(head.parent) if name.startswith(prefix)]
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
