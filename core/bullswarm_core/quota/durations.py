"""How long work takes: the minutes to expect of a task, and the silence that a free pool is granted.

Both are learned from what finished attempts took (the decision log) and fall back to a table while too few are known.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Literal

from bullswarm_core.pools import Effort, Lane
from bullswarm_core.values import dataclass

MIN_EXPECTED_MINUTES = 5.0
# Fewer than three attempts are luck, not a habit.
MIN_DURATION_SAMPLES = 3
MIN_FREE_SILENCE_SEC = 300.0
# What the reference program keeps; older attempts ran older models.
RECENT_DECISIONS = 500

DEFAULT_EXPECTED_MINUTES: Mapping[Lane, Mapping[Effort, float]] = {
    "build": {"high": 10.0, "medium": 6.0, "low": 4.0},
    "analyze": {"high": 5.0, "medium": 5.0, "low": 5.0},
    "chore": {"high": 5.0, "medium": 5.0, "low": 5.0},
}


@dataclass(frozen=True, slots=True)
class Expected:
    """Minutes that a task is expected to take (5 or more), how that is known, and from how many attempts."""

    minutes: float
    source: Literal["history", "default"]
    samples: int = 0


def expected_minutes(lane: Lane, effort: Effort, wall_seconds: Sequence[float] = ()) -> Expected:
    """Return the median of what attempts took, from 3 on, else the table's figure; never below 5 minutes."""
    if len(wall_seconds) >= MIN_DURATION_SAMPLES:
        minutes = median(wall_seconds) / 60
        return Expected(max(MIN_EXPECTED_MINUTES, minutes), "history", len(wall_seconds))
    return Expected(max(MIN_EXPECTED_MINUTES, DEFAULT_EXPECTED_MINUTES[lane][effort]), "default", len(wall_seconds))


def expect(connection: sqlite3.Connection | None, lane: Lane, effort: Effort, *, pool: str | None = None) -> Expected:
    """Return what a task of this lane and tier is expected to take by the decision log; without one, by the table.

    With ``pool`` that pool's own attempts count when there are at least 3, else those of all pools.
    """
    if connection is None:
        return expected_minutes(lane, effort)
    if pool is not None:
        own = wall_seconds(connection, lane=lane, effort=effort, pool=pool)
        if len(own) >= MIN_DURATION_SAMPLES:
            return expected_minutes(lane, effort, own)
    return expected_minutes(lane, effort, wall_seconds(connection, lane=lane, effort=effort))


def free_pool_silence_sec(wall_seconds: Sequence[float]) -> float | None:
    """Return how long a free pool may be silent: the median of its runs on that tier, 5 minutes or more.

    None while fewer than 3 are known. A free endpoint never reads as spent, it just stops answering, and an hour of
    waiting is then lost (reference trap 15).
    """
    if len(wall_seconds) < MIN_DURATION_SAMPLES:
        return None
    return max(MIN_FREE_SILENCE_SEC, median(wall_seconds))


def wall_seconds(
    connection: sqlite3.Connection, *, lane: Lane | None = None, effort: Effort | None = None, pool: str | None = None
) -> list[float]:
    """Return the wall seconds of the latest matching attempts that came to an end of their own.

    Stalled ones are left out: counting them would lengthen, or with a short clock tighten, the very clock they hit. So are
    those that somebody stopped or killed, which say nothing about how long the work takes.
    """
    conditions = ["wall_sec > 0", "stalled = 0", "coalesce(failure_kind, '') NOT IN ('cancelled', 'interrupted')"]
    values: list[str] = []
    for column, value in (("lane", lane), ("effort", effort), ("picked", pool)):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    query = f"SELECT wall_sec FROM decisions WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT {RECENT_DECISIONS}"
    return [float(row[0]) for row in connection.execute(query, values)]


def median(numbers: Sequence[float]) -> float:
    """Return the middle of a non-empty sequence; of two middles their mean. (The statistics module imports slowly.)"""
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
