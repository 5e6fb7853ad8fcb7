"""A real pseudo-terminal with a bullswarm command, or another program, on it: what was written to it, its size, its keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from tests.processes import PATIENCE_SEC

BULLSWARM = (sys.executable, "-m", "bullswarm_server.cli.main")
_CODES = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")


def plain_text(text: str) -> str:
    """``text`` without its colours and its moves of the cursor, with plain line ends."""
    return _CODES.sub("", text).replace("\r\n", "\n")


class OnTerminal:
    """A command that runs on a terminal of its own; ``seen`` is all that it has written so far."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], *, columns: int, lines: int) -> None:
        self._master, slave = pty.openpty()
        self.seen = ""
        self._bytes = b""
        self.resize(columns, lines)
        python_path = os.pathsep.join(path for path in sys.path if path)
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={"PYTHONPATH": python_path, **environ},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)

    def resize(self, columns: int, lines: int = 24) -> None:
        """Give the terminal another size; the kernel tells the command so by SIGWINCH."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Press ``keys``; ``\\x03`` is Ctrl-C."""
        os.write(self._master, keys.encode())

    def until(self, seen: Callable[[str], bool], what: str) -> str:
        """Read until ``seen`` holds for all that was written, and return that."""
        deadline = time.monotonic() + PATIENCE_SEC
        while not seen(self.seen):
            left = deadline - time.monotonic()
            assert left > 0, f"not within {PATIENCE_SEC:.0f} s: {what}; seen: {self.seen[-2000:]!r}"
            if not self._read(left):
                assert seen(self.seen), f"the command ended before: {what}; seen: {self.seen[-2000:]!r}"
        return self.seen

    def end(self) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + PATIENCE_SEC
        while self._read(max(0.0, deadline - time.monotonic())):
            assert time.monotonic() < deadline, f"it does not end; seen: {self.seen[-2000:]!r}"
        return self.process.wait(PATIENCE_SEC)

    def close(self) -> None:
        """End what still runs."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE_SEC)
        os.close(self._master)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other end of a terminal is gone
            data = b""
        self._bytes += data
        self.seen = self._bytes.decode(errors="replace")
        return bool(data)


@contextmanager
def on_terminal(
    words: list[str],
    environ: Mapping[str, str],
    *,
    columns: int = 80,
    lines: int = 24,
    program: Sequence[str] = BULLSWARM,
) -> Iterator[OnTerminal]:
    """Start ``program`` with these words on a terminal of that size; nothing of it is left at the end."""
    running = OnTerminal([*program, *words], environ, columns=columns, lines=lines)
    try:
        yield running
    finally:
        running.close()


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
