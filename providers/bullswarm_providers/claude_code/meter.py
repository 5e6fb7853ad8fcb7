"""What Claude Code and its vendor tell of an account's usage: a cached answer, the events of a stream, and the endpoint.

Shapes as Claude Code 2.1.332 reads them itself. The endpoint and its cached copy give percent used and ISO times; the
events give a used share of 0 to 1 and Unix seconds. A window that is null or absent isn't open: that is no number, and not
0 % of an open one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullswarm_core.errors import MeterError
from bullswarm_core.meters.normalize import FUTURE_SLACK, moment, one_of_each, used_of_fraction, used_percent, window
from bullswarm_core.pools import Window, WindowKind
from bullswarm_core.quota.observation import MeterContext, Observation
from bullswarm_providers.claude_code.stored_sign_in import REFRESH, StoredSignIn, stored_sign_in
from bullswarm_providers.sign_in import read_object
from bullswarm_providers.vendor_asking import address, bearer

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import PoolProfile

ENDPOINT = "usage"
BETA = "oauth-2025-04-20"
# With another user agent the endpoint refuses sooner (seen by other readers of it); this is the version that was measured.
_MEASURED_VERSION = "2.1.332"
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")

_FIVE_HOURS, _WEEK = timedelta(hours=5), timedelta(days=7)
# The vendor's name of a window, its kind, its length and the model family that it belongs to. Windows of other products
# (seven_day_oauth_apps, cowork) neither hold a run of ours back nor tell anything about it.
_WINDOWS: tuple[tuple[str, WindowKind, timedelta, str | None], ...] = (
    ("five_hour", "5h", _FIVE_HOURS, None),
    ("seven_day", "weekly", _WEEK, None),
    ("seven_day_opus", "weekly", _WEEK, "opus"),
    ("seven_day_sonnet", "weekly", _WEEK, "sonnet"),
    ("seven_day_overage_included", "weekly", _WEEK, "fable"),
)
_LIMIT_KINDS: Mapping[str, tuple[WindowKind, timedelta]] = {
    "session": ("5h", _FIVE_HOURS),
    "weekly_all": ("weekly", _WEEK),
    "weekly_scoped": ("weekly", _WEEK),
}
_MOST_LIMITS = 64
_FAMILY = re.compile(r"(?:claude[ -])?([a-z]+)")
# An event that tells of limits is short; the scan of a stream that goes on for days ends somewhere.
_LONGEST_LINE = 1 << 20
_LARGEST_STREAM = 256 << 20
_EVENT = b'"rate_limit_event"'
# Claude Code ends a line that has a time with it; a tool's own words stand further inside, and might name any time.
_STAMP = re.compile(rb'"timestamp":"([0-9T:.+Z-]{19,40})"\}\s*\Z')
_STAMP_BYTES = 80


def usage_windows(body: Any, *, captured_at: datetime, now: datetime) -> tuple[Window, ...]:
    """Return the open windows that an answer of the usage endpoint tells; one per kind and model family."""
    if not isinstance(body, Mapping):
        return ()
    named = (_named(body.get(name), kind, length, scope, captured_at, now) for name, kind, length, scope in _WINDOWS)
    limits = body.get("limits")
    listed = (_limit(entry, captured_at, now) for entry in (limits[:_MOST_LIMITS] if isinstance(limits, list) else ()))
    return one_of_each((*named, *listed))


def _named(
    entry: Any, kind: WindowKind, length: timedelta, scope: str | None, captured_at: datetime, now: datetime
) -> Window | None:
    if not isinstance(entry, Mapping):
        return None
    used, reset = used_percent(entry.get("utilization")), moment(entry.get("resets_at"))
    return _told(entry.get("resets_at"), kind, used, reset, length, scope, captured_at, now)


def _limit(entry: Any, captured_at: datetime, now: datetime) -> Window | None:
    """Read one row of ``limits``: classified by its kind, and by its model's name where it is one model's."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("kind"), str):
        return None
    known = _LIMIT_KINDS.get(entry["kind"])
    scope = _part(_part(entry, "scope"), "model").get("display_name")
    family = _family(scope) if isinstance(scope, str) else None
    # A share of another surface, or of a model that isn't named, is nothing that a pick could be judged by.
    if known is None or (entry["kind"] == "weekly_scoped") != (family is not None):
        return None
    used, reset = used_percent(entry.get("percent")), moment(entry.get("resets_at"))
    return _told(entry.get("resets_at"), known[0], used, reset, known[1], family, captured_at, now)


