"""The one boundary at which a vendor's words on usage become ours: percent used, aware UTC times, windows by length.

Every reader goes through it, so that a unit or a direction is decided in one place. What can't be understood is None and
never 0: a missing number is no number, a window whose reset has passed says nothing about the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from bullswarm_core.pools.model import Window, WindowKind
from bullswarm_core.quota.windows import LONGEST_MONTH, MIN_WINDOW_LENGTH, WINDOW_LENGTHS, number_or_none

MOST_USED_PCT = 1000.0
"""A reading beyond this is an artefact; overage shows as a little more than 100."""
MILLISECONDS_FROM = 1e10
"""A time from here on is in milliseconds: as seconds it would lie in the year 2286."""
FUTURE_SLACK = timedelta(minutes=5)
"""How far a vendor's clock may run ahead of ours before its reading is taken for one of a wrong clock."""

_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_LONGEST_TEXT = 64
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)
# Clocks differ, and some vendors round a reset up to the next hour.
_RESET_SLACK = timedelta(hours=1)
# Each kind takes the lengths from the one before up to its own; between the usual lengths lies plenty of room.
_UP_TO: tuple[tuple[WindowKind, timedelta], ...] = (
    ("5h", timedelta(hours=12)),
    ("daily", timedelta(days=3)),
    ("weekly", timedelta(days=14)),
)
# Ten years: no quota window is longer, and a timedelta holds it with ease.
_LONGEST_WINDOW_SEC = 3653 * 86400.0


def number(value: Any) -> float | None:
    """Return a finite number of 0 or more, also one that is written as decimal text; anything else is None."""
    if isinstance(value, str):
        text = value.strip()
        return float(text) if len(text) <= _LONGEST_TEXT and _DECIMAL.fullmatch(text) else None
    return number_or_none(value)


def used_percent(value: Any) -> float | None:
    """Return a percentage that is USED, 0 to 1000; for what a vendor states as remaining see ``used_of_remaining``."""
    found = number(value)
    return found if found is not None and found <= MOST_USED_PCT else None


def used_of_fraction(value: Any) -> float | None:
    """Turn a used share of 0 to 1 into percent; it may go a little beyond 1."""
    found = number(value)
    return None if found is None else used_percent(round(found * 100, 6))


def used_of_remaining(value: Any) -> float | None:
    """Turn a percentage that is LEFT, 0 to 100, into the used one; less than nothing left is no number."""
    found = number(value)
    return None if found is None or found > 100 else round(100.0 - found, 6)


def used_of_share(used: Any, cap: Any) -> float | None:
    """Turn an amount that is used of ``cap`` into percent; a cap of 0 is no signal, neither empty nor full."""
    part, whole = number(used), number(cap)
    if part is None or not whole:
        return None
    return used_percent(round(part / whole * 100, 6)) if part / whole < MOST_USED_PCT else None


def moment(value: Any, *, zone: tzinfo | None = None) -> datetime | None:
    """Read Unix seconds, Unix milliseconds or an ISO-8601 time as a UTC time of this century.

    ``zone`` is that of a vendor who writes times without an offset; without one such a time is None.
    """
    epoch = number(value)
    try:
        if epoch is not None:
            found = datetime.fromtimestamp(epoch / 1000 if epoch >= MILLISECONDS_FROM else epoch, UTC)
        elif isinstance(value, str) and len(value) <= _LONGEST_TEXT:
            stated = datetime.fromisoformat(value.strip())
            if stated.tzinfo is None and zone is None:
                return None
            found = (stated if stated.tzinfo else stated.replace(tzinfo=zone)).astimezone(UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return found if _EARLIEST <= found < _LATEST else None


def moment_after(seconds: Any, since: datetime) -> datetime | None:
    """Return the time that lies ``seconds`` after ``since``, for a vendor who tells what is left of a window."""
    length = duration(seconds)
    return None if length is None else since + length


def duration(seconds: Any) -> timedelta | None:
    """Return a duration of more than nothing and at most ten years."""
    found = number(seconds)
    return timedelta(seconds=found) if found is not None and 1e-3 <= found <= _LONGEST_WINDOW_SEC else None


def kind_of_length(length: timedelta) -> WindowKind:
    """Classify a window by its length, never by its place in an answer."""
    return next((kind for kind, longest in _UP_TO if length <= longest), "monthly")


def window(
    kind: WindowKind,
    used_pct: float | None,
    resets_at: datetime | None,
    *,
    captured_at: datetime,
    now: datetime,
    length: timedelta | None = None,
    scope: str | None = None,
) -> Window | None:
    """Build a window as its vendor told it at ``captured_at``; None for one that says nothing about ``now``.

    That is a window without a number, one whose reset has passed, and one without a reset whose length has passed since. A
    reset further off than the window is long can't be its reset: the number stays and the reset is unknown. A length of less
    than an hour is an artefact and no length.
    """
    if length is not None and length < MIN_WINDOW_LENGTH:
        length = None
    lasts = length or WINDOW_LENGTHS.get(kind, LONGEST_MONTH)
    if used_pct is None or (resets_at is not None and resets_at <= now):
        return None
    if resets_at is not None and resets_at - captured_at > lasts + _RESET_SLACK:
        resets_at = None
    if resets_at is None and captured_at + lasts <= now:
        return None
    return Window(
        kind,
        used_pct,
        resets_at,
        source="live",
        captured_at=captured_at,
        length=length,
        reset_source=None if resets_at is None else "provider",
        scope=scope,
    )


def one_of_each(windows: Iterable[Window | None]) -> tuple[Window, ...]:
    """Keep one window of each kind and scope, the worse one where an answer holds two: that one is hit first."""
    kept: dict[tuple[WindowKind, str | None], Window] = {}
    for found in windows:
        if found is None:
            continue
        key = (found.kind, found.scope.casefold() if found.scope else None)
        if key not in kept or _badness(found) > _badness(kept[key]):
            kept[key] = found
    return tuple(kept.values())


def _badness(found: Window) -> tuple[float, bool, datetime]:
    return found.used_pct or 0.0, found.resets_at is None, found.resets_at or _EARLIEST
