"""``foresight``: eligibility and preferences as under ``pace``, ordered by what is expected to be lost."""

from __future__ import annotations

import math
import random
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.core.pools.test_properties import NAMES, pools
from tests.core.routing.builders import ANALYZE, NOW, busy, history, pool, window

from bullswarm_core.pools import EFFORTS, Pool, Rate, Rung, WindowKind
from bullswarm_core.routing import Decision, Request, RoutingContext, decide
from bullswarm_core.routing.policies.foresight import expected_loss, length_within, wall_chance

TASK = Request("analyze", candidate_minutes=10.0)
RATES = {"5h": history(0.3), "weekly": history(0.05)}
FREE = dict.fromkeys(EFFORTS, Rung("qwen:free", free=True))
SEVERAL = st.tuples(*[pools(name) for name in NAMES])


def pick(*given_pools: Pool, request: Request = TASK, **context: object) -> Decision:
    return decide(request, given_pools, now=NOW, policy="foresight", context=RoutingContext(**context))  # type: ignore[arg-type]


def test_quota_that_would_expire_is_spent_first() -> None:
    decision = pick(
        pool("even", window("weekly", 50, 50), rates=RATES), pool("behind", window("weekly", 20, 50), rates=RATES)
    )
    assert decision.pool == "behind"
    assert decision.reason == (
        "least expected loss: behind (needs 1.6x its even pace to be used up, surplus 29.5, no limit in sight)"
    )


def test_a_window_that_ends_sooner_needs_the_higher_pace_at_the_same_surplus() -> None:
    early, late = window("weekly", 70, 90), window("weekly", 0.5, 20.5)
    assert pick(pool("late", late, rates=RATES), pool("early", early, rates=RATES)).pool == "early"


def test_a_pool_further_behind_is_passed_over_where_the_task_would_meet_a_wall() -> None:
    near = pool("near", window("weekly", 20, 50), window("5h", 97, 20), rates=RATES)
    clear = pool("clear", window("weekly", 40, 50), window("5h", 10, 20), rates=RATES)
    decision = pick(near, clear)
    assert decision.pool == "clear"
    assert "further behind but riskier: near (needs 1.6x, " in decision.reason
    assert "chance of its 5-hour limit" in decision.reason


def test_the_spread_of_lengths_decides_whether_a_rest_is_enough() -> None:
    near = pool("near", window("weekly", 20, 50), window("5h", 91, 20), rates=RATES)  # 30 minutes are left of it
    clear = pool("clear", window("weekly", 48, 50), window("5h", 10, 20), rates=RATES)
    assert pick(near, clear, task_spread=0.1).pool == "near"
    assert pick(near, clear, task_spread=1.2).pool == "clear"


def test_a_wall_that_the_reset_comes_before_is_none() -> None:
    closing = pool(
        "closing", window("weekly", 20, 50), window("5h", 97, 98), rates=RATES
    )  # 6 minutes, 10 minutes of rest
    assert pick(closing, pool("clear", window("weekly", 48, 50), rates=RATES)).pool == "closing"


def test_a_pool_that_takes_long_gains_nothing_by_that() -> None:
    windows = (window("weekly", 30, 50), window("5h", 10, 20))
    slow, usual = pool("a-slow", *windows, rates=RATES), pool("b-usual", *windows, rates=RATES)
    assert pick(slow, usual, expected_minutes={"a-slow": 40.0}).pool == "b-usual"
    assert pick(slow, usual, expected_minutes={"a-slow": 10.0}).pool == "a-slow"


def test_at_a_wall_the_pools_own_minutes_count_as_much_as_the_usual_ones() -> None:
    near = pool("near", window("weekly", 10, 50), window("5h", 80, 20), rates=RATES)  # 67 minutes are left of it
    alike = {name: pick(near, expected_minutes={"near": own}).reason for name, own in (("same", 40.0), ("usual", 10.0))}
    of_twenty = pick(near, request=Request("analyze", candidate_minutes=20.0)).reason
    chances = [re.search(r"(\d+)% chance", reason) for reason in (alike["same"], of_twenty, alike["usual"])]
    shown = [int(found[1]) if found else 0 for found in chances]
    assert shown[0] == shown[1] > shown[2]


