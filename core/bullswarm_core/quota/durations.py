"""How long work takes: the minutes to expect of a task, the silence that a free pool is granted, the time box of a step.

All are learned from what finished attempts took (the decision log) and fall back to a table while too few are known.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.pools.model import Effort, Lane, has_free_name
from bullswarm_core.wire import iso

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


BoxSource = Literal["pair", "kind", "fallback", "program"]

# What is usual, with room for half as much again.
_ROOM = 1.5
_LEAST_SAMPLES = 5
_FALLBACK_MINUTES = 20
_STEP_MINUTES = 5
_SHORTEST, _LONGEST = 10, 60
_WRAP_UP_PERCENT = 70


@dataclass(frozen=True, slots=True)
class TimeBox:
    """The minutes of one attempt and where they are from; its wire form stands in the attempt's launch document.

    ``source``: ``program`` (the step or the program's defaults), ``pair`` (what this pool took for this lane and effort),
    ``kind`` (what any pool took for them), ``fallback``. ``n`` attempts with a median of ``median_minutes`` tell it.
    ``start_clock`` is the start of the attempt in UTC.
    """

    minutes: int
    wrap_up_minutes: int
    source: BoxSource
    n: int
    median_minutes: float | None
    start_clock: str


@dataclass(frozen=True, slots=True)
class History:
    """The wall minutes of this home's succeeded attempts for a lane and an effort: on one pool, and on all of them."""

    pair: Sequence[float] = ()
    kind: Sequence[float] = ()


def time_box(given: int | None, history: History, *, start: datetime) -> TimeBox | None:
    """Return the box of an attempt that starts now. ``given`` is the program's word in minutes; 0 leaves the box out."""
    clock = iso(start)
    if given is not None:
        return TimeBox(given, _wrap_up(given), "program", 0, None, clock) if given > 0 else None
    known: tuple[tuple[BoxSource, Sequence[float]], ...] = (("pair", history.pair), ("kind", history.kind))
    for source, minutes in known:
        if len(minutes) >= _LEAST_SAMPLES:
            usual = median(minutes)
            box = min(_LONGEST, max(_SHORTEST, _STEP_MINUTES * _half_up(usual * _ROOM / _STEP_MINUTES)))
            return TimeBox(box, _wrap_up(box), source, len(minutes), round(usual, 1), clock)
    return TimeBox(
        _FALLBACK_MINUTES, _wrap_up(_FALLBACK_MINUTES), "fallback", len(history.kind), _median(history.kind), clock
    )


def box_history(connection: sqlite3.Connection, *, pool: str, lane: str, effort: str) -> History:
    """Return what attempts that succeeded took by the decision log, newest first.

    Free pools never feed it: they are slow, and would lengthen the box of all the others.
    """
    return History(
        pair=_minutes(connection, "picked = ? AND lane = ? AND effort = ?", (pool, lane, effort)),
        kind=_minutes(connection, "lane = ? AND effort = ?", (lane, effort)),
    )


def _minutes(connection: sqlite3.Connection, condition: str, values: tuple[str, ...]) -> tuple[float, ...]:
    query = (
        f"SELECT wall_sec, model FROM decisions WHERE ok = 1 AND wall_sec > 0 AND {condition} AND"
        " NOT coalesce(CASE WHEN json_valid(payload) THEN json_extract(payload, '$.free') END, 0)"
        f" ORDER BY id DESC LIMIT {RECENT_DECISIONS}"
    )
    rows = connection.execute(query, values)
    return tuple(float(seconds) / 60 for seconds, model in rows if not has_free_name(model))


def _wrap_up(minutes: int) -> int:
    return max(1, _half_up(minutes * _WRAP_UP_PERCENT / 100))


def _median(minutes: Sequence[float]) -> float | None:
    return round(median(minutes), 1) if minutes else None


def _half_up(number: float) -> int:
    return math.floor(number + 0.5)
