"""A month made of records: what a dispatcher left comes back as its tasks, and the rest of the meter as the person's use."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullswarm_core.pools import EFFORTS, LANES, Rate, Window, WindowKind
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.rates import Work
from bullswarm_simulation import known_policies, simulate
from bullswarm_simulation.recorded import MIN_DAYS, MIN_TASKS, RecordedPool, Replay, replay_of
from bullswarm_simulation.recorded_tasks import PATIENCE_MINUTES, RecordedAttempt
from bullswarm_simulation.recorded_use import rising, worker_minutes

BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
WEEK = timedelta(days=7)
RATES: dict[WindowKind, float] = {"5h": 0.3, "weekly": 0.02}
LENGTHS: dict[WindowKind, timedelta] = {"5h": timedelta(hours=5), "weekly": WEEK}


@dataclass
class Account:
    """A true account: its use is that of the work and the person's own, each a span burnt at the rates."""

    name: str
    work: list[tuple[datetime, datetime]]
    own: list[tuple[datetime, datetime]]
    phase: timedelta = timedelta(0)

    def used(self, kind: WindowKind, moment: datetime) -> tuple[float, datetime]:
        """What the window of ``moment`` holds, and when it resets."""
        length = LENGTHS[kind]
        over = (moment - BEGIN - self.phase) % length
        opened = moment - over
        minutes = sum(
            max(0.0, (min(moment, ended) - max(opened, begun)) / timedelta(minutes=1))
            for begun, ended in (*self.work, *self.own)
        )
        return min(100.0, minutes * RATES[kind]), opened + length

    def observed(self, kinds: Iterable[WindowKind], moment: datetime, *, whole: bool) -> Observation:
        windows = []
        for kind in kinds:
            used, resets = self.used(kind, moment)
            windows.append(Window(kind, float(round(used)) if whole else used, resets, reset_source="provider"))
        return Observation(moment, tuple(windows))

    def recorded(
        self, days: float, *, every: int = 10, kinds: tuple[WindowKind, ...] = ("weekly",), whole: bool = False
    ) -> RecordedPool:
        count = int(days * 1440 / every)
        readings = [
            self.observed(kinds, BEGIN + timedelta(minutes=every * place), whole=whole) for place in range(count + 1)
        ]
        return RecordedPool(
            self.name, tuple(readings), {kind: Rate(RATES[kind], "history", 9) for kind in kinds}, frozenset(LANES)
        )


def at(minutes: float) -> datetime:
    return BEGIN + timedelta(minutes=minutes)


def attempt(number: int, begun: float, minutes: float | None, pool: str = "a", **more: object) -> RecordedAttempt:
    work = None if minutes is None else Work(at(begun), at(begun + minutes))
    values: dict[str, object] = {"lane": "build", "effort": "medium", **more}
    return RecordedAttempt(id=f"{number:04}", pool=pool, begun=at(begun), work=work, **values)  # type: ignore[arg-type]


def replayed(
    attempts: list[RecordedAttempt], *, own: dict[str, list[tuple[float, float]]] | None = None, days: float = 6.0,
    every: int = 10, whole: bool = False, kinds: tuple[WindowKind, ...] = ("weekly",),
) -> Replay:  # fmt: skip
    accounts = [
        Account(
            name,
            [(each.work.started_at, each.work.ended_at) for each in attempts if each.work and each.pool == name],
            [(at(begun), at(ended)) for begun, ended in (own or {}).get(name, [])],
            phase,
        )
        for name, phase in (("a", timedelta(0)), ("b", timedelta(days=2)))
    ]
    pools = [account.recorded(days, every=every, whole=whole, kinds=kinds) for account in accounts]
    return replay_of(pools, attempts, since=BEGIN, until=BEGIN + timedelta(days=days))


SPANS = st.tuples(st.integers(0, 8000), st.integers(1, 300))


