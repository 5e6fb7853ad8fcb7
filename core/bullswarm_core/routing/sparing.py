"""Two rules that spare a pool: the share of it that the person keeps, and a rest too small for the task.

Both only order: a pool that is spared comes after the others and stays selectable when it is all there is.
"""

from __future__ import annotations

from collections.abc import Mapping

from bullswarm_core.pools import WindowKind
from bullswarm_core.quota.windows import Readings, one_decimal
from bullswarm_core.routing.forecast import OVER_LIMIT_PCT, WindowForecast
from bullswarm_core.values import dataclass

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
