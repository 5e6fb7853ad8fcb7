"""``python -m bullswarm_server.meters [--force] POOL…``: reads the meters of these pools and ends, within a minute in any case.

Each outcome is one JSON line on standard output as soon as it is known: ``{pool, step, why, hint, retryAt}``. Whoever started
it may be gone by then; what counts is in the meters' files.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bullswarm_core.errors import BullswarmError
from bullswarm_core.store.home import Home

if TYPE_CHECKING:
    from bullswarm_core.meters.refresh import Refresher
    from bullswarm_core.pools.connector import PoolProfile

LIMIT_SEC = 60.0
"""Two answers of 10 s and a CLI that is started and asked take half of it; whatever lasts longer never ends."""
WAIT_SEC = 15.0
"""How long a forced reading waits for another process that is at it."""
_AT_ONCE = 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the meters of the pools that are named; unknown ones and those that may not be read are left out."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    force = words[:1] == ["--force"]
    # A terminal that closes or a Ctrl-C there must not cost the reading.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return read(Home(), words[1:] if force else words, force=force, limit_sec=LIMIT_SEC)
    except BullswarmError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


def read(home: Home, pools: Sequence[str], *, force: bool, limit_sec: float) -> int:
    """Read these meters side by side, each pool by itself; end the process when it takes longer than ``limit_sec``."""
    from bullswarm_core.meters.refresh import Refresher
    from bullswarm_core.pools.settings import Settings
    from bullswarm_providers.registry import load
    from bullswarm_server.hook_state import refresh as refresh_hook_state
    from bullswarm_server.ops.meters import readable_pools

    profiles = readable_pools(load(home, os.environ).profiles, Settings.load(home), environ=os.environ)
    waiting = [profile for profile in profiles if profile.id in pools]
    turn, lock = Refresher(home, os.environ), threading.Lock()

    def work() -> None:
        while waiting:
            with contextlib.suppress(IndexError):
                _tell(_outcome(turn, waiting.pop(0), force=force), lock)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(_AT_ONCE, len(waiting)))]
    deadline = time.monotonic() + limit_sec
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        _end_all()
    refresh_hook_state(home, os.environ, keep_unseen=True)
    return 0


def _outcome(turn: Refresher, profile: PoolProfile, *, force: bool) -> dict[str, Any]:
    from bullswarm_core.meters.refresh import Outcome
    from bullswarm_core.wire import to_wire

    try:
        outcome = turn.refresh(profile, force=force, wait_sec=WAIT_SEC if force else 0.0)
    except BullswarmError as error:
        outcome = Outcome(profile.id, "failed", error.message, error.hint)
    document: dict[str, Any] = to_wire(outcome)
    return document


def _tell(outcome: dict[str, Any], lock: threading.Lock) -> None:
    with lock, contextlib.suppress(OSError, ValueError):
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()


def _end_all() -> None:
    """End this process with everything that it started, if the session is its own."""
    if os.getsid(0) == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
