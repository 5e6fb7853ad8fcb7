"""How the ``classic`` policy explains a pick: every number stands on the row of the pool that it speaks of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bullswarm_core.quota.windows import one_decimal
from bullswarm_core.routing.decision import Candidate
from bullswarm_core.routing.parts import Segment, pool, text, told
from bullswarm_core.routing.policies.classic_rules import (
    BURST_BLOCK_PCT,
    INCUMBENCY_MARGIN,
    PACING_BLOCK_PCT,
    Choice,
    protecting_forecast,
)
from bullswarm_core.routing.reasons import five_hour_note, load_note, surplus, urgency_note
from bullswarm_core.routing.request import Request
from bullswarm_core.routing.text import number


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
