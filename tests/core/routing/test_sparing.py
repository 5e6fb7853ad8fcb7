"""What spares a pool: the person's reserve, and a rest too small for the task. Both order, neither closes."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.pools.test_properties import contexts, requests, several
from tests.core.routing.builders import NOW, busy, ending, history, pool, row_of, window

from bullswarm_core.pools import Pool, Rung
from bullswarm_core.routing import Decision, Request, RoutingContext, decide
from bullswarm_core.routing.measure import effective_reserve

HOUR = timedelta(hours=1)
WORK = Request("build", candidate_minutes=10)


def picked(pools: list[Pool], reserves: dict[str, float] | None = None, request: Request = WORK) -> Decision:
    return decide(request, pools, now=NOW, context=RoutingContext(reserves=reserves or {}))


@pytest.mark.parametrize(
    ("kind", "left", "kept"),
    [
        ("weekly", 24 * 60, 20.0),
        ("weekly", 5000, 20.0),
        ("weekly", 12 * 60, 10.0),
        ("weekly", 6 * 60, 5.0),
        ("weekly", 0.001, 0.0),
        ("monthly", 72 * 60, 20.0),
        ("monthly", 24 * 60, 6.7),
        ("weekly", None, 20.0),
    ],
)
def test_a_reserve_melts_over_the_lead_time_and_is_whole_before_it(kind: str, left: float | None, kept: float) -> None:
    assert effective_reserve(20.0, kind, left) == kept  # type: ignore[arg-type]


def test_a_pool_whose_forecast_reaches_into_its_reserve_comes_after_the_others() -> None:
    behind = pool("behind", window("weekly", 60, 95))
    other = pool("other", window("weekly", 50, 40))
    assert picked([behind, other]).pool == "behind"
    assert picked([behind, other], {"behind": 40}).pool == "behind"  # 8.4 h before the reset 14 of the 40 are left
    early = pool("behind", window("weekly", 60, 80))
    decision = picked([early, other], {"behind": 40})
    assert decision.pool == "other"
    assert decision.candidates[1].reserved and decision.candidates[1].reserve_pct == 40
    assert decision.reason == (
        "most-behind capable pool (surplus -10) · reserve: behind forecast 60% of its week, 40% kept for you"
    )


@pytest.mark.parametrize(("used", "held"), [(79.9, False), (80.0, True), (80.1, True)])
def test_the_line_of_a_reserve_is_100_less_what_is_kept(used: float, held: bool) -> None:
    row = row_of(pool("a", window("weekly", used, 50)), context=RoutingContext(reserves={"a": 20}))
    assert row.reserved is held


def test_a_reserve_counts_the_forecast_not_the_reading() -> None:
    loaded = pool("a", window("weekly", 70, 50), rates={"weekly": history(0.5)}, inflight=busy(1, 10))
    row = row_of(loaded, WORK, RoutingContext(reserves={"a": 20}))
    assert (row.forecast_pacing_pct, row.reserved) == (80.0, True)


def test_a_reserve_is_silent_where_it_decides_nothing_and_warns_where_nothing_else_is_left() -> None:
    kept = pool("kept", window("weekly", 90, 50))
    better = pool("better", window("weekly", 10, 50))
    assert picked([kept, better], {"kept": 20}).reason == "most-behind capable pool (surplus 40)"
    alone = picked([kept], {"kept": 20})
    assert alone.pool == "kept"
    assert alone.reason.endswith(" · reserve: kept forecast 90% of its week, 20% kept for you")


def test_a_reserve_stands_right_after_the_last_mile_and_before_free_models() -> None:
    free = {"high": Rung("x", free=True), "medium": Rung("x", free=True), "low": Rung("x", free=True)}
    kept = pool("kept", window("weekly", 90, 50), tiers=free)
    near = pool("near", window("5h", 80, 10), window("weekly", 10, 50))
    fine = pool("fine", window("weekly", 45, 50))
    order = [row.pool for row in picked([kept, near, fine], {"kept": 20}).candidates]
    assert order == ["fine", "kept", "near"]


def test_an_assignment_does_not_reach_into_a_reserve() -> None:
    kept, other = pool("kept", window("weekly", 90, 50)), pool("other", window("weekly", 95, 50))
    context = RoutingContext(reserves={"kept": 20}, assignments={"medium": "kept"})
    decision = decide(WORK, [kept, other], now=NOW, context=context)
    assert decision.pool == "other"
    assert "medium assignment passed over: kept (reserved for you)" in decision.reason
    assert "reserve: kept forecast 90% of its week, 20% kept for you" in decision.reason


def test_without_a_reading_nothing_is_reserved() -> None:
    for one in (pool("a"), pool("a", window("5h", 99, 50))):
        row = row_of(one, context=RoutingContext(reserves={"a": 100}))
        assert not row.reserved


@pytest.mark.parametrize("reserve", [-1.0, 100.1, math.nan, math.inf])
def test_a_reserve_is_a_percentage(reserve: float) -> None:
    with pytest.raises(ValueError, match="reserves"):
        RoutingContext(reserves={"a": reserve})


@given(several, requests, contexts)
def test_a_reserve_of_nothing_changes_nothing(
    given_pools: list[Pool], request: Request, context: RoutingContext
) -> None:
    none = RoutingContext(
        context.inflight_penalty_pct, context.assignments, probes=context.probes, route_summary=context.route_summary
    )
    zero = RoutingContext(
        context.inflight_penalty_pct,
        context.assignments,
        dict.fromkeys([item.id for item in given_pools], 0.0),
        probes=context.probes,
        route_summary=context.route_summary,
    )
    assert decide(request, given_pools, now=NOW, context=none) == decide(request, given_pools, now=NOW, context=zero)


@given(several, requests, st.sampled_from([1.0, 10.0, 30.0, 100.0]))
def test_a_reserve_only_moves_its_own_pool_back(given_pools: list[Pool], request: Request, reserve: float) -> None:
    without = decide(request, given_pools, now=NOW, context=RoutingContext())
    kept = decide(request, given_pools, now=NOW, context=RoutingContext(reserves={"alpha": reserve}))
    before, after = ([row.pool for row in item.candidates] for item in (without, kept))
    assert [name for name in before if name != "alpha"] == [name for name in after if name != "alpha"]
    assert without.excluded == kept.excluded
    if "alpha" in before:
        assert after.index("alpha") >= before.index("alpha")
    if without.pool != kept.pool:
        assert "reserve: alpha" in kept.reason


# --- A rest too small for the task


def test_a_pool_that_cannot_hold_the_task_comes_after_one_that_can() -> None:
    rates = {"weekly": history(0.5)}
    scarce = pool("scarce", window("weekly", 97, 85), rates=rates)
    ample = pool("ample", window("weekly", 70, 50), rates=rates)
    assert picked([scarce, ample], request=Request("build", candidate_minutes=6)).pool == "scarce"
    decision = picked([scarce, ample])
    assert decision.pool == "ample"
    row = decision.candidates[1]
    assert (row.sliver_window, row.sliver_headroom_pct, row.sliver_need_pct) == ("weekly", 3.0, 5.0)
    assert decision.reason.endswith(" · sliver: scarce has 3% of its week left and the task needs 5%")


def test_the_work_in_flight_is_taken_off_the_rest_first() -> None:
    one = pool("a", window("monthly", 92, 50), rates={"monthly": history(0.5)}, inflight=busy(1, 8), pacing="monthly")
    row = row_of(one, WORK)
    assert (row.sliver_window, row.sliver_headroom_pct, row.sliver_need_pct) == ("monthly", 4.0, 5.0)


@pytest.mark.parametrize(
    ("one", "request_"),
    [
        (pool("a", window("weekly", 99, 50)), WORK),
        (pool("a", window("weekly", 99, 50), rates={"5h": history(5)}), WORK),
        (pool("a", window("weekly", 99, 50), rates={"weekly": history(5)}), Request("build")),
        (pool("a", window("weekly", 99, 50, source="declared"), rates={"weekly": history(5)}), WORK),
        (pool("a", window("weekly", 99, 50, scope="opus"), rates={"weekly": history(5)}), WORK),
        (pool("a", ending("weekly", 99, timedelta(minutes=1)), rates={"weekly": history(1)}), WORK),
        (pool("a", window("weekly", 95, 50), rates={"weekly": history(0.5)}), WORK),
    ],
)
def test_only_a_measured_window_that_gates_can_be_a_sliver(one: Pool, request_: Request) -> None:
    assert row_of(one, request_).sliver_window is None


def test_a_sliver_stands_right_after_urgency() -> None:
    rates = {"weekly": history(0.5)}
    urgent = pool("urgent", ending("weekly", 90, 12 * HOUR))
    # 5 points of need against 4 of rest, and yet behind its own clock: not draining.
    sliver = pool("sliver", ending("weekly", 96, HOUR), rates=rates)
    assert row_of(sliver, WORK).sliver_window == "weekly"
    calm = pool("calm", window("weekly", 60, 50))
    order = [row.pool for row in picked([sliver, calm, urgent]).candidates]
    assert order == ["urgent", "calm", "sliver"]


def test_a_pool_that_holds_too_little_is_still_there_when_it_is_all_there_is() -> None:
    one = pool("a", window("weekly", 97, 85), rates={"weekly": history(0.5)})
    decision = picked([one])
    assert decision.pool == "a"
    assert "sliver: a has 3% of its week left and the task needs 5%" in decision.reason


def test_an_assigned_pool_that_cannot_hold_the_task_is_passed_over_with_the_number() -> None:
    mine = pool("mine", window("weekly", 97, 85), rates={"weekly": history(0.5)})
    other = pool("other", window("weekly", 10, 50))
    context = RoutingContext(assignments={"medium": "mine"})
    reason = decide(WORK, [mine, other], now=NOW, context=context).reason
    assert "medium assignment passed over: mine (too little left for the task)" in reason
    assert "sliver: mine has 3% of its week left and the task needs 5%" in reason


@given(several, requests, contexts)
def test_a_sliver_never_stands_before_a_row_that_is_its_equal_otherwise(
    given_pools: list[Pool], request: Request, context: RoutingContext
) -> None:
    rows = decide(request, given_pools, now=NOW, context=context).candidates
    for place, row in enumerate(rows):
        for later in rows[place + 1 :]:
            equal = all(
                getattr(row, name) == getattr(later, name)
                for name in ("forecast_over_limit", "near_five_hour_penalty", "reserved", "free")
            ) and (row.urgency_state or "normal") == (later.urgency_state or "normal")
            assert not (equal and row.sliver_window and not later.sliver_window)
