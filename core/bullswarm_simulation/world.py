"""What truly happens in a month: the subscriptions, the person's own use of them, and the tasks.

Times are minutes since the month began. A window holds 100 % and is filled by every worker-minute on its pool, at the
burn of the lane that is worked on; a worker-minute of one task is as long on any pool.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.pools.model import DEFAULT_EFFORT, Effort, Lane, Rate, WindowKind, refuse_nan

FULL_PCT = 100.0
EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Limit:
    """One quota window: it resets first at minute ``first_reset`` and then after each ``minutes``, both above 0.

    ``used_pct`` is what of it was used when the month began, 0 to 100.
    """

    kind: WindowKind
    minutes: float
    first_reset: float
    used_pct: float = 0.0

    def __post_init__(self) -> None:
        refuse_nan(self)
        if self.minutes <= 0 or not 0 < self.first_reset <= self.minutes:
            raise ValueError(
                f"Limit {self.kind} resets first at minute {self.first_reset} of {self.minutes};"
                " it lasts longer than nothing and resets first within its length"
            )
        if not 0 <= self.used_pct <= FULL_PCT:
            raise ValueError(f"Limit.used_pct is {self.used_pct}; it is 0 to 100")

    def index_at(self, minute: float) -> int:
        """The number of the window that runs at ``minute``, 0 for the one at the month's begin; a reset begins one."""
        return max(0, math.floor((minute - self.first_reset) / self.minutes) + 1)

    def room(self, index: int) -> float:
        """What window ``index`` holds of work that is yet to come, in percent."""
        return FULL_PCT - (0.0 if index else self.used_pct)

    def ends(self, index: int) -> float:
        """The minute at which window ``index`` resets."""
        return self.first_reset + index * self.minutes


@dataclass(frozen=True, slots=True)
class OwnUse:
    """The person at work on a pool by hand, from ``begins`` to ``ends``, burning as ``workers`` on ``lane`` would."""

    begins: float
    ends: float
    lane: Lane = "build"
    workers: float = 1.0

    def __post_init__(self) -> None:
        refuse_nan(self)
        if not 0 <= self.begins < self.ends or self.workers <= 0:
            raise ValueError(f"OwnUse from {self.begins} to {self.ends} by {self.workers} workers is no use at all")


@dataclass(frozen=True, slots=True)
class Subscription:
    """One account: its windows, what a worker-minute truly burns of each by lane, and how its meter is read.

    ``lanes`` are those that it can do; each has a ``burn`` in percent per worker-minute, by window. Its meter is read
    every ``poll_minutes``, first at ``poll_phase``, and tells multiples of ``rounding_pct`` (0: the exact number).
    ``own_use`` never overlaps. ``known_rates`` are what was learned before the month, and count until more is.
    """

    pool: str
    limits: tuple[Limit, ...]
    burn: Mapping[Lane, Mapping[WindowKind, float]]
    own_use: tuple[OwnUse, ...] = ()
    poll_minutes: float = 5.0
    poll_phase: float = 0.0
    rounding_pct: float = 1.0
    known_rates: Mapping[WindowKind, Rate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_nan(self)
        if self.poll_minutes <= 0 or self.poll_phase < 0 or self.rounding_pct < 0:
            raise ValueError(f"the meter of {self.pool} is read every {self.poll_minutes} minutes; that is above 0")
        kinds = {limit.kind for limit in self.limits}
        if len(kinds) != len(self.limits):
            raise ValueError(f"{self.pool} has two windows of one kind")
        for lane, burn in self.burn.items():
            if not kinds <= burn.keys() or any(not math.isfinite(rate) or rate < 0 for rate in burn.values()):
                raise ValueError(f"the burn of {lane} on {self.pool} names a rate of 0 or more for each window")

    @property
    def lanes(self) -> frozenset[Lane]:
        """What the pool can do."""
        return frozenset(self.burn)

    def poll_before(self, minute: float) -> float:
        """When its meter was read last, at ``minute`` or before; the phase if that is still to come."""
        return self.poll_phase + max(0, math.floor((minute - self.poll_phase) / self.poll_minutes)) * self.poll_minutes

    def poll_after(self, minute: float) -> float:
        """When its meter is read next, after ``minute``."""
        after = self.poll_before(minute)
        while after <= minute:
            after += self.poll_minutes
        return after


@dataclass(frozen=True, slots=True)
class Task:
    """One task that arrives at a minute and truly takes ``minutes`` above 0; no policy knows how many.

    It is begun within ``patience`` minutes of its arrival, for the first time or anew after a wall, else given up.
    """

    id: str
    arrives: float
    minutes: float
    lane: Lane = "build"
    effort: Effort | None = None
    patience: float = 0.0

    def __post_init__(self) -> None:
        refuse_nan(self)
        if self.arrives < 0 or self.minutes <= 0 or self.patience < 0:
            raise ValueError(f"task {self.id} arrives at {self.arrives} and takes {self.minutes} minutes")

    @property
    def tier(self) -> Effort:
        """The effort tier that is asked for, or the lane's customary one."""
        return self.effort or DEFAULT_EFFORT[self.lane]


@dataclass(frozen=True, slots=True)
class Month:
    """Everything that happens in ``minutes``; ``subscriptions`` stand in the person's order, ``tasks`` in any.

    ``known_minutes`` are the lengths of earlier tasks by lane, from which the length of the next one is learned.
    """

    name: str
    minutes: float
    subscriptions: tuple[Subscription, ...]
    tasks: tuple[Task, ...]
    begins: datetime = EARLIEST
    known_minutes: Mapping[Lane, tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_nan(self)
        pools = [subscription.pool for subscription in self.subscriptions]
        if len(set(pools)) != len(pools):
            raise ValueError("two subscriptions have the same pool; a pool is given once")
        if len({task.id for task in self.tasks}) != len(self.tasks):
            raise ValueError("two tasks have the same id; a task is given once")
