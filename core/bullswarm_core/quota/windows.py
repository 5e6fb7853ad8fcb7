"""Window arithmetic: how much of a quota window is over, what is left, and whether it is spent.

Everything here is a function of a Window and a clock that is passed in; nothing reads a file. Percentages are
0..100 with one decimal unless said otherwise, times are aware datetimes, minutes are floats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bullswarm_core.pools.model import DEFAULT_MODEL, Window, WindowKind, _name_parts

BURST_BLOCK_PCT = 100.0
"""A reading at or above this is a spent window (90 was tried and blocked pools that could
still work).
"""

MINUTE = timedelta(minutes=1)
WINDOW_LENGTHS: Mapping[WindowKind, timedelta] = {
    "5h": timedelta(minutes=300),
    "daily": timedelta(hours=24),
    "weekly": timedelta(days=7),
}
_LENGTHS_IN_MINUTES: Mapping[WindowKind, float] = {kind: length / MINUTE for kind, length in WINDOW_LENGTHS.items()}
MIN_WINDOW_LENGTH = timedelta(hours=1)
"""Shortest length that is believed: a shorter one, stated by a provider, is an artefact and would make every
elapsed% jump.
"""

LONGEST_MONTH = timedelta(days=31)

PACING_KINDS: tuple[WindowKind, ...] = ("weekly", "monthly")

Readings = Mapping[tuple[WindowKind, str | None], Window]
"""The reading in force of each (kind, model scope)."""

CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far a provider's clock and ours may differ, with the time that a reading takes, before a difference means
something.
"""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_NO_FRACTIONS = 1.5 * 2.0**52
"""Beside a number of this size there is no room for a fraction."""
_CLEAR = 0.499
"""So far from a whole number at most is not at a tie, whatever a multiplication by ten was off by below _MANY."""
_MANY = 1e9


def one_decimal(value: float) -> float:
    """Round ``value`` to one decimal; minus zero becomes zero, so that it is never shown as ``-0``.

    As ``round`` does, which writes the number out and reads it back: that was an eighth of a pick among many pools. Tenths
    are rounded by adding a number beside which no fraction has room; near a tie the digits decide, as ever.
    """
    tenths = value * 10.0
    whole = tenths + _NO_FRACTIONS - _NO_FRACTIONS
    if -_CLEAR < tenths - whole < _CLEAR and -_MANY < whole < _MANY:
        return whole / 10.0
    return round(value, 1) + 0.0


def month_before(moment: datetime) -> datetime:
    """The same day of the UTC calendar month before ``moment``, the day clamped to that month's length."""
    moment = moment.astimezone(UTC)
    last_of_previous = moment.replace(day=1) - timedelta(days=1)
    return last_of_previous.replace(day=min(moment.day, last_of_previous.day))


def length_of(window: Window) -> timedelta | None:
    """How long the window lasts: as the provider stated it, else by its kind; None for a month without a known reset.

    A monthly window is the UTC calendar month that ends at its reset.
    """
    if window.length is not None:
        return max(window.length, MIN_WINDOW_LENGTH)
    if window.kind != "monthly":
        return WINDOW_LENGTHS[window.kind]
    if window.resets_at is None:
        return None
    try:
        return window.resets_at - month_before(window.resets_at)
    except OverflowError:
        return None


def starts_at(window: Window) -> datetime | None:
    """When the window opened, or None when its reset is unknown or is none: one of the first days of the calendar (year 1)."""
    length = length_of(window)
    try:
        return None if window.resets_at is None or length is None else window.resets_at - length
    except OverflowError:
        return None


def is_unanchored(window: Window) -> bool:
    """Whether the window has not begun: nothing is used, and its reset lies one whole length after the reading.

    A provider that opens a window with the first use dates an unused one anew at every reading,
    so that its reset means nothing: it is not about to expire however old the reading, and no share of it is over.
    """
    if window.used_pct or window.resets_at is None or window.captured_at is None:
        return False
    ahead = window.resets_at - window.captured_at
    length = length_of(window) if ahead > timedelta(0) else None
    return length is not None and abs(ahead - length) <= CLOCK_TOLERANCE


def is_current(window: Window, now: datetime) -> bool:
    """Whether the window is still the one that was read: its reset is ahead of ``now``.

    One whose reset is unknown is over at the latest when its whole length has passed since the reading (31 days for a
    month): a full one that nobody can read again would else keep its pool out for ever.
    """
    if window.resets_at is not None:
        return window.resets_at > now
    if window.captured_at is None:
        return True
    return now - window.captured_at < (length_of(window) or LONGEST_MONTH)


def is_reading(window: Window, now: datetime) -> bool:
    """Whether the window holds a number that may be used now.

    A reading whose reset has passed is no reading at all. A refusal marker is a made-up 100 %; it
    counts only with a reset that the provider named or an earlier reading measured (a guessed one shut pools out
    for weeks).
    """
    if window.used_pct is None or not is_current(window, now):
        return False
    if window.source == "refusal":
        return window.resets_at is not None and window.reset_source in ("named", "measured")
    return True


