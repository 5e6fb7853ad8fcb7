"""What a caller supposes about a window with ``--meter``: ``POOL:WINDOW=USED[@RESET]``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from bullswarm_core.errors import UsageError
from bullswarm_core.pools import WINDOW_KINDS, Window, WindowKind
from bullswarm_core.values import dataclass
from bullswarm_core.wire import parse_iso


@dataclass(frozen=True, slots=True)
class SupposedMeter:
    """What a caller supposes about one window with ``--meter``; ``pool`` is an id or a label, as it was typed."""

    pool: str
    window: Window


def parse_meters(texts: Iterable[str], *, now: datetime) -> tuple[SupposedMeter, ...]:
    """Read the values of repeated ``--meter`` options; raise UsageError for a bad one, or two for the same window."""
    found: dict[tuple[str, str], SupposedMeter] = {}
    for text in texts:
        meter = parse_meter(text, now=now)
        if found.setdefault((meter.pool, meter.window.kind), meter) is not meter:
            raise UsageError(f'--meter "{text}": {meter.pool}:{meter.window.kind} is given twice', hint="give it once")
    return tuple(found.values())


def parse_meter(text: str, *, now: datetime) -> SupposedMeter:
    """Read ``POOL:WINDOW=USED[@RESET]``: ``codex:5h=81@+23m``, ``claude-code:acme:weekly=30%@2026-03-01T00:00:00Z``.

    USED is a percentage of 0 or more. RESET is an ISO-8601 time (UTC without an offset) or a distance such as
    ``+2h30m`` from ``now``; without it the reset is unknown. Raises UsageError.
    """
    left, equals, right = text.rpartition("=")
    pool, colon, kind = left.rpartition(":")
    if not equals or not colon or not pool:
        raise _bad_meter(text, "it is not POOL:WINDOW=USED[@RESET]")
    if kind not in WINDOW_KINDS:
        raise _bad_meter(text, f'unknown window "{kind}"; it is one of {", ".join(WINDOW_KINDS)}')
    used_text, at, reset_text = right.partition("@")
    used = _percentage(used_text)
    if used is None:
        raise _bad_meter(text, f'"{used_text}" is not a percentage of 0 or more')
    reset = _reset(reset_text, now) if at else None
    if at and reset is None:
        raise _bad_meter(text, f'"{reset_text}" is neither an ISO-8601 time nor a distance such as +2h30m')
    window = Window(kind, used, reset, source="live", captured_at=now, reset_source="provider" if reset else None)
    return SupposedMeter(pool, window)


def with_supposed(windows: Iterable[Window], supposed: Mapping[WindowKind, Window]) -> tuple[Window, ...]:
    """Put the supposed windows in the place of all read windows of their kind."""
    return (*(window for window in windows if window.kind not in supposed), *supposed.values())


def _bad_meter(text: str, what: str) -> UsageError:
    return UsageError(f'--meter "{text}": {what}', hint="for example --meter codex:weekly=33%@+2d")


def _percentage(text: str) -> float | None:
    import re

    return float(text.removesuffix("%")) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?%?", text) else None


def _reset(text: str, now: datetime) -> datetime | None:
    import re

    if not text.startswith("+"):
        try:
            return parse_iso(text)
        except ValueError:
            return None
    parts = re.fullmatch(r"\+(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?", text, re.ASCII)
    if parts is None or not any(parts.groups()):
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return now + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
