"""decide(): filters, assignments, models, limits, last resort and the wording when no pool is left."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import pytest
from tests.core.routing.builders import NOW, busy, ending, history, pool, row_of, window

from bullswarm_core.errors import UsageError
from bullswarm_core.pools import Pool, Rung, Window
from bullswarm_core.routing import Request, RoutingContext, decide
from bullswarm_core.routing.quarantine import Quarantine

ANALYZE = Request("analyze")
HOUR = timedelta(hours=1)
ECHO = pool("echo", metered=False, last_resort=True)


def kinds(pools: list[Pool], request: Request = ANALYZE, context: RoutingContext | None = None) -> dict[str, str]:
    decision = decide(request, pools, now=NOW, context=context or RoutingContext())
    return {entry.pool: entry.kind for entry in decision.excluded}


def test_each_reason_to_leave_a_pool_out_has_its_kind_and_phrase() -> None:
    pools = [
        pool("caller"),
        pool("off", enabled=False),
        pool("lane", lanes=frozenset({"build"})),
        pool("skill"),
        pool("tier", tiers={"high": Rung()}, capabilities=frozenset({"web"})),
        pool("model", tiers={"medium": Rung("opus", refused="excluded")}, capabilities=frozenset({"web"})),
        pool("out", unavailable="not signed in", capabilities=frozenset({"web"})),
        pool("spent", window("5h", 100, 50), capabilities=frozenset({"web"})),
        pool("avoided"),
        pool("probe", capabilities=frozenset({"web"})),
    ]
    request = Request("analyze", capabilities=("web",), caller="caller", avoid_pools=("avoided",))
    decision = decide(request, pools, now=NOW, context=RoutingContext(probes={"probe": "timeout"}))
    assert [(entry.pool, entry.kind, entry.reason) for entry in decision.excluded] == [
        ("avoided", "filter", "is a pool to avoid"),
        ("caller", "caller", "is the caller's own pool"),
        ("lane", "lane", "does not take analyze work"),
        ("model", "model", "may not run opus: excluded"),
        ("off", "disabled", "is disabled"),
        ("out", "unavailable", "not signed in"),
        ("probe", "probe", "probe: timeout"),
        ("skill", "capability", "lacks web"),
        ("spent", "burst", "at its 5-hour limit until 2026-09-10T14:30:00Z"),
        ("tier", "tier", "has no model on the medium tier"),
    ]
    assert decision.pool is None
    assert decision.failure_kind == "unavailable"
    assert decision.reason == (
        "no pool free: out unavailable: not signed in; probe probe: timeout;"
        " spent at its 5-hour limit until 2026-09-10T14:30:00Z"
    )
    assert decision.back_at == NOW + timedelta(minutes=150)


@pytest.mark.parametrize(
    ("request_", "left"),
    [
        (Request("analyze", use_pools=("a", "b")), ["a", "b"]),
        (Request("analyze", avoid_pools=("a",)), ["b", "c:x"]),
        (Request("analyze", use_providers=("c",)), ["c:x"]),
        (Request("analyze", avoid_providers=("c", "a")), ["b"]),
        (Request("analyze", use_pools=("a", "c:x"), use_providers=("c",)), ["c:x"]),
        (Request("analyze", caller="c:x"), ["a", "b"]),
        (Request("analyze", pin="b"), ["b"]),
    ],
)
def test_filters_are_hard(request_: Request, left: list[str]) -> None:
    decision = decide(request_, [pool("a"), pool("b"), pool("c:x")], now=NOW)
    assert sorted(row.pool for row in decision.candidates) == left


def test_another_account_of_the_calling_cli_stays_eligible() -> None:
    accounts = [pool("claude-code"), pool("claude-code:acme")]
    assert decide(Request("analyze", caller="claude-code"), accounts, now=NOW).pool == "claude-code:acme"


def test_the_lane_has_its_customary_tier() -> None:
    one = pool("a", tiers={"low": Rung("small"), "medium": Rung("large")})
    for lane, model in (("analyze", "large"), ("build", "large"), ("chore", "small")):
        rung = decide(Request(lane), [one], now=NOW).rung  # type: ignore[arg-type]
        assert rung is not None and rung.model == model


def test_a_model_that_is_asked_for_is_a_hard_filter() -> None:
    pools = [
        pool("named", tiers={"high": Rung("opus", reasoning="high")}),
        pool("open"),
        pool("other", tiers={"medium": Rung("sonnet")}),
        pool("refused", tiers={"medium": Rung("opus", refused="excluded")}),
        ECHO,
    ]
    decision = decide(Request("analyze", model="opus"), pools, now=NOW)
    assert sorted(row.pool for row in decision.candidates) == ["named", "open"]
    assert decision.rung == Rung("opus", reasoning="high", source="request")
    by_kind = {entry.pool: entry.reason for entry in decision.excluded if entry.kind == "model"}
    assert by_kind == {"other": "cannot run opus", "refused": "may not run opus: excluded"}
    free = decide(Request("analyze", model="qwen:free"), [pool("open")], now=NOW)
    assert free.candidates[0].free
    assert kinds([ECHO], Request("analyze", model="opus")) == {"echo": "model"}


def test_an_assignment_wins_among_the_selectable_and_sets_the_model() -> None:
    behind, assigned = pool("behind", window("weekly", 10, 60)), pool("mine", window("weekly", 50, 60))
    plain = decide(ANALYZE, [behind, assigned], now=NOW, context=RoutingContext(assignments={"medium": "mine"}))
    assert plain.pool == "mine"
    assert plain.reason == "configured medium assignment (mine, 0 in flight)"
    assert [row.pool for row in plain.candidates] == ["behind", "mine"]
    with_model = RoutingContext(assignments={"medium": ("mine", "opus")})
    decision = decide(ANALYZE, [behind, assigned], now=NOW, context=with_model)
    assert decision.rung == Rung("opus", source="settings")
    assert decide(Request("chore"), [behind, assigned], now=NOW, context=with_model).pool == "behind"
    noted = decide(ANALYZE, [pool("mine", window("5h", 20, 50), inflight=busy(2))], now=NOW, context=with_model)
    assert noted.reason == "configured medium assignment (mine, 5h used 20%, 2 in flight)"


@pytest.mark.parametrize(
    ("mine", "why"),
    [
        (pool("mine", window("weekly", 50, 60)), "not expiring"),
        (pool("mine", window("monthly", 98, 96)), "draining"),
        (pool("mine", window("weekly", 50, 60), window("5h", 90, 20)), "last mile"),
        (
            pool("mine", window("5h", 99, 20), rates={"5h": history(1)}, inflight=busy(1, 9)),
            "ranked last by its forecast",
        ),
    ],
)
def test_an_assignment_bypasses_no_check_and_the_reason_says_so(mine: Pool, why: str) -> None:
    context = RoutingContext(assignments={"medium": "mine"})
    urgent = pool("other", ending("weekly", 40, 2 * HOUR))
    decision = decide(ANALYZE, [mine, urgent], now=NOW, context=context)
    assert decision.pool == "other"
    assert f" · medium assignment passed over: mine ({why})" in decision.reason
    free = pool("free", tiers={"medium": Rung("x", free=True)})
    passed = decide(ANALYZE, [pool("mine"), free], now=NOW, context=context)
    assert "medium assignment passed over: mine (not free)" in passed.reason


def test_a_probe_leaves_its_pool_out_and_stands_in_the_reason() -> None:
    pools = [pool("codex", window("weekly", 30, 70)), pool("opencode", tiers={"medium": Rung("x", free=True)})]
    context = RoutingContext(probes={"opencode": "timeout"}, route_summary="avoid grok")
    decision = decide(ANALYZE, pools, now=NOW, context=context)
    assert decision.reason == "most-behind capable pool (surplus 40) · route: avoid grok · probe: timeout (opencode)"


def test_other_policies_facts_never_change_a_pick_of_pace() -> None:
    pools = [pool("a", window("weekly", 30, 70)), pool("b", window("weekly", 20, 70))]
    benched = Quarantine("b", "quota", NOW + timedelta(hours=1), "a usage limit")
    context = RoutingContext(task_spread=3.0, incumbents={"analyze": "a"}, quarantines={"b": benched})
    assert decide(ANALYZE, pools, now=NOW, context=context) == decide(ANALYZE, pools, now=NOW)


def test_a_day_protects_like_five_hours_and_never_paces() -> None:
    healthy = pool("healthy", window("weekly", 55, 60))
    spent = pool("spent", window("daily", 100, 50))
    near = pool("near", window("weekly", 10, 60), window("daily", 80, 50))
    over = pool("over", window("daily", 99, 50), rates={"daily": history(1)}, inflight=busy(1, 9))
    decision = decide(ANALYZE, [over, near, spent, healthy], now=NOW)
    assert [row.pool for row in decision.candidates] == ["healthy", "near", "over"]
    assert decision.reason == (
        "most-behind capable pool (surplus 5)"
        " · forecast over 100% (still eligible; ranked last): over 108% (50% elapsed)"
        " (burst-gated: spent at its daily limit)"
    )
    assert decide(ANALYZE, [near], now=NOW).reason == (
        "most-behind capable pool near its daily limit (surplus 50)"
        " · last mile: near 80% of its day, a limit mid-attempt goes back to the caller"
    )
    assert row_of(over).pace is None


def test_the_longest_limit_is_named_and_the_earliest_return_counts() -> None:
    pools = [
        pool("a", ending("5h", 100, HOUR), ending("weekly", 100, 9 * HOUR)),
        pool("b", ending("monthly", 100, 30 * HOUR)),
        pool("c", window("weekly", 100)),
    ]
    decision = decide(ANALYZE, pools, now=NOW)
    assert decision.failure_kind == "quota"
    assert decision.back_at == NOW + 9 * HOUR
    assert decision.reason == (
        "no pool with quota to spare: a at its weekly limit until 2026-09-10T21:00:00Z;"
        " b at its monthly limit until 2026-09-11T18:00:00Z; c at its weekly limit with no known reset"
    )


def test_draining_is_named_before_a_limit_that_returns_earlier() -> None:
    one = pool("a", ending("5h", 100, HOUR), ending("weekly", 99, 20 * HOUR))
    step = decide(Request("analyze", workflow=True), [one], now=NOW)
    assert step.excluded[0].kind == "draining"
    assert step.back_at == NOW + 20 * HOUR
    assert kinds([one]) == {"a": "burst"}


def test_a_scoped_window_gates_only_its_model() -> None:
    opus = Window("weekly", 100.0, NOW + HOUR, "cache", NOW, scope="opus")
    one = pool("a", opus, tiers={"high": Rung("claude-opus-4"), "medium": Rung("sonnet")})
    assert decide(ANALYZE, [one], now=NOW).pool == "a"
    assert kinds([one], Request("analyze", effort="high")) == {"a": "weekly"}


def test_the_last_resort_answers_only_when_named_or_when_no_other_pool_is_left() -> None:
    codex = pool("codex")
    assert decide(ANALYZE, [codex, ECHO], now=NOW).pool == "codex"
    assert kinds([codex, ECHO]) == {"echo": "last_resort"}
    for request in (Request("analyze", pin="echo"), Request("analyze", use_pools=("echo",))):
        assert decide(request, [codex, ECHO], now=NOW).pool == "echo"
    assert decide(Request("analyze", use_providers=("echo",)), [codex, ECHO], now=NOW).pool == "echo"
    for others in ([], [pool("codex", enabled=False)], [pool("codex", unavailable="is not signed in")]):
        alone = decide(ANALYZE, [*others, ECHO], now=NOW)
        assert alone.pool == "echo"
        assert alone.reason == "no agent CLI can take this: the embedded echo worker answers"


def test_no_stand_in_answers_for_a_pool_that_only_waits() -> None:
    held = [pool("codex", window("weekly", 100, 50)), ECHO]
    decision = decide(ANALYZE, held, now=NOW)
    assert (decision.pool, decision.failure_kind) == (None, "quota")
    avoided = decide(Request("analyze", avoid_pools=("codex",)), [pool("codex"), ECHO], now=NOW)
    assert (avoided.pool, avoided.failure_kind) == (None, "unavailable")
    probed = decide(ANALYZE, [pool("codex"), ECHO], now=NOW, context=RoutingContext(probes={"codex": "404"}))
    assert (probed.pool, probed.failure_kind) == (None, "unavailable")


@pytest.mark.parametrize(
    ("request_", "pools", "reason"),
    [
        (ANALYZE, [], "no eligible pool: no agent CLI was found; bullswarm doctor lists what is missing"),
        (ANALYZE, [pool("a", tiers={})], "no pool has a model allowed for the medium tier"),
        (
            ANALYZE,
            [pool("a", tiers={}), pool("b", enabled=False)],
            "no eligible pool: no enabled pool has a model on the medium tier for analyze work:"
            " a has no model on the medium tier; b is disabled",
        ),
        (
            ANALYZE,
            [pool("a", tiers={"medium": Rung("x", refused="excluded")}), pool("b", tiers={})],
            "no pool has an allowed medium model under the current model policy (a may not run x: excluded)",
        ),
        (
            Request("analyze", capabilities=("web", "sound")),
            [pool("a", capabilities=frozenset({"web"}))],
            "no eligible pool with capabilities: web, sound: a lacks sound",
        ),
        (Request("analyze", caller="a"), [pool("a")], "no eligible pool: a is the caller's own pool"),
        (
            Request("build", pin="a"),
            [pool("a", enabled=False), pool("b")],
            "no eligible pool: the pinned pool a cannot run build/medium work"
            " (it is disabled or has no model on the medium tier) · bullswarm strategy set-provider a on takes it back in",
        ),
        (
            Request("build", pin="a"),
            [pool("a", lanes=frozenset({"chore"}))],
            "no eligible pool: the pinned pool a cannot run build/medium work (it does not take build work)",
        ),
        (
            Request("build", pin="gone"),
            [pool("a")],
            "no eligible pool: the pinned pool gone cannot run build/medium work"
            " (no such pool; bullswarm pools lists them)",
        ),
        (
            Request("analyze", avoid_providers=("a",)),
            [pool("a"), pool("b", enabled=False)],
            "no pool left after route filters (avoid providers a): a (is of a provider to avoid);"
            " passes the filters but disabled: b",
        ),
        (
            Request("analyze", use_pools=("b",), caller="b"),
            [pool("a"), pool("b")],
            "no pool left after route filters (use pools b): a (is not among the pools to use);"
            " passes the filters but is the caller: b",
        ),
    ],
)
def test_why_no_pool_could_take_the_task(request_: Request, pools: list[Pool], reason: str) -> None:
    decision = decide(request_, pools, now=NOW)
    assert decision.reason == reason
    assert (decision.pool, decision.failure_kind, decision.back_at) == (None, "unavailable", None)


def test_a_long_list_stays_a_line() -> None:
    pools = [pool(f"p{place:03}", window("weekly", 100, 50)) for place in range(200)]
    decision = decide(ANALYZE, pools, now=NOW)
    assert decision.reason.endswith("; 188 more")
    assert len(decision.excluded) == 200


def test_forecasts_are_clipped_at_the_reset_and_never_clamped() -> None:
    one = pool(
        "a",
        ending("5h", 80, timedelta(minutes=10)),
        ending("weekly", 80, timedelta(minutes=40)),
        inflight=busy(1, 100),
        rates={"5h": history(2), "weekly": history(2)},
    )
    row = row_of(one, Request("analyze", candidate_minutes=60))
    assert row.projected_five_hour_pct == 100
    assert row.forecast_five_hour_pct == 120
    assert row.projected_pacing_pct == 160
    assert row.forecast_pacing_pct == 240
    assert row.effective_surplus == round(row.pace or 0, 1) - 320
    assert row.forecast_over_limit


def test_a_rate_is_of_the_pacing_window_else_of_the_week_and_never_of_five_hours() -> None:
    month = window("monthly", 40, 50)
    request = Request("analyze", candidate_minutes=10)
    assert row_of(pool("a", month, rates={"5h": history(9)}), request).effective_surplus == 10
    assert row_of(pool("a", month, rates={"weekly": history(0.1)}), request).effective_surplus == 9
    both = {"weekly": history(0.1), "monthly": history(0.2)}
    assert row_of(pool("a", month, rates=both), request).effective_surplus == 8


def test_minutes_without_a_rate_project_nothing_and_an_elapsed_record_adds_nothing() -> None:
    loaded = row_of(pool("a", window("5h", 30, 50), window("weekly", 30, 50), inflight=busy(2, 10)))
    assert (loaded.projected_five_hour_pct, loaded.forecast_five_hour_pct) == (None, 30)
    assert (loaded.projected_pacing_pct, loaded.forecast_pacing_pct) == (None, 36)
    assert (loaded.estimate_source, loaded.effective_surplus) == ("penalty", 14)
    idle = row_of(pool("a", window("5h", 30, 50)))
    assert (idle.projected_five_hour_pct, idle.estimate_source) == (30, "none")


def test_a_bare_reading_over_the_wall_is_no_forecast() -> None:
    declared = pool("a", window("5h", 130, 50, source="declared"))
    assert not row_of(declared).forecast_over_limit


def test_ties_go_to_the_pool_id() -> None:
    assert decide(ANALYZE, [pool("b"), pool("a"), pool("c")], now=NOW).pool == "a"


def test_values_outside_the_closed_lists_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown lane review · use analyze, build, chore"):
        Request("review")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unknown effort max · use high, medium, low"):
        Request("build", effort="max")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"unknown routing policy best · config\.routingPolicy takes pace"):
        decide(ANALYZE, [], now=NOW, policy="best")
    with pytest.raises(UsageError, match="a is both to be used and to be avoided"):
        Request("build", use_pools=("a",), avoid_pools=("a",))
    with pytest.raises(UsageError, match="give a list of names"):
        Request("build", use_pools="codex")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [math.nan, math.inf, -1.0])
def test_numbers_that_cannot_be_compared_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="candidate_minutes"):
        Request("build", candidate_minutes=number)
    with pytest.raises(ValueError, match="inflight_penalty_pct"):
        RoutingContext(inflight_penalty_pct=number)


def test_a_clock_without_a_zone_and_two_pools_with_one_id_are_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        decide(ANALYZE, [], now=datetime(2026, 9, 10))
    with pytest.raises(ValueError, match="same id"):
        decide(ANALYZE, [pool("a"), pool("a")], now=NOW)


def test_the_documents_carry_ids_labels_and_camel_case() -> None:
    pools = [pool("codex", window("weekly", 30, 70), label="cx"), pool("grok", window("5h", 100, 50), label="gk")]
    document = decide(ANALYZE, pools, now=NOW).to_json()
    assert (document["pool"], document["poolLabel"]) == ("codex", "cx")
    assert document["reason"] == "most-behind capable pool (surplus 40) (burst-gated: grok)"
    row, entry = document["candidates"][0], document["excluded"][0]
    assert (row["pool"], row["poolLabel"], row["pacingLeftPct"], row["costRank"]) == ("codex", "cx", 30.0, 5)
    assert row["pacingResetsAt"] == "2026-09-12T14:24:00Z"
    assert entry == {
        "pool": "grok", "poolLabel": "gk", "kind": "burst", "window": "5h", "until": "2026-09-10T14:30:00Z",
        "reason": "at its 5-hour limit until 2026-09-10T14:30:00Z", "numbers": {"usedPct": 100},
    }  # fmt: skip