def test_a_minute_lost_weighs_more_than_ten_that_are_placed_well() -> None:
    """A chance of 4 % that some of it is lost outweighs a pace of 1.0 in place of 1.4."""
    near = pool("near", window("weekly", 30, 50), window("5h", 88, 20), rates=RATES)
    clear = pool("clear", window("weekly", 49, 50), window("5h", 10, 20), rates=RATES)
    decision = pick(near, clear)
    assert decision.pool == "clear"
    assert "further behind but riskier: near (needs 1.4x, 4% chance of its 5-hour limit)" in decision.reason


@pytest.mark.parametrize("rates", [{**RATES, "daily": history(0.2)}, RATES], ids=["measured", "without a rate"])
def test_a_daily_window_beside_the_pacing_window_is_a_wall(rates: dict[WindowKind, Rate]) -> None:
    near = pool(
        "near", window("weekly", 20, 50), window("daily", 98, 50), rates=rates
    )  # 10 minutes, or two thirds of a task
    clear = pool("clear", window("weekly", 40, 50), window("daily", 50, 50), rates=rates)
    decision = pick(near, clear)
    assert decision.pool == "clear"
    assert re.search(
        r"further behind but riskier: near \(needs 1.6x, \d\d% chance of its daily limit\)", decision.reason
    )
    closing = pool(
        "closing", window("weekly", 20, 50), window("daily", 98, 99.9), rates=rates
    )  # a minute and a half to its reset
    assert pick(closing, clear).pool == "closing"


def test_a_daily_window_that_paces_is_a_wall_by_its_own_rate() -> None:
    for rate, shown in ((0.2, "chance of its daily limit"), (0.02, "no limit in sight")):
        assert shown in pick(pool("day", window("daily", 98, 50), rates={"daily": history(rate)})).reason


def test_a_bootstrap_rate_far_too_high_keeps_no_pool_from_being_measured() -> None:
    """The person had used half of the week before the first attempt of ten minutes: 5 % a minute, it seems."""
    behind, even = window("weekly", 20, 50), window("weekly", 48, 50)
    other = pool("other", even, rates=RATES)
    for rates in ({"weekly": Rate(5.0, "bootstrap", 1)}, {"weekly": Rate(5.0, "bootstrap", 1), "5h": history(0.3)}):
        decision = pick(pool("seldom", behind, rates=rates), other)
        assert decision.pool == "seldom"
        assert "no limit in sight" in decision.reason
    assert pick(pool("seldom", behind, rates={"weekly": Rate(5.0, "history", 4)}), other).pool == "other"


def test_no_window_fills_faster_than_the_five_hours() -> None:
    """By the 5 hours' rate 67 minutes are left of the week, by its own 7."""
    windows = (window("weekly", 80, 50), window("5h", 0, 20))
    chances = []
    for rates in ({"weekly": history(3.0), "5h": history(0.3)}, {"weekly": history(3.0)}):
        found = re.search(r"(\d+)% chance of its weekly limit", pick(pool("p", *windows, rates=rates)).reason)
        chances.append(int(found[1]) if found else 0)
    assert chances[0] <= 1 and chances[1] >= 60


def test_work_in_flight_makes_a_wall_likelier() -> None:
    windows = (window("weekly", 30, 50), window("5h", 80, 20))
    loaded = pool("a-loaded", *windows, rates=RATES, inflight=busy(5, 10.0))
    assert pick(loaded, pool("b-quiet", *windows, rates=RATES)).pool == "b-quiet"


def test_an_assignment_wins_unless_its_pool_would_more_likely_than_not_meet_a_wall() -> None:
    better = pool("better", window("weekly", 10, 50), rates=RATES)
    even = pool("mine", window("weekly", 50, 50), rates=RATES)
    assert pick(better, even, assignments={"medium": "mine"}).reason.startswith("configured medium assignment (mine, ")
    full = pool("mine", window("weekly", 50, 50), window("5h", 99.5, 10), rates=RATES)
    decision = pick(better, full, assignments={"medium": "mine"})
    assert decision.pool == "better"
    assert "medium assignment passed over: mine (99% chance of its 5-hour limit)" in decision.reason


def test_a_pool_without_a_meter_is_as_good_as_one_at_an_even_pace() -> None:
    behind, ahead = (
        pool("behind", window("weekly", 20, 50), rates=RATES),
        pool("ahead", window("weekly", 80, 50), rates=RATES),
    )
    bare = pool("bare", metered=False)
    assert pick(bare, behind).pool == "behind"
    assert pick(bare, ahead).pool == "bare"


