"""What holds for any pools: the pick is eligible, blind to order, monotone, and its reason can be checked.

Raising a used % and preference. The rules rank groups before numbers (forecast, last mile, free, urgency), so "never
more preferred" is stated on the order itself: a pool that stood behind another one never moves ahead of it when its
own used % rises. It holds through every group: a higher reading can only raise its own forecast, lower its own
surplus, take it out of the urgent group, make it drain or spend it; and the one thing it changes for others (it stops
being "another pool behind pace") only frees them from a penalty. Rates stay as they are: a rate that is fitted from
the reading is another input.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.routing.builders import NOW

from bullswarm_core.fast.text import duration, number
from bullswarm_core.pools import EFFORTS, Inflight, Pool, Rate, Rung, Window, WindowKind
from bullswarm_core.quota.windows import spent
from bullswarm_core.routing import Candidate, Decision, Exclusion, Request, RoutingContext, decide, render
from bullswarm_core.routing.policies.pace import arrange, score
from bullswarm_core.routing.sentences import SEGMENT_BREAK

KINDS: tuple[WindowKind, ...] = ("5h", "daily", "weekly", "monthly")
REACH = {"5h": 300, "daily": 1440, "weekly": 10_080, "monthly": 44_640}
NAMES = ("alpha", "beta", "gamma", "delta")
# Values around every line of the rules, and most of them such that the pool stays eligible: a property says nothing
# about pools that are all left out.
USED = (None, 0.0, 12.5, 30.0, 44.4, 61.3, 74.9, 75.0, 81.0, 90.0, 90.1, 94.9, 95.0, 96.0, 99.5, 100.0, 130.0)
LEFT = (None, -0.2, 0.0, *(0.004, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95) * 2)
SOURCES = (*("cache",) * 6, "live", "stale", "declared", "refusal")
RESET_SOURCES = (None, "provider", "named", "measured", "guessed")


@st.composite
def windows(draw: st.DrawFn, kind: WindowKind) -> Window:
    left = draw(st.sampled_from(LEFT))
    return Window(
        kind,
        draw(st.sampled_from(USED) | st.integers(0, 1000).map(lambda tenths: tenths / 10)),
        None if left is None else NOW + timedelta(minutes=round(REACH[kind] * left)),
        draw(st.sampled_from(SOURCES)),
        NOW,
        reset_source=draw(st.sampled_from(RESET_SOURCES)),
        scope=draw(st.sampled_from([None] * 7 + ["opus"])),
    )


def maybe(usual: object, other: object) -> st.SearchStrategy[Any]:
    """``usual`` in seven cases out of eight."""
    return st.sampled_from([*[usual] * 7, other])


records = st.builds(
    Inflight,
    st.integers(0, 200).map(lambda minutes: NOW - timedelta(minutes=minutes)),
    st.none() | st.integers(0, 240),
)
rates = st.builds(Rate, st.sampled_from([0.0, 0.01, 0.1, 0.5, 2.0]), st.sampled_from(["history", "bootstrap"]))
rungs = st.builds(Rung, st.sampled_from([None, "opus", "sonnet"]), free=maybe(False, True))


@st.composite
def pools(draw: st.DrawFn, name: str) -> Pool:
    kinds = draw(st.lists(st.sampled_from(KINDS), unique=True, max_size=4))
    rung = draw(rungs)
    return Pool(
        name,
        draw(st.sampled_from(["codex", "grok"])),
        enabled=draw(maybe(True, False)),
        tiers=draw(maybe(dict.fromkeys(EFFORTS, rung), {"high": rung})),
        windows=tuple(draw(windows(kind)) for kind in kinds),
        pacing=draw(st.sampled_from([None, "weekly", "monthly"])),
        inflight=tuple(draw(st.lists(records, max_size=2))),
        rates=draw(st.dictionaries(st.sampled_from(KINDS), rates, max_size=3)),
        metered=draw(st.booleans()),
        unavailable=draw(maybe(None, "not signed in")),
    )


several = st.integers(2, len(NAMES)).flatmap(
    lambda count: st.tuples(*(pools(name) for name in NAMES[:count])).map(list)
)
requests = st.builds(
    Request,
    st.sampled_from(["analyze", "build", "chore"]),
    st.sampled_from([None, "high", "medium", "low"]),
    model=maybe(None, "opus"),
    pin=maybe(None, "alpha"),
    caller=maybe(None, "beta"),
    candidate_minutes=st.sampled_from([None, 0, 5, 5.67, 60]),
    workflow=st.booleans(),
)
contexts = st.builds(
    RoutingContext,
    st.sampled_from([0.0, 3.0]),
    assignments=st.sampled_from([{}, {"medium": "gamma"}, {"high": ("alpha", "opus")}]),
    reserves=st.sampled_from([{}, {"alpha": 20.0}, {"beta": 60.0, "gamma": 100.0}]),
    probes=st.sampled_from([{}, {"delta": "timeout"}]),
    route_summary=st.sampled_from([None, "avoid codex"]),
)


@given(several, requests, contexts)
def test_every_pool_is_a_candidate_or_left_out_and_the_pick_is_a_candidate(
    given_pools: list[Pool], request: Request, context: RoutingContext
) -> None:
    decision = decide(request, given_pools, now=NOW, context=context)
    candidates = [row.pool for row in decision.candidates]
    assert sorted([*candidates, *(entry.pool for entry in decision.excluded)]) == sorted(p.id for p in given_pools)
    by_id = {item.id: item for item in given_pools}
    for name in candidates:
        item = by_id[name]
        assert item.enabled and item.unavailable is None
        assert name != request.caller
        assert request.pin in (None, name)
    if candidates:
        assert decision.pool in candidates
        assert decision.failure_kind is None
        assert decision.rung is not None and decision.row is not None and decision.rung.model == decision.row.model
    else:
        assert decision.pool is None
        assert decision.failure_kind in ("quota", "unavailable")


@given(several, requests, contexts, st.randoms(use_true_random=False))
def test_the_order_of_the_list_changes_nothing(
    given_pools: list[Pool], request: Request, context: RoutingContext, random: object
) -> None:
    given_pools = [*given_pools, replace(given_pools[0], id="twin")]
    shuffled = [replace(item, windows=item.windows[::-1], inflight=item.inflight[::-1]) for item in given_pools]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, again, mixed = (
        decide(request, item, now=NOW, context=context) for item in (given_pools, given_pools, shuffled)
    )
    assert first == again == mixed


@given(several, requests, contexts)
def test_a_pool_with_a_spent_running_window_is_never_a_candidate(
    given_pools: list[Pool], request: Request, context: RoutingContext
) -> None:
    decision = decide(request, given_pools, now=NOW, context=context)
    by_id = {item.id: item for item in given_pools}
    for row in decision.candidates:
        assert not any(spent(window, NOW, model=row.model) for window in by_id[row.pool].windows)


@given(several, requests, contexts)
def test_windows_whose_reset_has_passed_count_for_nothing(
    given_pools: list[Pool], request: Request, context: RoutingContext
) -> None:
    def is_ahead(window: Window) -> bool:
        return window.resets_at is None or window.resets_at > NOW

    running = [replace(item, windows=tuple(filter(is_ahead, item.windows))) for item in given_pools]
    assert decide(request, given_pools, now=NOW, context=context) == decide(request, running, now=NOW, context=context)


@given(several, requests, contexts, st.data())
@settings(max_examples=120)
def test_raising_a_used_share_never_moves_a_pool_ahead_of_another(
    given_pools: list[Pool], request: Request, context: RoutingContext, data: st.DataObject
) -> None:
    before = decide(request, given_pools, now=NOW, context=context)
    candidates = {row.pool for row in before.candidates}
    target = data.draw(st.sampled_from([item for item in given_pools if item.id in candidates] or given_pools))
    readable = [place for place, window in enumerate(target.windows) if window.used_pct is not None]
    if not readable:
        return
    place = data.draw(st.sampled_from(readable))
    window = target.windows[place]
    raised = replace(window, used_pct=(window.used_pct or 0.0) + data.draw(st.integers(0, 120)) / 2)
    changed = replace(target, windows=(*target.windows[:place], raised, *target.windows[place + 1 :]))
    after = decide(request, [changed if item is target else item for item in given_pools], now=NOW, context=context)
    ahead = {row.pool for row in _ahead_of(before, target.id)}
    assert ahead <= {row.pool for row in _ahead_of(after, target.id)}
    assert after.pool != target.id or before.pool == target.id


def _ahead_of(decision: Decision, name: str) -> list[Candidate]:
    """The candidates that stand before the pool; all of them when it is left out."""
    names = [row.pool for row in decision.candidates]
    return list(decision.candidates[: names.index(name)] if name in names else decision.candidates)


@given(several, requests, contexts, st.booleans())
def test_an_unmeasured_pool_never_demotes_a_measured_one_by_a_number_that_nobody_produced(
    given_pools: list[Pool], request: Request, context: RoutingContext, metered: bool
) -> None:
    """The others keep their rows and their order; the newcomer, at 0, passes none that has more surplus."""
    blank = Pool("blank", "codex", tiers={"high": Rung(), "medium": Rung(), "low": Rung()}, metered=metered)
    before = decide(request, given_pools, now=NOW, context=context).candidates
    after = decide(request, [*given_pools, blank], now=NOW, context=context).candidates
    assert [row for row in after if row.pool != "blank"] == list(before)
    names = [row.pool for row in after]
    for row in after[names.index("blank") + 1 :] if "blank" in names else ():
        held_back = row.forecast_over_limit or row.near_five_hour_penalty or row.urgency_state == "draining"
        held_back = held_back or row.reserved or row.sliver_window is not None
        assert held_back or score(row) <= 0


def _shown_numbers(entry: Candidate | Exclusion) -> set[str]:
    values = [value for name in entry.__slots__ if isinstance(value := getattr(entry, name), int | float)]
    if isinstance(entry, Exclusion):
        return {number(value) for value in entry.numbers.values()}
    shown = {number(value) for value in values}
    shown |= set(re.findall(r"\d+", duration(entry.pace_resets_in_minutes or 0.0)))
    return shown | {str(round(entry.urgency or 0.0))}


_FIXED_WORDS = re.compile(
    r"5h |\bof 5h|forecast over 100% \(still eligible; ranked last\)"
    r"|expiring but draining \(forecast >= 95% and past its clock\)|\d{4}-\d\d-\d\dT[\d:]+Z|5-hour"
)


@given(several, requests, contexts)
@settings(max_examples=120)
def test_every_number_of_a_reason_stands_on_the_row_or_entry_of_the_pool_it_speaks_of(
    given_pools: list[Pool], request: Request, context: RoutingContext
) -> None:
    decision = decide(request, given_pools, now=NOW, context=context)
    assert decision.reason == render(decision.reason_parts)
    entries: dict[str, Candidate | Exclusion] = {entry.pool: entry for entry in decision.excluded}
    entries.update({row.pool: row for row in decision.candidates})
    subject = decision.pool
    for part in decision.reason_parts:
        if part.pool is not None:
            assert part.pool in entries or part.pool == request.pin
            subject = part.pool
        elif part.text == SEGMENT_BREAK:
            subject = decision.pool
        else:
            numbers = re.findall(r"-?\d+(?:\.\d+)?", _FIXED_WORDS.sub("", part.text))
            known = _shown_numbers(entries[subject]) if subject in entries else set()
            if decision.row is not None and decision.row.pace is None and not decision.row.metered:
                known.add("0")
            assert set(numbers) <= known, (part.text, known)


@given(several, requests, contexts)
def test_a_reason_that_names_its_pick_names_the_pool_that_was_picked(
    given_pools: list[Pool], request: Request, context: RoutingContext
) -> None:
    decision = decide(request, given_pools, now=NOW, context=context)
    if decision.pool is None:
        return
    opening = []
    for part in decision.reason_parts:
        if part.text == SEGMENT_BREAK or part.text.startswith(" (burst-gated"):
            break
        opening.append(part)
    named = [part.pool for part in opening if part.pool is not None]
    assert named in ([decision.pool], [])
    assert named or decision.reason.startswith("most-behind capable pool")


@given(several, requests, contexts)
def test_the_pick_never_stands_behind_a_check_that_another_candidate_passes(
    given_pools: list[Pool], request: Request, context: RoutingContext
) -> None:
    decision = decide(request, given_pools, now=NOW, context=context)
    row = decision.row
    if row is None:
        return
    rivals = [item for item in decision.candidates if not item.forecast_over_limit]
    assert not (row.forecast_over_limit and rivals)
    rivals = [item for item in rivals if not item.near_five_hour_penalty] or rivals or list(decision.candidates)
    assert row in rivals
    rivals = [item for item in rivals if not item.reserved] or rivals
    assert row in rivals
    rivals = [item for item in rivals if item.free] or rivals
    assert row in rivals
    rivals = [item for item in rivals if item.urgency_state == "urgent"] or rivals
    assert row in rivals
    rivals = [item for item in rivals if item.urgency_state != "draining"] or rivals
    rivals = [item for item in rivals if item.sliver_window is None] or rivals
    assert row in rivals
    if not context.assignments:
        first = arrange(rivals, request, RoutingContext()).pick
        assert score(row) == score(first)
