"""Every number that one pool is judged by, as its candidate row, with the forecast of its windows.

A forecast is what a pool's windows will read when its work in flight and this task are done. Two rules spare a pool, the
share of it that the person keeps and a rest too small for the task: both only order, and a spared pool stays selectable.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools.model import Inflight, Pool, Rate, Rung, Window, WindowKind
from bullswarm_core.quota.windows import MINUTE, Readings, elapsed_with, minutes_left, one_decimal, pacing_window
from bullswarm_core.routing.decision import Candidate, EstimateSource, UrgencyState

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


LEAD_MINUTES: dict[WindowKind, float] = {"weekly": 24 * 60.0, "monthly": 72 * 60.0}
"""How long before its reset a pacing window counts as expiring soon."""


@dataclass(frozen=True, slots=True)
class Sliver:
    """The window that can't hold the task: ``headroom`` points are left of it, 0 or more, and the task needs ``need``."""

    window: WindowKind
    headroom: float
    need: float


def effective_reserve(reserve_pct: float, window: WindowKind, minutes_left: float | None) -> float:
    """What is still kept of a reserve, in percent of the pacing window; it melts in the last hours before the reset.

    Kept to the end it would expire unspent, so that it falls in a line to 0 over the lead time. All of it is kept
    where the reset is unknown.
    """
    if minutes_left is None:
        return reserve_pct
    return one_decimal(reserve_pct * min(1.0, minutes_left / LEAD_MINUTES[window]))


def sliver_of(forecasts: Mapping[WindowKind, WindowForecast], current: Readings) -> Sliver | None:
    """The gating window whose rest falls shortest of the expected task, or None; only measured windows are judged.

    A window without a rate says nothing about how much a task needs, and a declared figure gates nothing.
    """
    short = [
        Sliver(kind, one_decimal(max(0.0, OVER_LIMIT_PCT - item.projected)), need)
        for kind, item in forecasts.items()
        if item.over
        and item.projected is not None
        and item.forecast is not None
        and (need := one_decimal(item.forecast - item.projected)) > 0
        and current[kind, None].source != "declared"
    ]
    return max(short, key=_shortage) if short else None


def _shortage(sliver: Sliver) -> tuple[float, str]:
    return (sliver.need - sliver.headroom, sliver.window)


DRAINING_FORECAST_PCT = 95.0
"""A pacing forecast at or above this and past its clock is draining."""
UNMEASURED_URGENT_USED_PCT = 90.0
"""Without a measured rate a pool may be urgent only up to this reading: 5 points of headroom below the draining
line.
"""
MIN_LEFT_FRACTION = 0.005
"""Floor of the urgency divisor, so that the last minutes of a window don't outrank everything without bound."""


# Plain tuples: a value class costs 0.8 microseconds to fill in, and each of a thousand pools would need two of them.
_Protection = tuple[WindowKind | None, bool, WindowKind | None]
"""What the protecting windows say: the near window, whether it is under its clock, and the window forecast over."""
_Pacing = tuple[float | None, float, float | None, float | None, UrgencyState | None, float | None]
"""What the pacing window and the load say: pace, effective surplus, forecast, percent left, state and urgency."""


