"""Command Code's 5-hour and weekly windows, and the month's credits, from the addresses that its own `/usage` asks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullswarm_core.errors import MeterError
from bullswarm_core.meters.normalize import moment, number, one_of_each, used_of_share, window
from bullswarm_core.quota.observation import Observation
from bullswarm_providers.sign_in import read_object
from bullswarm_providers.vendor_asking import address, bearer, member, no_sign_in, nothing_told, usable_token

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from bullswarm_core.pools import Window
    from bullswarm_core.quota.observation import MeterContext

NAME = "Command Code"
# The month's included credits of each plan, as Command Code 1.64.0 itself counts them.
PLAN_CREDITS: Mapping[str, float] = {
    "individual-go": 10.0,
    "individual-goat": 70.0,
    "individual-max": 150.0,
    "individual-pro": 30.0,
    "individual-pro-v1": 80.0,
    "individual-provider": 15.0,
    "individual-ultra": 300.0,
    "teams-pro": 40.0,
}
# Five hours, the week and the month: it leaves none of them out, so that a missing one could not be read.
_MOST_WINDOWS = 3
_RUNNING = frozenset({"active", "trialing", "past_due"})


def live_reading(context: MeterContext) -> Observation:
    """Ask once for the credits and once for the subscription; without the latter the month stays unknown."""
    headers = bearer(_key(context))
    credits_told = context.fetch(address(context, "credits"), headers)
    try:
        subscription = context.fetch(address(context, "subscriptions"), headers)
    except MeterError:
        subscription = None
    return observation(credits_told, subscription, now=context.now)


def observation(credits_told: Any, subscription: Any, *, now: datetime) -> Observation:
    """Turn the two answers into windows; MeterError (unreadable) when they hold none."""
    limits = member(credits_told, "windowLimits")
    if limits is None:
        limits = member(credits_told, "credits", "windowLimits")
    held = member(credits_told, "credits")
    plan = member(subscription, "data", "planId") or member(held, "planId")
    found = one_of_each(
        [
            _limit(limits, "fiveHour", "5h", now),
            _limit(limits, "weekly", "weekly", now),
            _month(held, member(subscription, "data"), plan, now),
        ]
    )
    if not found:
        raise nothing_told(NAME)
    return Observation(
        now,
        found,
        "billing endpoint",
        plan if isinstance(plan, str) else None,
        _overage(held),
        partial=len(found) < _MOST_WINDOWS and member(limits, "limited") is not False,
    )


def _limit(limits: Any, name: str, kind: Any, now: datetime) -> Window | None:
    """``used`` of ``cap``, the reset in Unix milliseconds; ``limited`` False says that the limits don't hold."""
    if member(limits, "limited") is False:
        return None
    told = member(limits, name)
    use = used_of_share(member(told, "used"), member(told, "cap"))
    return window(kind, use, moment(member(told, "resetAt")), captured_at=now, now=now)


def _month(held: Any, subscription: Any, plan: Any, now: datetime) -> Window | None:
    """``monthlyCredits`` is what is LEFT: the use is known only for a plan whose credits are, and that holds no more."""
    left, included = number(member(held, "monthlyCredits")), _included(plan)
    if left is None or included is None or left > included or member(subscription, "status") not in _RUNNING:
        return None
    ends_at, starts_at = (moment(member(subscription, name)) for name in ("currentPeriodEnd", "currentPeriodStart"))
    length = ends_at - starts_at if ends_at and starts_at and starts_at < ends_at else None
    return window("monthly", used_of_share(included - left, included), ends_at, captured_at=now, now=now, length=length)


def _included(plan: Any) -> float | None:
    """Find a plan by the longest name that it starts with, as the CLI does."""
    if not isinstance(plan, str):
        return None
    name = plan.lower().replace("_", "-")
    known = max((known for known in PLAN_CREDITS if name.startswith(known)), key=len, default=None)
    return None if known is None else PLAN_CREDITS[known]


def _overage(held: Any) -> bool | None:
    """Credits that the person bought are spent when the plan's are gone."""
    bought = number(member(held, "purchasedCredits"))
    return None if bought is None else bought > 0


def _key(context: MeterContext) -> str:
    """Return the key of the sign-in, else that of the environment; raises MeterError where there is none."""
    stored = read_object(Path(context.profile.config_dir or "") / "auth.json").get("apiKey")
    key = usable_token(stored) or usable_token(context.environ.get("COMMAND_CODE_API_KEY"))
    if key is None:
        raise no_sign_in(NAME, "run command-code login")
    return key