@given(
    st.lists(
        st.tuples(SPANS, st.sampled_from("ab"), st.sampled_from(LANES), st.sampled_from(EFFORTS)),
        min_size=1,
        max_size=12,
    ),
    st.lists(SPANS, max_size=4),
)
@settings(max_examples=40)
def test_what_a_dispatcher_left_gives_back_its_tasks(
    given_tasks: list[tuple[tuple[int, int], str, str, str]], own: list[tuple[int, int]]
) -> None:
    attempts = [
        attempt(number, begun, minutes, pool, lane=lane, effort=effort)
        for number, ((begun, minutes), pool, lane, effort) in enumerate(given_tasks)
    ]
    replay = replayed(attempts, own={"a": [(float(begun), float(begun + minutes)) for begun, minutes in own]})
    found = sorted((task.id, task.arrives, task.minutes, task.lane, task.tier) for task in replay.month.tasks)
    assert found == [
        (f"{number:04}", begun, minutes, lane, effort)
        for number, ((begun, minutes), _, lane, effort) in enumerate(given_tasks)
    ]
    assert replay.happened.minutes == sum(minutes for (_, minutes), *_ in given_tasks)
    by_pool = {item.pool: item for item in replay.pools}
    # Exact readings over one whole week: every minute of the person's own use is seen, and none of the work is taken for it.
    last = replay.month.minutes
    true = sum(max(0.0, min(begun + minutes, last) - begun) for begun, minutes in own)
    assert by_pool["a"].own_minutes == pytest.approx(true, abs=1e-3 * max(1, true))
    assert by_pool["b"].own_minutes == pytest.approx(0.0, abs=1e-3)


@given(
    st.lists(st.tuples(SPANS, st.sampled_from("ab")), max_size=10),
    st.lists(SPANS, max_size=4),
    st.sampled_from([5, 10, 45, 600]),
    st.booleans(),
)
@settings(max_examples=25)  # each plays a week of readings: half a second
def test_own_use_is_never_negative_nor_twice_at_once_and_any_month_can_be_played(
    work: list[tuple[tuple[int, int], str]], own: list[tuple[int, int]], every: int, whole: bool
) -> None:
    attempts = [attempt(number, begun, minutes, pool) for number, ((begun, minutes), pool) in enumerate(work)]
    spans = [(float(begun), float(begun + minutes)) for begun, minutes in own]
    replay = replayed(attempts, own={"a": spans}, every=every, whole=whole, kinds=("5h", "weekly"))
    for subscription in replay.month.subscriptions:
        uses = subscription.own_use
        assert all(0 <= use.begins < use.ends <= replay.month.minutes and use.workers > 0 for use in uses)
        assert all(first.ends <= second.begins for first, second in pairwise(uses))
        assert all(0 <= limit.used_pct <= 100 for limit in subscription.limits)
    score = simulate(replay.month, "pace")
    assert score.offered == pytest.approx(replay.happened.minutes)
    assert score.completed + score.dropped == pytest.approx(score.offered)


@given(st.lists(st.floats(-100, 100), max_size=30))
def test_the_nearest_numbers_that_never_fall(values: list[float]) -> None:
    found = rising(values)
    assert len(found) == len(values)
    assert all(first <= second + 1e-9 for first, second in pairwise(found))
    assert math.isclose(sum(found), sum(values), abs_tol=1e-6)
    if values == sorted(values):
        assert found == pytest.approx(values)


def test_a_meter_of_whole_percents_does_not_turn_the_work_into_own_use() -> None:
    # 0.02 % a minute of a week: each step of a percent is 50 minutes of work, read every 3 minutes.
    attempts = [attempt(number, 100 * number, 40) for number in range(80)]
    replay = replayed(attempts, every=3, whole=True, own={"a": [(2000, 2400)]})
    assert 300 <= replay.pools[0].own_minutes <= 500, "400, give or take two steps of the meter"
    assert replayed(attempts, every=3, whole=True).pools[0].own_minutes == 0


def test_a_window_that_fills_without_work_is_the_persons_use_where_it_was() -> None:
    replay = replayed([attempt(1, 5000, 10)], own={"b": [(600, 900)]}, whole=False)
    (pool,) = [item for item in replay.month.subscriptions if item.pool == "b"]
    assert worker_minutes(pool.own_use) == pytest.approx(300)
    assert pool.own_use[0].begins == pytest.approx(600)
    assert pool.own_use[-1].ends == pytest.approx(900)
    assert replay.month.subscriptions[0].own_use == ()


