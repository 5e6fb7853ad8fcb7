"""What the dispatcher knows while a month is played: meters as last read, learned rates and lengths, its own ledger.

Nothing here looks at the truth except :meth:`PoolKnowledge.poll`, which reads a meter as a real one is read: at times, and
rounded. Rates, expected minutes and the spread are learned by the functions that the dispatcher itself uses.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta

from bullswarm_core._dataclasses import replace
from bullswarm_core.pools.model import EFFORTS, Effort, Inflight, Lane, Pool, Rate, Rung, Window, WindowKind
from bullswarm_core.quota.durations import MIN_DURATION_SAMPLES, RECENT_DECISIONS, expected_minutes, log_spread
from bullswarm_core.quota.history import KEPT_LINES
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.rates import Work, WorkerTime, fitted_rates
from bullswarm_core.routing import Request, RoutingContext
from bullswarm_simulation.accounts import Account, Attempt
from bullswarm_simulation.world import Month, Task

EVERY_TIER: Mapping[Effort, Rung] = {effort: Rung() for effort in EFFORTS}
REFIT_MINUTES = 2 * 1440.0
"""Rates are fitted anew after two days, or once there is a third more work: the dispatcher does so at each reading, which
tells the same (the truth does not change within a month) and costs a hundred times as much.
"""
MORE_WORK = 1.33
LONGEST_WINDOW = 32 * 1440.0


class PoolKnowledge:
    """One pool as the dispatcher sees it."""

    __slots__ = (
        "_account", "_begins", "_fitted_at", "_fitted_work", "_history", "_rates", "_read", "_read_at", "_windows",
        "_worked", "_works",
    )  # fmt: skip

    def __init__(self, account: Account, begins: datetime) -> None:
        self._account = account
        self._begins = begins
        self._history: deque[tuple[float, tuple[Window, ...]]] = deque(maxlen=KEPT_LINES)
        self._works: list[tuple[float, float]] = []
        self._worked = self._fitted_work = 0.0
        self._fitted_at = 0.0
        self._rates: Mapping[WindowKind, Rate] = account.subscription.known_rates
        self._read: tuple[tuple[float, int], ...] = ()
        self._read_at = 0.0
        self._windows: tuple[Window, ...] = ()

    def poll(self) -> None:
        """Read the meter as it stands now; a reading like the last one adds no line to the history, as no rise is none."""
        account, step = self._account, self._account.subscription.rounding_pct
        read = tuple(
            (round(used / step) * step if step else used, account.index[kind]) for kind, used in account.used.items()
        )
        self._read_at = account.at
        if read != self._read:
            self._read = read
            self._windows = self._told()
            self._history.append((account.at, self._windows))

    def _told(self) -> tuple[Window, ...]:
        now = self._moment(self._read_at)
        return tuple(
            Window(
                limit.kind,
                used,
                self._moment(limit.ends(index)),
                captured_at=now,
                length=timedelta(minutes=limit.minutes),
                reset_source="provider",
            )
            for limit, (used, index) in zip(self._account.subscription.limits, self._read, strict=True)
        )

    def read_without_change(self, minute: float) -> None:
        """Take the reading of ``minute`` for granted, when nothing has worked on the pool since the last one."""
        self._read_at = max(self._read_at, minute)

    def worked(self, attempt: Attempt, until: float) -> None:
        """Remember that an attempt was at work, as the decision log does."""
        self._works.append((attempt.begun, until))
        self._worked += until - attempt.begun

    def pool(self) -> Pool:
        """The pool as routing judges it now."""
        account = self._account
        if account.at - self._fitted_at >= REFIT_MINUTES or self._worked > self._fitted_work * MORE_WORK:
            self._fit()
        if self._windows and self._windows[0].captured_at != self._moment(self._read_at):
            self._windows = self._told()
        return Pool(
            account.subscription.pool,
            account.subscription.pool,
            lanes=account.subscription.lanes,
            tiers=EVERY_TIER,
            windows=self._windows,
            inflight=tuple(
                Inflight(self._moment(attempt.begun), attempt.expected_minutes, lane=attempt.task.lane)
                for attempt in account.running.values()
            ),
            rates=self._rates,
        )

    def _fit(self) -> None:
        self._fitted_at, self._fitted_work = self._account.at, self._worked
        if not self._history:
            return
        newest = self._history[-1][0]
        self._works = [work for work in self._works if work[1] > newest - LONGEST_WINDOW]
        running = [(attempt.begun, newest) for attempt in self._account.running.values() if attempt.begun < newest]
        work = [Work(self._moment(begun), self._moment(ended)) for begun, ended in (*self._works, *running)]
        observations = [Observation(self._moment(minute), windows) for minute, windows in self._history]
        self._rates = {**self._rates, **fitted_rates(observations, WorkerTime(work))}

    def _moment(self, minute: float) -> datetime:
        return self._begins + timedelta(minutes=minute)


TOLD_SPREAD = 0.05
"""The spread of lengths that are told: a rule that takes a logarithm needs one above 0."""


class Lengths:
    """How long the latest attempts took, newest last, kept in order too for their median."""

    __slots__ = ("_latest", "seconds")

    def __init__(self) -> None:
        self._latest: deque[float] = deque()
        self.seconds: list[float] = []

    def add(self, seconds: float) -> None:
        """Remember one more attempt and forget the oldest of too many."""
        self._latest.append(seconds)
        insort(self.seconds, seconds)
        if len(self._latest) > RECENT_DECISIONS:
            self.seconds.remove(self._latest.popleft())


class TaskKnowledge:
    """What earlier attempts tell of the next task: its expected minutes, by pool too, and their spread.

    With ``told`` each task's own length is known instead, which no dispatcher ever knows: it measures what that is worth.
    """

    __slots__ = ("_contexts", "_incumbents", "_lengths", "_own", "_told")

    def __init__(self, month: Month, *, told: bool = False) -> None:
        self._told = told
        self._lengths: dict[tuple[Lane, Effort], Lengths] = {}
        self._own: dict[tuple[Lane, Effort, str], Lengths] = {}
        self._contexts: dict[tuple[Lane, Effort], tuple[float, RoutingContext]] = {}
        self._incumbents: dict[Lane, str] = {}
        for lane, known in month.known_minutes.items():
            lengths = self._lengths.setdefault((lane, Task("known", 0, 1, lane).tier), Lengths())
            for minutes in known:
                lengths.add(minutes * 60)

    def worked(self, attempt: Attempt, until: float, *, completed: bool) -> None:
        """Remember how long an attempt took, also one that a wall ended, as the decision log does; and who succeeded."""
        if completed and self._incumbents.get(attempt.task.lane) != attempt.pool:
            self._incumbents[attempt.task.lane] = attempt.pool
            self._contexts.clear()
        lane, tier, seconds = attempt.task.lane, attempt.task.tier, (until - attempt.begun) * 60
        if seconds <= 0:
            return
        self._lengths.setdefault((lane, tier), Lengths()).add(seconds)
        self._own.setdefault((lane, tier, attempt.pool), Lengths()).add(seconds)
        self._contexts.pop((lane, tier), None)

    def asked(self, task: Task) -> tuple[Request, RoutingContext]:
        """What routing is asked for this task, of whose own length nothing is known unless it is told."""
        key = (task.lane, task.tier)
        if key not in self._contexts:
            self._contexts[key] = self._learned(*key)
        minutes, context = self._contexts[key]
        if self._told:
            minutes, context = task.minutes, replace(context, expected_minutes={}, task_spread=TOLD_SPREAD)
        return Request(task.lane, task.effort, candidate_minutes=minutes), context

    def _learned(self, lane: Lane, tier: Effort) -> tuple[float, RoutingContext]:
        usual = self._lengths.get((lane, tier), Lengths()).seconds
        by_pool = {
            pool: expected_minutes(lane, tier, lengths.seconds).minutes
            for (own_lane, own_tier, pool), lengths in self._own.items()
            if (own_lane, own_tier) == (lane, tier) and len(lengths.seconds) >= MIN_DURATION_SAMPLES
        }
        context = RoutingContext(
            expected_minutes=by_pool, task_spread=log_spread(usual), incumbents=dict(self._incumbents)
        )
        return expected_minutes(lane, tier, usual).minutes, context
