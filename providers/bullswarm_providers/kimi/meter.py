"""The windows of Kimi's coding plan: a week, and shorter ones that say how long they are.

The numbers come as text, and are points of 100 rather than requests.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from bullswarm_core.meters.normalize import duration, kind_of_length, moment, number, one_of_each, used_of_share, window
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.windows import WINDOW_LENGTHS
from bullswarm_providers.over_claude import vendor_key
from bullswarm_providers.vendor_asking import address, bearer, items, member, nothing_told

if TYPE_CHECKING:
    from datetime import datetime

    from bullswarm_core.pools import Window
    from bullswarm_core.quota.observation import MeterContext

NAME = "Kimi"
HOSTS = ("kimi.com", "moonshot.ai", "moonshot.cn")
_UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400}
_SLACK = timedelta(hours=1)


def live_reading(context: MeterContext) -> Observation:
    """Ask once; raises MeterError."""
    key, _ = vendor_key(context, name=NAME, hosts=HOSTS)
    return observation(context.fetch(address(context, "usages"), bearer(key)), now=context.now)


def observation(answer: Any, *, now: datetime) -> Observation:
    """Turn an answer into windows; MeterError (unreadable) when it holds none."""
    found = one_of_each(
        [_week(member(answer, "usage"), now), *(_limit(entry, now) for entry in items(member(answer, "limits")))]
    )
    if not found:
        raise nothing_told(NAME)
    return Observation(now, found, "usage endpoint")


def _week(told: Any, now: datetime) -> Window | None:
    """The plan's own window; one whose reset is further off than a week is another plan's, and is not placed in time."""
    resets_at = moment(member(told, "resetTime"))
    if resets_at is not None and resets_at - now > WINDOW_LENGTHS["weekly"] + _SLACK:
        return None
    return window("weekly", _use(told), resets_at, captured_at=now, now=now)


def _limit(entry: dict[str, Any], now: datetime) -> Window | None:
    unit, count = member(entry, "window", "timeUnit"), number(member(entry, "window", "duration"))
    seconds = _UNITS.get(unit.removeprefix("TIME_UNIT_")) if isinstance(unit, str) else None
    length = duration(count * seconds) if count is not None and seconds is not None else None
    if length is None:
        return None
    told = entry.get("detail", entry)
    resets_at = moment(member(told, "resetTime"))
    return window(kind_of_length(length), _use(told), resets_at, captured_at=now, now=now, length=length)


def _use(told: Any) -> float | None:
    """``used`` of ``limit``; where it is left out, what does not ``remain`` of it."""
    whole, used, left = (number(member(told, name)) for name in ("limit", "used", "remaining"))
    if used is None and whole is not None and left is not None and left <= whole:
        used = whole - left
    return used_of_share(used, whole)
