"""Writes ``cache/hook-state.json``: what hooks and the status line may know without opening the database (design D12).

It is written anew by every process that changes what stands in it: a kernel when work starts and ends, the verbs that
change labels, pools and decisions, and `pools`, which has just read it all anyway. A dry run never writes it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from bullswarm_core.assemble import current_pools, routing_context
from bullswarm_core.connector import PoolProfile
from bullswarm_core.database import open_database
from bullswarm_core.errors import BullswarmError
from bullswarm_core.fast import files
from bullswarm_core.fast.hook_state import SCHEMA_VERSION
from bullswarm_core.home import Home, file_lock, read_json
from bullswarm_core.labels import Labels
from bullswarm_core.ledger import Booking, entries, inflight_by_pool
from bullswarm_core.quota.learned import Rates, learned_rates
from bullswarm_core.quota.windows import readings
from bullswarm_core.routing.overview import PoolOverview, overview
from bullswarm_core.settings import Document, Settings, update_settings
from bullswarm_core.wire import iso

# Whoever holds it writes a file of some KB; a person who waits for a verb never waits longer for this by-product.
_LOCK_PATIENCE_SEC = 1.0


def state_file(home: Home) -> Path:
    """Return where the state is kept."""
    return home.cache_dir / "hook-state.json"


def refresh(home: Home, environ: Mapping[str, str], *, keep_unseen: bool = False) -> bool:
    """Write the state as it is now and tell whether that worked; it is a by-product, so it never fails the caller.

    Processes take turns, so that the last one to write is the last one to have looked. ``keep_unseen`` leaves a pool that
    this process doesn't find as it was: a kernel has the PATH of the shell that an agent gave it, which may lead to less.
    """
    try:
        with file_lock(home.cache_dir / "hook-state.lock", timeout_sec=_LOCK_PATIENCE_SEC):
            state = _document(home, environ)
            files.write_private(str(state_file(home)), _with_unseen(state, home) if keep_unseen else state)
        return True
    except (BullswarmError, OSError, sqlite3.Error):
        return False


def delegation_is_on(home: Home) -> bool:
    """Tell whether the person lets hooks delegate subagents (``config.delegation`` in state.json)."""
    document = read_json(home.state_file, default={})
    config = document.get("config") if isinstance(document, dict) else None
    return isinstance(config, dict) and config.get("delegation") is True


def switch_delegation(home: Home, *, on: bool) -> None:
    """Record the person's choice. Raises StateError and changes nothing when state.json can't be understood."""

    def change(document: Document) -> None:
        document.setdefault("config", {})["delegation"] = on

    update_settings(home, change)


def document(
    rows: Sequence[PoolOverview],
    profiles: Sequence[PoolProfile],
    bookings: Sequence[Booking],
    *,
    short_ids: Mapping[str, str],
    delegation: bool,
    now: datetime,
) -> dict[str, Any]:
    """Build the state from what was read; pure. ``short_ids`` are by run id."""
    by_id = {profile.id: profile for profile in profiles}
    labels = {row.pool.id: row.pool.shown_name for row in rows}
    return {
        "schemaVersion": SCHEMA_VERSION,
        "at": iso(now),
        "delegation": delegation,
        "accounts": {profile.connector.name: _account(profile) for profile in profiles},
        "pools": [_pool(row, by_id[row.pool.id]) for row in rows],
        "runs": [
            {
                "runId": booking.run,
                "shortId": short_ids.get(booking.run, booking.run),
                "pool": booking.pool,
                "poolLabel": labels.get(booking.pool, booking.pool),
                "lane": booking.lane,
                "startedAt": iso(booking.started_at),
                "kernelPid": booking.kernel.pid,
            }
            for booking in bookings
        ],
    }


def _with_unseen(state: dict[str, Any], home: Home) -> dict[str, Any]:
    before = files.read_json(str(state_file(home)))
    if not isinstance(before, dict) or before.get("schemaVersion") != SCHEMA_VERSION:
        return state
    seen = {row["pool"] for row in state["pools"]}
    rows = before.get("pools")
    unseen = (
        [row for row in rows if isinstance(row, dict) and row.get("pool") not in seen] if isinstance(rows, list) else []
    )
    accounts = before.get("accounts")
    return {
        **state,
        "pools": [*state["pools"], *unseen],
        "accounts": {**(accounts if isinstance(accounts, dict) else {}), **state["accounts"]},
    }


def _document(home: Home, environ: Mapping[str, str]) -> dict[str, Any]:
    from bullswarm_core.runs.services import utc_now
    from bullswarm_providers.registry import load

    profiles = load(home, environ).profiles
    now, settings = utc_now(), Settings.load(home)
    bookings, short_ids, rates = _in_flight(home, profiles, now)
    inflight = inflight_by_pool(bookings)
    pools = current_pools(home, profiles, settings, now=now, labels=Labels.load(home), inflight=inflight, rates=rates)
    rows = [overview(pool, now=now, context=routing_context(settings)) for pool in pools]
    return document(rows, profiles, bookings, short_ids=short_ids, delegation=delegation_is_on(home), now=now)


def _in_flight(
    home: Home, profiles: Sequence[PoolProfile], now: datetime
) -> tuple[list[Booking], dict[str, str], dict[str, Rates]]:
    """What is in flight, the short ids of its runs, and what a minute of work spends on each pool."""
    connection = open_database(home, readonly=True)
    if connection is None:
        return [], {}, {}
    with contextlib.closing(connection):
        bookings = entries(connection, now=now)
        wanted = {booking.run for booking in bookings}
        found = connection.execute("SELECT id, short_id FROM runs WHERE finished_at IS NULL")
        short_ids = {run_id: short_id for run_id, short_id in found if run_id in wanted}
        pool_ids = [profile.id for profile in profiles]
        inflight = inflight_by_pool(bookings)
        return bookings, short_ids, learned_rates(home, pool_ids, connection, inflight=inflight, write_cache=True)


def _account(profile: PoolProfile) -> dict[str, Any]:
    folder = profile.connector.config_folder
    return {"variable": folder.variable, "default": folder.default}


def _pool(row: PoolOverview, profile: PoolProfile) -> dict[str, Any]:
    current = readings(row.pool.windows, row.now)
    return {
        "pool": row.pool.id,
        "poolLabel": row.pool.shown_name,
        "provider": row.pool.provider,
        "configDir": profile.config_dir,
        "enabled": row.pool.enabled,
        "state": row.state,
        "metered": row.pool.metered,
        "lastResort": row.pool.last_resort,
        "surplus": row.row.effective_surplus if row.row.pace is not None else None,
        "windows": [
            {
                "kind": window.kind,
                "usedPct": window.used_pct,
                "resetsAt": iso(window.resets_at) if window.resets_at else None,
            }
            for window in current.values()
            if window.scope is None and window.used_pct is not None
        ],
    }