def _told(
    stated: Any,
    kind: WindowKind,
    used: float | None,
    reset: datetime | None,
    length: timedelta,
    scope: str | None,
    captured_at: datetime,
    now: datetime,
) -> Window | None:
    if not used and stated is None:
        # Nothing used and no reset: the window opens with the next message.
        return None
    return window(kind, used, reset, captured_at=captured_at, now=now, length=length, scope=scope)


def _family(display_name: str) -> str | None:
    """Return the model family of a name such as ``Opus 4.5``: the part of a model's name that a window gates by."""
    found = _FAMILY.match(display_name.strip().casefold())
    return found[1] if found else None


def usage_overage(body: Any) -> bool | None:
    """Return whether extra usage, which is billed, is switched on; None when the answer doesn't say."""
    enabled = _part(body, "extra_usage").get("is_enabled")
    return enabled if isinstance(enabled, bool) else None


def cached_usage(settings: Mapping[str, Any], *, account: str | None, now: datetime) -> Observation | None:
    """Return the answer that Claude Code kept in its .claude.json; None unless it is proved to be that account's."""
    cached = settings.get("cachedUsageUtilization")
    if not isinstance(cached, Mapping) or account is None or cached.get("accountUuid") != account:
        return None
    captured_at = moment(cached.get("fetchedAtMs"))
    if captured_at is None or captured_at > now + FUTURE_SLACK:
        return None
    body = cached.get("utilization")
    windows = usage_windows(body, captured_at=captured_at, now=now)
    return Observation(captured_at, windows, "Claude Code's cache", overage=usage_overage(body)) if windows else None


def event_windows(info: Any, *, captured_at: datetime, now: datetime) -> tuple[Window, ...]:
    """Return the windows of a ``rate_limit_event``: a used share of 0 to 1, resets in Unix seconds."""
    unified = _part(info, "unifiedWindows")
    told: dict[str, Any] = {}
    kind = info.get("rateLimitType") if isinstance(info, Mapping) else None
    if isinstance(kind, str):
        told[kind] = info
    # The table of all windows is the fuller record of the same answer.
    told |= {str(name): entry for name, entry in unified.items()}
    return one_of_each(
        window(
            kind,
            used_of_fraction(_part(told, name).get("utilization")),
            moment(_part(told, name).get("resetsAt")),
            captured_at=captured_at,
            now=now,
            length=length,
            scope=scope,
        )
        for name, kind, length, scope in _WINDOWS
        if name in told
    )


def reading_in_stream(lines: Iterable[bytes], *, started_at: datetime, now: datetime) -> Observation | None:
    """Return what the last ``rate_limit_event`` of a run's stream told; None when it told of no window.

    An event comes when something changed and has no time of its own: it counts from the last time that stands before it in
    the stream, at the earliest from ``started_at``. It is only ever older than that by mistake of a clock.
    """
    found: tuple[datetime, Mapping[str, Any]] | None = None
    last_time = started_at
    for line in lines:
        if _EVENT in line[:4096]:
            event = _parsed(line)
            if event.get("type") == "rate_limit_event" and _tells_windows(info := _part(event, "rate_limit_info")):
                found = last_time, info
        elif (stamp := _STAMP.search(line[-_STAMP_BYTES:])) and (told := moment(stamp[1].decode("ascii"))):
            last_time = min(max(last_time, told), now)
    if found is None:
        return None
    captured_at, info = found
    windows = event_windows(info, captured_at=captured_at, now=now)
    return Observation(captured_at, windows, "stream", overage=_event_overage(info)) if windows else None


