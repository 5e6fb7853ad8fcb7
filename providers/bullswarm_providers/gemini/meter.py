"""The day's quota of each Gemini model, as the service behind a Google sign-in tells it.

Asked by POST with an empty question; it starts nothing. A bucket tells what REMAINS, as a share of 0 to 1; one without the
share could be an empty one or an unknown one, and stays unknown.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullswarm_core.errors import MeterError
from bullswarm_core.meters.normalize import kind_of_length, moment, number, one_of_each, used_of_remaining, window
from bullswarm_core.quota.observation import Observation
from bullswarm_providers.sign_in import read_object
from bullswarm_providers.vendor_asking import (
    address,
    bearer,
    is_over,
    items,
    member,
    no_sign_in,
    nothing_told,
    usable_token,
)

if TYPE_CHECKING:
    from datetime import datetime

    from bullswarm_core.pools import Window
    from bullswarm_core.quota.observation import MeterContext

NAME = "Gemini CLI"
_CLIENT = {"ideType": "IDE_UNSPECIFIED", "platform": "PLATFORM_UNSPECIFIED", "pluginType": "GEMINI"}


def live_reading(context: MeterContext) -> Observation:
    """Ask once for the project and the tier, once for the buckets; raises MeterError."""
    headers = bearer(_token(context))
    told = context.post(address(context, "project"), headers, {"metadata": _CLIENT})
    project = member(told, "cloudaicompanionProject")
    if not isinstance(project, str) or not project:
        raise MeterError("Gemini CLI's sign-in has no project to read a quota of", kind="unsupported")
    answer = context.post(address(context, "quota"), headers, {"project": project})
    tier = member(told, "currentTier", "id")
    return observation(answer, now=context.now, plan=tier if isinstance(tier, str) else None)


def observation(answer: Any, *, now: datetime, plan: str | None = None) -> Observation:
    """Turn the buckets into windows, each of its model; MeterError (unreadable) when there are none."""
    found = one_of_each(_bucket(bucket, now) for bucket in items(member(answer, "buckets")))
    if not found:
        raise nothing_told(NAME)
    return Observation(now, found, "quota endpoint", plan)


def _bucket(bucket: dict[str, Any], now: datetime) -> Window | None:
    """A bucket without a reset is a placeholder that says 100 % for every model."""
    left, resets_at = number(bucket.get("remainingFraction")), moment(bucket.get("resetTime"))
    if left is None or left > 1 or resets_at is None or resets_at <= now:
        return None
    model = bucket.get("modelId")
    # It says no length; a window is at least as long as what is left of it, and the vendor's shortest is a day.
    kind = kind_of_length(resets_at - now)
    return window(
        "daily" if kind == "5h" else kind,
        used_of_remaining(left * 100),
        resets_at,
        captured_at=now,
        now=now,
        scope=model if isinstance(model, str) and model else None,
    )


def _token(context: MeterContext) -> str:
    stored = read_object(Path(context.profile.config_dir or "") / "oauth_creds.json")
    token = usable_token(stored.get("access_token"))
    if token is None:
        raise no_sign_in(NAME, "run gemini and sign in")
    if is_over(moment(stored.get("expiry_date")), context.now):
        raise no_sign_in(NAME, "open Gemini CLI to refresh it")
    return token
