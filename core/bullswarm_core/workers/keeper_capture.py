"""Bounded capture of a stream into files: a head that is kept, then segments of which only the newest are kept.

The head is ``FILE``; a segment is ``FILE.tail-<offset>``, where the offset is the place of its first byte in the
stream. So the names alone say what is missing, also after bytes were lost to a full disk.
"""

from __future__ import annotations

import os
from collections import deque

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
