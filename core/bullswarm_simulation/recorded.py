"""A :class:`Month` made of what really happened: the person's readings, own use and tasks of the last days.

What is replayed are the tasks and the work that walls wasted. All else that filled a window stays where it was: the person's
own use, and attempts whose length is unknown. Everything is pure: records in, a month out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from bullswarm_core._dataclasses import dataclass, field, replace
from bullswarm_core.pools.model import EFFORTS, LANES, Effort, Lane, Rate, WindowKind
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.rates import WorkerTime
from bullswarm_core.quota.windows import MINUTE
from bullswarm_simulation.recorded_quota import WindowFate, WindowRecord, expired, window_records
from bullswarm_simulation.recorded_tasks import RecordedAttempt, TaskLog, task_log
from bullswarm_simulation.recorded_use import own_use, used_at, worker_minutes
from bullswarm_simulation.world import Limit, Month, Subscription

MOST_TASKS = 2000
"""Tasks that are played, the newest ones: a policy takes 3 s of processor time for so many, and there are ten."""
MIN_TASKS, MIN_DAYS, MIN_POOLS = 20, 3.0, 2
"""Below these nothing is said: two policies part at few picks, and one lucky task would decide."""

PoolOut = Literal["no-readings", "no-rate", "no-reset", "no-lane"]


@dataclass(frozen=True, slots=True)
class RecordedPool:
    """An account with what was read of it, what a worker-minute burns as far as was learned, and what it can do.

    ``tiers`` are those on which it has a model.
    """

    pool: str
    observations: tuple[Observation, ...]
    rates: Mapping[WindowKind, Rate] = field(default_factory=dict)
    lanes: frozenset[Lane] = frozenset(LANES)
    tiers: frozenset[Effort] = frozenset(EFFORTS)


@dataclass(frozen=True, slots=True)
class PlayedPool:
    """An account as it is played: its windows, what became of each kind that was read, its first reading.

    ``own_minutes`` is the person's own use of it in worker-minutes. ``beyond_tiers`` counts the tasks of a tier on which it
    has no model: a played account takes every tier, so that it may have been given some of them.
    """

    pool: str
    windows: tuple[WindowRecord, ...]
    fates: Mapping[WindowKind, WindowFate]
    first_reading: datetime
    own_minutes: float = 0.0
    beyond_tiers: int = 0


@dataclass(frozen=True, slots=True)
class Happened:
    """What became of the recorded work: ``walls`` are attempts that quota ended, after ``lost`` minutes together.

    ``given_up`` are tasks that a wall ended for good. ``expired_pct`` is the mean share of the weeks or months that reset
    unspent, by the last reading before each; None where none reset.
    """

    tasks: int
    minutes: float
    walls: int
    lost: float
    given_up: int
    expired_pct: float | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """A month of records, and what it rests on; ``begins`` is later than asked where readings or the cap say so.

    ``older_than_cap`` counts tasks that were left out since there were more than MOST_TASKS.
    """

    month: Month
    log: TaskLog
    happened: Happened
    pools: tuple[PlayedPool, ...]
    pools_out: Mapping[str, PoolOut]
    begins: datetime
    until: datetime
    older_than_cap: int = 0

    @property
    def days(self) -> float:
        """How many days are played."""
        return (self.until - self.begins) / timedelta(days=1)

    def enough(self) -> bool:
        """Whether there is enough of it to say anything; days that only the cap made few are."""
        long = self.days >= MIN_DAYS or self.older_than_cap > 0
        return len(self.log.played) >= MIN_TASKS and long and len(self.pools) >= MIN_POOLS


def replay_of(
    pools: Sequence[RecordedPool],
    attempts: Sequence[RecordedAttempt],
    *,
    since: datetime,
    until: datetime,
    most_tasks: int = MOST_TASKS,
) -> Replay:
    """Return the month from ``since`` to ``until`` as it was recorded; ``pools`` stand in the person's order.

    It begins at the first reading of an account that can be played, since nobody knows what was used before.
    """
    found, pools_out = _playable(pools)
    begins = max([since, *sorted(item.first_reading for item in found)[:1]])
    begins, capped = min(begins, until), 0
    log = task_log(attempts, since=since, begins=begins, until=until, pools=[item.pool for item in found])
    if len(log.played) > most_tasks:
        capped = len(log.played) - most_tasks
        begins = log.played[capped].came
        log = task_log(attempts, since=begins, begins=begins, until=until, pools=[item.pool for item in found])
    given = {item.pool: item for item in pools}
    played = [_subscribed(item, given[item.pool], log, begins=begins, until=until) for item in found]
    return Replay(
        month=Month(
            name="recorded",
            minutes=max(0.0, (until - begins) / MINUTE),
            subscriptions=tuple(subscription for _, subscription in played),
            tasks=tuple(task.as_task(begins) for task in log.played),
            begins=begins,
            known_minutes=log.known_minutes,
        ),
        log=log,
        happened=_happened(log, found, begins=begins, until=until),
        pools=tuple(item for item, _ in played),
        pools_out=pools_out,
        begins=begins,
        until=until,
        older_than_cap=capped,
    )


def _playable(pools: Sequence[RecordedPool]) -> tuple[list[PlayedPool], dict[str, PoolOut]]:
    found: list[PlayedPool] = []
    out: dict[str, PoolOut] = {}
    for item in pools:
        records = window_records(item.observations, item.rates)
        if not item.lanes:
            out[item.pool] = "no-lane"
        elif not records.fates:
            out[item.pool] = "no-readings"
        elif not records.windows:
            out[item.pool] = "no-rate" if "no-rate" in records.fates.values() else "no-reset"
        else:
            taken = [reading.captured_at for record in records.windows for reading in record.readings]
            first = min(moment for moment in taken if moment is not None)
            found.append(PlayedPool(item.pool, records.windows, records.fates, first))
    return found, out


def _subscribed(
    item: PlayedPool, given: RecordedPool, log: TaskLog, *, begins: datetime, until: datetime
) -> tuple[PlayedPool, Subscription]:
    work = log.work_on(item.pool)
    lane = min(given.lanes)
    uses = own_use(item.windows, work, begins=begins, until=until, lane=lane)
    burn = {record.kind: record.burn for record in item.windows}
    subscription = Subscription(
        item.pool,
        limits=tuple(_limit(record, WorkerTime(work), begins) for record in item.windows),
        burn=dict.fromkeys(sorted(given.lanes), burn),
        own_use=uses,
        # What was learned so far: a person who switches today goes on with it.
        known_rates={kind: rate for kind, rate in given.rates.items() if kind in burn},
    )
    asked = [task.attempts[-1] for task in log.played]
    beyond = sum(last.lane in given.lanes and last.effort not in given.tiers for last in asked)
    return replace(item, own_minutes=worker_minutes(uses), beyond_tiers=beyond), subscription


def _limit(record: WindowRecord, time: WorkerTime, begins: datetime) -> Limit:
    used = used_at(record, time, begins)
    return Limit(record.kind, record.minutes, record.first_reset(begins), used)


def _happened(log: TaskLog, pools: Sequence[PlayedPool], *, begins: datetime, until: datetime) -> Happened:
    left = [share for item in pools for share in expired(item.windows[-1], begins=begins, until=until)]
    return Happened(
        tasks=len(log.played),
        minutes=sum(task.attempts[-1].minutes for task in log.played),
        walls=len(log.walls),
        lost=sum(attempt.minutes for attempt in log.walls),
        given_up=len(log.given_up),
        expired_pct=sum(left) / len(left) if left else None,
    )
