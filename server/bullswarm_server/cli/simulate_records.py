"""Reads what a replay is made of: the readings that were kept, those that picks saw, and the decision log. Writes nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.dispatch.assemble import rungs_of
from bullswarm_core.dispatch.ledger import entries, inflight_by_pool
from bullswarm_core.errors import StateError
from bullswarm_core.pools import EFFORTS, LANES, WINDOW_KINDS, Lane, Window
from bullswarm_core.pools.settings import Settings
from bullswarm_core.quota.history import CLOCK_TOLERANCE, read_history
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.rate_cache import Rates, learned_rates
from bullswarm_core.quota.rates import attempt_work
from bullswarm_core.quota.reading import load_reading
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home
from bullswarm_core.wire import parse_iso, stamp
from bullswarm_simulation.recorded import RecordedPool
from bullswarm_simulation.recorded_tasks import RecordedAttempt

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import PoolProfile

EARLIER = timedelta(days=31)
"""How far before the time that is played attempts are read: lengths are learned from them."""
LONGEST_ATTEMPT = timedelta(days=2)
"""An attempt is logged when it ends: one that began before ``--until`` is found up to this much later."""
MOST_PICKS = 5000
"""Picks of which the readings that they saw are read, the newest ones: the history keeps 500 lines, which may be two days."""
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)

Observations = dict[str, list[Observation]]


@dataclass(frozen=True, slots=True)
class Records:
    """What was recorded. ``skipped_lines`` of histories and ``skipped_rows`` of the database could not be understood."""

    pools: tuple[RecordedPool, ...] = ()
    attempts: tuple[RecordedAttempt, ...] = ()
    skipped_lines: int = 0
    skipped_rows: int = 0


@dataclass(slots=True)
class _Database:
    """What the database tells, and how many rows of it can't be understood."""

    attempts: list[RecordedAttempt]
    seen: Observations
    rates: dict[str, Rates]
    skipped: int = 0


def read_records(
    home: Home, profiles: Sequence[PoolProfile], settings: Settings, *, since: datetime, until: datetime, now: datetime
) -> Records:
    """Return the records from ``since`` to ``until``, with older ones from which lengths and phases are known.

    Damage costs only itself, and is counted. Raises StateError for a database that can't be read at all.
    """
    found = _from_database(home, [profile.id for profile in profiles], since=since, until=until, now=now)
    worked = {attempt.pool for attempt in found.attempts if since <= attempt.begun < until}
    pools: list[RecordedPool] = []
    skipped = 0
    for profile in profiles:
        observations, damaged = _observations(home, profile.id, found.seen.get(profile.id, ()), now=now)
        skipped += damaged
        # A pool that is turned off now and yet has worked was on then.
        takes = settings.enabled(profile.id) or profile.id in worked
        if observations or profile.id in worked:
            lanes: frozenset[Lane] = profile.connector.lanes if takes else frozenset()
            tiers = frozenset(tier for tier, rung in rungs_of(profile, settings).items() if rung.refused is None)
            pools.append(RecordedPool(profile.id, observations, found.rates.get(profile.id, {}), lanes, tiers))
    return Records(tuple(pools), tuple(found.attempts), skipped, found.skipped)


def _observations(
    home: Home, pool_id: str, seen: Sequence[Observation], *, now: datetime
) -> tuple[tuple[Observation, ...], int]:
    """Every reading of a pool, with the number of lines that are no use: damaged, or stamped by a clock that was wrong."""
    history = read_history(home, pool_id)
    reading = load_reading(home, pool_id, now=now)
    latest = [] if reading.captured_at is None else [Observation(reading.captured_at, reading.windows)]
    told = [each for each in (*history.observations, *latest, *seen) if each.captured_at <= now + CLOCK_TOLERANCE]
    ahead = sum(each.captured_at > now + CLOCK_TOLERANCE for each in history.observations)
    return tuple(sorted(told, key=lambda each: each.captured_at)), history.skipped + ahead