def readings(windows: Iterable[Window], now: datetime) -> Readings:
    """The reading in force of each (kind, scope): the newest one, so that a later reading replaces an earlier one.

    A reading from the future was stamped by a clock that was wrong; any other one replaces it. Of readings that were
    taken together (two limits of one kind), or that contradict each other unsettled, the worst one is in force.
    """
    found: dict[tuple[WindowKind, str | None], Window] = {}
    rivals: dict[tuple[WindowKind, str | None], list[Window]] = {}
    for window in windows:
        if not is_reading(window, now):
            continue
        key = (window.kind, window.scope)
        if key in found:
            rivals.setdefault(key, [found[key]]).append(window)
        else:
            found[key] = window
    for key, several in rivals.items():
        found[key] = _in_force(several, now)
    return found


def _in_force(several: list[Window], now: datetime) -> Window:
    latest = max(_taken(window, now) for window in several)
    together = [window for window in several if _taken(window, now) == latest]
    if any(window.unstable for window in together):
        together = [window for window in several if window.unstable or window in together]
    return max(together, key=_badness)


def _taken(window: Window, now: datetime) -> datetime:
    captured_at = window.captured_at
    return _LONG_AGO if captured_at is None or captured_at - now > CLOCK_TOLERANCE else captured_at


def _badness(window: Window) -> tuple[object, ...]:
    """What makes one of several readings the worst: a full one, then one that is known to end, then the most used."""
    used = window.used_pct or 0.0
    return (
        used >= BURST_BLOCK_PCT,
        window.resets_at is not None,
        min(used, BURST_BLOCK_PCT),
        window.resets_at or _LONG_AGO,
        used,
        window.captured_at or _LONG_AGO,
        window.length or timedelta(0),
        window.source,
        window.reset_source or "",
        window.unstable,
    )


def minutes_left(window: Window, now: datetime) -> float | None:
    """Minutes until the reset, more than 0; None when the reset is unknown, has passed or is not fixed yet."""
    resets_at = window.resets_at
    if resets_at is None or resets_at <= now or (not window.used_pct and is_unanchored(window)):
        return None
    return (resets_at - now) / MINUTE


def elapsed_pct(window: Window, now: datetime) -> float | None:
    """Share of the window that is over, 0..100; None when its reset is unknown, has passed or is not fixed yet."""
    return elapsed_with(window, minutes_left(window, now))


def elapsed_with(window: Window, left: float | None) -> float | None:
    """Share of the window that is over when so many minutes are left of it (see ``minutes_left``)."""
    if left is None:
        return None
    length = _LENGTHS_IN_MINUTES.get(window.kind) if window.length is None else None
    if length is None:
        whole = length_of(window)
        if whole is None:
            return None
        length = whole / MINUTE
    share = 100.0 - left * 100 / length
    return 100.0 if share > 100.0 else one_decimal(share) if share > 0.0 else 0.0


def gates_model(window: Window, model: str | None) -> bool:
    """Whether the window concerns work on ``model``, None for the CLI's default one; a scope names a model, or a whole
    part of its name (``opus``).
    """
    if window.scope is None:
        return True
    scope, name = window.scope.casefold(), (model or DEFAULT_MODEL).casefold()
    return scope == name or scope in _name_parts(name)


def spent(window: Window, now: datetime, *, model: str | None = None) -> bool:
    """Whether the window is used up, so that no work on ``model`` may start: the one rule that every gate reads.

    Spent is a READ window at 100 % or more whose reset is ahead, or unknown (then it counts until the next reading). A
    declared figure never counts; a window with a model scope counts only for rungs of that model.
    """
    return (
        window.used_pct is not None
        and window.used_pct >= BURST_BLOCK_PCT
        and window.source != "declared"
        and is_reading(window, now)
        and gates_model(window, model)
    )


def spent_window(windows: Iterable[Window], now: datetime, *, model: str | None = None) -> Window | None:
    """The spent window that keeps the pool out longest, or None; an unknown reset outlasts any known one."""
    full = [window for window in windows if window.used_pct is not None and window.used_pct >= BURST_BLOCK_PCT]
    if not full:  # asked of every pool, and so of most for nothing
        return None
    return max([window for window in full if spent(window, now, model=model)], key=_lasts, default=None)


def _lasts(window: Window) -> tuple[bool, datetime, int]:
    rank = ("5h", "daily", "weekly", "monthly").index(window.kind)
    return (window.resets_at is None, window.resets_at or _LONG_AGO, rank)


def pacing_window(current: Readings, preferred: WindowKind | None = None) -> Window | None:
    """The window that paces the pool: ``preferred`` if it was read, else weekly, else monthly; never a protecting one.

    It is the connector's or the operator's choice; if the provider did not report that one, the other paces.
    """
    order = (preferred, *PACING_KINDS) if preferred in PACING_KINDS else PACING_KINDS
    for kind in order:
        if kind is not None and (window := current.get((kind, None))):
            return window
    return None


def number_or_none(value: Any) -> float | None:
    """Return a finite number of 0 or more, else None: a missing number stays missing and never becomes 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