def test_phase_and_use_at_the_begin() -> None:
    account = Account("a", [], [(at(-3000), at(-2000))], timedelta(days=2))
    pool = account.recorded(6)
    replay = replay_of([pool], [], since=at(0), until=at(6 * 1440))
    (limit,) = replay.month.subscriptions[0].limits
    assert limit.first_reset == pytest.approx(2 * 1440)
    assert limit.used_pct == pytest.approx(20)
    later = replay_of([pool], [], since=at(3 * 1440), until=at(6 * 1440))
    (limit,) = later.month.subscriptions[0].limits
    assert limit.first_reset == pytest.approx(6 * 1440)
    assert limit.used_pct == pytest.approx(0)


def test_an_attempt_that_met_a_wall_is_one_task_with_the_next_one() -> None:
    attempts = [
        attempt(1, 100, 30, "a", step="r/s", failure_kind="quota"),
        attempt(2, 900, 40, "b", step="r/s"),
        attempt(3, 2000, 12, "a", step="r/other", failure_kind="quota"),
    ]
    replay = replayed(attempts)
    (task,) = replay.month.tasks
    assert (task.id, task.arrives, task.minutes, task.patience) == ("0002", 100, 40, 800)
    happened = replay.happened
    assert (happened.tasks, happened.walls, happened.lost, happened.given_up) == (1, 2, 42, 1)
    assert replay.log.left_out == {"wall": 1}
    # What the walls wasted is no use of the person's own.
    assert sum(item.own_minutes for item in replay.pools) == pytest.approx(0, abs=1e-6)


def test_what_has_no_known_length_is_left_out_and_stays_where_it_burnt() -> None:
    attempts = [
        attempt(1, 100, 30, failure_kind="cancelled"),
        attempt(2, 200, 30, stalled=True),
        attempt(3, 300, None),
        attempt(4, 400, 1, failure_kind="auth"),
        attempt(5, 500, 20, pool="gone"),
        attempt(6, 600, 20, failure_kind="process"),
    ]
    replay = replayed(attempts)
    assert [task.id for task in replay.month.tasks] == ["0006"]
    assert replay.month.tasks[0].patience == PATIENCE_MINUTES
    assert replay.log.left_out == {"stopped": 1, "stalled": 1, "unmeasured": 1, "refused": 1, "pool": 1}
    assert replay.pools[0].own_minutes == pytest.approx(61)


def test_it_begins_with_the_first_reading_and_learns_from_what_came_before() -> None:
    attempts = [attempt(1, -900, 25), attempt(2, -100, 7), attempt(3, 100, 8)]
    replay = replay_of([Account("a", [], []).recorded(6)], attempts, since=at(-500), until=BEGIN + timedelta(days=6))
    assert replay.begins == BEGIN
    assert replay.log.left_out == {"before": 1}
    assert replay.month.known_minutes == {"build": (25.0, 7.0)}


def test_a_window_without_a_rate_takes_it_from_the_other_one_or_is_left_out() -> None:
    account = Account("a", [(at(0), at(900))], [])
    both = account.recorded(2, kinds=("5h", "weekly"))
    five = RecordedPool("a", both.observations, {"5h": Rate(0.3, "history", 9)})
    replay = replay_of([five], [], since=BEGIN, until=at(2880))
    assert replay.pools[0].fates == {"5h": "played", "weekly": "compared"}
    assert replay.pools[0].windows[-1].burn == pytest.approx(0.02, rel=0.05)
    assert replay.pools[0].windows[-1].compared_with == "5h"
    idle = RecordedPool("a", Account("a", [], []).recorded(2, kinds=("5h", "weekly")).observations, five.rates)
    replay = replay_of([idle], [], since=BEGIN, until=at(2880))
    assert replay.pools[0].fates == {"5h": "played", "weekly": "no-rate"}
    none = RecordedPool("a", both.observations, {})
    assert replay_of([none], [], since=BEGIN, until=at(2880)).pools_out == {"a": "no-rate"}


