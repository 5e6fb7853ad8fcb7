"""What the tests of real programs share: waiting for the thing itself, and the processes that a home has started."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Found = TypeVar("Found")
# Far more than anything takes on an idle machine; two busy cores once took 30.
PATIENCE_SEC = 60.0
# A look at every process of the machine costs some milliseconds: looking takes at most a fifth of the time.
REST_PER_LOOK = 4.0


def until(look: Callable[[], Found | None], what: str, *, seconds: float = PATIENCE_SEC) -> Found:
    """Ask until there is an answer; fail with `what` when it never comes."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        begun = time.monotonic()
        found = look()
        if found:
            return found
        time.sleep(max(0.02, REST_PER_LOOK * (time.monotonic() - begun)))
    raise AssertionError(f"not within {seconds:.0f} s: {what}")


def processes_of(home: Path) -> dict[int, str]:
    """The command line of every living process that was started with this bullswarm home, by its environment."""
    mark = f"BULLSWARM_HOME={home}\0".encode()
    found = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (place / "environ").read_bytes() and b"State:\tZ" not in (place / "status").read_bytes():
                    line = (place / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(place.name)] = line.decode("utf-8", "replace")
    return found


def keeper_record(run_folder: Callable[[], Path]) -> dict[str, Any]:
    """Who keeps the only attempt of a run, and which process is its worker; waits until both are known."""

    def record() -> dict[str, Any] | None:
        with contextlib.suppress(OSError, ValueError):
            found: dict[str, Any] = json.loads((run_folder() / "attempt-run-1.keeper.json").read_bytes())
            return found if found.get("worker") else None
        return None

    return until(record, "a worker is running")