def _from_database(
    home: Home, pool_ids: Sequence[str], *, since: datetime, until: datetime, now: datetime
) -> _Database:
    connection = open_database(home, readonly=True)
    if connection is None:
        return _Database([], {}, {})
    try:
        inflight = inflight_by_pool(entries(connection, now=now))
        found = _Database([], {}, learned_rates(home, pool_ids, connection, inflight=inflight, write_cache=False))
        _read_attempts(connection, found, since=since - EARLIER, until=until + LONGEST_ATTEMPT)
        _read_picks(connection, found, since=since, until=until)
        return found
    except sqlite3.DatabaseError as error:
        raise StateError(
            f"{home.database_file} can't be read: {error}", hint="`bullswarm doctor` checks the home"
        ) from error
    finally:
        connection.close()


def _read_attempts(connection: sqlite3.Connection, found: _Database, *, since: datetime, until: datetime) -> None:
    rows = connection.execute(
        "SELECT id, at, run, step, lane, effort, picked, failure_kind, stalled, wall_sec, started_at, ended_at"
        " FROM decisions WHERE at >= ? AND at <= ? ORDER BY id",
        (stamp(since), stamp(until)),
    )
    for row in rows:
        try:
            found.attempts.append(_attempt(*row))
        except _UNREADABLE:
            found.skipped += 1


def _attempt(
    number: int,
    at: str,
    run: str | None,
    step: str | None,
    lane: Any,
    effort: Any,
    picked: Any,
    failure_kind: str | None,
    stalled: int,
    wall_sec: float | None,
    started_at: str | None,
    ended_at: str | None,
) -> RecordedAttempt:
    if lane not in LANES or effort not in EFFORTS or not isinstance(picked, str):
        raise ValueError(f"decision {number} names no lane, tier or pool: {lane!r} {effort!r} {picked!r}")
    recorded = parse_iso(at)
    started = None if started_at is None else parse_iso(started_at)
    ended = None if ended_at is None else parse_iso(ended_at)
    work = attempt_work(started, ended, recorded_at=recorded, wall_sec=wall_sec)
    return RecordedAttempt(
        id=f"decision {number}",
        pool=picked,
        lane=lane,
        effort=effort,
        begun=work.started_at if work else started or recorded,
        work=work,
        step=None if run is None else f"{run}/{step or ''}",
        failure_kind=failure_kind,
        stalled=bool(stalled),
    )


def _read_picks(connection: sqlite3.Connection, found: _Database, *, since: datetime, until: datetime) -> None:
    """Add the readings that picks saw: a pick writes down the numbers of every pool that it compared."""
    rows = connection.execute(
        "SELECT at, json_extract(payload, '$.decision.candidates') FROM events"
        " WHERE type = 'attempt.picked' AND at >= ? AND at <= ? AND json_valid(payload) ORDER BY at DESC LIMIT ?",
        (stamp(since), stamp(until), MOST_PICKS),
    )
    for at, candidates in rows:
        try:
            moment = parse_iso(at)
            told = [(row["pool"], _windows(row)) for row in json.loads(candidates or "[]")]
        except _UNREADABLE:
            found.skipped += 1
            continue
        for pool, windows in told:
            if windows:
                found.seen.setdefault(pool, []).append(Observation(moment, windows, "pick"))


def _windows(row: dict[str, Any]) -> tuple[Window, ...]:
    """The windows of a candidate, if their reading was at most five minutes old: the pick's own time then stands for it."""
    if row.get("pacingSource") != "live" or row["pacingWindow"] not in WINDOW_KINDS:
        return ()
    told = [
        (row["pacingWindow"], row["pacingUsedPct"], row["pacingResetsAt"]),
        ("5h", row.get("fiveHourUsedPct"), row.get("fiveHourResetsAt")),
    ]
    return tuple(
        Window(cast(Any, kind), float(used), parse_iso(resets))
        for kind, used, resets in told
        if used is not None and resets is not None
    )
