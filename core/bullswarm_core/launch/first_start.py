"""The first start of a CLI, alone: some build their own database then, and two of them at once break each other's.

Seen: five OpenCodes in a fresh home, one of which died of a table that another had just made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from bullswarm_core.errors import LockTimeoutError
from bullswarm_core.fast.files import file_name_of
from bullswarm_core.store.home import Home, file_lock

# A first start takes OpenCode some 5 s, on a machine that is swamped 30; after that it is more likely stuck than busy.
LONGEST_WAIT_SEC = 60.0


def take_turn(home: Home, pool_id: str, marker: str | None) -> Callable[[], None]:
    """Wait for the turn to start a CLI and return what ends it; call that at the worker's first sign of life, or its end.

    ``marker`` is the file that a first start makes: with it there, or None, nobody waits. The lock dies with the kernel, and
    after a minute a start goes ahead all the same.
    """
    if marker is None or Path(marker).exists():
        return _nothing
    held = contextlib.ExitStack()
    lock = home.cache_dir / f"first-start-{file_name_of(pool_id)}.lock"
    try:
        held.enter_context(file_lock(lock, timeout_sec=LONGEST_WAIT_SEC))
    except LockTimeoutError:
        return _nothing
    if Path(marker).exists():
        held.close()
        return _nothing
    return held.close


def _nothing() -> None:
    return None
