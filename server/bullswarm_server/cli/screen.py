"""A terminal that a verb draws on until it ends: its own screen, whole frames, and what wakes a wait early."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from bullswarm_server.cli.context import CommandContext

# The alternate screen keeps what was on the terminal; a frame is shown at once where the terminal knows how (mode 2026).
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_FRAME_START, _FRAME_END = "\x1b[?2026h\x1b[H", "\x1b[J\x1b[?2026l"
_END_OF_LINE = "\x1b[K\n"


def draw_frame(context: CommandContext, lines: Sequence[str]) -> None:
    """Draw lines that fit the terminal over what was there, without a moment in which it is empty."""
    body = _END_OF_LINE.join(lines)
    context.out.write(_FRAME_START + body + "\x1b[K" + _FRAME_END)
    context.out.flush()


@contextmanager
def own_screen(context: CommandContext) -> Iterator[None]:
    """Take the terminal and give it back as it was, also when the program is ended or stopped for a while."""

    def write(text: str) -> None:
        # Past the stream's buffer: a signal may come while that is being filled, and it can't be entered twice.
        os.write(context.out.fileno(), text.encode())

    def ended(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    def stopped(_: int, __: FrameType | None) -> None:
        write(_LEAVE)
        os.kill(os.getpid(), signal.SIGSTOP)
        write(_ENTER)

    with _handlers({signal.SIGTERM: ended, signal.SIGHUP: ended, signal.SIGTSTP: stopped}):
        write(_ENTER)
        try:
            yield
        finally:
            write(_LEAVE)


@contextmanager
def wake_ups() -> Iterator[Callable[[float], bool]]:
    """Give a wait that a new size of the terminal, or a return from a stop, ends early; it tells whether one did."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def woken(_: int, __: FrameType | None) -> None:
        try:
            os.write(writer, b"x")
        except BlockingIOError:
            return  # it is full of wake-ups already

    def wait(seconds: float) -> bool:
        if not select.select([reader], [], [], seconds)[0]:
            return False
        os.read(reader, 4096)
        return True

    try:
        with _handlers({signal.SIGWINCH: woken, signal.SIGCONT: woken}):
            yield wait
    finally:
        os.close(reader)
        os.close(writer)


@contextmanager
def _handlers(wanted: dict[int, Callable[[int, FrameType | None], None]]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
