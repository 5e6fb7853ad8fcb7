"""What is known of a pool's windows after another source told something: pure, window by window.

A source that tells one window says nothing about the others, so each keeps the time at which it was read. Of two readings of
one window the newer counts, unless they contradict each other
(docs/design/quota.md, "Two sources, one window").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from bullswarm_core._dataclasses import replace
from bullswarm_core.pools.model import Window, WindowKind
from bullswarm_core.quota.holds import CLOCK_TOLERANCE, STALE
from bullswarm_core.quota.reading import Refusal
from bullswarm_core.quota.windows import is_unanchored

CLOSE = timedelta(seconds=120)
"""Two readings this near to each other should tell the same, and two resets this near are one reset, told with jitter."""
ROUNDING_PCT = 1.0
"""Some sources round to whole percents: a fall of this much is none."""
LARGEST_RISE_PCT = 25.0
"""More than this in two minutes is no work but a contradiction: it would fill a 5-hour window in eight."""

OUTLASTS = timedelta(minutes=5)
"""A reading this soon after a refusal may not know of it yet (seen: refused at 70 % shown); a later one refutes it."""
NEXT = timedelta(hours=1)
"""A reset this much later than the one that was refused until belongs to the next window; notices name some to the hour."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_Key = tuple[WindowKind, str | None]


def normal_reset(moment: datetime | None) -> datetime | None:
    """Round a reset to the whole second: vendors tell one reset as 04:59:59.94 and as 05:00:00."""
    if moment is None:
        return None
    try:
        return (moment + timedelta(microseconds=500_000)).replace(microsecond=0)
    except OverflowError:
        return moment.replace(microsecond=0)


def merged(
    known: Iterable[Window],
    told: Iterable[Window],
    *,
    now: datetime,
    whole: bool = False,
    told_before: datetime | None = None,
) -> tuple[Window, ...]:
    """Return the windows of a reading after ``told`` was read; each told window has its capture time.

    Two windows of one kind and scope, both unstable, are two readings that contradict each other. ``whole`` says that the
    source tells every window of the account: one without a reset that it no longer tells is kept for an hour only, and one
    with a reset until the second answer without it, when ``told_before`` is the time of the first: the vendor has closed it
    early. Refusal markers are not windows of a reading and are left out.
    """
    groups: dict[_Key, list[Window]] = {}
    for window in known:
        if window.source != "refusal":
            groups.setdefault((window.kind, window.scope), []).append(window)
    just_told = _worst_at_once(told)
    for window in sorted(just_told, key=lambda one: _taken(one, now)):
        key = (window.kind, window.scope)
        groups[key] = _with_one(groups.get(key, []), window, now)
    new = {(window.kind, window.scope) for window in just_told}
    left = (
        [
            window
            for window in windows
            if key in new or not whole or not _is_closed(window, told_before, now)
            if _still_stands(window, now, needed=not whole or key in new)
        ]
        for key, windows in groups.items()
    )
    return tuple(window for windows in left for window in _settled_if_alone(windows))


def _settled_if_alone(windows: list[Window]) -> list[Window]:
    """Of two readings that contradicted each other one may have ended: the other then stands against nothing."""
    return [replace(window, unstable=False) for window in windows] if len(windows) == 1 else windows


def _worst_at_once(told: Iterable[Window]) -> list[Window]:
    """Of two limits of one kind that one answer tells, the one that is used more is the one that stops work."""
    found: dict[tuple[_Key, datetime | None], Window] = {}
    for window in told:
        if window.source == "refusal":
            continue
        key = ((window.kind, window.scope), window.captured_at)
        other = found.get(key)
        if other is None or (window.used_pct or 0.0) > (other.used_pct or 0.0):
            found[key] = replace(window, resets_at=normal_reset(window.resets_at), unstable=False)
    return list(found.values())


def _still_stands(window: Window, now: datetime, *, needed: bool) -> bool:
    if window.resets_at is not None:
        return window.resets_at > now
    return needed or now - _taken(window, now) <= STALE


def _is_closed(window: Window, told_before: datetime | None, now: datetime) -> bool:
    """Tell whether an earlier answer, too, left the window out, long enough ago to be another witness."""
    if told_before is None or window.source == "declared" or now - told_before < CLOSE:
        return False
    return _taken(window, now) < told_before


def _taken(window: Window, now: datetime) -> datetime:
    """Return when the window was read; what a wrong clock stamped in the future is older than all else."""
    captured_at = window.captured_at
    return _LONG_AGO if captured_at is None or captured_at - now > CLOCK_TOLERANCE else captured_at


