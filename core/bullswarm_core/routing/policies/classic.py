"""The ``classic`` policy: a pool that already does the work tends to keep it.

From the strongest: the 90 % gates, 5-hour headroom, the person's reserve, expiring-soon urgency, the assignment of the
tier, incumbency, and the time-adjusted surplus less the load. Quarantine and "the caller wins only when nothing else is
eligible" are eligibility, which the policy switches on here and routing applies. Every number of an explanation is on the
row of the pool that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Literal

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast.text import number
from bullswarm_core.quota.windows import one_decimal
from bullswarm_core.routing.decision import Candidate, UrgencyState
from bullswarm_core.routing.measure import DRAINING_FORECAST_PCT, left_fraction
from bullswarm_core.routing.policies.base import Arrangement, Policy
from bullswarm_core.routing.reasons import five_hour_note, load_note, surplus, urgency_note
from bullswarm_core.routing.request import Request, RoutingContext
from bullswarm_core.routing.sentences import Segment, pool, text, told


def arrange(rows: Sequence[Candidate], request: Request, context: RoutingContext) -> Arrangement:
    """Order the eligible ``rows``, at least one, and pick by the older rules; the rows carry their own numbers.

    A gated row stands behind all others and is picked only when every row is gated: then the least loaded one.
    """
    weighed = [weigh(row, penalty=context.inflight_penalty_pct) for row in rows]
    free = sorted((row for row in weighed if not row.forecast_gated), key=preference)
    gated = sorted((row for row in weighed if row.forecast_gated), key=load)
    ordered = (*free, *gated)
    first = group(ordered[0])
    leading = list(takewhile(lambda row: group(row) == first, free)) if free else gated[:1]
    assigned = context.assigned(request.tier)
    wanted = next((row for row in ordered if row.pool == assigned[0]), None) if assigned else None
    last = context.incumbents.get(request.lane)
    incumbent = next((row for row in ordered if row.pool == last), None) if last else None
    choice = choose(leading, wanted, incumbent)
    passed = wanted if wanted is not None and wanted.pool != choice.pick.pool else None
    return Arrangement(
        ordered,
        choice.pick,
        len(leading),
        by_assignment=choice.why == "assigned",
        passed_assignment=passed,
        opening=opening(choice, request),
        notes=notes(choice, ordered, passed, request),
    )


POLICY = Policy(
    arrange,
    "the pool that did the last such work here keeps it, unless a cheaper one is 10 points further behind its pace",
    remembers=True,
    steps_drain=True,
    caller_keeps=True,
)


INCUMBENCY_MARGIN = 10.0
"""Surplus points by which a challenger must beat the incumbent, so that two pools of similar pace don't flap."""
BURST_BLOCK_PCT = 90.0
"""At or above this, read or forecast, a protecting window leaves its pool out, whatever its clock says."""
PACING_BLOCK_PCT = DRAINING_FORECAST_PCT
"""At or above this forecast of its pacing window an expiring pool ranks last; the line is the one of ``pace``.
"""

Why = Literal["least loaded", "urgent", "assigned", "incumbent", "cheaper", "quieter", "most behind", "last"]
_URGENCY_RANK: Mapping[UrgencyState | None, int] = {"urgent": 0, "normal": 1, None: 1, "draining": 2}
Group = tuple[bool, bool, int]


@dataclass(frozen=True, slots=True)
class Choice:
    """The pick, the rule that made it, and the pool that did such work here before, where it is a candidate."""

    pick: Candidate
    why: Why
    incumbent: Candidate | None = None


def weigh(row: Candidate, *, penalty: float) -> Candidate:
    """The row with the numbers of this policy: the floor under its load, its gates and its urgency.

    The load costs what the work in flight and this task are expected to spend, and at least ``penalty`` points for each
    agent in flight; ``estimate_source`` is ``penalty`` where that floor set it. A near-limit row is one whose forecast is
    also ahead of the window's clock; the 90 % gate ignores the clock.
    """
    pace = row.pace or 0.0
    floor = one_decimal(row.inflight * penalty)
    floored = floor > one_decimal(pace - row.effective_surplus)
    effective = one_decimal(pace - floor) if floored else row.effective_surplus
    state = _urgency_state(row, effective)
    return row.altered(
        effective_surplus=effective,
        estimate_source="penalty" if floored else row.estimate_source,
        near_five_hour_penalty=row.near_five_hour_limit and not row.under_clock,
        forecast_gated=protecting_forecast(row) >= BURST_BLOCK_PCT,
        urgency=None if state is None else one_decimal(effective / left_fraction(row.pacing_left_pct)),
        urgency_state=state,
    )


def protecting_forecast(row: Candidate) -> float:
    """The higher forecast of the two protecting windows, in percent; 0 where neither was read.

    Without a measured rate it is the reading itself: nobody is charged a number that nobody produced.
    """
    return max(row.forecast_five_hour_pct or 0.0, row.forecast_daily_pct or 0.0)


def _urgency_state(row: Candidate, effective: float) -> UrgencyState | None:
    """What an expiring pool is: over the line, behind its pace and so urgent, or neither; None outside the lead time."""
    if not row.expiring_soon:
        return None
    if row.forecast_pacing_pct is not None and row.forecast_pacing_pct >= PACING_BLOCK_PCT:
        return "draining"
    return "urgent" if effective > 0 else "normal"


def group(row: Candidate) -> Group:
    """What ranks before any surplus: the near-limit tier, the person's reserve, urgency; less is better."""
    return (row.near_five_hour_penalty, row.reserved, _URGENCY_RANK[row.urgency_state])


def preference(row: Candidate) -> tuple[Group, float, float, int, bool, str]:
    """Behind its pace first; between equals more headroom, then less in flight, then the fresher reading."""
    score = row.urgency if row.urgency_state == "urgent" and row.urgency is not None else row.effective_surplus
    used = row.pacing_used_pct if row.pace is None and row.pacing_used_pct is not None else 0.0
    return (group(row), -score, used, row.inflight, row.pacing_source == "stale", row.pool)


def load(row: Candidate) -> tuple[int, float, float, str]:
    """Orders rows that are all gated: the fewest in flight, then the lowest forecast."""
    return (row.inflight, protecting_forecast(row), -row.effective_surplus, row.pool)


def choose(leading: Sequence[Candidate], wanted: Candidate | None, incumbent: Candidate | None) -> Choice:
    """Pick among the rows that no rule puts behind another one, best first."""
    first = leading[0]
    if first.forecast_gated:
        return Choice(first, "least loaded", incumbent)
    if first.urgency_state == "urgent":
        return Choice(first, "urgent", incumbent)
    if wanted is not None and wanted in leading:
        return Choice(wanted, "assigned", incumbent)
    if incumbent is not None and incumbent in leading:
        return _against(incumbent, leading)
    return Choice(first, "last" if first.urgency_state == "draining" else "most behind", incumbent)


def _against(incumbent: Candidate, leading: Sequence[Candidate]) -> Choice:
    """The best challenger that may take the work from its incumbent, else the incumbent.

    A challenger must beat its surplus by the margin and be cheaper, too; against one with less in flight the incumbent
    has neither, and the better of the two gets the work.
    """
    for rival in leading:
        if rival.inflight < incumbent.inflight:
            if preference(rival) < preference(incumbent):
                return Choice(rival, "quieter", incumbent)
        elif _beats(rival, incumbent) and rival.cost_rank < incumbent.cost_rank:
            return Choice(rival, "cheaper", incumbent)
    return Choice(incumbent, "incumbent", incumbent)


def _beats(rival: Candidate, incumbent: Candidate) -> bool:
    return one_decimal(rival.effective_surplus - incumbent.effective_surplus) >= INCUMBENCY_MARGIN


def opening(choice: Choice, request: Request) -> Segment:
    """Which rule made the pick, and the pick's numbers."""
    pick = choice.pick
    me, facts = pool(pick.pool), f" ({', '.join(_facts(pick))})"
    if choice.why == "least loaded":
        line = f"every capable pool is at or over {number(BURST_BLOCK_PCT)}% of its 5h window or day, so not stranded: "
        return text(line, me, " is the least loaded", f" ({', '.join([*_gate(pick), *load_note(pick)])})")
    if choice.why == "urgent":
        return text("expiring soon: ", me, f" {urgency_note(pick)}", facts)
    if choice.why == "assigned":
        return text(f"approved {request.tier} assignment: ", me, facts)
    if choice.why == "incumbent":
        return text("incumbent: ", me, f" did the last {request.lane} work here and keeps it", facts)
    if choice.why == "cheaper":
        return text("cheaper challenger: ", me, f" ({', '.join([f'cost {pick.cost_rank}', *_facts(pick)])})")
    if choice.why == "quieter":
        return text("quieter challenger: ", me, facts)
    if choice.why == "last":
        return text(f"fallback: only pools forecast over {number(PACING_BLOCK_PCT)}% are left: ", me, facts)
    return text("most behind its pace: ", me, facts)