def measure(
    pool: Pool,
    rung: Rung,
    current: Readings,
    *,
    now: datetime,
    candidate_minutes: float | None,
    penalty: float,
    reserve_pct: float = 0.0,
) -> Candidate:
    """Every number that ``pool`` is judged by when it would run the task on ``rung`` now; ``current`` are its readings.

    ``reserve_pct`` is the share of the pacing window that the person keeps, 0 to 100. The one field that depends on
    other pools, ``near_five_hour_penalty``, is left False for the policy to set.
    """
    load = load_of(pool.inflight, now)
    window = pacing_window(current, pool.pacing)
    rate = _pacing_rate(pool, window)
    forecasts: dict[WindowKind, WindowForecast] = {}
    for (kind, scope), read in current.items():
        if scope is None:
            own = rate if read is window else pool.rates.get(kind)
            forecasts[kind] = forecast_window(read, own, load=load, candidate_minutes=candidate_minutes, now=now)
    five_hour, daily = forecasts.get("5h", NOTHING_READ), forecasts.get("daily", NOTHING_READ)
    near_window, under_clock, over_window = _protection(five_hour, daily)
    paced = forecasts[window.kind] if window else NOTHING_READ
    flat = load.count * penalty
    taken = charge(load, rate, candidate_minutes=candidate_minutes, penalty=penalty)
    pace, effective, forecast, left, state, urgency = _pacing(window, paced, rate=rate, taken=taken, flat=flat)
    reserve = effective_reserve(reserve_pct, window.kind, paced.minutes_left) if window and reserve_pct else 0.0
    sliver = sliver_of(forecasts, current)
    five_hour_rate, daily_rate = pool.rates.get("5h"), pool.rates.get("daily")
    resets_in = None if paced.minutes_left is None else one_decimal(paced.minutes_left)
    source: EstimateSource = rate.source if rate else ("penalty" if load.count else "none")
    # In the order of the row: it has fifty fields, and to give them by name takes five times as long, a fifth of a pick.
    return Candidate(
        pool.id, pool.label, pool.provider,
        rung.model, rung.reasoning, rung.source, pool.metered,
        pace, effective, load.count, candidate_minutes, pool.cost_rank,
        five_hour.used, five_hour.projected, five_hour.forecast, five_hour.elapsed, five_hour.resets_at,
        daily.used, daily.forecast, daily.elapsed,
        forecasts.get("weekly", NOTHING_READ).projected, forecasts.get("monthly", NOTHING_READ).projected,
        window.kind if window else None, window.source if window else None,
        paced.used, paced.elapsed, left, paced.resets_at, resets_in, paced.projected, forecast,
        five_hour_rate.pct_per_minute if five_hour_rate else None, rate.pct_per_minute if rate else None,
        daily_rate.pct_per_minute if daily_rate else None, source,
        near_window is not None, False, near_window, under_clock,
        False, over_window is not None, over_window,
        reserve or None, bool(reserve) and forecast is not None and forecast >= 100.0 - reserve,
        sliver.window if sliver else None, sliver.headroom if sliver else None, sliver.need if sliver else None,
        state is not None, urgency, state,
        rung.free, rung.model if rung.free else None,
    )  # fmt: skip


def _protection(five_hour: WindowForecast, daily: WindowForecast) -> _Protection:
    """Judge the protecting windows; a window past its clock is named before one that is under it."""
    if not five_hour.near and not daily.near:  # nor over, then: most pools, of which there may be a thousand
        return None, False, None
    both: tuple[tuple[WindowKind, WindowForecast], ...] = (("5h", five_hour), ("daily", daily))
    near = [kind for kind, item in both if item.near]
    pressed = [kind for kind, item in both if item.near and not item.under_clock]
    over = [kind for kind, item in both if item.over]
    named = pressed or near
    return named[0] if named else None, bool(near) and not pressed, over[0] if over else None


def _pacing(window: Window | None, item: WindowForecast, *, rate: Rate | None, taken: float, flat: float) -> _Pacing:
    """Pace, forecast and urgency; ``taken`` is the load in points, ``flat`` what it is without a rate.

    Without a pacing window the pool orders as 0 less its load.
    """
    pace = None if item.elapsed is None or item.used is None else one_decimal(item.elapsed - item.used)
    effective = one_decimal((pace or 0.0) - taken)
    forecast = one_decimal(item.used + flat) if rate is None and item.used is not None else item.forecast
    left = None if item.elapsed is None else one_decimal(100.0 - item.elapsed)
    state = _urgency_state(window, item, forecast=forecast, effective=effective, measured=rate is not None)
    urgency = None if state is None else one_decimal(effective / left_fraction(left))
    return pace, effective, forecast, left, state, urgency


def left_fraction(left_pct: float | None) -> float:
    """What urgency divides by: the share of the window still to run, at least MIN_LEFT_FRACTION, 1 when unknown."""
    return 1.0 if left_pct is None else max(MIN_LEFT_FRACTION, left_pct / 100)


def _pacing_rate(pool: Pool, window: Window | None) -> Rate | None:
    """Rate of the pacing window, else of the week, and of no other window."""
    rate = pool.rates.get(window.kind) if window else None
    return rate if rate is not None else pool.rates.get("weekly")


def _urgency_state(
    window: Window | None, item: WindowForecast, *, forecast: float | None, effective: float, measured: bool
) -> UrgencyState | None:
    """State of a pool whose pacing window is about to reset; None outside the lead time."""
    if window is None or item.minutes_left is None or item.minutes_left > LEAD_MINUTES[window.kind]:
        return None
    if forecast is None or item.used is None:
        return "normal"
    if forecast >= DRAINING_FORECAST_PCT and (item.elapsed is None or forecast > item.elapsed):
        return "draining"
    if effective > 0 and (measured or item.used <= UNMEASURED_URGENT_USED_PCT):
        return "urgent"
    return "normal"