def test_odd_histories_leave_a_pool_out_or_change_nothing() -> None:
    until = BEGIN + timedelta(days=6)
    good = Account("a", [], [(at(600), at(900))]).recorded(6)

    def own_of(pool: RecordedPool) -> float:
        return replay_of([pool], [], since=BEGIN, until=until).pools[0].own_minutes

    scoped = Observation(at(700), (Window("weekly", 99.0, at(9000), scope="opus"),))
    declared = Observation(at(705), (Window("weekly", 0.0, at(9000), source="declared"),))
    unstable = Observation(at(706), (Window("weekly", 55.0, at(9000), unstable=True),))
    noisy = RecordedPool("a", (*good.observations, scoped, declared, unstable), good.rates)
    assert own_of(noisy) == own_of(good) == pytest.approx(300)
    empty = RecordedPool("a", (), good.rates)
    undated = RecordedPool("a", (Observation(at(0), (Window("weekly", 5.0),)),), good.rates)
    assert replay_of([empty], [], since=BEGIN, until=until).pools_out == {"a": "no-readings"}
    assert replay_of([undated], [], since=BEGIN, until=until).pools_out == {"a": "no-reset"}
    late = replay_of([good], [], since=BEGIN - WEEK * 4, until=BEGIN - WEEK)
    assert (late.days, late.month.tasks) == (0.0, ())


def test_what_expired_by_the_last_reading_before_each_reset() -> None:
    account = Account("a", [], [(at(0), at(1000)), (at(11000), at(11500))])
    replay = replay_of([account.recorded(15)], [], since=BEGIN, until=BEGIN + timedelta(days=15))
    assert replay.happened.expired_pct == pytest.approx((80 + 90) / 2, abs=0.3)
    assert replay_of([account.recorded(3)], [], since=BEGIN, until=at(4320)).happened.expired_pct is None


def test_too_many_tasks_leave_the_oldest_out() -> None:
    attempts = [attempt(number, 100 * number, 10) for number in range(40)]
    pools = [Account("a", [], []).recorded(6)]
    replay = replay_of(pools, attempts, since=BEGIN, until=at(6 * 1440), most_tasks=15)
    assert (len(replay.month.tasks), replay.older_than_cap, replay.begins) == (15, 25, at(2500))
    assert replay.month.tasks[0].arrives == 0


def test_enough_is_twenty_tasks_of_three_days_on_two_pools() -> None:
    attempts = [attempt(number, 200 * number, 10, "ab"[number % 2]) for number in range(MIN_TASKS)]
    assert replayed(attempts).enough()
    assert not replayed(attempts[1:]).enough()
    assert not replayed(attempts, days=MIN_DAYS - 0.1).enough()
    pools = [Account(name, [], []).recorded(6) for name in "ab"]
    many = [attempt(number, 50 * number, 10) for number in range(150)]
    capped = replay_of(pools, many, since=BEGIN, until=at(150 * 50), most_tasks=MIN_TASKS)
    assert capped.days < MIN_DAYS
    assert capped.enough()
    one = replay_of([Account("a", [], []).recorded(6)], attempts, since=BEGIN, until=at(6 * 1440))
    assert not one.enough()


def test_tasks_of_a_tier_that_a_pool_lacks_are_counted() -> None:
    pool = Account("a", [], []).recorded(6)
    lacking = RecordedPool("a", pool.observations, pool.rates, frozenset({"build"}), frozenset({"high"}))
    attempts = [attempt(1, 10, 5), attempt(2, 20, 5, effort="high"), attempt(3, 30, 5, lane="analyze")]
    replay = replay_of([lacking], attempts, since=BEGIN, until=at(6 * 1440))
    assert replay.pools[0].beyond_tiers == 1


def test_every_policy_and_rival_plays_it() -> None:
    attempts = [attempt(number, 90 * number, 60, "ab"[number % 2]) for number in range(60)]
    month = replayed(attempts, own={"b": [(0, 2000)]}, kinds=("5h", "weekly"), whole=True).month
    for policy in known_policies():
        score = simulate(month, policy)
        assert score.completed + score.dropped == pytest.approx(3600)