def notes(choice: Choice, rows: Sequence[Candidate], passed: Candidate | None, request: Request) -> tuple[Segment, ...]:
    """What was passed over: the assignment, the incumbent, the gated, the near, the reserved and the nearly spent."""
    pick, incumbent = choice.pick, choice.incumbent
    found: list[Segment] = []
    if passed is not None:
        found.append(text(f"{request.tier} assignment passed over: ", pool(passed.pool), f" ({_behind(passed, pick)})"))
    if incumbent is not None and incumbent.pool != pick.pool:
        why = _why_not_incumbent(choice, incumbent)
        found.append(text("incumbent passed over: ", pool(incumbent.pool), f" ({why})"))
    if pick.near_five_hour_penalty and not pick.forecast_gated:
        found += _list("no pool below its near-limit line is left: ", [pick], _gate)
    others = [row for row in rows if row.pool != pick.pool]
    gated = [row for row in others if row.forecast_gated]
    near = [row for row in others if row.near_five_hour_penalty and not row.forecast_gated]
    kept = [row for row in rows if row.reserved and not row.forecast_gated]
    last = [row for row in others if row.urgency_state == "draining" and not row.forecast_gated]
    gate, line = number(BURST_BLOCK_PCT), number(PACING_BLOCK_PCT)
    found += _list(f"burst-gated at {gate}%: ", [row for row in gated if _read_over_gate(row)], _gate)
    found += _list(f"forecast-gated at {gate}%: ", [row for row in gated if not _read_over_gate(row)], _gate)
    found += _list("near its limit and past its clock: ", near, _gate)
    found += _list("kept for you: ", kept, lambda row: [f"{number(row.reserve_pct or 0.0)}%"])
    found += _list(f"expiring, forecast at {line}% or over, last: ", last, _pacing)
    return tuple(found)


def _read_over_gate(row: Candidate) -> bool:
    return max(row.five_hour_used_pct or 0.0, row.daily_used_pct or 0.0) >= BURST_BLOCK_PCT


def _why_not_incumbent(choice: Choice, incumbent: Candidate) -> str:
    if choice.why == "assigned":
        return "the assignment comes first"
    if choice.why == "cheaper":
        beaten = f"beaten by {number(INCUMBENCY_MARGIN)} points or more"
        return f"surplus {surplus(incumbent)}, cost {incumbent.cost_rank}, {beaten}"
    if choice.why == "quieter":
        return f"surplus {surplus(incumbent)}, {incumbent.inflight} in flight"
    return _behind(incumbent, choice.pick)


def _behind(row: Candidate, pick: Candidate) -> str:
    """The first rule that puts ``row`` behind the pick."""
    if row.forecast_gated:
        return "more loaded" if pick.forecast_gated else "gated"
    if row.near_five_hour_penalty and not pick.near_five_hour_penalty:
        return "near its limit"
    if row.reserved and not pick.reserved:
        return "kept for you"
    if row.urgency_state == "draining" and pick.urgency_state != "draining":
        return "nearly spent"
    return "less urgent" if row.urgency_state == "urgent" else "not expiring"


def _list(heading: str, rows: Sequence[Candidate], words: Callable[[Candidate], list[str]]) -> list[Segment]:
    return told(heading, rows, lambda row: text(pool(row.pool), f" {' '.join(words(row))}"))


def _facts(row: Candidate) -> list[str]:
    charge = one_decimal((row.pace or 0.0) - row.effective_surplus)
    known = row.pace is not None or not row.metered
    after = f" after {number(charge)} for its load ({row.estimate_source})" if charge and known else ""
    return [f"surplus {surplus(row)}{after}", *five_hour_note(row), *load_note(row)]


def _gate(row: Candidate) -> list[str]:
    daily = (row.forecast_daily_pct or 0.0) > (row.forecast_five_hour_pct or 0.0)
    used = row.daily_used_pct if daily else row.five_hour_used_pct
    elapsed = row.daily_elapsed_pct if daily else row.five_hour_elapsed_pct
    forecast = protecting_forecast(row)
    moved = f" -> {number(forecast)}%" if number(forecast) != number(used or 0.0) else ""
    clock = "" if elapsed is None else f" ({number(elapsed)}% elapsed)"
    return [f"{'day' if daily else '5h'} used {number(used or 0.0)}%{moved}{clock}"]


def _pacing(row: Candidate) -> list[str]:
    return [f"forecast {number(row.forecast_pacing_pct or 0.0)}%"]