def _with_one(known: Sequence[Window], new: Window, now: datetime) -> list[Window]:
    if not known:
        return [new]
    if len(known) > 1 and any(_is_one_reading(one, new) for one in known):
        return list(known)  # read once more, and no second witness
    last = max(known, key=lambda one: _taken(one, now))
    earlier, later = (last, new) if _taken(last, now) <= _taken(new, now) else (new, last)
    if earlier is new and (new.used_pct is None or len(known) > 1):
        return list(known)
    later = _filled(earlier, later)
    if later.used_pct is None or earlier.used_pct is None or _had_ended(earlier, later):
        return [later]
    if len(known) > 1:
        return [later] if _is_one_window(earlier, later) and _agree(earlier, later) else _pair(known, later)
    if _agree(earlier, later) or not _contradict(earlier, later, apart=_taken(later, now) - _taken(earlier, now)):
        return [later]
    return _pair([earlier], later)


def _had_ended(earlier: Window, later: Window) -> bool:
    """Tell whether the window of the earlier reading was over when the later one was taken."""
    if earlier.resets_at is None or later.captured_at is None:
        return False
    return earlier.resets_at <= later.captured_at


def _contradict(earlier: Window, later: Window, *, apart: timedelta) -> bool:
    """Tell whether two numbers that don't follow from each other need a third reading.

    One state of an account that flips between two has more used and the earlier reset. A reset that the vendor
    grants early looks the same at first, and two readings that agree are proof enough.
    """
    if _same_reset(earlier, later):
        return apart <= CLOSE
    if earlier.resets_at is None or later.resets_at is None:
        return False
    fallen = (earlier.used_pct or 0.0) - (later.used_pct or 0.0) > ROUNDING_PCT
    return fallen and later.resets_at > earlier.resets_at and apart <= STALE


def _is_one_window(earlier: Window, later: Window) -> bool:
    """Tell whether two readings are of one window; one that has not begun is dated anew at each."""
    return _same_reset(earlier, later) or (is_unanchored(earlier) and is_unanchored(later))


def _filled(earlier: Window, later: Window) -> Window:
    """Take from the earlier reading what the later one doesn't tell of the same window."""
    if later.used_pct is None and _same_reset(earlier, later):
        # Nothing was told of the use: what is known of it stays as old as it is.
        return replace(earlier, resets_at=later.resets_at or earlier.resets_at)
    if later.resets_at is None and earlier.used_pct is not None and later.used_pct is not None:
        dated = earlier.resets_at is not None and later.captured_at is not None
        if dated and not _had_ended(earlier, later) and later.used_pct >= earlier.used_pct - ROUNDING_PCT:
            return replace(later, resets_at=earlier.resets_at, reset_source=earlier.reset_source)
    return later


def _same_reset(one: Window, other: Window) -> bool:
    if one.resets_at is None or other.resets_at is None:
        return one.resets_at is other.resets_at or one.used_pct is None or other.used_pct is None
    return abs(one.resets_at - other.resets_at) <= CLOSE


def _agree(earlier: Window, later: Window) -> bool:
    """Tell whether the later number can follow the earlier one: a window only fills, and not in a moment."""
    rise = (later.used_pct or 0.0) - (earlier.used_pct or 0.0)
    return -ROUNDING_PCT <= rise <= LARGEST_RISE_PCT


def _is_one_reading(one: Window, other: Window) -> bool:
    return one.captured_at == other.captured_at and one.used_pct == other.used_pct


def _pair(known: Sequence[Window], later: Window) -> list[Window]:
    worst = max(known, key=lambda one: one.used_pct or 0.0)
    return [replace(worst, unstable=True), replace(later, unstable=True)]


def refusal_left(
    refusal: Refusal | None, told: Iterable[Window], *, now: datetime, whole: bool = False
) -> Refusal | None:
    """Return the refusal marker that is left after ``told`` was read, or None.

    It goes with its reset, and with a later reading of its window; one of an account's own windows goes with any later reading
    of the ``whole`` account. Later is 5 minutes after the refusal, or any time after it where the reading tells of the next
    window or itself shows this one as full.
    """
    if refusal is None or (refusal.resets_at is not None and refusal.resets_at <= now):
        return None
    for window in told:
        if window.used_pct is None or window.scope != refusal.scope or window.source == "refusal":
            continue
        if (window.kind == refusal.kind or (whole and refusal.scope is None)) and _refutes(window, refusal, now):
            return None
    return refusal


def _refutes(window: Window, refusal: Refusal, now: datetime) -> bool:
    taken, refused = _taken(window, now), refusal.captured_at
    if refused - now > CLOCK_TOLERANCE or taken - refused >= OUTLASTS:
        return True
    if taken <= refused or window.kind != refusal.kind or window.resets_at is None:
        return False
    is_next = refusal.resets_at is not None and window.resets_at - refusal.resets_at > NEXT
    return is_next or (window.used_pct or 0.0) >= 100.0
