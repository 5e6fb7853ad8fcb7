"""The quarantines of a home, in its database: recorded after a failure, read before each dispatch, lifted by the person."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import cast

from bullswarm_core.pools.settings import DEFAULT_POLICY, Settings
from bullswarm_core.routing.quarantine import KINDS, Quarantine, QuarantineKind, merged
from bullswarm_core.store.database import transaction
from bullswarm_core.wire import parse_iso, stamp


def quarantines_of(
    settings: Settings, connection: sqlite3.Connection | None, *, now: datetime
) -> dict[str, Quarantine]:
    """Return the quarantines by pool that the routing policy in force honours; none under one that honours none."""
    return in_force(connection, now=now) if remembers(settings) else {}


def remembers(settings: Settings) -> bool:
    """Say whether the routing policy in force knows quarantines and incumbents; False for one that there isn't."""
    if settings.routing_policy == DEFAULT_POLICY:  # the usual case, without loading any policy
        return False
    from bullswarm_core.routing.policies import POLICY_NAMES, policy_named

    name = settings.routing_policy
    return name in POLICY_NAMES and policy_named(name).remembers


def in_force(connection: sqlite3.Connection | None, *, now: datetime) -> dict[str, Quarantine]:
    """Return the quarantines by pool that have not ended at ``now``; reading changes nothing.

    A home without a database has none, and neither has one whose schema is older than they are.
    """
    if connection is None:
        return {}
    return {pool: entry for pool, entry in _all(connection).items() if entry.until > now}


def record(connection: sqlite3.Connection, entries: Iterable[Quarantine], *, at: datetime) -> None:
    """Keep ``entries``; one that would end before what stands for its pool changes nothing."""
    new = list(entries)
    if not new:
        return
    with transaction(connection):
        known = _all(connection)
        for pool, entry in merged(known, new).items():
            if known.get(pool) != entry:
                connection.execute(
                    "INSERT OR REPLACE INTO quarantines (pool, kind, until, why, at) VALUES (?, ?, ?, ?, ?)",
                    (pool, entry.kind, stamp(entry.until), entry.why, stamp(at)),
                )


def lift(connection: sqlite3.Connection, pool: str, *, now: datetime) -> Quarantine | None:
    """Take a pool's quarantine back and return it; None when none was in force."""
    with transaction(connection):
        entry = in_force(connection, now=now).get(pool)
        connection.execute("DELETE FROM quarantines WHERE pool = ?", (pool,))
    return entry


def _all(connection: sqlite3.Connection) -> dict[str, Quarantine]:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'quarantines'").fetchone() is None:
        return {}
    rows = connection.execute("SELECT pool, kind, until, why FROM quarantines")
    return {entry.pool: entry for row in rows if (entry := _entry(row)) is not None}


def _entry(row: sqlite3.Row) -> Quarantine | None:
    """Return the row's quarantine; None for one that nobody can read: it must not keep its pool out for ever."""
    try:
        until = parse_iso(row["until"])
    except (ValueError, TypeError):
        return None
    known = row["kind"] in KINDS
    return Quarantine(row["pool"], cast(QuarantineKind, row["kind"]), until, row["why"]) if known else None
