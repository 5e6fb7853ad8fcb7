"""Pools for routing tests, told by what a person sees: used % and elapsed % of each window."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bullswarm_core.pools import Effort, Inflight, Pool, Rate, Rung, Window, WindowKind
from bullswarm_core.quota.windows import WINDOW_LENGTHS
from bullswarm_core.routing import Candidate, Request, RoutingContext, decide

NOW = datetime(2026, 9, 10, 12, 0, tzinfo=UTC)
EVERY_TIER: Mapping[Effort, Rung] = {"high": Rung(), "medium": Rung(), "low": Rung()}
ANALYZE = Request("analyze")
THIRTY_DAYS = timedelta(days=30)


def window(kind: WindowKind, used: float | None, elapsed: float | None = None, **more: Any) -> Window:
    """A cached reading, ``elapsed`` percent of its window over; None: no known reset. Months last 30 days."""
    length = THIRTY_DAYS if kind == "monthly" else WINDOW_LENGTHS[kind]
    resets_at = None if elapsed is None else NOW + length * (1 - elapsed / 100)
    if kind == "monthly":
        more.setdefault("length", length)
    return Window(kind, used, more.pop("resets_at", resets_at), **{"source": "cache", "captured_at": NOW, **more})


def ending(kind: WindowKind, used: float | None, left: timedelta, **more: Any) -> Window:
    """A cached reading whose window resets in ``left``."""
    return window(kind, used, resets_at=NOW + left, **more)


def pool(name: str, *windows: Window, **more: Any) -> Pool:
    """An enabled pool that takes every lane on every tier."""
    return Pool(name, name.split(":")[0], windows=windows, **{"tiers": EVERY_TIER, **more})


def busy(count: int, minutes: float | None = None) -> tuple[Inflight, ...]:
    """Attempts that started now and take ``minutes`` each."""
    return tuple(Inflight(NOW, minutes) for _ in range(count))


def history(per_minute: float) -> Rate:
    """A rate fitted from the meter's history."""
    return Rate(per_minute, "history", samples=4)


def row_of(one: Pool, request: Request = ANALYZE, context: RoutingContext | None = None) -> Candidate:
    """The numbers by which a pool is judged that stands alone."""
    return decide(request, [one], now=NOW, context=context or RoutingContext()).candidates[0]
