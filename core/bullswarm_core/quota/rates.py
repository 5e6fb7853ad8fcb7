"""How much of a window one minute of a worker's time spends, learned from readings and the work between them.

Everything here is pure. A rate is percent of the window per worker-minute (two workers for a minute are two worker-minutes),
with the way in which it was learned and the number of samples.
Rule: docs/design/quota.md, "Rates".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.pools.model import Rate, RateSource, Window, WindowKind
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.reconcile import CLOSE, LARGEST_RISE_PCT, ROUNDING_PCT
from bullswarm_core.quota.windows import starts_at

MIN_RATE_PAIRS = 2
MIN_RATE_MINUTES = 5.0
"""Worker-minutes before there is a rate: quota that somebody else spent in the seconds of a short attempt made 260 % a
minute.
"""
MAX_PCT_PER_MINUTE = 100.0 / MIN_RATE_MINUTES
"""A rate above this says that one worker empties a whole window in less than what it takes to measure one: somebody else
spent it.
"""
LONGEST_UNSEEN = timedelta(hours=12)
"""An attempt whose keeper died was at work for no longer than this (the ledger's limit), however late it was found."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MILLISECONDS_PER_MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class Work:
    """One attempt's time on a pool; ``measured`` False: it was at work for some of that time, and nobody knows how much."""

    started_at: datetime
    ended_at: datetime
    measured: bool = True


def attempt_work(
    started_at: datetime | None, ended_at: datetime | None, *, recorded_at: datetime, wall_sec: float | None
) -> Work | None:
    """Return the work of a finished attempt by what the decision log has of it; None where it did none.

    A clock that jumped, or a machine that slept, makes the two times differ by more than the worker's own clock says: the
    shorter one counts. Without ``wall_sec`` (its keeper died) the time is not measured.
    """
    if wall_sec is None:
        if started_at is None:
            return None
        until = min(ended_at or recorded_at, started_at + LONGEST_UNSEEN)
        return Work(started_at, until, measured=False) if until > started_at else None
    wall = timedelta(seconds=min(max(0.0, wall_sec), 366 * 86400.0))
    begun = started_at or recorded_at - wall
    until = begun + wall if ended_at is None else min(ended_at, begun + wall)
    return Work(begun, until) if until > begun else None


class WorkerTime:
    """The worker-minutes of one pool between any two moments, by the work that was done on it."""

    __slots__ = ("_begun", "_ended", "_unknown")

    def __init__(self, work: Iterable[Work]) -> None:
        done = list(work)
        self._begun = _Passed([_milliseconds(item.started_at) for item in done if item.measured])
        self._ended = _Passed([_milliseconds(item.ended_at) for item in done if item.measured])
        self._unknown = [(item.started_at, item.ended_at) for item in done if not item.measured]

    def minutes(self, begin: datetime, end: datetime) -> float | None:
        """Return the worker-minutes in [``begin``, ``end``], 0 or more; None where some work in it was not measured."""
        if any(started < end and ended > begin for started, ended in self._unknown):
            return None
        return max(0, self._until(_milliseconds(end)) - self._until(_milliseconds(begin))) / _MILLISECONDS_PER_MINUTE

    def _until(self, moment: int) -> int:
        return self._begun.before(moment) - self._ended.before(moment)


class _Passed:
    """Sums up how long ago each of many moments was; in whole milliseconds, so that nothing is lost in the sums."""

    __slots__ = ("_moments", "_sums")

    def __init__(self, moments: list[int]) -> None:
        self._moments = sorted(moments)
        self._sums = [0, *accumulate(self._moments)]

    def before(self, moment: int) -> int:
        count = bisect_left(self._moments, moment)
        return count * moment - self._sums[count]


def fitted_rates(observations: Iterable[Observation], time: WorkerTime) -> dict[WindowKind, Rate]:
    """Return the rate of each window of an account; one that can't be measured is missing, never 0.

    Fitted from consecutive readings, else from the newest reading and all the work since its window opened. Windows of a
    single model are left out: the work on the account is not the work on that model.
    """
    series = measurements(observations)
    rates = {kind: history_rate(series[kind], time) or bootstrap_rate(series[kind], time) for kind in series}
    return {kind: rate for kind, rate in rates.items() if rate is not None}


def history_rate(readings: Sequence[Window], time: WorkerTime) -> Rate | None:
    """Return the rate between consecutive ``readings`` of one window kind, oldest first, each with its capture time.

    A pair counts when both are of the same window (one reset), the use did not fall and a worker was at it in between.
    There must be 2 such pairs, with 5 worker-minutes and some use between them.
    """
    pairs, spent, worked = 0, 0.0, 0.0
    for earlier, later in pairwise(_filling(readings)):
        if not in_one_window(earlier, later) or _used(later) < _used(earlier):
            continue
        minutes = time.minutes(_taken(earlier), _taken(later))
        if minutes:
            pairs, spent, worked = pairs + 1, spent + _used(later) - _used(earlier), worked + minutes
    return _rate(spent, worked, "history", pairs) if pairs >= MIN_RATE_PAIRS else None


def _filling(readings: Sequence[Window]) -> list[Window]:
    """Leave out readings that are a rounding below the one before: a window only fills.

    Of two sources by turns, one in whole percents, every rise back would count and no fall.
    """
    kept: list[Window] = []
    for reading in readings:
        if not kept or not in_one_window(kept[-1], reading) or not 0 < _used(kept[-1]) - _used(reading) <= ROUNDING_PCT:
            kept.append(reading)
    return kept


def bootstrap_rate(readings: Sequence[Window], time: WorkerTime) -> Rate | None:
    """Return the newest reading's use over the worker-minutes since its window opened; needs a reset of the provider's."""
    if not readings or readings[-1].reset_source == "declared" or not _used(readings[-1]):
        return None
    opened = starts_at(readings[-1])
    minutes = None if opened is None else time.minutes(opened, _taken(readings[-1]))
    return _rate(_used(readings[-1]), minutes or 0.0, "bootstrap", 1)


def _rate(spent: float, minutes: float, source: RateSource, samples: int) -> Rate | None:
    """A rate that can be believed. No rise is no measurement: most providers tell whole percents."""
    if minutes < MIN_RATE_MINUTES or spent <= 0:
        return None
    per_minute = spent / minutes
    return Rate(per_minute, source, samples) if per_minute <= MAX_PCT_PER_MINUTE else None


def measurements(observations: Iterable[Observation]) -> dict[WindowKind, list[Window]]:
    """Return the measurements of each kind, oldest first, each with its capture time; of two of one time the more used one.

    Left out are windows of a single model and what was declared, refused or contradicted by another reading.
    """
    found: dict[WindowKind, dict[datetime, Window]] = {}
    for observation in observations:
        for window in observation.windows:
            if not _is_measurement(window):
                continue
            taken = window.captured_at or observation.captured_at
            of_kind = found.setdefault(window.kind, {})
            other = of_kind.get(taken)
            if other is None or _used(window) > _used(other):
                of_kind[taken] = window if window.captured_at else replace(window, captured_at=taken)
    return {kind: _settled([of_kind[taken] for taken in sorted(of_kind)]) for kind, of_kind in found.items()}


def _settled(readings: list[Window]) -> list[Window]:
    """Leave out the readings that contradict the next one or the one before: which of the two is right nobody knows."""
    doubtful = {
        place + side
        for place, (earlier, later) in enumerate(pairwise(readings))
        if _taken(later) - _taken(earlier) <= CLOSE
        and in_one_window(earlier, later)
        and not -ROUNDING_PCT <= _used(later) - _used(earlier) <= LARGEST_RISE_PCT
        for side in (0, 1)
    }
    return [reading for place, reading in enumerate(readings) if place not in doubtful] if doubtful else readings


def _is_measurement(window: Window) -> bool:
    """Whether a meter showed this of the account: not what was declared, refused or contradicted by another reading."""
    return (
        window.used_pct is not None
        and window.scope is None
        and window.source not in ("declared", "refusal")
        and not window.unstable
    )


def in_one_window(earlier: Window, later: Window) -> bool:
    """Tell whether two readings of one kind are of the same window: their resets agree, or neither has one."""
    if earlier.resets_at is None or later.resets_at is None:
        return earlier.resets_at is later.resets_at
    return abs(earlier.resets_at - later.resets_at) <= CLOSE


def _used(window: Window) -> float:
    return window.used_pct or 0.0


def _taken(window: Window) -> datetime:
    return window.captured_at or _EPOCH


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND
