"""What holds of the ``classic`` policy for any pools, and what it never changes for ``pace``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.pools.test_properties import contexts, requests, several
from tests.core.routing.builders import NOW

from bullswarm_core.pools import LANES, Pool
from bullswarm_core.routing import Candidate, Decision, Request, RoutingContext, decide, render
from bullswarm_core.routing.policies.classic import BURST_BLOCK_PCT, INCUMBENCY_MARGIN, protecting_forecast
from bullswarm_core.routing.quarantine import (
    AUTH_REPROBE,
    KINDS,
    UNKNOWN_RESET,
    Quarantine,
    after_auth_failure,
    after_limit,
    merged,
)

NAMES = ("alpha", "beta", "gamma", "delta")
moments = st.integers(-40, 400).map(lambda minutes: NOW + timedelta(minutes=minutes))
quarantines = st.builds(Quarantine, st.sampled_from(NAMES), st.sampled_from(KINDS), moments, st.just("a limit"))
held = st.dictionaries(st.sampled_from(NAMES), quarantines, max_size=2).map(
    lambda entries: {name: replace(entry, pool=name) for name, entry in entries.items()}
)
incumbents = st.dictionaries(st.sampled_from(LANES), st.sampled_from(NAMES), max_size=3)


@st.composite
def pasts(draw: st.DrawFn) -> RoutingContext:
    """A context with a past: incumbents and quarantines."""
    return replace(draw(contexts), incumbents=draw(incumbents), quarantines=draw(held))


costly = several.flatmap(
    lambda pools: st.lists(st.sampled_from((1, 5, 9)), min_size=len(pools), max_size=len(pools)).map(
        lambda ranks: [replace(pool, cost_rank=rank) for pool, rank in zip(pools, ranks, strict=True)]
    )
)


def classic(pools: list[Pool], request: Request, context: RoutingContext) -> Decision:
    return decide(request, pools, now=NOW, policy="classic", context=context)


def _by_name(decision: Decision) -> Mapping[str, Candidate]:
    return {row.pool: row for row in decision.candidates}


@given(costly, requests, pasts())
@settings(max_examples=80)
def test_pace_decides_the_same_with_any_past(pools: list[Pool], request: Request, context: RoutingContext) -> None:
    plain = replace(context, incumbents={}, quarantines={})
    assert decide(request, pools, now=NOW, context=context) == decide(request, pools, now=NOW, context=plain)


@given(costly, requests, pasts(), st.randoms(use_true_random=False))
def test_the_order_of_the_list_does_not_matter(
    pools: list[Pool], request: Request, context: RoutingContext, random: object
) -> None:
    mixed = list(pools)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert classic(mixed, request, context) == classic(pools, request, context)


@given(costly, requests, pasts())
@settings(max_examples=80)
def test_the_pick_never_stands_behind_a_rule_that_another_candidate_passes(
    pools: list[Pool], request: Request, context: RoutingContext
) -> None:
    decision = classic(pools, request, context)
    pick = decision.row
    if pick is None:
        return
    assert decision.reason == render(decision.reason_parts)
    rows = decision.candidates
    assert all(row.forecast_gated == (protecting_forecast(row) >= BURST_BLOCK_PCT) for row in rows)
    rivals = [row for row in rows if not row.forecast_gated]
    if not rivals:
        assert pick.inflight == min(row.inflight for row in rows)
        return
    rivals = [row for row in rivals if not row.near_five_hour_penalty] or rivals
    rivals = [row for row in rivals if not row.reserved] or rivals
    urgent = [row for row in rivals if row.urgency_state == "urgent"]
    rivals = urgent or [row for row in rivals if row.urgency_state != "draining"] or rivals
    assert pick in rivals
    if urgent:
        assert pick.urgency == max(row.urgency or 0.0 for row in urgent)


@given(costly, requests, pasts())
@settings(max_examples=80)
def test_work_leaves_its_incumbent_only_for_a_challenger_that_may_have_it(
    pools: list[Pool], request: Request, context: RoutingContext
) -> None:
    decision = classic(pools, request, replace(context, assignments={}))
    incumbent = _by_name(decision).get(context.incumbents.get(request.lane, ""))
    pick = decision.row
    if pick is None or incumbent is None or pick is incumbent or pick.urgency_state == "urgent":
        return

    def standing(row: Candidate) -> tuple[bool, bool, bool, bool]:
        return row.forecast_gated, row.near_five_hour_penalty, row.reserved, row.urgency_state == "draining"

    if pick.forecast_gated or standing(incumbent) != standing(pick):
        return
    if pick.inflight < incumbent.inflight:
        assert pick.effective_surplus >= incumbent.effective_surplus
    else:
        assert pick.cost_rank < incumbent.cost_rank
        assert pick.effective_surplus - incumbent.effective_surplus >= INCUMBENCY_MARGIN - 0.001


@given(costly, requests, pasts())
def test_the_charge_is_never_below_the_floor_and_never_below_what_is_projected(
    pools: list[Pool], request: Request, context: RoutingContext
) -> None:
    classics = _by_name(classic(pools, request, context))
    paces = _by_name(decide(request, pools, now=NOW, context=context))
    for name in classics.keys() & paces.keys():
        row, other = classics[name], paces[name]
        floor = row.inflight * context.inflight_penalty_pct
        charge = (row.pace or 0.0) - row.effective_surplus
        assert charge >= floor - 0.06
        assert row.effective_surplus <= other.effective_surplus
        assert row.effective_surplus == other.effective_surplus or abs(charge - floor) < 0.06


@given(costly, requests, pasts())
def test_a_quarantined_pool_is_never_picked_and_the_caller_never_either(
    pools: list[Pool], request: Request, context: RoutingContext
) -> None:
    decision = classic(pools, request, context)
    assert decision.pool is None or decision.pool != request.caller
    for name, entry in context.quarantines.items():
        if entry.until > NOW:
            assert name not in _by_name(decision)


@given(held, st.lists(quarantines, max_size=5))
def test_a_later_deadline_is_never_shortened(known: dict[str, Quarantine], new: list[Quarantine]) -> None:
    result = merged(known, new)
    for name, entry in known.items():
        assert result[name].until >= entry.until
        assert result[name] is entry or result[name].until > entry.until
    for entry in new:
        assert result[entry.pool].until >= entry.until
    assert merged(result, new) == result


@given(st.none() | moments, st.none() | moments)
def test_a_limit_lasts_to_the_named_reset_else_the_5_hour_one_else_half_an_hour(
    named: object, measured: object
) -> None:
    found = after_limit("a", "why", now=NOW, named_reset=named, five_hour_reset=measured)  # type: ignore[arg-type]
    if named is not None:
        assert (found.until if found else None) == (named if named > NOW else None)  # type: ignore[operator]
        return
    assert found is not None
    ahead = measured is not None and measured > NOW  # type: ignore[operator]
    assert found.until == (measured if ahead else NOW + UNKNOWN_RESET)
    assert timedelta(minutes=30) == UNKNOWN_RESET


@given(st.lists(st.sampled_from(NAMES)))
def test_a_refused_sign_in_takes_its_group_along_for_ten_minutes(siblings: list[str]) -> None:
    first, *others = after_auth_failure("alpha", "auth_unavailable", now=NOW, siblings=siblings)
    assert (first.pool, first.why) == ("alpha", "auth_unavailable")
    assert {entry.pool for entry in others} == set(siblings) - {"alpha"}
    assert {entry.why for entry in others} <= {"sibling of alpha: auth_unavailable"}
    assert {entry.until for entry in (first, *others)} == {NOW + timedelta(minutes=10)}
    assert timedelta(minutes=10) == AUTH_REPROBE


def test_a_deadline_never_comes_early() -> None:
    exact = NOW + timedelta(milliseconds=1)
    found = after_limit("a", "why", now=NOW, named_reset=exact, five_hour_reset=None)
    assert found is not None and found.until == NOW + timedelta(seconds=1)


def test_the_last_second_that_there_is_has_no_next_one() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    found = after_limit("a", "why", now=NOW, named_reset=None, five_hour_reset=last)
    assert found is not None and found.until == last.replace(microsecond=0)
