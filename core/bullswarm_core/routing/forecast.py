"""Forecasts: what a pool's windows will read when its work in flight and this task are done.

Formulas: seed "In-flight load", "Expiring-soon urgency", "The 5-hour window"; reference 1.4 with the readings of
design D2.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from bullswarm_core.pools import Inflight, Pool, Rate, Rung, Window, WindowKind
from bullswarm_core.quota.windows import (
    PROTECTING_KINDS,
    elapsed_pct,
    minutes_left,
    one_decimal,
    pacing_window,
    readings,
)
from bullswarm_core.routing.decision import Candidate, EstimateSource, UrgencyState

NEAR_LIMIT_PCT = 75.0
"""Soft line of a protecting window (seed: FIVE_HOUR_NEAR_LIMIT_PCT; as a hard gate it let 34 % of a week expire)."""
OVER_LIMIT_PCT = 100.0
"""A forecast above this is ordered last and stays selectable (seed)."""
DRAINING_FORECAST_PCT = 95.0
"""A pacing forecast at or above this and past its clock is draining (seed)."""
UNMEASURED_URGENT_USED_PCT = 90.0
"""Without a measured rate a pool may be urgent only up to this reading: 5 points of headroom below the draining
line.
"""
LEAD_MINUTES: dict[WindowKind, float] = {"weekly": 24 * 60.0, "monthly": 72 * 60.0}
"""How long before its reset a pacing window counts as expiring soon (seed: 24 hours, 3 days)."""
MIN_LEFT_FRACTION = 0.005
"""Floor of the urgency divisor, so that the last minutes of a window don't outrank everything without bound."""


@dataclass(frozen=True, slots=True)
class Load:
    """Work in flight on one pool: ``remaining`` holds the minutes left of each attempt of known duration."""

    count: int
    remaining: tuple[float, ...]
    unknown: int

    @property
    def minutes(self) -> float:
        """Worker-minutes still to come, of the attempts whose duration is known."""
        return sum(self.remaining)


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


NOTHING_READ = WindowForecast()


def remaining_minutes(record: Inflight, now: datetime) -> float | None:
    """Minutes that an attempt is still expected to take, 0 or more; None when its duration is unknown."""
    if record.expected_minutes is None:
        return None
    elapsed = max(0.0, (now - record.started_at) / timedelta(minutes=1))
    return max(0.0, record.expected_minutes - elapsed)


def load_of(inflight: tuple[Inflight, ...], now: datetime) -> Load:
    """Sum up the work in flight."""
    minutes = [remaining_minutes(record, now) for record in inflight]
    known = tuple(sorted(value for value in minutes if value is not None))
    return Load(len(inflight), known, len(inflight) - len(known))


def forecast_window(
    window: Window | None, rate: Rate | None, *, load: Load, candidate_minutes: float | None, now: datetime
) -> WindowForecast:
    """Forecast ``window``; None where a number is missing, never 0."""
    if window is None or window.used_pct is None:
        return NOTHING_READ
    used = window.used_pct
    left = minutes_left(window, now)
    added = 0.0
    projected: float | None = used
    if load.minutes > 0:
        added = 0.0 if rate is None else rate.pct_per_minute * sum(_clip(item, left) for item in load.remaining)
        projected = None if rate is None else one_decimal(used + added)
    if rate is not None and candidate_minutes is not None:
        added += rate.pct_per_minute * _clip(candidate_minutes, left)
    return WindowForecast(
        used=used,
        projected=projected,
        forecast=one_decimal(used + added),
        forecasted=rate is not None and (load.minutes > 0 or candidate_minutes is not None),
        elapsed=elapsed_pct(window, now),
        minutes_left=left,
        resets_at=window.resets_at,
    )


def _clip(minutes: float, left: float | None) -> float:
    return minutes if left is None else min(minutes, left)


def charge(load: Load, rate: Rate | None, *, candidate_minutes: float | None, penalty: float) -> float:
    """Points that the pool's pace loses to its load: measured where a rate is known, else flat per agent in flight.

    Not clipped at a reset: the work is spent whichever window it falls in (reference trap 9).
    """
    if rate is None:
        return load.count * penalty
    minutes = load.minutes + (candidate_minutes or 0.0)
    return rate.pct_per_minute * minutes + load.unknown * penalty


def _pacing_rate(pool: Pool, kind: WindowKind | None) -> Rate | None:
    """Rate of the pacing window, else of the week, and of no other window (reference 1.4)."""
    rate = pool.rates.get(kind) if kind is not None else None
    return rate if rate is not None else pool.rates.get("weekly")


