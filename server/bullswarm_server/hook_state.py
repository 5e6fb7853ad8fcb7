"""Writes ``cache/hook-state.json``: what hooks and the status line may know without opening the database.

Beside it and from the same look goes ``cache/mod-state.json``, which the Claude Mod draws (``bullswarm_server.mod_state``).

It is written anew by every process that changes what stands in it: a kernel when work starts and ends, the verbs that
change labels, pools and decisions, and `pools`, which has just read it all anyway. A dry run never writes it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.dispatch.assemble import current_pools, routing_context
from bullswarm_core.dispatch.ledger import Booking, entries, inflight_by_pool
from bullswarm_core.dispatch.quarantines import quarantines_of
from bullswarm_core.errors import BullswarmError, DamagedRunError, UnknownNameError
from bullswarm_core.fast import files
from bullswarm_core.fast.hook_state import SCHEMA_VERSION
from bullswarm_core.kernel.liveness import KernelState, kernel_state
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Document, Settings, update_settings
from bullswarm_core.quota.rate_cache import Rates, learned_rates
from bullswarm_core.quota.windows import readings
from bullswarm_core.routing.overview import PoolOverview, overview
from bullswarm_core.routing.quarantine import Quarantine
from bullswarm_core.runs.journal import Folds, Journal, RunRow
from bullswarm_core.runs.state import RunState
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home, file_lock, read_json
from bullswarm_core.wire import iso
from bullswarm_server import mod_state
from bullswarm_server.ops.run_forms import checked

# Whoever holds it writes a file of some KB; a person who waits for a verb never waits longer for this by-product.
_LOCK_PATIENCE_SEC = 1.0
_NEWEST_RUNS = 40


def state_file(home: Home) -> Path:
    """Return where the state is kept."""
    return home.cache_dir / "hook-state.json"


def refresh(home: Home, environ: Mapping[str, str], *, keep_unseen: bool = False, folds: Folds | None = None) -> bool:
    """Write the state as it is now and tell whether that worked; it is a by-product, so it never fails the caller.

    Processes take turns, so that the last one to write is the last one to have looked. ``keep_unseen`` leaves a pool that
    this process doesn't find as it was: a kernel has the PATH of the shell that an agent gave it, which may lead to less.
    Nor does a process of that kind, which may outlive the home, bring one back that was deleted. A process that does it again
    and again has ``folds``, so that it reads each time what was said since.
    """
    if keep_unseen and not home.root.is_dir():
        return False
    try:
        with file_lock(home.cache_dir / "hook-state.lock", timeout_sec=_LOCK_PATIENCE_SEC):
            seen = _look(home, environ, folds or Folds())
            for path, state in ((state_file(home), _document(seen)), (mod_state.state_file(home), _mod_document(seen))):
                files.write_private(str(path), _with_unseen(state, path) if keep_unseen else state)
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


def _with_unseen(state: dict[str, Any], path: Path) -> dict[str, Any]:
    before = files.read_json(str(path))
    if not isinstance(before, dict) or before.get("schemaVersion") != state["schemaVersion"]:
        return state
    seen = {row["pool"] for row in state["pools"]}
    rows = before.get("pools")
    unseen = (
        [row for row in rows if isinstance(row, dict) and row.get("pool") not in seen] if isinstance(rows, list) else []
    )
    whole = {**state, "pools": [*state["pools"], *unseen]}
    accounts = before.get("accounts")
    if "accounts" in state and isinstance(accounts, dict):
        whole["accounts"] = {**accounts, **state["accounts"]}
    return whole


@dataclass(frozen=True, slots=True)
class _Work:
    """What the database says: the attempts in flight, the newest runs that are not over and that are; rates, quarantines.

    ``short_ids`` are those of all runs that are not over, by run id.
    """

    bookings: Sequence[Booking] = ()
    short_ids: Mapping[str, str] = field(default_factory=dict)
    runs: Sequence[mod_state.Run] = ()
    ended: Sequence[RunState] = ()
    rates: Mapping[str, Rates] = field(default_factory=dict)
    quarantines: Mapping[str, Quarantine] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Look:
    """Everything that either state is made of, as it was at one moment."""

    rows: Sequence[PoolOverview]
    profiles: Sequence[PoolProfile]
    work: _Work
    labels: Labels
    delegation: bool
    now: datetime


def _document(seen: _Look) -> dict[str, Any]:
    return document(
        seen.rows,
        seen.profiles,
        seen.work.bookings,
        short_ids=seen.work.short_ids,
        delegation=seen.delegation,
        now=seen.now,
    )


def _mod_document(seen: _Look) -> dict[str, Any]:
    return mod_state.document(
        seen.rows,
        seen.work.runs,
        seen.work.ended,
        label=seen.labels.shown,
        delegation=seen.delegation,
        now=seen.now,
    )


def _look(home: Home, environ: Mapping[str, str], folds: Folds) -> _Look:
    from bullswarm_core.dispatch.services import utc_now
    from bullswarm_providers.registry import load

    profiles = load(home, environ).profiles
    now, settings = utc_now(), Settings.load(home)
    work, labels = _work(home, profiles, settings, folds, now), Labels.load(home)
    inflight = inflight_by_pool(work.bookings)
    pools = current_pools(home, profiles, settings, now=now, labels=labels, inflight=inflight, rates=work.rates)
    routing = routing_context(settings, quarantines=work.quarantines)
    rows = [overview(pool, now=now, context=routing) for pool in pools]
    return _Look(rows, profiles, work, labels, delegation_is_on(home), now)


def _work(home: Home, profiles: Sequence[PoolProfile], settings: Settings, folds: Folds, now: datetime) -> _Work:
    connection = open_database(home, readonly=True)
    if connection is None:
        return _Work()
    with contextlib.closing(connection):
        bookings, journal = entries(connection, now=now), Journal(connection)
        unfinished = journal.rows(unfinished_only=True)
        open_runs = _readable(unfinished, lambda run_id: folds.state(journal, run_id), most=mod_state.MOST_RUNS)
        folds.keep(state.created.run_id for state in open_runs)
        # Those that are over stand anywhere among the newest runs.
        newest = [row for row in journal.rows(limit=_NEWEST_RUNS) if row.outcome is not None]
        ended = _readable(newest, journal.outline, most=mod_state.MOST_VERDICTS)
        pool_ids = [profile.id for profile in profiles]
        rates = learned_rates(home, pool_ids, connection, inflight=inflight_by_pool(bookings), write_cache=True)
        quarantines = quarantines_of(settings, connection, now=now)
    runs = [mod_state.Run(state, kernel_state(home, state, now=now) is not KernelState.GONE) for state in open_runs]
    short_ids = {row.run_id: row.short_id for row in unfinished}
    return _Work(bookings, short_ids, runs, ended, rates, quarantines)


def _readable(rows: Iterable[RunRow], fold: Callable[[str], RunState], *, most: int) -> list[RunState]:
    """Return the first runs whose journals can be read; of one that is damaged `runs list` tells."""
    found: list[RunState] = []
    for row in rows:
        if len(found) == most:
            break
        with contextlib.suppress(DamagedRunError, UnknownNameError):
            found.append(checked(fold(row.run_id)))
    return found


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
        "otherFolders": list(profile.other_folders),
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
