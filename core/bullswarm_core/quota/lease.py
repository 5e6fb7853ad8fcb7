"""Locks around meters: one process at a time asks an account's vendor, and one at a time rewrites a pool's meter file.

Both are the operating system's locks, which die with their holder: a killed process leaves nothing behind. When the vendor
was asked last is kept beside the lease, so that a restart doesn't ask again at once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bullswarm_core.errors import LockTimeoutError, StateError
from bullswarm_core.fast.files import file_name_of
from bullswarm_core.home import Home, file_lock, read_json, write_json
from bullswarm_core.wire import iso, parse_iso

if TYPE_CHECKING:
    from bullswarm_core.connector import PoolProfile

# Whoever holds it reads and writes one small file.
_METER_PATIENCE_SEC = 5.0


def meter_lock(home: Home, pool_id: str) -> AbstractContextManager[None]:
    """Hold the right to rewrite the pool's meter file. Raises LockTimeoutError or StorageError."""
    return file_lock(home.meters_dir / "locks" / f"{file_name_of(pool_id)}.lock", timeout_sec=_METER_PATIENCE_SEC)


def started_file(home: Home, pool_id: str) -> Path:
    """The mark of whoever started to read a pool's meter: when that was is its time of change."""
    return home.meters_dir / "locks" / f"{file_name_of(pool_id)}.started"


def identity_of(profile: PoolProfile) -> str:
    """Name the account behind a pool, for a file: pools with one account share one lease.

    The account is known by its id, else by the folder that holds its sign-in, else it is the provider's only one.
    """
    import hashlib

    connector = profile.connector
    group = connector.credential_group or connector.name
    who = profile.account or (os.path.realpath(profile.config_dir) if profile.config_dir else profile.id)
    digest = hashlib.sha256(f"{group}|{who}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{file_name_of(group)}-{digest[:16]}"


@contextlib.contextmanager
def lease(home: Home, identity: str, *, wait_sec: float = 0.0) -> Iterator[bool]:
    """Hold the right to ask this account's vendor for the block, if it can be had within ``wait_sec``; yield whether it was.

    Raises StorageError where no lock file can be made: without one nobody can be sure to be alone.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(file_lock(_file(home, identity, "lease"), timeout_sec=wait_sec))
        except LockTimeoutError:
            yield False
            return
        yield True


def polled_at(home: Home, identity: str) -> datetime | None:
    """Return when this account's vendor was asked last, as far as that is known."""
    try:
        return parse_iso(read_json(_file(home, identity, "asked.json"))["polledAt"])
    except (StateError, TypeError, KeyError, ValueError):
        return None


def note_poll(home: Home, identity: str, *, now: datetime | None) -> None:
    """Write down that the vendor is asked now, before it is: what can't be written down isn't asked. None is never.

    Raises StorageError when the disk refuses; else a full disk would have every process ask anew.
    """
    write_json(_file(home, identity, "asked.json"), {"polledAt": None if now is None else iso(now)})


def _file(home: Home, identity: str, kind: str) -> Path:
    return home.meters_dir / "locks" / f"{identity}.{kind}"
