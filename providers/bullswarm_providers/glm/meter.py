"""The windows of a GLM coding plan of z.ai: tokens of five hours, and of a week where the plan has one."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from bullswarm_core.meters.normalize import duration, kind_of_length, moment, number, one_of_each, used_percent, window
from bullswarm_core.quota.observation import Observation
from bullswarm_providers.over_claude import vendor_key
from bullswarm_providers.vendor_asking import address, bearer, items, member, nothing_told

if TYPE_CHECKING:
    from datetime import datetime

    from bullswarm_core.pools import Window
    from bullswarm_core.quota.observation import MeterContext

NAME = "z.ai"
HOSTS = ("z.ai", "bigmodel.cn")
# The vendor's numbers of units: hours are seen with the five-hour window, days and weeks with longer ones.
_UNIT_SEC = {3: 3600, 4: 86400, 6: 7 * 86400}
_LONGEST = timedelta(days=8)


def live_reading(context: MeterContext) -> Observation:
    """Ask once, in the country that the key is for; raises MeterError."""
    key, host = vendor_key(context, name=NAME, hosts=HOSTS)
    name = "quotaChina" if host.endswith("bigmodel.cn") else "quota"
    return observation(context.fetch(address(context, name), bearer(key)), now=context.now)


def observation(answer: Any, *, now: datetime) -> Observation:
    """Turn an answer into windows; MeterError (unreadable) when it holds none.

    ``TIME_LIMIT`` counts calls of the vendor's MCP tools and neither holds work back nor paces it.
    """
    limits = [entry for entry in items(member(answer, "data", "limits")) if entry.get("type") == "TOKENS_LIMIT"]
    found = one_of_each(_window(entry, now) for entry in limits)
    if not found:
        raise nothing_told(NAME)
    plan = member(answer, "data", "level")
    return Observation(now, found, "usage endpoint", plan if isinstance(plan, str) else None)


def _window(entry: dict[str, Any], now: datetime) -> Window | None:
    """``percentage`` is USED; the length is ``number`` times ``unit``, and one that isn't stated is not guessed."""
    unit, count = entry.get("unit"), number(entry.get("number"))
    seconds = _UNIT_SEC.get(unit) if type(unit) is int else None
    length = duration(count * seconds) if count is not None and seconds is not None else None
    if length is None or length > _LONGEST:
        return None
    resets_at = moment(entry.get("nextResetTime"))
    use = used_percent(entry.get("percentage"))
    return window(kind_of_length(length), use, resets_at, captured_at=now, now=now, length=length)
