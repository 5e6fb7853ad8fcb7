"""The numbers of one ``pools`` row: a pool's meter, pace, load and state, with no task in mind.

Rule: docs/design/routing.md, "One row of `pools`".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools.model import (
    DEFAULT_MODEL,
    LANES,
    Effort,
    Inflight,
    Lane,
    Pool,
    Rate,
    Rung,
    Window,
    WindowKind,
)
from bullswarm_core.quota.windows import (
    MINUTE,
    Readings,
    is_current,
    is_unanchored,
    pacing_window,
    readings,
    spent,
    spent_window,
)
from bullswarm_core.routing.billing import billing_held
from bullswarm_core.routing.decision import Candidate
from bullswarm_core.routing.measure import load_of, measure, remaining_minutes
from bullswarm_core.routing.quarantine import Quarantine
from bullswarm_core.routing.request import RoutingContext
from bullswarm_core.wire import whole_second

PoolState = Literal[
    "ready", "disabled", "unavailable", "billing-gated", "quarantined", "near-5h-limit", "burst-gated", "expiring-soon"
]
_SPEND_NAMES: Mapping[str, WindowKind] = {"fiveHour": "5h", "daily": "daily", "weekly": "weekly", "monthly": "monthly"}
_NO_CONTEXT = RoutingContext()


@dataclass(frozen=True, slots=True)
class PoolOverview:
    """One pool now: ``row`` holds its numbers without a candidate, ``pacing`` its pacing window, ``spent`` the spent
    window that keeps it out longest.

    ``free_models`` maps each tier with a free model to that model (None: the CLI's default). ``model_limits`` are the windows
    that hold one model alone. ``quarantine`` is the one in force, under a routing policy that honours quarantines.
    """

    pool: Pool
    now: datetime
    row: Candidate
    state: PoolState
    pacing: Window | None
    spent: Window | None
    free_models: Mapping[Effort, str | None]
    model_limits: tuple[Window, ...] = ()
    quarantine: Quarantine | None = None

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """The lanes that the pool takes, in their customary order."""
        return tuple(lane for lane in LANES if lane in self.pool.lanes)

    @property
    def back_at(self) -> datetime | None:
        """When the pool is open again; None when nothing closes it, or nobody knows."""
        if self.spent is None or self.quarantine is None:
            return self.quarantine.until if self.quarantine else self.spent.resets_at if self.spent else None
        return None if self.spent.resets_at is None else max(self.spent.resets_at, self.quarantine.until)

    def to_json(self) -> dict[str, Any]:
        """The row as a camelCase object; the pool by id, its label beside it."""
        pool, row = self.pool, self.row
        return {
            "pool": pool.id,
            "poolLabel": pool.label,
            "provider": pool.provider,
            "enabled": pool.enabled,
            "state": self.state,
            "unavailable": pool.unavailable,
            "costRank": pool.cost_rank,
            "lanes": list(self.lanes),
            "capabilities": sorted(pool.capabilities),
            "tiers": {tier: _rung_document(rung) for tier, rung in pool.tiers.items()},
            "freeModels": dict(self.free_models),
            "metered": pool.metered,
            "plan": pool.plan,
            "overage": pool.overage,
            "billingGranted": pool.billing_granted,
            "pace": row.pace,
            "effectiveSurplus": row.effective_surplus,
            "inflight": _load_document(pool.inflight, self.now),
            "fiveHourUsedPct": row.five_hour_used_pct,
            "fiveHourElapsedPct": row.five_hour_elapsed_pct,
            "fiveHourResetsAt": whole_second(row.five_hour_resets_at),
            "dailyUsedPct": row.daily_used_pct,
            "dailyElapsedPct": row.daily_elapsed_pct,
            "pacingWindow": row.pacing_window,
            "pacingSource": row.pacing_source,
            "pacingUsedPct": row.pacing_used_pct,
            "pacingElapsedPct": row.pacing_elapsed_pct,
            "pacingLeftPct": row.pacing_left_pct,
            "paceResetsAt": whole_second(row.pacing_resets_at),
            "paceResetsInMinutes": row.pace_resets_in_minutes,
            "resetSource": _reset_source(self.pacing),
            "projectedFiveHourPct": row.projected_five_hour_pct,
            "projectedWeeklyPct": row.projected_weekly_pct,
            "projectedMonthlyPct": row.projected_monthly_pct,
            "projectedPacingPct": row.projected_pacing_pct,
            "spend": _spend_document(pool.rates, row),
            "estimateSource": row.estimate_source,
            "reservePct": row.reserve_pct,
            "reserved": row.reserved,
            "expiringSoon": row.expiring_soon,
            "urgency": row.urgency,
            "urgencyState": row.urgency_state,
            "nearFiveHourLimit": row.near_five_hour_limit,
            "spentWindow": self.spent.kind if self.spent else None,
            "backAt": whole_second(self.back_at),
            "quarantine": _quarantine_document(self.quarantine),
            "meterSnapshot": _snapshot(pool.windows, self.now),
            "meterReadBy": pool.meter_read_by,
            "meterError": pool.meter_error,
            "meterHoldUntil": whole_second(pool.meter_hold_until),
        }


def overview(pool: Pool, *, now: datetime, context: RoutingContext = _NO_CONTEXT) -> PoolOverview:
    """The numbers of one ``pools`` row at ``now``; pure."""
    current = readings(pool.windows, now)
    penalty, reserve = context.inflight_penalty_pct, context.reserves.get(pool.id, 0.0)
    row = measure(pool, Rung(), current, now=now, candidate_minutes=None, penalty=penalty, reserve_pct=reserve)
    used_up = spent_window(current.values(), now)
    quarantine = context.quarantines.get(pool.id)
    quarantine = quarantine if quarantine is not None and quarantine.until > now else None
    free = {tier: rung.model for tier, rung in pool.tiers.items() if rung.free}
    return PoolOverview(
        pool=pool,
        now=now,
        row=row,
        state=_state(pool, row, used_up, quarantine),
        pacing=pacing_window(current, pool.pacing),
        spent=used_up,
        free_models=free,
        model_limits=_model_limits(current),
        quarantine=quarantine,
    )


def _model_limits(current: Readings) -> tuple[Window, ...]:
    scoped = [window for (_, scope), window in current.items() if scope is not None and scope != DEFAULT_MODEL]
    return tuple(sorted(scoped, key=lambda window: (window.scope or "", window.kind)))


def _quarantine_document(quarantine: Quarantine | None) -> dict[str, Any] | None:
    if quarantine is None:
        return None
    return {"kind": quarantine.kind, "until": whole_second(quarantine.until), "why": quarantine.why}


def _state(pool: Pool, row: Candidate, used_up: Window | None, quarantine: Quarantine | None) -> PoolState:
    if not pool.enabled:
        return "disabled"
    if pool.unavailable is not None:
        return "unavailable"
    if billing_held(pool):
        return "billing-gated"
    if quarantine is not None:
        return "quarantined"
    if used_up is not None:
        return "burst-gated"
    if row.expiring_soon:
        return "expiring-soon"
    return "near-5h-limit" if row.near_five_hour_limit else "ready"


def _rung_document(rung: Rung) -> dict[str, Any]:
    return {
        "model": rung.model,
        "reasoning": rung.reasoning,
        "free": rung.free,
        "refused": rung.refused,
        "source": rung.source,
    }


def _load_document(inflight: tuple[Inflight, ...], now: datetime) -> dict[str, Any]:
    load = load_of(inflight, now)
    ages = [max(0.0, (now - record.started_at) / MINUTE) for record in inflight]
    return {
        "count": load.count,
        "minutes": round(sum(ages), 1),
        "remainingMinutes": round(load.minutes, 1) if load.remaining or not load.count else None,
        "unknownExpected": load.unknown,
        "records": [
            {
                "id": record.id,
                "lane": record.lane,
                "effort": record.effort,
                "startedAt": whole_second(record.started_at),
                "elapsedMinutes": round(age, 1),
                "expectedMinutes": record.expected_minutes,
                "remainingMinutes": remaining_minutes(record, now),
            }
            for record, age in zip(inflight, ages, strict=True)
        ],
    }


def _spend_document(rates: Mapping[WindowKind, Rate], row: Candidate) -> dict[str, Any]:
    spend: dict[str, Any] = {name: _rate_document(rates.get(kind)) for name, kind in _SPEND_NAMES.items()}
    paced = rates.get(row.pacing_window) if row.pacing_window else None
    spend["pacing"] = {"window": row.pacing_window, **_rate_document(paced or rates.get("weekly"))}
    return spend


def _rate_document(rate: Rate | None) -> dict[str, Any]:
    return {
        "ratePerMinute": rate.pct_per_minute if rate else None,
        "source": rate.source if rate else None,
        "samples": rate.samples if rate else 0,
    }


def _reset_source(window: Window | None) -> str | None:
    """``provider`` or ``declared`` for a reset that is known, else None."""
    if window is None or window.resets_at is None or is_unanchored(window):
        return None
    return window.reset_source or "provider"


def _snapshot(windows: tuple[Window, ...], now: datetime) -> dict[str, Any] | None:
    """Every window as it was read, the void ones too, so that a surprise can be traced; None without any reading."""
    if not windows:
        return None
    captured = [window.captured_at for window in windows if window.captured_at is not None]
    return {
        "capturedAt": whole_second(max(captured, default=None)),
        "windows": [
            {
                "kind": window.kind,
                "usedPct": window.used_pct,
                "resetsAt": whole_second(window.resets_at),
                "lengthSec": window.length.total_seconds() if window.length else None,
                "scope": window.scope,
                "source": window.source,
                "resetSource": window.reset_source,
                "unstable": window.unstable,
                "current": is_current(window, now),
                "spent": spent(window, now, model=window.scope),
            }
            for window in windows
        ],
    }
