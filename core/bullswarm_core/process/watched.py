"""A child that another thread may stop: it is drained all its life, and nothing of it is left when it has ended.

Unlike `child.run_child` it hands its output on instead of holding it, so that an endless one costs no memory.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.process.child import DRAIN_SEC, end_child, has_ended
from bullswarm_core.process.overseer import END_SEC
from bullswarm_core.store.home import PRIVATE_FILE

# A wish to stop, and the end of a child whose pipe a grandchild holds, are noticed within this.
_LOOK_SEC = 0.1
_PIECE = 65536
# What a log keeps of an output: its beginning, while it is written, and its end.
LOG_HEAD = 1024 * 1024
LOG_TAIL = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Watched:
    """How a watched child ended. ``exit_code`` is negative for a signal, None when it was ended by us."""

    exit_code: int | None
    timed_out: bool
    stopped: bool
    wall_sec: float


def watch(
    child: subprocess.Popen[bytes],
    *,
    timeout_sec: float,
    stopped: Callable[[], bool],
    take: Callable[[bytes], object],
    overseen: bool = False,
) -> Watched:
    """Hand on what ``child`` says until it ends, its time is up or ``stopped`` says so; then end its whole tree.

    ``overseen``: the child is an overseer, which ends the tree itself when it is asked to.
    """
    assert child.stdout is not None, "a watched child writes into a pipe"
    begun = time.monotonic()
    pipe = child.stdout.fileno()
    os.set_blocking(pipe, False)
    timed_out = asked = False
    talking = True
    with child.stdout, selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        try:
            while not (asked or timed_out or has_ended(child)):
                left = begun + timeout_sec - time.monotonic()
                asked, timed_out = stopped(), left <= 0
                if talking:
                    talking = _step(selector, min(max(left, 0), _LOOK_SEC), take)
                elif left > 0:
                    # It has closed its output and works on.
                    time.sleep(min(left, _LOOK_SEC / 5))
        finally:
            if overseen:
                _ask_to_end(child)
            end_child(child)
        deadline = time.monotonic() + DRAIN_SEC
        while talking and (left := deadline - time.monotonic()) > 0:
            talking = _step(selector, left, take)
    wall = time.monotonic() - begun
    return Watched(None if asked or timed_out else child.returncode, timed_out and not asked, asked, wall)


def _ask_to_end(child: subprocess.Popen[bytes]) -> None:
    """TERM an overseer and wait until it has ended all; one that can't is ended like any other child."""
    deadline = time.monotonic() + END_SEC + 1
    if not has_ended(child):
        child.terminate()
    while not has_ended(child) and time.monotonic() < deadline:
        time.sleep(0.002)


def _step(selector: selectors.BaseSelector, seconds: float, take: Callable[[bytes], object]) -> bool:
    """Read once, waiting for at most ``seconds``; False once the other end is closed."""
    for key, _ in selector.select(seconds):
        try:
            piece = os.read(key.fd, _PIECE)
        except BlockingIOError:
            continue
        if not piece:
            selector.unregister(key.fd)
            return False
        take(piece)
    return True


class BoundedLog:
    """A file of an output's first and last MiB; a disk that refuses it ends the file, never the reading."""

    def __init__(self, path: Path, *, head: int = LOG_HEAD, tail: int = LOG_TAIL) -> None:
        self._head, self._tail = head, tail
        self._size = 0
        self._recent = bytearray()
        self._file: BinaryIO | None = None
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.fdopen(os.open(path, flags, PRIVATE_FILE), "wb", buffering=0)

    @property
    def last(self) -> bytes:
        """The end of what was said, at most a MiB."""
        return bytes(self._recent[-self._tail :])

    def take(self, piece: bytes) -> None:
        """Add what was said next."""
        self._write(piece[: max(0, self._head - self._size)])
        self._size += len(piece)
        self._recent += piece
        if len(self._recent) > 2 * self._tail:
            del self._recent[: -self._tail]

    def close(self) -> None:
        """Write the end behind the beginning, and say how much is missing between them."""
        beyond = max(0, self._size - self._head)
        kept = bytes(self._recent[-min(beyond, self._tail) :]) if beyond else b""
        if beyond > len(kept):
            self._write(f"\n… {beyond - len(kept)} bytes are left out here …\n".encode())
        self._write(kept)
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, data: bytes) -> None:
        if self._file is not None and data:
            try:
                self._file.write(data)
            except OSError:
                self._file.close()
                self._file = None
