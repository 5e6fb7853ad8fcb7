"""The windows of an account as its recorded readings tell them: length, phase, what a minute of work burns, what expired."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.pools.model import WINDOW_KINDS, Rate, Window, WindowKind
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.rates import in_one_window, measurements
from bullswarm_core.quota.reconcile import ROUNDING_PCT
from bullswarm_core.quota.windows import CLOCK_TOLERANCE, MINUTE, is_unanchored, length_of, starts_at

MIN_RISE_PCT = 2 * ROUNDING_PCT
"""Two windows are compared by what both rose by; of less than this rounding is the greater part."""
MOST_RESETS = 200
"""Resets of which the commonest phase is sought, the newest ones: of a 5-hour window those of six weeks."""

Series = Mapping[WindowKind, Sequence[Window]]
WindowFate = Literal["played", "compared", "no-rate", "no-reset"]
"""``compared``: its rate is that of another window times what the two rose by. The last two are not played."""


@dataclass(frozen=True, slots=True)
class WindowRecord:
    """One window as it is played: percent burnt per worker-minute, its length, and one of its resets."""

    kind: WindowKind
    burn: float
    length: timedelta
    resets_at: datetime
    readings: tuple[Window, ...]
    compared_with: WindowKind | None = None

    @property
    def minutes(self) -> float:
        """Its length in minutes."""
        return self.length / MINUTE

    def first_reset(self, begins: datetime) -> float:
        """Minutes from ``begins`` to the next reset, above 0 and at most the window's length."""
        ahead = ((self.resets_at - begins) / MINUTE) % self.minutes
        return ahead if ahead > 0 else self.minutes


@dataclass(frozen=True, slots=True)
class WindowRecords:
    """The windows of an account that can be played, longest last, and what became of each kind that was read."""

    windows: tuple[WindowRecord, ...] = ()
    fates: Mapping[WindowKind, WindowFate] = field(default_factory=dict)


def window_records(observations: Iterable[Observation], rates: Mapping[WindowKind, Rate]) -> WindowRecords:
    """Return what readings and learned ``rates`` tell of an account's windows.

    A window without a rate of its own takes it from one that has one, by what both rose by between the same readings.
    """
    series = measurements(observations)
    found: list[WindowRecord] = []
    fates: dict[WindowKind, WindowFate] = {}
    for kind in (kind for kind in WINDOW_KINDS if kind in series):
        burn, source = _burn(kind, series, rates)
        dated = [window for window in series[kind] if window.resets_at is not None]
        if burn is None:
            fates[kind] = "no-rate"
        elif not dated or (length := length_of(dated[-1])) is None:
            fates[kind] = "no-reset"
        else:
            fates[kind] = "compared" if source else "played"
            found.append(WindowRecord(kind, burn, length, _phase(dated, length), tuple(series[kind]), source))
    return WindowRecords(tuple(sorted(found, key=lambda record: record.length)), fates)


def _burn(kind: WindowKind, series: Series, rates: Mapping[WindowKind, Rate]) -> tuple[float | None, WindowKind | None]:
    own = rates.get(kind)
    if own is not None and own.pct_per_minute > 0:
        return own.pct_per_minute, None
    for other, rate in rates.items():
        if other in series and rate.pct_per_minute > 0 and (share := _rise_of(kind, other, series)):
            return rate.pct_per_minute * share, other
    return None, None


def _rise_of(kind: WindowKind, other: WindowKind, series: Series) -> float | None:
    """What ``kind`` rises by while ``other`` rises by 1 %; None where too little was read of both at once."""
    taken = {window.captured_at: window for window in series[other]}
    both = [(window, taken[window.captured_at]) for window in series[kind] if window.captured_at in taken]
    here = there = 0.0
    for (earlier, earlier_other), (later, later_other) in pairwise(both):
        rise, other_rise = _rise(earlier, later), _rise(earlier_other, later_other)
        if rise is not None and other_rise is not None:
            here, there = here + rise, there + other_rise
    return here / there if min(here, there) >= MIN_RISE_PCT else None


def _rise(earlier: Window, later: Window) -> float | None:
    rise = used_of(later) - used_of(earlier)
    return rise if rise >= 0 and in_one_window(earlier, later) else None


def _phase(dated: Sequence[Window], length: timedelta) -> datetime:
    """The reset that most of the windows agree with, counted in whole lengths; of several the newest.

    A window that nobody has opened yet is dated anew at each reading, which tells nothing.
    """
    opened = [window for window in dated if not is_unanchored(window)] or dated[-1:]
    resets = [run[-1].resets_at for run in window_runs(opened)]
    known = [reset for reset in reversed(resets) if reset is not None][:MOST_RESETS]
    return max(known, key=lambda reset: sum(_agree(reset, other, length) for other in known))


def _agree(reset: datetime, other: datetime, length: timedelta) -> bool:
    apart = (reset - other) % length
    return min(apart, length - apart) <= CLOCK_TOLERANCE


def window_runs(readings: Sequence[Window]) -> list[list[Window]]:
    """Part readings of one kind, oldest first, into those of each window: by its reset, or by a fall of the use."""
    runs: list[list[Window]] = []
    for reading in readings:
        last = runs[-1][-1] if runs else None
        if last and in_one_window(last, reading) and used_of(last) - used_of(reading) <= ROUNDING_PCT:
            runs[-1].append(reading)
        else:
            runs.append([reading])
    return runs


def expired(record: WindowRecord, *, begins: datetime, until: datetime) -> list[float]:
    """What was left, in percent, of each window that reset between ``begins`` and ``until``, by its last reading."""
    left: list[float] = []
    runs = window_runs(record.readings)
    for run, after in zip(runs, [*runs[1:], None], strict=True):
        ended = run[-1].resets_at
        if after is not None and ended is not None:
            # One that was reset early ended when the next one opened.
            ended = min(ended, starts_at(after[0]) or ended)
        if ended is not None and begins < ended <= until and not is_unanchored(run[-1]):
            left.append(max(0.0, 100.0 - max(used_of(reading) for reading in run)))
    return left


def used_of(window: Window) -> float:
    """What was read of it, 0 to 100: a meter may tell more, and no window holds it."""
    return min(100.0, window.used_pct or 0.0)
