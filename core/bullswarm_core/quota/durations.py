"""How long work takes: the minutes to expect of a task, and the silence that a free pool is granted.

Both are learned from what finished attempts took (the decision log) and fall back to a table while too few are known.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Literal

from bullswarm_core.pools import Effort, Lane
from bullswarm_core.values import dataclass, field

MIN_EXPECTED_MINUTES = 5.0
# Fewer than three attempts are luck, not a habit.
MIN_DURATION_SAMPLES = 3
# The spread of fewer is anything: of eight it is known to a quarter.
MIN_SPREAD_SAMPLES = 8
MIN_FREE_SILENCE_SEC = 300.0
# Enough for every lane and tier; older attempts ran older models.
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


@dataclass(frozen=True, slots=True)
class Expectations:
    """What a task of one lane and tier takes: ``by_pool`` where a pool's own attempts tell it, ``usual`` on any other.

    The number that a pick forecasts with is the one that the attempt is booked with. ``spread``
    tells how widely lengths differ (see :func:`log_spread`).
    """

    usual: Expected
    by_pool: Mapping[str, Expected] = field(default_factory=dict)
    spread: float | None = None

    def on(self, pool: str) -> Expected:
        """Return what the task takes on this pool."""
        return self.by_pool.get(pool, self.usual)

    def minutes_by_pool(self) -> dict[str, float]:
        """Return the minutes on each pool whose own attempts tell them."""
        return {pool: expected.minutes for pool, expected in self.by_pool.items()}


def expectations(connection: sqlite3.Connection | None, lane: Lane, effort: Effort) -> Expectations:
    """Return what a task of this lane and tier takes by the decision log, by pool from 3 attempts on; else by the table."""
    if connection is None:
        return Expectations(expected_minutes(lane, effort))
    attempts = _attempts(connection, lane=lane, effort=effort)
    by_pool: dict[str, list[float]] = {}
    for pool, seconds in attempts:
        by_pool.setdefault(pool, []).append(seconds)
    return Expectations(
        expected_minutes(lane, effort, [seconds for _, seconds in attempts]),
        {
            pool: expected_minutes(lane, effort, own)
            for pool, own in by_pool.items()
            if len(own) >= MIN_DURATION_SAMPLES
        },
        log_spread([seconds for _, seconds in attempts]),
    )


def free_pool_silence_sec(wall_seconds: Sequence[float]) -> float | None:
    """Return how long a free pool may be silent: the median of its runs on that tier, 5 minutes or more.

    None while fewer than 3 are known. A free endpoint never reads as spent, it just stops answering, and an hour of
    waiting is then lost.
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
    return [seconds for _, seconds in _attempts(connection, lane=lane, effort=effort, pool=pool)]


def _attempts(
    connection: sqlite3.Connection, *, lane: Lane | None = None, effort: Effort | None = None, pool: str | None = None
) -> list[tuple[str, float]]:
    """The pool and wall seconds of the latest matching attempts, newest first."""
    conditions = ["wall_sec > 0", "stalled = 0", "coalesce(failure_kind, '') NOT IN ('cancelled', 'interrupted')"]
    values: list[str] = []
    for column, value in (("lane", lane), ("effort", effort), ("picked", pool)):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    query = f"SELECT picked, wall_sec FROM decisions WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT {RECENT_DECISIONS}"
    return [(str(pool), float(seconds)) for pool, seconds in connection.execute(query, values)]


def median(numbers: Sequence[float]) -> float:
    """Return the middle of a non-empty sequence; of two middles their mean. (The statistics module imports slowly.)"""
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def log_spread(wall_seconds: Sequence[float]) -> float | None:
    """Return how widely lengths differ: the standard deviation of their natural logarithm, 0 or more.

    None below MIN_SPREAD_SAMPLES. A spread of 1 says that one task in six takes 2.7 times the median, or more.
    """
    logarithms = [math.log(seconds) for seconds in wall_seconds if seconds > 0]
    if len(logarithms) < MIN_SPREAD_SAMPLES:
        return None
    mean = sum(logarithms) / len(logarithms)
    return math.sqrt(sum([(value - mean) ** 2 for value in logarithms]) / (len(logarithms) - 1))
