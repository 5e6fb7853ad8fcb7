"""How long a step should take before its worker wraps up: a guide told in the task, which stops nothing.

Rule: docs/design/runs.md, "Time boxes".
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from bullswarm_core.quota.durations import RECENT_DECISIONS, median
from bullswarm_core.quota.windows import has_free_name
from bullswarm_core.values import dataclass
from bullswarm_core.wire import iso

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
