"""The billing guard: nothing is used that would be paid beside the plan, before the person allowed it for that pool.

Facts: a stray key billed about $1,600 in one night, and credits are spent silently behind the included limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from bullswarm_core.fast.text import number
from bullswarm_core.pools.model import Pool, Rung, Window
from bullswarm_core.quota.windows import Readings, gates_model, one_decimal
from bullswarm_core.routing.decision import Exclusion
from bullswarm_core.routing.measure import OVER_LIMIT_PCT, Load, forecast_window, load_of

_NOUNS = {"5h": "5 hours", "daily": "day", "weekly": "week", "monthly": "month"}


def grant_command(pool_id: str) -> str:
    """The command by which the person allows billed work on a pool."""
    return f"bullswarm strategy set-provider {pool_id} --allow-billing on"


def billing_held(pool: Pool) -> tuple[Literal["billing"], str] | None:
    """Why a pool that is paid by the token may not be used yet; None when it may, or is not paid so."""
    if pool.billing != "api-key" or pool.billing_granted:
        return None
    return "billing", f"is paid by API key, which you have not allowed (to allow it: {grant_command(pool.id)})"


def overage_held(
    pool: Pool, rung: Rung, current: Readings, *, now: datetime, candidate_minutes: float | None, penalty: float
) -> Exclusion | None:
    """The hold on a pool whose overage is on, where this task is expected to pass what is included.

    A window without a rate is charged the flat ``penalty`` for each agent, this one too, so that the hold comes a little
    before 100 % there: a task that runs over the line would be billed in its middle. A full window is spent, whatever
    was allowed.
    """
    if not pool.overage or pool.billing_granted:
        return None
    load = load_of(pool.inflight, now)
    expected = [
        (_expected(pool, window, load, now=now, candidate_minutes=candidate_minutes, penalty=penalty), window)
        for window in _gating(current.values(), rung)
    ]
    passed = [(forecast, window) for forecast, window in expected if forecast > OVER_LIMIT_PCT]
    return _overage(pool, *max(passed, key=_lasts)) if passed else None


def _gating(windows: Iterable[Window], rung: Rung) -> list[Window]:
    return [window for window in windows if window.source != "declared" and gates_model(window, rung.model)]


def _expected(
    pool: Pool, window: Window, load: Load, *, now: datetime, candidate_minutes: float | None, penalty: float
) -> float:
    rate = pool.rates.get(window.kind) if window.scope is None else None
    if rate is None or candidate_minutes is None:
        return one_decimal((window.used_pct or 0.0) + (load.count + 1) * penalty)
    return forecast_window(window, rate, load=load, candidate_minutes=candidate_minutes, now=now).forecast or 0.0


def _lasts(passed: tuple[float, Window]) -> tuple[bool, float, float, str]:
    forecast, window = passed
    ends = window.resets_at.timestamp() if window.resets_at else 0.0
    return (window.resets_at is None, ends, forecast, window.kind)


def _overage(pool: Pool, forecast: float, window: Window) -> Exclusion:
    return Exclusion(
        pool.id,
        "overage",
        f"forecast {number(forecast)}% of its {_NOUNS[window.kind]} with overage on, which you have not allowed"
        f" (to allow it: {grant_command(pool.id)})",
        window=window.kind,
        until=window.resets_at,
        numbers={"forecast_pct": forecast},
        pool_label=pool.label,
    )
