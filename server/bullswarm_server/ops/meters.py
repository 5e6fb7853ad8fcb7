"""Keeps readings fresh without making anybody wait: starts a process that reads the meters that are due, and looks on a while.

Whoever picks or shows pools uses what is known after a second and says how old it is; the process goes on for the next one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

from bullswarm_core.errors import BullswarmError
from bullswarm_core.meters.due import VARIABLE, is_due, mode_of, why_not_read
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Settings
from bullswarm_core.quota.holds import started_file
from bullswarm_core.quota.reading import load_reading
from bullswarm_core.store.home import PRIVATE_FILE, Home, make_folder

if TYPE_CHECKING:
    import subprocess

    from bullswarm_core.pools.connector import PoolProfile

PATIENCE_SEC = 1.0
"""No pick and no list of pools waits longer than this for a meter."""
FORCED_SEC = 20.0
"""A person who asks for a new reading waits longer than the slowest good answer: a CLI that is started and asked."""
AFTER_LIMIT_SEC = 10.0
"""A run that ended in a usage limit waits this long for the reading that may tell when the pool is back."""
STARTING_SEC = 5.0
"""A reading that was started this long ago and is nowhere to be seen is started again."""
_LOOK_SEC = 0.02

Outcome = dict[str, Any]


def readable_pools(
    profiles: Iterable[PoolProfile], settings: Settings, *, environ: Mapping[str, str]
) -> list[PoolProfile]:
    """Return the pools whose meters may be read: not those that the person turned off or that aren't signed in."""
    if mode_of(environ) == "off":
        return []
    return [profile for profile in profiles if why_not_read(profile, enabled=settings.enabled(profile.id)) is None]


def due_pools(
    home: Home, profiles: Iterable[PoolProfile], settings: Settings, *, environ: Mapping[str, str], now: datetime
) -> list[PoolProfile]:
    """Return the pools whose readings are neither fresh nor held back."""
    return [profile for profile in readable_pools(profiles, settings, environ=environ) if _is_due(home, profile, now)]


def _is_due(home: Home, profile: PoolProfile, now: datetime) -> bool:
    return is_due(load_reading(home, profile.id, now=now), profile, now=now)


def bring_up_to_date(
    home: Home,
    profiles: Iterable[PoolProfile],
    settings: Settings,
    *,
    environ: Mapping[str, str],
    patience_sec: float = PATIENCE_SEC,
) -> None:
    """Have the meters that are due read, and wait for it at most ``patience_sec`` seconds; never fails.

    Of many who find a meter due at once one starts the reading, and all wait for it. In a home that can't be written there is
    nowhere to keep a reading, and nothing is started.
    """
    due = due_pools(home, profiles, settings, environ=environ, now=datetime.now(UTC))
    if not due or not os.access(home.root, os.W_OK | os.X_OK):
        return
    due = [profile for profile in due if _bears_it(home, profile)]
    mine = [profile.id for profile in due if claim(home, profile.id)]
    others = [profile for profile in due if profile.id not in mine]
    deadline = time.monotonic() + patience_sec
    try:
        if mine:
            _wait(_start(home, mine, environ=environ), deadline)
    except OSError:
        return
    while others and time.monotonic() < deadline:
        time.sleep(_LOOK_SEC)
        others = [profile for profile in others if _is_due(home, profile, datetime.now(UTC))]


def _bears_it(home: Home, profile: PoolProfile) -> bool:
    from bullswarm_core.quota.holds import identity_of, may_ask_at, polled_at

    now, interval = datetime.now(UTC), profile.connector.meter.min_interval_sec
    return may_ask_at(polled_at(home, identity_of(profile)), interval, now) <= now


def claim(home: Home, pool_id: str) -> bool:
    """Tell whether this process is the one to start reading a pool's meter: nobody did in the last seconds.

    Only a saving: were two to start it, the vendor would still be asked once.
    """
    path = started_file(home, pool_id)
    try:
        make_folder(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, PRIVATE_FILE))
    except FileExistsError:
        with suppress(OSError):
            if 0 <= time.time() - path.stat().st_mtime < STARTING_SEC:
                return False
            os.utime(path)
    except (OSError, BullswarmError):
        return False
    return True


