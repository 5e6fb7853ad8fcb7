"""Forecasts: what a pool's windows will read when its work in flight and this task are done.

Formulas: docs/design/routing.md, "Forecasts" and "Load".
"""

from __future__ import annotations

from datetime import datetime

from bullswarm_core.pools import Inflight, Rate, Window
from bullswarm_core.quota.windows import MINUTE, elapsed_with, minutes_left, one_decimal
from bullswarm_core.values import dataclass

NEAR_LIMIT_PCT = 75.0
"""Soft line of a protecting window (as a hard gate it let 34 % of a week expire)."""
OVER_LIMIT_PCT = 100.0
"""A forecast above this is ordered last and stays selectable."""


@dataclass(frozen=True, slots=True)
class Load:
    """Work in flight on one pool: ``remaining`` holds the minutes left of each attempt of known duration.

    ``minutes`` is their sum, ``unknown`` counts the attempts whose duration nobody knows.
    """

    count: int
    remaining: tuple[float, ...]
    minutes: float
    unknown: int


@dataclass(frozen=True, slots=True)
class WindowForecast:
    """One window now and later, in percent: never clamped, and clipped at the window's reset.

    ``projected`` counts the work in flight; ``forecast`` this task as well. ``forecasted`` is False for a bare reading.
    """

    used: float | None = None
    projected: float | None = None
    forecast: float | None = None
    forecasted: bool = False
    elapsed: float | None = None
    minutes_left: float | None = None
    resets_at: datetime | None = None

    @property
    def near(self) -> bool:
        """Whether the forecast is at or above the near-limit line."""
        return self.forecast is not None and self.forecast >= NEAR_LIMIT_PCT

    @property
    def under_clock(self) -> bool:
        """Whether the forecast stays at or below the window's own elapsed share."""
        return self.forecast is not None and self.elapsed is not None and self.forecast <= self.elapsed

    @property
    def over(self) -> bool:
        """Whether a real forecast, not a bare reading, passes 100 %."""
        return self.forecasted and self.forecast is not None and self.forecast > OVER_LIMIT_PCT


IDLE = Load(0, (), 0.0, 0)
NOTHING_READ = WindowForecast()


def remaining_minutes(record: Inflight, now: datetime) -> float | None:
    """Minutes that an attempt is still expected to take, 0 or more; None when its duration is unknown."""
    if record.expected_minutes is None:
        return None
    elapsed = (now - record.started_at) / MINUTE
    left = record.expected_minutes - (elapsed if elapsed > 0.0 else 0.0)
    return left if left > 0.0 else 0.0


def load_of(inflight: tuple[Inflight, ...], now: datetime) -> Load:
    """Sum up the work in flight."""
    if not inflight:
        return IDLE
    known = [left for record in inflight if (left := remaining_minutes(record, now)) is not None]
    known.sort()
    return Load(len(inflight), tuple(known), sum(known), len(inflight) - len(known))


def forecast_window(
    window: Window | None, rate: Rate | None, *, load: Load, candidate_minutes: float | None, now: datetime
) -> WindowForecast:
    """Forecast ``window``; None where a number is missing, never 0."""
    if window is None or window.used_pct is None:
        return NOTHING_READ
    used = window.used_pct
    left = minutes_left(window, now)
    elapsed, resets_at = elapsed_with(window, left), None if left is None else window.resets_at
    if rate is None:
        projected = None if load.minutes > 0 else used
        return WindowForecast(used, projected, one_decimal(used), False, elapsed, left, resets_at)
    added = 0.0
    projected = used
    if load.minutes > 0:
        added = rate.pct_per_minute * _minutes_within(load, left)
        projected = one_decimal(used + added)
    if candidate_minutes is not None:
        added += rate.pct_per_minute * _clip(candidate_minutes, left)
    forecasted = load.minutes > 0 or candidate_minutes is not None
    return WindowForecast(used, projected, one_decimal(used + added), forecasted, elapsed, left, resets_at)


def _minutes_within(load: Load, left: float | None) -> float:
    """The minutes in flight that fall before a reset ``left`` minutes ahead; ``remaining`` ends with the longest."""
    if left is None or load.remaining[-1] <= left:
        return load.minutes
    return sum([_clip(item, left) for item in load.remaining])


def _clip(minutes: float, left: float | None) -> float:
    return minutes if left is None or minutes < left else left


def charge(load: Load, rate: Rate | None, *, candidate_minutes: float | None, penalty: float) -> float:
    """Points that the pool's pace loses to its load: measured where a rate is known, else flat per agent in flight.

    Not clipped at a reset: the work is spent whichever window it falls in.
    """
    if rate is None:
        return load.count * penalty
    minutes = load.minutes + (candidate_minutes or 0.0)
    return rate.pct_per_minute * minutes + load.unknown * penalty