@given(
    SEVERAL, st.none() | st.floats(0, 5), st.sampled_from([None, 0.5, 12.0, 300.0]), st.randoms(use_true_random=False)
)
def test_the_pick_is_eligible_and_blind_to_the_order_of_the_list(
    some: tuple[Pool, ...], spread: float | None, minutes: float | None, chance: random.Random
) -> None:
    request = Request("analyze", candidate_minutes=minutes)
    decision = pick(*some, request=request, task_spread=spread)
    by_pace = decide(request, some, now=NOW, context=RoutingContext(task_spread=spread))
    assert {row.pool for row in decision.candidates} == {row.pool for row in by_pace.candidates}
    assert decision.excluded == by_pace.excluded
    assert (decision.pool is None) == (not decision.candidates)
    shuffled = list(some)
    chance.shuffle(shuffled)
    assert pick(*shuffled, request=request, task_spread=spread) == decision
    if decision.pool is not None:
        assert "\n" not in decision.reason and decision.pool in decision.reason


@given(SEVERAL, st.sampled_from(NAMES))
def test_a_pin_wins(some: tuple[Pool, ...], name: str) -> None:
    decision = pick(*some, request=Request("analyze", pin=name))
    assert decision.pool in (name, None)
    assert decision.pool is None or decision.reason.startswith(f"pinned to {name}")


@given(SEVERAL)
def test_a_free_model_comes_first_and_a_reserve_last(some: tuple[Pool, ...]) -> None:
    rows = pick(*some, reserves={"alpha": 30.0}).candidates
    ranks = [(row.reserved, not row.free) for row in rows]
    assert ranks == sorted(ranks)


@given(st.lists(st.integers(0, 99), min_size=2, max_size=4, unique=True))
def test_with_known_lengths_and_no_wall_near_the_order_is_that_of_pace(used: list[int]) -> None:
    """One clock for all windows; of several, pace goes by points and this by the share of the window that is left."""
    some = [pool(f"p{place}", window("weekly", share, 40)) for place, share in enumerate(used) if share <= 60]
    orders = [
        [
            row.pool
            for row in decide(ANALYZE, some, now=NOW, policy=name, context=RoutingContext(task_spread=0.0)).candidates
        ]
        for name in ("pace", "foresight")
    ]
    assert orders[0] == orders[1]


@pytest.mark.parametrize("spread", [0.2, 0.9, 1.5])
@pytest.mark.parametrize("limit", [None, 5.0, 40.0])
def test_the_moments_of_a_length_are_those_of_drawn_ones(spread: float, limit: float | None) -> None:
    chance = random.Random(7)
    drawn = [min(chance.lognormvariate(math.log(10), spread), limit or math.inf) for _ in range(60_000)]
    length = length_within(10, spread, limit)
    assert length.mean == pytest.approx(sum(drawn) / len(drawn), rel=0.05)
    if spread < 1:  # the square of a heavier tail can't be measured by drawing
        assert length.square == pytest.approx(sum(value**2 for value in drawn) / len(drawn), rel=0.1)


@pytest.mark.parametrize(("count", "room"), [(1, 5.0), (1, 30.0), (3, 40.0), (6, 150.0)])
def test_the_chance_of_a_wall_is_how_often_drawn_lengths_need_more(count: int, room: float) -> None:
    chance = random.Random(11)
    met = (
        sum(sum(chance.lognormvariate(math.log(10), 0.8) for _ in range(count)) > room for _ in range(20_000)) / 20_000
    )
    assert wall_chance(length_within(10, 0.8, None), count, room) == pytest.approx(met, abs=0.04)


@given(
    st.floats(0.1, 500),
    st.floats(0, 6),
    st.none() | st.floats(-5, 500),
    st.integers(0, 9),
    st.floats(-50, 5000),
    st.floats(0, 500),
)
@example(1.0, 0.0, None, 1, 5e-324, 0.0)
@example(1.0, 0.0, 5e-324, 1, 1.0, 0.0)
def test_more_room_never_makes_a_wall_likelier(
    median: float, spread: float, limit: float | None, count: int, room: float, more: float
) -> None:
    length = length_within(median, spread, limit)
    assert 0 <= length.mean <= (math.inf if limit is None else max(0.0, limit) + 1e-9)
    tight, wide = wall_chance(length, count, room), wall_chance(length, count, room + more)
    assert 0 <= wide <= tight + 1e-12 <= 1 + 1e-9
    assert expected_loss(length, count, room) >= 0