def read_now(
    home: Home, pools: Sequence[str], *, environ: Mapping[str, str], patience_sec: float = FORCED_SEC
) -> list[Outcome]:
    """Have these meters read whatever their age, wait for it at most ``patience_sec``, and return what came of each.

    An outcome is ``{pool, step, why, hint, retryAt}``; the step ``pending`` says that the reading goes on. Raises
    BullswarmError when nothing could be started.
    """
    if not pools:
        return []
    import tempfile

    for pool in pools:
        claim(home, pool)  # others see that it is being read, and start no reading of their own
    try:
        # A file and no pipe: whoever reads on must not depend on whether somebody still listens.
        with tempfile.TemporaryFile() as report:
            deadline = time.monotonic() + patience_sec
            _wait(_start(home, pools, environ=environ, force=True, report=report), deadline)
            report.seek(0)
            told = _told(report.read())
    except OSError as error:
        raise BullswarmError(
            f"no meter could be read: {error.strerror or error}", hint="free some resources and try again"
        ) from error
    return [told.get(pool) or _pending(pool, patience_sec) for pool in pools]


def _start(
    home: Home,
    pools: Sequence[str],
    *,
    environ: Mapping[str, str],
    force: bool = False,
    report: IO[bytes] | None = None,
) -> subprocess.Popen[bytes]:
    import subprocess

    from bullswarm_core.process.environment import is_session_variable

    kept = {name: value for name, value in environ.items() if not is_session_variable(name)}
    return subprocess.Popen(
        # -P keeps a file in the working folder from standing in for one of our modules.
        [sys.executable, "-P", "-m", "bullswarm_server.meters", *(["--force"] if force else []), *pools],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if report is None else report,
        stderr=subprocess.DEVNULL,
        cwd=home.root if home.root.is_dir() else "/",
        env={**kept, "BULLSWARM_HOME": str(home.root)},
        start_new_session=True,
    )


def _wait(process: subprocess.Popen[bytes], deadline: float) -> None:
    while process.poll() is None:
        if time.monotonic() >= deadline:
            import threading

            # It ends by itself; a server that lives for days must not collect the dead.
            threading.Thread(target=process.wait, daemon=True).start()
            return
        time.sleep(_LOOK_SEC)


def _told(data: bytes) -> dict[str, Outcome]:
    import json

    found = {}
    for line in data.splitlines():
        try:
            outcome = json.loads(line)
            found[outcome["pool"]] = outcome
        except (ValueError, TypeError, KeyError):
            continue  # half a line: its writer is still at it
    return found


def _pending(pool: str, patience_sec: float) -> Outcome:
    why = f"no answer within {patience_sec:g} s; the reading goes on"
    return {"pool": pool, "step": "pending", "why": why, "hint": None, "retryAt": None}


def renew(
    home: Home,
    profiles: Iterable[PoolProfile],
    settings: Settings,
    *,
    environ: Mapping[str, str],
    labels: Labels,
    force: bool = False,
    tell: Callable[[str], object] | None = None,
) -> tuple[Outcome, ...]:
    """Have the readings that are old renewed for a list of pools; with ``force`` all, and return what came of each.

    ``tell`` is told in one line which meters are waited for. Without ``force`` it takes a second at most and returns nothing.
    Raises BullswarmError when a forced reading can't start.
    """
    if not force:
        bring_up_to_date(home, profiles, settings, environ=environ)
        return ()
    readable = [profile.id for profile in readable_pools(profiles, settings, environ=environ)]
    if not readable:
        off = mode_of(environ) == "off"
        why = f"{VARIABLE} turns meters off" if off else "no pool that is on and signed in has a meter that can be read"
        return ({"pool": None, "poolLabel": None, "step": "off", "why": why, "hint": None, "retryAt": None},)
    if tell is not None:
        from bullswarm_core.fast.text import one_line

        tell(one_line(f"reading {', '.join(map(labels.shown, readable))} …"))
    outcomes = read_now(home, readable, environ=environ)
    return tuple({"pool": None, "poolLabel": labels.of(outcome["pool"]), **outcome} for outcome in outcomes)


def outcome_lines(outcomes: Iterable[Mapping[str, Any]], *, now: datetime) -> list[str]:
    """Say of each pool that got no new reading why, and when there may be one."""
    from bullswarm_core.fast.text import duration
    from bullswarm_core.wire import parse_iso

    lines = []
    for outcome in outcomes:
        if outcome["step"] in ("live", "passive", "fresh"):
            continue
        name = outcome["poolLabel"] or outcome["pool"]
        parts = [f"{name}: {outcome['why'] or outcome['step']}" if name else outcome["why"]]
        if outcome["hint"]:
            parts.append(outcome["hint"])
        if outcome["retryAt"]:
            parts.append(f"retry in {duration(max(0.0, (parse_iso(outcome['retryAt']) - now).total_seconds() / 60))}")
        lines.append(" · ".join(parts))
    return lines
