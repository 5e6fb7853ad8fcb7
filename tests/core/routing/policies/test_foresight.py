"""``foresight``: the seed's eligibility and preferences, ordered by what is expected to be lost."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.core.routing.builders import ANALYZE, NOW, busy, history, pool, window
from tests.core.routing.test_properties import NAMES, pools

from bullswarm_core.pools import EFFORTS, Pool, Rung
from bullswarm_core.routing import Decision, Request, RoutingContext, decide
from bullswarm_core.routing.policies.foresight_chances import expected_loss, length_within, wall_chance

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