def _urgency_state(
    pacing: WindowForecast, *, kind: WindowKind | None, forecast: float | None, effective: float, measured: bool
) -> UrgencyState | None:
    """State of a pool whose pacing window is about to reset; None outside the lead time."""
    if kind is None or pacing.minutes_left is None or pacing.minutes_left > LEAD_MINUTES[kind]:
        return None
    if forecast is None or pacing.used is None:
        return "normal"
    if forecast >= DRAINING_FORECAST_PCT and (pacing.elapsed is None or forecast > pacing.elapsed):
        return "draining"
    if effective > 0 and (measured or pacing.used <= UNMEASURED_URGENT_USED_PCT):
        return "urgent"
    return "normal"


def _first(kinds: list[WindowKind]) -> WindowKind | None:
    return kinds[0] if kinds else None


def measure(pool: Pool, rung: Rung, *, now: datetime, candidate_minutes: float | None, penalty: float) -> Candidate:
    """Every number that ``pool`` is judged by when it would run the task on ``rung`` now.

    The one field that depends on other pools, ``near_five_hour_penalty``, is left False for the policy to set.
    """
    current = readings(pool.windows, now)
    load = load_of(pool.inflight, now)
    rates = pool.rates

    def forecast(kind: WindowKind, rate: Rate | None) -> WindowForecast:
        return forecast_window(current.get((kind, None)), rate, load=load, candidate_minutes=candidate_minutes, now=now)

    protecting = {kind: forecast(kind, rates.get(kind)) for kind in PROTECTING_KINDS}
    five_hour, daily = protecting["5h"], protecting["daily"]
    near = [kind for kind in PROTECTING_KINDS if protecting[kind].near]
    pressed = [kind for kind in near if not protecting[kind].under_clock]

    window = pacing_window(current, pool.pacing)
    kind = window.kind if window else None
    rate = _pacing_rate(pool, kind)
    pacing = forecast(kind, rate) if kind else NOTHING_READ
    pace = None if pacing.elapsed is None or pacing.used is None else one_decimal(pacing.elapsed - pacing.used)
    effective = one_decimal((pace or 0.0) - charge(load, rate, candidate_minutes=candidate_minutes, penalty=penalty))
    pacing_forecast = pacing.forecast
    if rate is None and pacing.used is not None:
        pacing_forecast = one_decimal(pacing.used + load.count * penalty)
    state = _urgency_state(pacing, kind=kind, forecast=pacing_forecast, effective=effective, measured=rate is not None)
    left = None if pacing.elapsed is None else one_decimal(100.0 - pacing.elapsed)
    fraction = 1.0 if left is None else max(MIN_LEFT_FRACTION, left / 100)
    five_hour_rate = rates.get("5h")
    source: EstimateSource = rate.source if rate else ("penalty" if load.count else "none")
    return Candidate(
        pool=pool.id,
        pool_label=pool.label,
        provider=pool.provider,
        model=rung.model,
        reasoning=rung.reasoning,
        model_policy=rung.source,
        metered=pool.metered,
        pace=pace,
        effective_surplus=effective,
        inflight=load.count,
        cost_rank=pool.cost_rank,
        five_hour_used_pct=five_hour.used,
        projected_five_hour_pct=five_hour.projected,
        forecast_five_hour_pct=five_hour.forecast,
        five_hour_elapsed_pct=five_hour.elapsed,
        five_hour_resets_at=five_hour.resets_at,
        daily_used_pct=daily.used,
        forecast_daily_pct=daily.forecast,
        daily_elapsed_pct=daily.elapsed,
        projected_weekly_pct=forecast("weekly", rates.get("weekly")).projected,
        projected_monthly_pct=forecast("monthly", rates.get("monthly")).projected,
        pacing_window=kind,
        pacing_source=window.source if window else None,
        pacing_used_pct=pacing.used,
        pacing_elapsed_pct=pacing.elapsed,
        pacing_left_pct=left,
        pacing_resets_at=pacing.resets_at,
        pace_resets_in_minutes=None if pacing.minutes_left is None else one_decimal(pacing.minutes_left),
        projected_pacing_pct=pacing.projected,
        forecast_pacing_pct=pacing_forecast,
        rate_per_minute=five_hour_rate.pct_per_minute if five_hour_rate else None,
        pacing_rate_per_minute=rate.pct_per_minute if rate else None,
        estimate_source=source,
        near_five_hour_limit=bool(near),
        near_five_hour_penalty=False,
        near_window=_first(pressed) or _first(near),
        under_clock=bool(near) and not pressed,
        forecast_gated=False,
        forecast_over_limit=any(item.over for item in protecting.values()),
        over_window=_first([kind for kind in PROTECTING_KINDS if protecting[kind].over]),
        expiring_soon=state is not None,
        urgency=one_decimal(effective / fraction) if state is not None else None,
        urgency_state=state,
        free=rung.free,
        free_model=rung.model if rung.free else None,
    )
