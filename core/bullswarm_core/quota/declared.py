"""Resets that the person declared, for a provider that reports how much is used but not when it starts anew.

One moment is enough: the window repeats. A reset that the provider gives always wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Literal

from bullswarm_core.pools import Window, WindowKind
from bullswarm_core.values import replace

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
