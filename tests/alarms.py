"""A wait that must not happen is a failure, and no test that hangs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def nobody_waits(what: str, *, seconds: float = 20.0) -> Iterator[None]:
    """Fail where the block takes longer than ``seconds``, also while it waits for the system."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it waits for ever: {what}")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
