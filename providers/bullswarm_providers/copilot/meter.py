"""The month's premium requests of a Copilot plan, as GitHub tells an editor."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullswarm_core.meters.normalize import (
    moment,
    number,
    one_of_each,
    used_of_remaining,
    used_of_share,
    used_percent,
    window,
)
from bullswarm_core.quota.observation import Observation
from bullswarm_providers.sign_in import first_set, read_object
from bullswarm_providers.vendor_asking import address, member, no_sign_in, nothing_told, usable_token

if TYPE_CHECKING:
    from datetime import datetime

    from bullswarm_core.quota.observation import MeterContext

NAME = "GitHub Copilot"
# What the endpoint wants to hear of an editor.
_HEADERS = {
    "Accept": "application/json",
    "Editor-Version": "vscode/1.107.0",
    "Editor-Plugin-Version": "copilot-chat/0.35.0",
    "User-Agent": "GitHubCopilotChat/0.35.0",
    "X-Github-Api-Version": "2025-04-01",
}
# Where editors keep a sign-in of Copilot, below the person's settings.
_EDITOR_FILES = ("apps.json", "hosts.json")


def live_reading(context: MeterContext) -> Observation:
    """Ask once; raises MeterError."""
    answer = context.fetch(address(context, "user"), {**_HEADERS, "Authorization": f"token {_token(context)}"})
    return observation(answer, now=context.now)


def observation(answer: Any, *, now: datetime) -> Observation:
    """Turn an answer into the month's window; MeterError (unreadable) when it holds none."""
    told = member(answer, "quota_snapshots", "premium_interactions")
    use = _of_snapshot(told)
    if use is None:
        use = _of_limited_plan(answer)
    resets = ("quota_reset_date_utc", "quota_reset_date", "limited_user_reset_date")
    # GitHub's months begin at midnight UTC, also where it writes the day alone.
    resets_at = next((at for name in resets if (at := moment(member(answer, name), zone=UTC)) is not None), None)
    found = one_of_each([window("monthly", use, resets_at, captured_at=now, now=now)])
    if not found:
        raise nothing_told(NAME)
    plan, permitted = member(answer, "copilot_plan"), member(told, "overage_permitted")
    return Observation(
        now,
        found,
        "usage endpoint",
        plan if isinstance(plan, str) else None,
        permitted if isinstance(permitted, bool) else None,
    )


def _of_snapshot(told: Any) -> float | None:
    """``percent_remaining`` is what is LEFT; less than nothing left is overage. No entitlement says nothing."""
    included, left = number(member(told, "entitlement")), member(told, "remaining")
    if member(told, "unlimited") is True or not included:
        return None
    if isinstance(left, int | float) and not isinstance(left, bool) and -1e9 < left < 0:
        return used_percent(100.0 - left / included * 100)
    use = used_of_remaining(member(told, "percent_remaining"))
    if use is None and (rest := number(left)) is not None and rest <= included:
        use = used_of_share(included - rest, included)
    return use


def _of_limited_plan(answer: Any) -> float | None:
    """A free plan tells the month's chats, and under ``limited_user_quotas`` what is LEFT of them."""
    included, left = (number(member(answer, key, "chat")) for key in ("monthly_quotas", "limited_user_quotas"))
    return used_of_share(included - left, included) if included and left is not None and left <= included else None


def _token(context: MeterContext) -> str:
    """Return the token that Copilot CLI itself would take, else one that an editor keeps; raises MeterError."""
    name = first_set(context.profile.connector.sign_in.tokens, context.environ)
    token = usable_token(context.environ.get(name)) if name else None
    token = token or next(
        (found for file in _EDITOR_FILES for found in _editor_tokens(context, file)),
        None,
    )
    if token is None:
        raise no_sign_in(NAME, "a sign-in in the keyring can't be read; set COPILOT_GITHUB_TOKEN to show its usage")
    return token


def _editor_tokens(context: MeterContext, file: str) -> list[str]:
    home = context.environ.get("XDG_CONFIG_HOME") or str(Path(context.environ.get("HOME", "/")) / ".config")
    entries = read_object(Path(home) / "github-copilot" / file)
    tokens = (
        usable_token(member(entry, "oauth_token")) for name, entry in entries.items() if name.startswith("github.com")
    )
    return [token for token in tokens if token]
