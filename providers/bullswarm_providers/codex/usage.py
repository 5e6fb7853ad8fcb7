"""What an account of Codex has used, in the three shapes that tell it: app-server, HTTP and rollout. All of it is pure.

Each states percent USED. A window is classified by its length and never by its slot: a weekly one may be the primary, and
so may one of 30 days. ``codex`` is the account's limit, any other id is that of one model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from bullswarm_core._dataclasses import replace
from bullswarm_core.meters.normalize import duration, kind_of_length, moment, moment_after, number, used_percent, window
from bullswarm_core.pools import Window
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.windows import BURST_BLOCK_PCT, MIN_WINDOW_LENGTH

ACCOUNT_LIMIT = "codex"
_SLOTS = ("primary", "secondary", "primary_window", "secondary_window")
# Each shape has names of its own; no name means two things.
_USED = ("used_percent", "usedPercent")
_SECONDS = ("limit_window_seconds",)
_MINUTES = ("window_minutes", "windowDurationMins")
_RESET = ("resets_at", "resetsAt", "reset_at")
_SECONDS_LEFT = ("reset_after_seconds", "resets_in_seconds")
_FIVE_HOURS = timedelta(hours=5)
_MOST_LIMITS = 64
_LONGEST_SCOPE = 100


def app_server_reading(answer: Any, *, now: datetime) -> Observation | None:
    """Read the answer to ``account/rateLimits/read``; None for one that is about something else."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("rateLimits"), Mapping):
        return None
    limits: list[Mapping[str, Any]] = [answer["rateLimits"]]
    by_id = answer.get("rateLimitsByLimitId")
    if isinstance(by_id, Mapping):
        limits += [entry for entry in list(by_id.values())[:_MOST_LIMITS] if isinstance(entry, Mapping)]
    windows = _all(_limit(entry, captured_at=now, now=now) for entry in limits)
    garbled = any(_is_garbled(entry) for entry in limits)
    if not windows and garbled:
        return None
    reached = answer.get("ordinaryUsageAllowed") is False
    account = answer["rateLimits"]
    return Observation(
        now,
        _with_limit_reached(windows) if reached else windows,
        "app-server",
        _text(account.get("planType")),
        overage_of(account.get("credits")),
        partial=garbled or not windows,
    )


def http_reading(answer: Any, *, now: datetime) -> Observation | None:
    """Read the answer of the usage endpoint; None for one that is about something else."""
    account = answer.get("rate_limit", "") if isinstance(answer, Mapping) else ""
    if account is not None and not isinstance(account, Mapping):
        return None
    windows = [_http_windows(account, None, now)]
    more = answer.get("additional_rate_limits")
    for entry in more[:_MOST_LIMITS] if isinstance(more, list) else ():
        if isinstance(entry, Mapping) and (scope := _scope(entry.get("metered_feature"), entry.get("limit_name"))):
            windows.append(_http_windows(entry.get("rate_limit"), scope, now))
    garbled = _is_garbled(account)
    if not any(windows) and garbled:
        return None
    plan, overage = _text(answer.get("plan_type")), overage_of(answer.get("credits"))
    partial = garbled or not any(windows)
    return Observation(now, _all(windows), "usage endpoint", plan, overage, partial=partial)


def _http_windows(limit: Any, scope: str | None, now: datetime) -> tuple[Window, ...]:
    windows = _windows(limit, scope, captured_at=now, now=now)
    reached = isinstance(limit, Mapping) and (limit.get("limit_reached") is True or limit.get("allowed") is False)
    return _with_limit_reached(windows) if reached else windows


def rollout_reading(limits: Any, *, captured_at: datetime, now: datetime) -> Observation | None:
    """Read ``rate_limits`` of a rollout's ``token_count``; None where it tells of no window."""
    if not isinstance(limits, Mapping):
        return None
    windows = _all([_limit(limits, captured_at=captured_at, now=now)])
    if not windows:
        return None
    plan, overage = _text(limits.get("plan_type")), overage_of(limits.get("credits"))
    return Observation(captured_at, windows, "rollout", plan, overage)


def limit_id(limits: Any) -> str:
    """Return the id of a limit, in either spelling; one without an id is the account's (older rollouts)."""
    found = limits.get("limit_id", limits.get("limitId")) if isinstance(limits, Mapping) else None
    return found if isinstance(found, str) and found else ACCOUNT_LIMIT


