"""Every number that one pool is judged by, as its candidate row.

Formulas: docs/design/routing.md, "Pace and surplus", "Load", "Expiring soon".
"""

from __future__ import annotations

from datetime import datetime

from bullswarm_core.pools import Pool, Rate, Rung, Window, WindowKind
from bullswarm_core.quota.windows import Readings, one_decimal, pacing_window
from bullswarm_core.routing.decision import Candidate, EstimateSource, UrgencyState
from bullswarm_core.routing.forecast import NOTHING_READ, WindowForecast, charge, forecast_window, load_of
from bullswarm_core.routing.sparing import LEAD_MINUTES, effective_reserve, sliver_of

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
