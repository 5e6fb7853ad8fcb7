"""Every number and rule of the older design (the seed of the ``classic`` policy), as the policy decides by it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.core.routing.builders import NOW, busy, ending, history, pool, window

from bullswarm_core.pools import Pool
from bullswarm_core.routing import Candidate, Decision, Request, RoutingContext, decide
from bullswarm_core.routing.policies.classic import BURST_BLOCK_PCT, INCUMBENCY_MARGIN, PACING_BLOCK_PCT
from bullswarm_core.routing.quarantine import Quarantine

BUILD = Request("build")


def classic(*pools: Pool, request: Request = BUILD, incumbent: str | None = None, **context: Any) -> Decision:
    incumbents = {request.lane: incumbent} if incumbent else {}
    return decide(request, pools, now=NOW, policy="classic", context=RoutingContext(incumbents=incumbents, **context))


def row(decision: Decision, name: str) -> Candidate:
    return next(row for row in decision.candidates if row.pool == name)


def behind(name: str, points: float, *more: Any, **changes: Any) -> Pool:
    """A pool that is ``points`` behind its pace, in the middle of its week."""
    return pool(name, window("weekly", 50 - points, 50), *more, **changes)


def order(decision: Decision) -> Sequence[str]:
    return [row.pool for row in decision.candidates]


def test_the_pool_furthest_behind_its_pace_wins() -> None:
    decision = classic(behind("a", 5), behind("b", 12.5), behind("c", -20))
    assert (decision.pool, order(decision)) == ("b", ["b", "a", "c"])
    assert decision.reason == "most behind its pace: b (surplus 12.5)"


class TestIncumbency:
    @pytest.mark.parametrize(
        ("surplus", "cost", "pick"), [(9.9, 1, "old"), (10, 1, "new"), (30, 5, "old"), (30, 6, "old"), (30, 4, "new")]
    )
    def test_a_challenger_must_beat_it_by_10_points_and_be_cheaper(self, surplus: float, cost: int, pick: str) -> None:
        assert INCUMBENCY_MARGIN == 10
        decision = classic(behind("old", 0), behind("new", surplus, cost_rank=cost), incumbent="old")
        assert decision.pool == pick

    def test_the_cost_guard_is_for_the_incumbency_path_only(self) -> None:
        pools = (behind("old", 0, cost_rank=1), behind("new", 1, cost_rank=9))
        assert classic(*pools).pool == "new"
        assert classic(*pools, incumbent="gone").pool == "new"
        assert classic(*pools, incumbent="old").pool == "old"

    def test_a_dear_challenger_leaves_the_way_to_a_cheap_one(self) -> None:
        pools = (behind("old", 0), behind("dear", 40, cost_rank=9), behind("cheap", 12, cost_rank=2))
        decision = classic(*pools, incumbent="old")
        assert decision.reason == (
            "cheaper challenger: cheap (cost 2, surplus 12)"
            " · incumbent passed over: old (surplus 0, cost 5, beaten by 10 points or more)"
        )

    def test_it_belongs_to_its_lane(self) -> None:
        context = RoutingContext(incumbents={"analyze": "old"})
        pools = [behind("old", 0), behind("new", 1)]
        assert decide(BUILD, pools, now=NOW, policy="classic", context=context).pool == "new"
        assert decide(Request("analyze"), pools, now=NOW, policy="classic", context=context).pool == "old"

    def test_the_reason_names_it(self) -> None:
        decision = classic(behind("old", 0), behind("new", 9), incumbent="old")
        assert decision.reason == "incumbent: old did the last build work here and keeps it (surplus 0)"

    def test_with_more_in_flight_than_a_challenger_it_keeps_neither_margin_nor_guard(self) -> None:
        old, dear = behind("old", 20, inflight=busy(1)), behind("dear", 17.1, cost_rank=9)
        decision = classic(old, dear, incumbent="old")
        assert (
            decision.reason
            == "quieter challenger: dear (surplus 17.1) · incumbent passed over: old (surplus 17, 1 in flight)"
        )
        # A quieter pool that is worse all the same changes nothing, and neither does one that is as busy.
        assert classic(old, behind("dear", 16.9, cost_rank=9), incumbent="old").pool == "old"
        busy_one = behind("dear", 29, cost_rank=9, inflight=busy(1))
        assert classic(old, busy_one, incumbent="old").pool == "old"

    def test_a_burst_of_parallel_work_spreads(self) -> None:
        """A burst of parallel actions spreads across pools instead of stacking on the most-behind one."""
        load = {"a": 0, "b": 0, "c": 0}
        for _ in range(9):
            pools = [
                behind(name, points, inflight=busy(load[name])) for name, points in (("a", 14), ("b", 13), ("c", 12))
            ]
            picked = classic(*pools, incumbent="a").pool
            assert picked is not None
            load[picked] += 1
        assert load == {"a": 3, "b": 3, "c": 3}


class TestLoad:
    def test_each_agent_in_flight_costs_at_least_3_points_labelled_penalty(self) -> None:
        rates = {"weekly": history(0.05)}
        decision = classic(
            behind("a", 20, inflight=busy(2, 6), rates=rates), request=Request("build", candidate_minutes=6)
        )
        # Two six-minute agents and this task at 0.05 %/min project to 0.9 points: the floor is what spreads the work.
        assert (row(decision, "a").effective_surplus, row(decision, "a").estimate_source) == (14, "penalty")
        assert "surplus 14 after 6 for its load (penalty)" in decision.reason

    @pytest.mark.parametrize("source", ["history", "bootstrap"])
    def test_a_projection_above_the_floor_carries_its_measured_basis(self, source: Any) -> None:
        from bullswarm_core.pools import Rate

        one = behind("a", 20, inflight=busy(1, 30), rates={"weekly": Rate(0.2, source, 4)})
        decision = classic(one, request=Request("build", candidate_minutes=10))
        assert (row(decision, "a").effective_surplus, row(decision, "a").estimate_source) == (12, source)
        assert f"surplus 12 after 8 for its load ({source})" in decision.reason

    def test_the_penalty_can_be_turned_off_and_the_projection_cannot(self) -> None:
        idle, loaded = behind("b", 19), behind("a", 20, inflight=busy(4))
        assert classic(idle, loaded).pool == "b"
        assert classic(idle, loaded, inflight_penalty_pct=0).pool == "a"

    def test_the_floor_never_overturns_a_real_difference_of_quota(self) -> None:
        assert INCUMBENCY_MARGIN > 3 * 3
        assert classic(behind("a", 20, inflight=busy(3)), behind("b", 10)).pool == "a"

    def test_the_charge_is_not_clipped_at_a_reset_and_the_5_hour_forecast_is(self) -> None:
        rates = {"5h": history(1.0), "weekly": history(0.2)}
        soon = pool(
            "a", window("weekly", 30, 50), ending("5h", 60, timedelta(minutes=10)), inflight=busy(1, 40), rates=rates
        )
        found = row(classic(soon, request=Request("build", candidate_minutes=20)), "a")
        assert found.forecast_five_hour_pct == 80  # 10 minutes of each before the reset, the rest in the next window
        assert found.effective_surplus == 8  # 20 - 0.2 × (40 + 20)


class TestFiveHourHeadroom:
    def test_75_and_ahead_of_the_clock_is_near(self) -> None:
        near, below = behind("a", 40, window("5h", 75, 74.9)), behind("b", -30, window("5h", 74.9, 10))
        decision = classic(near, below)
        assert (decision.pool, row(decision, "a").near_five_hour_penalty) == ("b", True)
        assert "near its limit and past its clock: a 5h used 75% (74.9% elapsed)" in decision.reason

    def test_88_percent_with_23_minutes_left_is_a_pool_about_to_get_a_fresh_window(self) -> None:
        fresh = behind("a", 40, ending("5h", 88, timedelta(minutes=23)))
        assert classic(fresh, behind("b", 30)).pool == "a"

    def test_77_percent_with_four_hours_left_is_heading_for_the_wall(self) -> None:
        wall = behind("a", 40, ending("5h", 77, timedelta(hours=4)))
        assert classic(wall, behind("b", -30)).pool == "b"

    @pytest.mark.parametrize("context", [{"incumbent": "a"}, {"assignments": {"medium": "a"}}])
    def test_it_outranks_pace_assignment_and_incumbency(self, context: Any) -> None:
        decision = classic(behind("a", 40, window("5h", 80, 20)), behind("b", -30), **context)
        assert decision.pool == "b"
        assert "passed over: a (near its limit)" in decision.reason

    def test_the_only_eligible_one_is_still_picked_and_no_reading_counts_as_headroom(self) -> None:
        decision = classic(behind("a", 40, window("5h", 80, 20)))
        assert decision.pool == "a"
        assert "no pool below its near-limit line is left: a 5h used 80% (20% elapsed)" in decision.reason
        assert classic(behind("a", 40, window("5h", 80, 20)), pool("blank")).pool == "blank"

    def test_the_forecast_decides_and_not_the_reading(self) -> None:
        busy_one = behind("a", 40, window("5h", 60, 20), inflight=busy(1, 20), rates={"5h": history(0.5)})
        decision = classic(busy_one, behind("b", 0), request=Request("build", candidate_minutes=10))
        assert (decision.pool, row(decision, "a").forecast_five_hour_pct) == ("b", 75)

    def test_a_pool_without_a_measured_rate_is_never_penalised_for_a_number_that_nobody_produced(self) -> None:
        blind = behind("a", 40, window("5h", 74, 20), inflight=busy(2, 300))
        decision = classic(blind, behind("b", 0), request=Request("build", candidate_minutes=300))
        assert (decision.pool, row(decision, "a").forecast_gated) == ("a", False)
        assert row(decision, "a").projected_five_hour_pct is None


class TestGates:
    def test_the_90_percent_gate_ignores_the_clock(self) -> None:
        assert BURST_BLOCK_PCT == 90
        gated = behind("a", 40, ending("5h", 90, timedelta(minutes=1)))
        decision = classic(gated, behind("b", -40))
        assert (decision.pool, row(decision, "a").forecast_gated) == ("b", True)
        assert "burst-gated at 90%: a 5h used 90% (99.7% elapsed)" in decision.reason
        assert decision.forecast["gated"] == ["a"]
        assert classic(behind("a", 40, ending("5h", 89.9, timedelta(minutes=1))), behind("b", -40)).pool == "a"

    def test_a_projection_is_gated_while_its_reading_is_lower(self) -> None:
        steady = behind("a", 40, window("5h", 80, 50), inflight=busy(1, 5), rates={"5h": history(2.0)})
        assert "forecast-gated at 90%: a 5h used 80% -> 90% (50% elapsed)" in classic(steady, behind("b", -40)).reason

    @pytest.mark.parametrize("context", [{"incumbent": "a"}, {"assignments": {"medium": "a"}}])
    def test_no_preference_goes_around_it(self, context: Any) -> None:
        decision = classic(behind("a", 40, window("5h", 95, 99)), behind("b", -40, window("5h", 80, 10)), **context)
        assert decision.pool == "b"
        assert "passed over: a (gated)" in decision.reason

    def test_with_every_capable_pool_over_the_line_the_least_loaded_is_named_and_said_so(self) -> None:
        loaded = behind("a", 40, window("5h", 91, 50), inflight=busy(2))
        quiet = behind("b", -40, window("5h", 97, 50))
        quieter = behind("c", -45, window("5h", 93, 50))
        decision = classic(loaded, quiet, quieter)
        assert order(decision) == ["c", "b", "a"]
        assert decision.reason.startswith(
            "every capable pool is at or over 90% of its 5h window or day, so not stranded:"
            " c is the least loaded (5h used 93% (50% elapsed))"
        )

    def test_100_percent_is_exhausted_and_never_named(self) -> None:
        decision = classic(behind("a", 40, window("5h", 100, 50)), behind("b", 40, window("5h", 99.9, 50)))
        assert (decision.pool, order(decision)) == ("b", ["b"])
        assert classic(pool("a", window("weekly", 100, 50))).pool is None

    def test_a_strict_pin_is_kept(self) -> None:
        pinned = Request("build", pin="a")
        decision = classic(behind("a", 0, window("5h", 95, 50)), behind("b", 40), request=pinned)
        assert decision.reason.startswith("pinned to a (--worker-pool) · surplus 0")


class TestExpiringSoon:
    def expiring(self, name: str, used: float, *more: Any, hours: float = 12, **changes: Any) -> Pool:
        return pool(name, ending("weekly", used, timedelta(hours=hours)), *more, **changes)

    @pytest.mark.parametrize(("kind", "hours"), [("weekly", 24), ("monthly", 72)])
    def test_the_lead_is_a_seventh_of_a_week_and_a_tenth_of_a_month(self, kind: Any, hours: int) -> None:
        inside = pool("a", ending(kind, 60, timedelta(hours=hours)))
        outside = pool("a", ending(kind, 60, timedelta(hours=hours, minutes=1)))
        other = behind("b", 49)
        assert classic(inside, other).pool == "a"
        assert row(classic(outside, other), "a").urgency_state is None
        assert classic(outside, other).pool == "b"

    def test_urgency_is_the_surplus_over_the_fraction_that_is_left(self) -> None:
        # 16.8 of 168 hours are left: a tenth of the week, and the surplus of 30 counts ten times.
        decision = classic(self.expiring("a", 60, hours=16.8))
        assert row(decision, "a").urgency == 300
        assert decision.reason.startswith(
            "expiring soon: a resets in 16h48m, surplus 30 over 10% of the week left → urgency 300, forecast 60%"
        )

    @pytest.mark.parametrize("context", [{"incumbent": "b"}, {"assignments": {"medium": "b"}}])
    def test_it_overrides_incumbency_and_assignment(self, context: Any) -> None:
        decision = classic(self.expiring("a", 60), behind("b", 49), **context)
        assert decision.pool == "a"
        assert "passed over: b (not expiring)" in decision.reason

    def test_it_never_overrides_a_strict_pin(self) -> None:
        assert classic(self.expiring("a", 60), behind("b", -40), request=Request("build", pin="b")).pool == "b"

    @pytest.mark.parametrize("used", [80, 95])
    def test_it_never_rescues_a_pool_that_the_5_hour_rules_put_behind(self, used: float) -> None:
        assert classic(self.expiring("a", 60, window("5h", used, 20)), behind("b", -40)).pool == "b"

    def test_one_forecast_over_the_line_ranks_last_and_is_a_fallback(self) -> None:
        assert PACING_BLOCK_PCT == 95
        over = self.expiring("a", 95, hours=1)
        decision = classic(over, behind("b", -40))
        assert (decision.pool, order(decision)) == ("b", ["b", "a"])
        assert "expiring, forecast at 95% or over, last: a forecast 95%" in decision.reason
        alone = classic(over, request=Request("build", workflow=True))
        assert alone.pool == "a"
        assert alone.reason.startswith("fallback: only pools forecast over 95% are left: a ")

    def test_spend_in_flight_counts_for_the_line(self) -> None:
        spending = self.expiring("a", 90, inflight=busy(1, 50), rates={"weekly": history(0.1)})
        assert row(classic(spending), "a").urgency_state == "draining"

    def test_one_that_is_ahead_of_its_pace_ranks_normally(self) -> None:
        ahead = self.expiring("a", 94)
        decision = classic(ahead, behind("b", 0), behind("c", -10))
        assert (row(decision, "a").urgency_state, order(decision)) == ("normal", ["b", "a", "c"])


class TestCaller:
    def test_it_is_never_a_worker_and_keeps_the_task_when_nothing_else_is_eligible(self) -> None:
        request = Request("build", caller="me")
        alone = classic(behind("me", 40), request=request)
        assert (alone.pool, alone.reason) == (None, "nothing else is eligible: the caller keeps the task")
        spent = pool("a", window("weekly", 100, 50))
        decision = classic(behind("me", 40), spent, request=request)
        assert decision.pool is None
        assert decision.reason.startswith(
            "nothing else is eligible: the caller keeps the task · no pool with quota to spare: a at"
        )
        assert (decision.failure_kind, decision.back_at) == ("quota", spent.windows[0].resets_at)

    def test_the_embedded_worker_does_not_stand_in_for_it(self) -> None:
        decision = classic(behind("me", 40), pool("echo", last_resort=True), request=Request("build", caller="me"))
        assert decision.reason.startswith("nothing else is eligible: the caller keeps the task · ")

    def test_it_is_not_protected_where_anything_else_is_eligible(self) -> None:
        assert classic(behind("me", 40), behind("a", -40), request=Request("build", caller="me")).pool == "a"

    @pytest.mark.parametrize(
        "request_",
        [Request("build"), Request("build", caller="me", pin="a"), Request("build", caller="me", use_pools=("a",))],
    )
    def test_nothing_is_said_of_a_caller_that_nobody_knows_or_that_the_request_rules_out(
        self, request_: Request
    ) -> None:
        decision = classic(pool("me", lanes=frozenset({"chore"})), pool("a", enabled=False), request=request_)
        assert decision.pool is None
        assert "the caller keeps" not in decision.reason


class TestQuarantine:
    def held(self, name: str, kind: Any = "quota", **left: float) -> dict[str, Any]:
        return {"quarantines": {name: Quarantine(name, kind, NOW + timedelta(**left), "You've hit your limit")}}

    def test_it_keeps_a_pool_out_until_it_ends_by_itself(self) -> None:
        pools = (behind("a", 40), behind("b", 0))
        decision = classic(*pools, **self.held("a", minutes=30))
        assert decision.pool == "b"
        (entry,) = decision.excluded
        assert (entry.kind, entry.until) == ("quota_quarantine", NOW + timedelta(minutes=30))
        assert entry.reason == (
            "is quarantined until 2026-09-10T12:30:00Z (You've hit your limit); bullswarm pools resume a ends it now"
        )
        assert decision.reason.endswith("quarantined: a until 2026-09-10T12:30:00Z")
        assert classic(*pools, **self.held("a", minutes=0)).pool == "a"

    @pytest.mark.parametrize(("kind", "failure"), [("quota", "quota"), ("auth", "unavailable")])
    def test_with_nothing_else_the_failure_and_the_return_are_told(self, kind: Any, failure: str) -> None:
        decision = classic(behind("a", 40), **self.held("a", kind, minutes=10))
        assert (decision.failure_kind, decision.back_at) == (failure, NOW + timedelta(minutes=10))

    def test_a_pin_and_an_assignment_are_no_way_around_it(self) -> None:
        assert classic(behind("a", 40), request=Request("build", pin="a"), **self.held("a", minutes=1)).pool is None
        context = {**self.held("a", minutes=1), "assignments": {"medium": "a"}}
        assert classic(behind("a", 40), behind("b", 0), **context).pool == "b"

    def test_of_two_reasons_the_one_that_lasts_longer_is_named(self) -> None:
        spent = behind("a", 40, ending("5h", 100, timedelta(hours=1)))
        assert classic(spent, **self.held("a", minutes=59)).excluded[0].kind == "burst"
        assert classic(spent, **self.held("a", minutes=61)).excluded[0].kind == "quota_quarantine"

    def test_the_embedded_worker_does_not_stand_in_for_it(self) -> None:
        assert classic(behind("a", 0), pool("echo", last_resort=True), **self.held("a", "auth", minutes=1)).pool is None


def test_what_the_person_keeps_is_kept_under_this_policy_too() -> None:
    decision = classic(behind("a", 40), behind("b", 0), reserves={"a": 95})
    assert decision.pool == "b"
    assert "kept for you: a 95%" in decision.reason


def test_a_free_model_has_no_privilege() -> None:
    from bullswarm_core.pools import Rung

    free = behind("a", 0, tiers={"medium": Rung("some:free", free=True)})
    assert classic(free, behind("b", 1)).pool == "b"
    assert classic(free, behind("b", -1)).reason == "most behind its pace: a (surplus 0)"