def overage_of(credits: Any) -> bool | None:  # noqa: A002  Codex's own word for them
    """Say whether credits would be spent beyond the included quota; None where they are not told."""
    if not isinstance(credits, Mapping):
        return None
    has = credits.get("has_credits", credits.get("hasCredits"))
    if has is True or credits.get("unlimited") is True:
        return True
    return False if has is False else None


def _limit(limits: Mapping[str, Any], *, captured_at: datetime, now: datetime) -> tuple[Window, ...]:
    scope = _scope(limit_id(limits), limits.get("limit_name", limits.get("limitName")))
    return _windows(limits, scope, captured_at=captured_at, now=now)


def _scope(identity: Any, name: Any) -> str | None:
    """Return the model that a limit belongs to, by the name that people see; None for the account's own limit."""
    if identity == ACCOUNT_LIMIT:
        return None
    found = _text(name) or _text(identity)
    return found[:_LONGEST_SCOPE] if found else None


def _windows(limits: Any, scope: str | None, *, captured_at: datetime, now: datetime) -> tuple[Window, ...]:
    """Return the windows of one limit, those of a known length first."""
    if not isinstance(limits, Mapping):
        return ()
    entries = [limits[slot] for slot in _SLOTS if isinstance(limits.get(slot), Mapping)]
    return _all([[found for entry in entries if (found := _window(entry, scope, captured_at, now))]])


def _window(entry: Mapping[str, Any], scope: str | None, captured_at: datetime, now: datetime) -> Window | None:
    used = used_percent(_first(entry, _USED))
    reset = moment(_first(entry, _RESET)) or moment_after(_first(entry, _SECONDS_LEFT), captured_at)
    length = _length(entry)
    if length is not None:
        kind = kind_of_length(length)
    elif used is None or (reset is None and used < BURST_BLOCK_PCT):
        return None
    else:
        # How long it lasts isn't known: it may hold work back like a 5-hour window, and it paces nothing.
        left = max(reset - captured_at, timedelta(0)) if reset else timedelta(0)
        kind, length = ("5h", None) if left <= _FIVE_HOURS else ("daily", left)
    return window(kind, used, reset, captured_at=captured_at, now=now, length=length, scope=scope)


def _is_garbled(limits: Any) -> bool:
    """Tell an account without an open window from one whose windows can't be understood."""
    entries = [limits.get(slot) for slot in _SLOTS] if isinstance(limits, Mapping) else []
    return any(
        not isinstance(entry, Mapping) or used_percent(_first(entry, _USED)) is None
        for entry in entries
        if entry is not None
    )


def _length(entry: Mapping[str, Any]) -> timedelta | None:
    minutes = number(_first(entry, _MINUTES))
    stated = duration(_first(entry, _SECONDS)) or (None if minutes is None else duration(minutes * 60))
    return stated if stated is not None and stated >= MIN_WINDOW_LENGTH else None


def _with_limit_reached(windows: tuple[Window, ...]) -> tuple[Window, ...]:
    """Take the account's fullest window for full: the vendor refuses work, whatever a rounded or late number says."""
    account = [found for found in windows if found.scope is None] or list(windows)
    fullest = max(account, key=lambda found: found.used_pct or 0.0, default=None)
    if fullest is None or (fullest.used_pct or 0.0) >= BURST_BLOCK_PCT:
        return windows
    return tuple(replace(found, used_pct=BURST_BLOCK_PCT) if found is fullest else found for found in windows)


def _all(groups: Iterable[Iterable[Window]]) -> tuple[Window, ...]:
    """Keep one window of each kind and scope: the worse of two, save that one of a known length beats a guess at it."""
    kept: dict[tuple[str, str | None], Window] = {}
    for found in _flat(groups):
        other = kept.get((found.kind, found.scope))
        if other is None or _weight(found) > _weight(other):
            kept[found.kind, found.scope] = found
    return tuple(kept.values())


def _flat(groups: Iterable[Iterable[Window]]) -> Iterator[Window]:
    for group in groups:
        yield from group


def _weight(found: Window) -> tuple[bool, bool, float]:
    used = found.used_pct or 0.0
    return used >= BURST_BLOCK_PCT, found.length is not None, used


def _first(entry: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
