"""Every number of the design that routing began with (its seed), with the exact reason line."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.core.routing.builders import EVERY_TIER, NOW, THIRTY_DAYS, busy, ending, history, pool, window

from bullswarm_core.pools import Pool, Rate, Rung
from bullswarm_core.routing import Request, RoutingContext, after_stall, decide

ANALYZE = Request("analyze")
STEP = Request("analyze", workflow=True)


def four_pools() -> list[Pool]:
    """A worked example: only grok and codex have a model on the medium tier, and codex is disabled."""
    no_medium = {"high": Rung("opus"), "low": Rung("haiku")}
    return [
        pool("claude-code", window("weekly", 31, 26.3), window("5h", 27, 54), tiers=no_medium, cost_rank=4),
        pool("claude-code:acme", window("weekly", 30, 65.6), window("5h", 15, 44), tiers=no_medium, cost_rank=4),
        pool("codex", enabled=False, cost_rank=3),
        pool("grok", window("weekly", 74, 72.5), rates={"weekly": Rate(0.106, "bootstrap")}, cost_rank=2),
    ]


def test_thirty_points_behind_beat_five() -> None:
    decision = decide(
        ANALYZE, [pool("month", window("monthly", 45, 50)), pool("week", window("weekly", 40, 70))], now=NOW
    )
    assert decision.pool == "week"
    assert [row.pace for row in decision.candidates] == [30.0, 5.0]
    assert decision.reason == "most-behind capable pool (surplus 30)"


def test_the_pool_that_resets_soon_wins_with_the_smaller_surplus() -> None:
    soon = pool("month", ending("monthly", 90, timedelta(hours=2), length=THIRTY_DAYS))
    later = pool("week", ending("weekly", 20, timedelta(days=3)))
    decision = decide(ANALYZE, [later, soon], now=NOW)
    assert decision.pool == "month"
    assert [row.pace for row in decision.candidates] == [9.7, 37.1]
    assert decision.reason == (
        "expiring soon: month resets in 2h00m, surplus 9.7 over 0.3% of the month left → urgency 1940,"
        " forecast 90% (0 in flight)"
    )


def test_the_four_pool_example_picks_grok_and_says_why_each_other_one_is_out() -> None:
    decision = decide(Request("analyze", candidate_minutes=5.67), four_pools(), now=NOW)
    assert decision.pool == "grok"
    assert decision.reason == "most-behind capable pool (surplus -2.1)"
    assert {entry.pool: (entry.kind, entry.reason) for entry in decision.excluded} == {
        "claude-code": ("tier", "has no model on the medium tier"),
        "claude-code:acme": ("tier", "has no model on the medium tier"),
        "codex": ("disabled", "is disabled"),
    }
    assert decision.forecast == {
        "inflight": 0, "projectedFiveHourPct": None, "forecastFiveHourPct": None, "ratePerMinute": None,
        "estimateSource": "bootstrap", "expectedMinutes": 5.67, "candidateMinutes": 5.67, "gated": [],
    }  # fmt: skip


def test_the_four_pool_example_on_the_high_tier_prefers_what_is_most_behind() -> None:
    decision = decide(Request("analyze", effort="high"), four_pools(), now=NOW)
    assert decision.pool == "claude-code:acme"
    assert [row.pace for row in decision.candidates] == [35.6, -1.5, -4.7]
    assert decision.reason == "most-behind capable pool with 5h headroom (surplus 35.6, 5h used 15%)"


def acme(left: timedelta = timedelta(minutes=23), used: float = 81) -> Pool:
    return pool("claude-code:acme", window("weekly", 53, 87), ending("5h", used, left))


def test_acme_at_81_with_23_minutes_left_keeps_the_task() -> None:
    other = pool("claude-code", window("weekly", 40, 60), window("5h", 20, 40))
    decision = decide(Request("build", effort="high"), [other, acme()], now=NOW)
    assert decision.pool == "claude-code:acme"
    assert not decision.candidates[0].near_five_hour_penalty
    assert decision.reason == (
        "expiring soon: claude-code:acme resets in 21h50m, surplus 34 over 13% of the week left → urgency 262,"
        " forecast 53% (5h used 81%, under the clock (92.3% elapsed), 0 in flight)"
        " · last mile: claude-code:acme 81% of 5h, a limit mid-attempt goes back to the caller"
    )


def test_the_same_reading_with_four_hours_left_yields_while_another_pool_is_behind() -> None:
    other = pool("claude-code", window("weekly", 40, 60), window("5h", 20, 40))
    decision = decide(ANALYZE, [other, acme(timedelta(hours=4))], now=NOW)
    assert decision.pool == "claude-code"
    assert [row.near_five_hour_penalty for row in decision.candidates] == [False, True]


def test_near_the_limit_and_the_only_one_behind_it_still_gets_the_work() -> None:
    near = pool("near", window("weekly", 40, 60), ending("5h", 88.1, timedelta(hours=4)))
    ahead = pool("ahead", window("weekly", 70, 60))
    decision = decide(ANALYZE, [ahead, near], now=NOW)
    assert decision.reason == (
        "most-behind capable pool near its 5h limit (surplus 20, 5h used 88.1%, 20% elapsed)"
        " · last mile: near 88.1% of 5h, a limit mid-attempt goes back to the caller"
    )


@pytest.mark.parametrize(
    ("used", "elapsed", "rated", "state"),
    [
        (94.9, 98, False, "normal"),
        (94.9, 98, True, "urgent"),
        (96, 98, False, "normal"),
        (96, 98, True, "urgent"),
        (99.5, 98.8, True, "draining"),
        (95, 94.9, False, "draining"),
        (95, 95, False, "normal"),
        (90, 98, False, "urgent"),
        (90.1, 98, False, "normal"),
        (98, 96, False, "draining"),
    ],
)
def test_draining_is_relative_to_the_window_own_clock(used: float, elapsed: float, rated: bool, state: str) -> None:
    rates = {"monthly": history(0.0001)} if rated else {}
    late = pool("late", window("monthly", used, elapsed), rates=rates)
    decision = decide(ANALYZE, [late], now=NOW)
    assert decision.candidates[0].urgency_state == state
    assert decide(STEP, [late], now=NOW).pool == (None if state == "draining" else "late")


def test_a_single_run_gives_a_draining_pool_the_task_last_and_says_so() -> None:
    grok = pool("grok", window("monthly", 99.5, 98.8))
    other = pool("codex", window("weekly", 60, 50))
    decision = decide(ANALYZE, [grok, other], now=NOW)
    assert [row.pool for row in decision.candidates] == ["codex", "grok"]
    assert decision.reason == (
        "most-behind capable pool (surplus -10)"
        " · expiring but draining (forecast >= 95% and past its clock): grok 99.5% (98.8% elapsed)"
    )
    assert decide(ANALYZE, [grok], now=NOW).pool == "grok"


def test_a_workflow_step_never_gets_a_draining_pool_unless_it_is_pinned() -> None:
    grok = pool("grok", window("monthly", 99.5, 98.8))
    alone = decide(STEP, [grok], now=NOW)
    assert alone.pool is None
    assert alone.failure_kind == "quota"
    assert alone.reason == (
        "no pool with quota to spare: grok nearly spent (forecast 99.5%) until 2026-09-10T20:38:24Z"
    )
    assert alone.back_at == grok.windows[0].resets_at
    assert alone.excluded[0].numbers == {"forecast_pct": 99.5, "elapsed_pct": 98.8}
    assert decide(Request("analyze", workflow=True, pin="grok"), [grok], now=NOW).pool == "grok"
    assert decide(Request("analyze", workflow=True, use_pools=("grok",)), [grok], now=NOW).pool == "grok"
    both = decide(STEP, [grok, pool("codex", window("weekly", 60, 50))], now=NOW)
    assert both.pool == "codex"
    assert both.reason.endswith("grok 99.5% (98.8% elapsed)")


def free_and_metered() -> list[Pool]:
    free = {"medium": Rung("opencode/union-alpha", free=True), "high": Rung("paid")}
    return [
        pool("grok", window("weekly", 40, 52.3)),
        pool("opencode", window("5h", 12, 40), tiers=free, inflight=busy(1)),
        pool("codex", window("weekly", 30, 70)),
    ]


def test_free_models_come_first_and_what_they_pass_over_is_named() -> None:
    decision = decide(ANALYZE, free_and_metered(), now=NOW)
    assert decision.reason == (
        "free pool first: opencode (free model opencode/union-alpha, 5h used 12%, 1 in flight)"
        " · metered pools ranked below free: codex 40, grok 12.3"
    )


def test_free_is_a_property_of_pool_and_tier() -> None:
    assert decide(Request("analyze", effort="high"), free_and_metered(), now=NOW).pool == "codex"


def test_a_free_pool_near_its_limit_yields_to_a_healthy_one_that_is_behind() -> None:
    free = pool("opencode", window("5h", 80, 40), tiers={"medium": Rung("a", free=True)})
    assert decide(ANALYZE, [free, pool("codex", window("weekly", 30, 70))], now=NOW).pool == "codex"
    assert decide(ANALYZE, [free, pool("codex", window("weekly", 80, 70))], now=NOW).pool == "opencode"


def test_free_outranks_expiring_quota() -> None:
    free = pool("opencode", tiers={"medium": Rung("a", free=True)})
    urgent = pool("codex", ending("weekly", 30, timedelta(hours=2)))
    decision = decide(ANALYZE, [urgent, free], now=NOW)
    assert decision.pool == "opencode"
    assert "metered pools ranked below free: codex 68.8" in decision.reason


def test_the_flat_three_points_separate_pools_of_similar_pace() -> None:
    quiet, loaded = pool("quiet", window("weekly", 40, 60)), pool("loaded", window("weekly", 38, 60), inflight=busy(1))
    decision = decide(ANALYZE, [loaded, quiet], now=NOW)
    assert [(row.pool, row.effective_surplus) for row in decision.candidates] == [("quiet", 20), ("loaded", 19)]
    assert decision.reason == ("most-behind capable pool (surplus 20) · preferred over busier: loaded (1 in flight)")
    off = decide(ANALYZE, [loaded, quiet], now=NOW, context=RoutingContext(inflight_penalty_pct=0))
    assert off.pool == "loaded"


def test_a_measured_rate_replaces_the_flat_charge_with_no_floor() -> None:
    loaded = pool(
        "loaded", window("weekly", 38, 60), inflight=(*busy(1, 10), *busy(1)), rates={"weekly": history(0.01)}
    )
    row = decide(Request("analyze", candidate_minutes=20), [loaded], now=NOW).candidates[0]
    assert row.effective_surplus == 22 - 0.3 - 3
    assert row.estimate_source == "history"


def test_a_null_is_never_a_zero() -> None:
    blank = pool("blank")
    row = decide(ANALYZE, [blank], now=NOW).candidates[0].to_json()
    missing = (
        "pace", "fiveHourUsedPct", "projectedFiveHourPct", "forecastFiveHourPct", "fiveHourElapsedPct", "urgency",
        "projectedPacingPct", "forecastPacingPct", "ratePerMinute", "paceResetsInMinutes", "pacingUsedPct",
        "projectedWeeklyPct", "pacingLeftPct", "pacingWindow", "urgencyState",
    )  # fmt: skip
    assert {name: row[name] for name in missing} == dict.fromkeys(missing)
    assert decide(ANALYZE, [blank], now=NOW).reason == "most-behind capable pool (surplus -)"
    unmetered = pool("blank", metered=False)
    assert decide(ANALYZE, [unmetered], now=NOW).reason == "most-behind capable pool (surplus 0)"


def test_a_pinned_pool_says_that_it_was_pinned() -> None:
    codex = pool("codex", window("weekly", 40, 52.3), window("5h", 44, 20))
    others = [pool("grok", window("weekly", 0, 90))]
    pinned = decide(Request("analyze", pin="codex"), [codex, *others], now=NOW)
    assert pinned.reason == "pinned to codex (--worker-pool) · surplus 12.3, 5h used 44%"
    retry = decide(Request("analyze", pin="codex", pin_reason="the same pool (gate retry)"), [codex], now=NOW)
    assert retry.reason.startswith("pinned to codex (the same pool (gate retry)) · surplus 12.3")


def test_a_stalled_pool_is_named_before_the_next_reason() -> None:
    decision = decide(ANALYZE, [pool("codex", window("weekly", 30, 70))], now=NOW)
    moved = after_stall(decision, pool_id="opencode", seconds=300)
    assert moved.reason == "fallback from opencode after stall 300s · most-behind capable pool (surplus 40)"


def test_pools_left_out_by_a_spent_window_end_the_reason_of_a_single_run() -> None:
    pools = [
        pool("pool-a", window("5h", 100, 50)),
        pool("pool-b", window("weekly", 100, 50), window("5h", 100, 50)),
        pool("pool-c", window("weekly", 50, 50)),
    ]
    assert decide(ANALYZE, pools, now=NOW).reason == (
        "most-behind capable pool (surplus 0) (burst-gated: pool-a, pool-b at its weekly limit)"
    )
    assert decide(STEP, pools, now=NOW).reason == "most-behind capable pool (surplus 0)"


def test_a_forecast_past_the_wall_is_ordered_last_and_the_least_bad_one_is_still_picked() -> None:
    rates = {"5h": history(1.0)}
    over = pool("over", window("weekly", 10, 90), window("5h", 90, 50), rates=rates, inflight=busy(1, 8))
    fine = pool("fine", window("weekly", 60, 50), tiers=EVERY_TIER)
    request = Request("analyze", candidate_minutes=5)
    decision = decide(request, [over, fine], now=NOW)
    assert decision.reason == (
        "most-behind capable pool (surplus -10)"
        " · forecast over 100% (still eligible; ranked last): over 103% (50% elapsed)"
    )
    alone = decide(request, [over], now=NOW)
    assert alone.pool == "over"
    assert alone.forecast["projectedFiveHourPct"] == 98
    assert alone.forecast["forecastFiveHourPct"] == 103


def test_most_headroom_does_not_beat_what_is_about_to_expire() -> None:
    """83 %, resets in 4 days; 38 %, resets in 2 days."""
    first = pool("a", ending("weekly", 83, timedelta(days=4)))
    second = pool("b", ending("weekly", 38, timedelta(days=2)))
    assert decide(ANALYZE, [first, second], now=NOW).pool == "b"
    fuller, emptier = ending("weekly", 83, timedelta(days=2)), ending("weekly", 38, timedelta(days=2))
    assert decide(ANALYZE, [pool("a", fuller), pool("b", emptier)], now=NOW).pool == "b"
    assert decide(ANALYZE, [pool("a", window("weekly", 83)), pool("b", window("weekly", 38))], now=NOW).pool == "b"


def test_the_soonest_reset_is_not_what_paces() -> None:
    """The 5-hour window resets in 1 h, the week in 20 h; the broadest readable window is the target."""
    both = pool("a", ending("5h", 40, timedelta(hours=1)), ending("weekly", 10, timedelta(hours=20)))
    row = decide(ANALYZE, [both], now=NOW).candidates[0]
    assert row.pacing_window == "weekly"
    assert row.pace == 78.1
    assert row.urgency_state == "urgent"
    only_five = decide(ANALYZE, [pool("a", ending("5h", 40, timedelta(hours=1)))], now=NOW).candidates[0]
    assert only_five.pace is None
