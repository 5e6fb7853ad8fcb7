"""Fits the rates of one pool from its files and the decision log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from bullswarm_core.pools.model import Rate, WindowKind
from bullswarm_core.quota.history import read_history
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.rates import Work, WorkerTime, attempt_work, fitted_rates
from bullswarm_core.quota.reading import load_reading
from bullswarm_core.quota.windows import starts_at
from bullswarm_core.store.home import Home
from bullswarm_core.wire import parse_iso, stamp


def fit(
    home: Home, pool_id: str, connection: sqlite3.Connection, in_flight_since: Iterable[float]
) -> tuple[dict[WindowKind, Rate], float]:
    """Return the pool's rates and the time of its newest reading (Unix seconds; 0 without one).

    ``in_flight_since`` are the starts of what is at work on it now, in Unix seconds. Raises sqlite3.Error.
    """
    observations = _observations(home, pool_id)
    if not observations:
        return {}, 0.0
    until = max(observation.captured_at for observation in observations)
    work = _finished(connection, pool_id, since=_earliest(observations))
    running = (datetime.fromtimestamp(begun, UTC) for begun in in_flight_since)
    work += [Work(begun, until) for begun in running if begun < until]
    return fitted_rates(observations, WorkerTime(work)), until.timestamp()


def _observations(home: Home, pool_id: str) -> list[Observation]:
    """Every reading that is kept, the meter file's too: it may be newer than what its history has."""
    found = list(read_history(home, pool_id).observations)
    # Its age is of no interest here, only what it says.
    reading = load_reading(home, pool_id, now=datetime.now(UTC))
    if reading.captured_at is not None:
        found.append(Observation(reading.captured_at, reading.windows))
    return found


def _earliest(observations: Sequence[Observation]) -> datetime:
    """The first moment whose work matters: the oldest reading, or the opening of a window that is read."""
    moments = [observation.captured_at for observation in observations]
    newest = max(observations, key=lambda observation: observation.captured_at)
    moments += [opened for window in newest.windows if (opened := starts_at(window)) is not None]
    return min(moments)


def _finished(connection: sqlite3.Connection, pool_id: str, *, since: datetime) -> list[Work]:
    rows = connection.execute(
        "SELECT at, started_at, ended_at, wall_sec FROM decisions WHERE picked = ? AND at >= ?", (pool_id, stamp(since))
    )
    found: list[Work] = []
    for recorded, started, ended, wall in rows:
        try:
            work = attempt_work(_moment(started), _moment(ended), recorded_at=parse_iso(recorded), wall_sec=wall)
        except (ValueError, TypeError, OverflowError):
            continue
        if work is not None:
            found.append(work)
    return found


def _moment(text: str | None) -> datetime | None:
    return None if text is None else parse_iso(text)
