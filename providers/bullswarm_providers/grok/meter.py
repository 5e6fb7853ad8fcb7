"""Grok's weekly credits: asked of the CLI itself (`grok agent stdio`), else of the address that it asks.

Measured with Grok 1.0.41: the CLI hands the vendor's answer through; a use of nothing is left out of it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullswarm_core.errors import BullswarmError, MeterError
from bullswarm_core.meters.normalize import kind_of_length, moment, number, used_percent, window
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.windows import WINDOW_LENGTHS
from bullswarm_providers.sign_in import read_object
from bullswarm_providers.vendor_asking import (
    address,
    bearer,
    is_over,
    member,
    no_sign_in,
    nothing_told,
    usable_token,
)

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from bullswarm_core.process.json_rpc import Reply
    from bullswarm_core.quota.observation import MeterContext

NAME = "Grok"
_WEEKLY = "USAGE_PERIOD_TYPE_WEEKLY"
# Measured: 1 s on an idle machine, several on a busy one; it loads a large program.
_CLI_SEC = 20.0
_STATUS = re.compile(r"\bHTTP (\d{3})\b")
_HINT = "run grok login"


def live_reading(context: MeterContext) -> Observation:
    """Ask once; raises MeterError. A refusal of the CLI is final, any other trouble with it leads to the address."""
    if context.profile.billing == "api-key":
        raise MeterError("Grok runs on an API key: there is no included quota to read", kind="unsupported")
    try:
        answer, read_by = _ask_cli(context), "grok agent"
    except MeterError as error:
        if error.kind in ("sign-in", "limited", "refused"):
            raise
        answer, read_by = _ask_address(context, "billing"), "billing endpoint"
    config = member(answer, "config")
    if not isinstance(config, dict):
        raise nothing_told(NAME)
    use, tier = used_percent(config.get("creditUsagePercent")), None
    if use is None and config.get("creditUsagePercent") is None:
        use, tier = _use_that_is_left_out(context)
    return observation(config, use, now=context.now, read_by=read_by, plan=tier)


def observation(
    config: dict[str, Any], use: float | None, *, now: datetime, read_by: str, plan: str | None = None
) -> Observation:
    """Turn the billing configuration into the weekly window; MeterError (unsupported) for another period."""
    starts_at, ends_at = (moment(member(config, "currentPeriod", name)) for name in ("start", "end"))
    length = ends_at - starts_at if starts_at and ends_at and starts_at < ends_at else None
    _refuse_other_period(member(config, "currentPeriod", "type"), length)
    if ends_at is None:
        ends_at = _end_of_week(moment(config.get("billingPeriodEnd")), now)
    found = window("weekly", use, ends_at, captured_at=now, now=now, length=length)
    if found is None:
        raise nothing_told(NAME)
    return Observation(now, (found,), read_by, plan, _overage(config))


def _refuse_other_period(told: Any, length: timedelta | None) -> None:
    by_length = None if length is None else kind_of_length(length)
    if (told == _WEEKLY and by_length in (None, "weekly")) or (told is None and by_length == "weekly"):
        return
    raise MeterError("Grok's usage period is not weekly: its use can't be placed in time", kind="unsupported")


def _end_of_week(ends_at: datetime | None, now: datetime) -> datetime | None:
    """Take the end of the billing period for that of the week where it can be one."""
    return ends_at if ends_at is not None and now < ends_at <= now + WINDOW_LENGTHS["weekly"] else None


def _overage(config: dict[str, Any]) -> bool | None:
    """Tell whether credits beyond the included ones would be spent: on demand up to a cap, or paid ahead."""
    amounts = [number(member(config, name, "val")) for name in ("onDemandCap", "prepaidBalance")]
    if any(amounts):
        return True
    return None if amounts[0] is None else False


def _use_that_is_left_out(context: MeterContext) -> tuple[float | None, str | None]:
    """Give the use that a left-out percentage stands for, and the tier.

    It is nothing used, except on the heavy tier, where the vendor never tells it. Where the
    tier can't be asked for it stays unknown.
    """
    try:
        settings = _ask_address(context, "settings")
    except MeterError:
        return None, None
    names = ("subscription_tier_display", "subscription_tier", "subscriptionTier")
    tier = next((name for name in (member(settings, key) for key in names) if isinstance(name, str)), None)
    if tier is not None and "heavy" in tier.casefold():
        raise MeterError("Grok tells no use of the quota on the heavy tier", kind="unsupported")
    return 0.0, tier


def _ask_cli(context: MeterContext) -> Any:
    from bullswarm_core.process.json_rpc import LineRpc

    profile = context.profile
    folder = profile.config_dir
    if profile.binary is None or not folder or not Path(folder).is_dir():
        raise no_sign_in(NAME, _HINT)
    try:
        # In its own folder: the settings of a project that somebody stands in must have no say in where it asks.
        with LineRpc(
            (profile.binary, "agent", "stdio"), cwd=folder, environ=_environment(context), timeout_sec=_CLI_SEC
        ) as grok:
            started = grok.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            reply = grok.ask("_x.ai/billing") if started.code is None else started
    except MeterError:
        raise
    except BullswarmError as error:
        raise MeterError(f"grok agent stdio can't be started: {error.message}", kind="unreachable") from None
    if reply.code is None:
        return reply.result
    raise _refusal(reply)


def _environment(context: MeterContext) -> dict[str, str]:
    from bullswarm_core.process.environment import is_session_variable

    profile, launch = context.profile, context.profile.connector.launch
    kept = {
        name: value
        for name, value in context.environ.items()
        if name not in profile.withheld and not is_session_variable(name)
    }
    return {
        **kept,
        **launch.environment,
        **launch.isolation_environment,
        **profile.environment,
        "PWD": str(profile.config_dir),
    }


def _refusal(reply: Reply) -> MeterError:
    """Say in our words why the CLI could not tell; its own text is looked into and never shown."""
    text = f"{reply.message} {reply.detail}"
    if "authentication required" in text.casefold():
        return no_sign_in(NAME, _HINT)
    found = _STATUS.search(text)
    status = int(found[1]) if found else None
    if status == 401:
        return no_sign_in(NAME, _HINT)
    if status == 429:
        return MeterError("Grok's billing service was asked too often", kind="limited")
    if status == 403:
        return MeterError("Grok's billing service refused to tell the usage", kind="refused")
    what = f"HTTP {status}" if status else f"error {reply.code}"
    return MeterError(f"grok agent stdio could not tell the usage: {what}", kind="unreachable")


def _ask_address(context: MeterContext, name: str) -> Any:
    token = _token(context)
    return context.fetch(address(context, name), {**bearer(token), "X-XAI-Token-Auth": "xai-grok-cli"})


def _token(context: MeterContext) -> str:
    """Return the person's token, the one that lasts longest; raises MeterError where there is none to use."""
    entries = read_object(Path(context.profile.config_dir or "") / "auth.json").values()
    signed = [entry for entry in entries if isinstance(entry, dict) and usable_token(entry.get("key"))]
    personal = [entry for entry in signed if not _is_team(entry)]
    if signed and not personal:
        raise MeterError("Grok's usage can't be read for a team's sign-in", kind="unsupported")
    lasting = [(moment(entry.get("expires_at")), str(entry["key"])) for entry in personal]
    good = [(ends, key) for ends, key in lasting if not is_over(ends, context.now)]
    if not good:
        raise no_sign_in(NAME, "open Grok to refresh it" if lasting else _HINT)
    return max(good, key=lambda each: each[0].timestamp() if each[0] else 0.0)[1]


def _is_team(entry: dict[str, Any]) -> bool:
    kind = entry.get("principal_type") or entry.get("principalType")
    return isinstance(kind, str) and "team" in kind.casefold()