def _tells_windows(info: Mapping[str, Any]) -> bool:
    return bool(_part(info, "unifiedWindows")) or info.get("utilization") is not None


def _event_overage(info: Mapping[str, Any]) -> bool | None:
    if info.get("isUsingOverage") is True:
        return True
    enabled = info.get("overageEnabled")
    return enabled if isinstance(enabled, bool) else None


def stream_lines(path: Path) -> Iterator[bytes]:
    """Give the lines of a stream file, each cut at 1 MB; a file that can't be read has none."""
    try:
        with path.open("rb") as file:
            while file.tell() < _LARGEST_STREAM and (line := file.readline(_LONGEST_LINE)):
                yield line
    except OSError:
        return


def passive_readings(context: MeterContext) -> tuple[Observation, ...]:
    """Return what Claude Code's own cache tells of this account; never raises."""
    profile = context.profile
    file = settings_file(profile, context.environ)
    found = cached_usage(read_object(file), account=profile.account, now=context.now) if file else None
    return (found,) if found else ()


def live_reading(context: MeterContext) -> Observation:
    """Ask the usage endpoint once with the sign-in that is stored for this account. Raises MeterError."""
    if context.profile.billing == "api-key":
        raise MeterError("work by an API key has no usage windows", kind="unsupported")
    sign_in = stored_sign_in(context.profile, context.environ, now=context.now)
    try:
        body = context.fetch(address(context, ENDPOINT), _headers(sign_in, context.profile))
    except MeterError as error:
        error.hint = error.hint or (REFRESH if error.kind == "sign-in" else None)
        raise
    windows = usage_windows(body, captured_at=context.now, now=context.now)
    if not windows and not _has_none_open(body):
        raise MeterError("the usage endpoint of Claude gave an answer without any window", kind="unreadable")
    overage = usage_overage(body)
    return Observation(context.now, windows, "usage endpoint", sign_in.plan, overage, partial=not _is_understood(body))


def _has_none_open(body: Any) -> bool:
    """Tell an account without an open window from an answer that is about something else, or can't be understood."""
    if not isinstance(body, Mapping) or not any(name in body for name in ("five_hour", "seven_day", "limits")):
        return False
    return _is_understood(body)


def _is_understood(body: Mapping[str, Any]) -> bool:
    """Tell whether each window that the answer names has a number, or says that it has none."""
    entries = [entry for name, *_ in _WINDOWS if (entry := body.get(name)) is not None]
    return isinstance(body.get("limits") or [], list) and all(
        isinstance(entry, Mapping)
        and (entry.get("utilization") is None or used_percent(entry["utilization"]) is not None)
        for entry in entries
    )


def _headers(sign_in: StoredSignIn, profile: PoolProfile) -> dict[str, str]:
    return {
        **bearer(sign_in.token),
        "anthropic-beta": BETA,
        "User-Agent": f"claude-code/{installed_version(profile.binary) or _MEASURED_VERSION}",
        "Content-Type": "application/json",
    }


def installed_version(binary: str | None) -> str | None:
    """Return the version of the installed CLI where a path or a package.json tells it, without starting it."""
    if binary is None:
        return None
    try:
        real = Path(binary).resolve()
    except (OSError, RuntimeError):
        return None
    if _VERSION.fullmatch(real.name):
        return real.name
    for folder in real.parents[:3]:
        package = read_object(folder / "package.json")
        if str(package.get("name", "")).startswith("@anthropic-ai/claude-code"):
            version = package.get("version")
            return version if isinstance(version, str) and _VERSION.fullmatch(version) else None
    return None


def settings_file(profile: PoolProfile, environ: Mapping[str, str]) -> Path | None:
    """Return where Claude Code keeps .claude.json: in the folder that its variable names, else beside the default one."""
    if "CLAUDE_CONFIG_DIR" in profile.environment:
        return Path(profile.environment["CLAUDE_CONFIG_DIR"]) / ".claude.json"
    return Path(environ["HOME"]) / ".claude.json" if environ.get("HOME") else None


def _parsed(line: bytes) -> Mapping[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _part(value: Any, name: str) -> Mapping[str, Any]:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}
