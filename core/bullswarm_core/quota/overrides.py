"""Readings that people give: resets that the person declared, and what ``--meter POOL:WINDOW=USED[@RESET]`` supposes.

A reset that the provider gives always wins over a declared one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.errors import UsageError
from bullswarm_core.pools.model import WINDOW_KINDS, Window, WindowKind
from bullswarm_core.wire import parse_iso

WEEK = timedelta(days=7)
_PACING: tuple[WindowKind, ...] = ("weekly", "monthly")


def next_reset(anchor: datetime, window: Literal["weekly", "monthly"], *, after: datetime) -> datetime:
    """Return the first reset later than ``after``, a whole number of windows away from ``anchor``, in UTC.

    Weeks are 7 days. Months are UTC calendar months counted from the anchor itself, the day clamped to the month's
    length, so that a 31st comes back to the 31st after a short month.
    """
    anchor, after = anchor.astimezone(UTC), after.astimezone(UTC)
    if window == "weekly":
        return anchor + ((after - anchor) // WEEK + 1) * WEEK
    months = (after.year - anchor.year) * 12 + after.month - anchor.month
    reset = months_later(anchor, months)
    return reset if reset > after else months_later(anchor, months + 1)


def months_later(moment: datetime, months: int) -> datetime:
    """Return the same day and time ``months`` calendar months later (or earlier), the day clamped to that month."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    month += 1
    last_day = 31 if month == 12 else (datetime(year, month + 1, 1) - timedelta(days=1)).day
    return moment.replace(year=year, month=month, day=min(moment.day, last_day))


def with_declared_reset(
    windows: Iterable[Window], *, anchor: datetime | None, kind: Literal["weekly", "monthly"] | None, now: datetime
) -> tuple[Window, ...]:
    """Date the undated ``kind`` window by the person's ``anchor``; without a kind the undated pacing windows.

    The reset is the first one after the reading was taken: a reading from before the last reset belongs to a window
    that is over, and dating it by the coming reset would carry its used % into the new one.
    """
    if anchor is None:
        return tuple(windows)
    return tuple(
        replace(
            window,
            resets_at=next_reset(anchor, _pacing(window.kind), after=min(window.captured_at or now, now)),
            reset_source="declared",
        )
        if window.resets_at is None and window.kind in _PACING and kind in (None, window.kind)
        else window
        for window in windows
    )


def _pacing(kind: WindowKind) -> Literal["weekly", "monthly"]:
    return "weekly" if kind == "weekly" else "monthly"


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
