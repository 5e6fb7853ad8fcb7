"""The billing guard: what is paid beside the plan waits for the person's word, and the word is one command."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.pools.test_properties import contexts, requests, several
from tests.core.routing.builders import NOW, busy, ending, history, pool, window

from bullswarm_core._dataclasses import replace
from bullswarm_core.pools import Pool
from bullswarm_core.routing import Request, RoutingContext, decide
from bullswarm_core.routing.overview import overview

WORK = Request("build", candidate_minutes=10)
KEY = pool("codex", window("weekly", 10, 50), billing="api-key")
ALLOWED = replace(KEY, billing_granted=True)
ECHO = pool("echo", metered=False, last_resort=True, billing="none")
COMMAND = "bullswarm strategy set-provider codex --allow-billing on"


def test_a_pool_that_is_paid_by_key_waits_for_the_word_and_the_reason_is_the_command() -> None:
    decision = decide(WORK, [KEY], now=NOW)
    (entry,) = decision.excluded
    assert (decision.pool, decision.failure_kind, entry.kind, entry.until) == (None, "unavailable", "billing", None)
    assert decision.reason == (
        f"no eligible pool: codex is paid by API key, which you have not allowed (to allow it: {COMMAND})"
    )
    assert decide(WORK, [ALLOWED], now=NOW).pool == "codex"


@pytest.mark.parametrize("billing", ["subscription", "unknown", "none"])
def test_no_other_way_of_paying_is_guarded(billing: Any) -> None:
    assert decide(WORK, [replace(KEY, billing=billing)], now=NOW).pool == "codex"


def test_a_pin_is_no_permission() -> None:
    decision = decide(Request("build", pin="codex"), [KEY, pool("grok")], now=NOW)
    assert decision.pool is None
    assert decision.reason == (
        "no eligible pool: the pinned pool codex cannot run build/medium work"
        f" (it is paid by API key, which you have not allowed (to allow it: {COMMAND}))"
    )


def test_no_stand_in_answers_for_a_pool_that_waits_for_a_word() -> None:
    decision = decide(WORK, [KEY, ECHO], now=NOW)
    assert decision.pool is None
    assert COMMAND in decision.reason
    assert decide(WORK, [replace(KEY, enabled=False), ECHO], now=NOW).pool == "echo"


def test_a_plan_comes_before_a_key_and_the_command_stands_beside_a_spent_one() -> None:
    grok = pool("grok", window("weekly", 90, 50), billing="subscription")
    assert decide(WORK, [KEY, grok], now=NOW).pool == "grok"
    spent = replace(grok, windows=(window("weekly", 100, 50),))
    decision = decide(WORK, [KEY, spent], now=NOW)
    assert decision.failure_kind == "quota"
    assert decision.reason.startswith("no pool with quota to spare: grok at its weekly limit until ")
    assert decision.reason.endswith(f"; codex is paid by API key, which you have not allowed (to allow it: {COMMAND})")


def test_overage_makes_no_full_window_pass_whatever_was_allowed() -> None:
    for granted in (False, True):
        full = pool("claude", window("weekly", 100, 50), overage=True, billing_granted=granted)
        decision = decide(WORK, [full], now=NOW)
        assert (decision.pool, [entry.kind for entry in decision.excluded]) == (None, ["weekly"])


@pytest.mark.parametrize(
    ("one", "forecast"),
    [
        (pool("claude", window("weekly", 96, 50), rates={"weekly": history(0.5)}), 101.0),
        (pool("claude", window("5h", 99, 50)), 102.0),
        (pool("claude", window("monthly", 95, 50), inflight=busy(1)), 101.0),
        (pool("claude", window("weekly", 98, 50, scope="opus"), window("weekly", 98, 50)), 101.0),
    ],
)
def test_a_task_that_would_run_into_overage_waits_for_the_word_or_the_reset(one: Pool, forecast: float) -> None:
    decision = decide(WORK, [replace(one, overage=True)], now=NOW)
    (entry,) = decision.excluded
    assert (entry.kind, entry.numbers["forecast_pct"], decision.failure_kind) == ("overage", forecast, "quota")
    assert entry.until == decision.back_at is not None
    assert "bullswarm strategy set-provider claude --allow-billing on" in decision.reason
    for allowed in (replace(one, overage=True, billing_granted=True), replace(one, overage=False), one):
        assert decide(WORK, [allowed], now=NOW).pool == "claude"


@pytest.mark.parametrize(
    "one",
    [
        pool("claude", window("weekly", 97, 50)),
        pool("claude", window("weekly", 94, 50), rates={"weekly": history(0.5)}),
        pool("claude", window("weekly", 99, 50, source="declared")),
        pool("claude", window("weekly", 99, 50, scope="opus")),
        pool("claude"),
        pool("claude", ending("5h", 99, timedelta(minutes=1)), rates={"5h": history(0.5)}),
    ],
)
def test_a_task_that_stays_within_the_plan_runs_with_overage_on(one: Pool) -> None:
    assert decide(WORK, [replace(one, overage=True)], now=NOW).pool == "claude"


def test_the_overview_says_that_a_pool_waits_for_the_word() -> None:
    assert overview(KEY, now=NOW).state == "billing-gated"
    assert overview(ALLOWED, now=NOW).state == "ready"
    assert overview(replace(KEY, enabled=False), now=NOW).state == "disabled"
    document = overview(replace(ALLOWED, overage=True, plan="pro"), now=NOW).to_json()
    assert (document["overage"], document["plan"], document["billingGranted"]) == (True, "pro", True)


paid = st.tuples(st.sampled_from(["api-key", "subscription"]), st.sampled_from([None, False, True]), st.booleans())


@given(several, st.lists(paid, min_size=4, max_size=4), requests, contexts)
def test_what_was_not_allowed_is_never_a_candidate_and_what_was_is_judged_as_ever(
    given_pools: list[Pool], ways: list[tuple[Any, bool | None, bool]], request: Request, context: RoutingContext
) -> None:
    pools = [
        replace(item, billing=billing, overage=overage, billing_granted=granted)
        for item, (billing, overage, granted) in zip(given_pools, ways, strict=False)
    ]
    decision = decide(request, pools, now=NOW, context=context)
    by_id = {item.id: item for item in pools}
    for row in decision.candidates:
        item = by_id[row.pool]
        assert item.billing != "api-key" or item.billing_granted
    granted = [replace(item, billing_granted=True) for item in pools]
    plain = decide(request, given_pools, now=NOW, context=context)
    assert decide(request, granted, now=NOW, context=context) == plain
