"""The windows of an OpenCode Go plan, where OpenCode holds a key of its own vendor; without one nothing is metered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bullswarm_core.meters.normalize import moment, moment_after, one_of_each, used_percent, window
from bullswarm_core.quota.observation import Observation
from bullswarm_providers.opencode.keys import OWN, own_key, sign_ins
from bullswarm_providers.vendor_asking import address, bearer, member, no_sign_in, nothing_told

if TYPE_CHECKING:
    from datetime import datetime

    from bullswarm_core.pools import Window, WindowKind
    from bullswarm_core.quota.observation import MeterContext

NAME = "OpenCode"
# As the vendor names them; the rolling window lasts five hours.
_WINDOWS: tuple[tuple[str, WindowKind], ...] = (("rolling", "5h"), ("weekly", "weekly"), ("monthly", "monthly"))


def live_reading(context: MeterContext) -> Observation:
    """Ask once; raises MeterError."""
    key = own_key(context.environ)
    if key is None:
        raise no_sign_in(NAME, "run opencode auth login")
    others = set(sign_ins(context.environ)) - set(OWN)
    # Where OpenCode also runs other vendors' models, their work doesn't stop with this plan.
    scope = "opencode" if others else None
    return observation(context.fetch(address(context, "usage"), bearer(key)), now=context.now, scope=scope)


def observation(answer: Any, *, now: datetime, scope: str | None = None) -> Observation:
    """Turn an answer into windows; MeterError (unreadable) when it holds none."""
    usage = answer if member(answer, "usage") is None else member(answer, "usage")
    found = one_of_each(_window(usage, name, kind, now, scope) for name, kind in _WINDOWS)
    if not found:
        raise nothing_told(NAME)
    return Observation(now, found, "usage endpoint", partial=len(found) < len(_WINDOWS))


def _window(usage: Any, name: str, kind: WindowKind, now: datetime, scope: str | None) -> Window | None:
    """``percent`` is USED and ``resetsAt`` a time; the older answer has ``usagePercent`` and seconds that are left."""
    told = member(usage, name) or member(usage, f"{name}Usage")
    use = used_percent(member(told, "percent"))
    if use is None:
        use = used_percent(member(told, "usagePercent"))
    resets_at = moment(member(told, "resetsAt")) or moment_after(member(told, "resetInSec"), now)
    return window(kind, use, resets_at, captured_at=now, now=now, scope=scope)
