"""The person's own use of an account: what its meter rose by beyond what the recorded work burnt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools.model import Lane, Window
from bullswarm_core.quota.rates import Work, WorkerTime
from bullswarm_core.quota.reconcile import ROUNDING_PCT
from bullswarm_core.quota.windows import MINUTE, starts_at
from bullswarm_simulation.recorded_quota import WindowRecord, used_of, window_runs
from bullswarm_simulation.world import FULL_PCT, OwnUse

_NOTHING = 1e-6
"""Percent; what differs by less comes of the order in which numbers are summed."""

Level = tuple[datetime, float]


@dataclass(frozen=True, slots=True)
class UseRecord:
    """What a window was filled with beyond the work: a ``pct`` above 0 evenly between two moments."""

    begins: datetime
    ends: datetime
    pct: float


def own_use(
    records: Sequence[WindowRecord], work: Iterable[Work], *, begins: datetime, until: datetime, lane: Lane
) -> tuple[OwnUse, ...]:
    """Return the person's own use from ``begins`` to ``until``, as workers on ``lane`` who would burn as much.

    Each window shows a part of it (what came between the last reading and a reset is never seen), so that the one counts
    that shows most.
    """
    time = WorkerTime(work)
    seen = [_as_workers(record, uses_beyond(record, time), begins, until, lane) for record in records]
    return max(seen, key=worker_minutes, default=())


def worker_minutes(uses: Iterable[OwnUse]) -> float:
    """Return how long one worker would burn as much."""
    return sum(use.workers * (use.ends - use.begins) for use in uses)


def uses_beyond(record: WindowRecord, time: WorkerTime) -> list[UseRecord]:
    """Return what the readings of a window rose by beyond the work in ``time``, oldest first, never overlapping."""
    found: list[UseRecord] = []
    for run, levels in _levels_of_runs(record, time):
        if levels[-1][1] - levels[0][1] <= (ROUNDING_PCT if _in_whole_percents(run) else _NOTHING):
            continue
        found += [
            UseRecord(earlier, later, above - below)
            for (earlier, below), (later, above) in pairwise(levels)
            if above - below > _NOTHING and later > earlier
        ]
    return found


def used_at(record: WindowRecord, time: WorkerTime, moment: datetime) -> float:
    """Return how full the window that ran at ``moment`` was, 0 to 100, by its readings and the work in it."""
    runs = _levels_of_runs(record, time)
    begun = [(run, levels) for run, levels in runs if levels[0][0] <= moment] or runs[:1]
    run, levels = begun[-1]
    opened, resets = starts_at(run[0]), run[-1].resets_at
    if (resets is not None and resets <= moment) or (opened is not None and opened > moment):
        return 0.0
    worked = time.minutes(levels[0][0], moment) if moment > levels[0][0] else 0.0
    return min(FULL_PCT, max(0.0, _at(levels, moment) + record.burn * (worked or 0.0)))


def rising(values: Sequence[float]) -> list[float]:
    """Return the nearest numbers that never fall (least squares, by pooling neighbours that do).

    Why: a meter tells whole percents, so that single steps beyond the work are mostly rounding, and their sum is not.
    """
    blocks: list[tuple[float, int]] = []
    for value in values:
        total, count = value, 1
        while blocks and blocks[-1][0] * count >= total * blocks[-1][1]:
            earlier, number = blocks.pop()
            total, count = total + earlier, count + number
        blocks.append((total, count))
    return [total / count for total, count in blocks for _ in range(count)]


def _levels_of_runs(record: WindowRecord, time: WorkerTime) -> list[tuple[list[Window], list[Level]]]:
    """For each window what it held beyond the work since it opened, at its opening and at each reading."""
    found: list[tuple[list[Window], list[Level]]] = []
    before: datetime | None = None
    for run in window_runs(record.readings):
        opened = _opened(run, before)
        start = _taken(run[0]) if opened is None else opened
        beyond = [used_of(item) - record.burn * (time.minutes(start, _taken(item)) or 0.0) for item in run]
        levels = [(_taken(item), max(0.0, level)) for item, level in zip(run, rising(beyond), strict=True)]
        found.append((run, levels if opened is None else [(opened, 0.0), *levels]))
        before = levels[-1][0]
    return found


def _opened(run: Sequence[Window], before: datetime | None) -> datetime | None:
    """When the window opened, after the last reading ``before`` it; None where neither is known."""
    opened = starts_at(run[0])
    if opened is None or opened > _taken(run[0]) or (before is not None and opened < before):
        return before
    return opened


def _at(levels: Sequence[Level], moment: datetime) -> float:
    for (earlier, below), (later, above) in pairwise(levels):
        if earlier <= moment < later:
            return below + (above - below) * ((moment - earlier) / (later - earlier))
    return levels[0][1] if moment < levels[0][0] else levels[-1][1]


def _as_workers(
    record: WindowRecord, uses: Iterable[UseRecord], begins: datetime, until: datetime, lane: Lane
) -> tuple[OwnUse, ...]:
    """Cut what lies outside of the time off; a part of a use is as dense as the whole."""
    found: list[OwnUse] = []
    for use in uses:
        workers = use.pct / record.burn / ((use.ends - use.begins) / MINUTE)
        first, last = max(use.begins, begins), min(use.ends, until)
        if first < last and workers > 0:
            found.append(OwnUse((first - begins) / MINUTE, (last - begins) / MINUTE, lane, workers))
    return tuple(found)


def _in_whole_percents(run: Iterable[Window]) -> bool:
    return all(used_of(reading).is_integer() for reading in run)


def _taken(window: Window) -> datetime:
    assert window.captured_at is not None, "a measurement has its capture time"
    return window.captured_at
