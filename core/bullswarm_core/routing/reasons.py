"""The reason line of a pick: every number in it stands on the row or the left-out entry of the pool it speaks of.

Wording: docs/design/routing.md, "Reason lines". Segments are joined by `` · ``.
"""

from __future__ import annotations

from collections.abc import Sequence

from bullswarm_core._dataclasses import replace
from bullswarm_core.fast.text import duration, number
from bullswarm_core.pools.model import WindowKind
from bullswarm_core.routing.decision import QUARANTINE_KINDS, Candidate, Decision, Exclusion
from bullswarm_core.routing.eligibility import LIMIT_NAMES, Judged
from bullswarm_core.routing.measure import left_fraction
from bullswarm_core.routing.policies.base import Arrangement
from bullswarm_core.routing.request import Request, RoutingContext
from bullswarm_core.routing.sentences import Segment, joined, listed, pool, render, text, told
from bullswarm_core.wire import whole_second

DEFAULT_PIN_REASON = "--worker-pool"
_WINDOW_NOUNS = {"5h": "5h", "daily": "its day", "weekly": "week", "monthly": "month"}


def reason_of(request: Request, judged: Judged, arrangement: Arrangement, context: RoutingContext) -> Segment:
    """Why ``arrangement.pick`` was picked, what it passed over, and which pools a spent window left out."""
    segments = [
        *_opening(request, judged, arrangement),
        *_notes(request, judged, arrangement),
        *([text(f"route: {context.route_summary}")] if context.route_summary else []),
        *_probes(judged.excluded),
        *_quarantined(judged.excluded),
    ]
    gated = None if request.workflow else _burst_gated(judged.excluded)
    return joined(segments) + (gated or ())


def _notes(request: Request, judged: Judged, arrangement: Arrangement) -> Sequence[Segment]:
    """What was passed over and how near the pick is to a wall: in the policy's words where it has any."""
    if arrangement.notes is not None:
        return arrangement.notes
    return [
        *_passed_assignment(request, arrangement),
        *_ranked_below_free(arrangement),
        *_last_mile(arrangement.pick),
        *_over_limit(arrangement.rows),
        *_reserved(arrangement.reserved),
        *_draining(arrangement.rows, judged.excluded),
        *_slivers(arrangement.slivers),
        *_busier(request, arrangement),
    ]


def after_stall(decision: Decision, *, pool_id: str, seconds: int) -> Decision:
    """The decision with the pool named from which the work moved when its worker stalled after ``seconds``."""
    prefix = text("fallback from ", pool(pool_id), f" after stall {seconds}s")
    parts = joined([prefix, decision.reason_parts])
    return replace(decision, reason=render(parts), reason_parts=parts)


def _opening(request: Request, judged: Judged, arrangement: Arrangement) -> list[Segment]:
    pick = arrangement.pick
    me = pool(pick.pool)
    if request.pin is not None:
        pinned = text("pinned to ", me, f" ({request.pin_reason or DEFAULT_PIN_REASON})")
        return [pinned, text(", ".join([f"surplus {surplus(pick)}", *_used_note(pick), *load_note(pick)]))]
    if judged.stand_in:
        return [text("no agent CLI can take this: the embedded ", me, " worker answers")]
    if arrangement.opening is not None:
        return [arrangement.opening]
    if pick.free:
        notes = [
            f"free model {pick.model}" if pick.model else "free default model",
            *_used_note(pick),
            *load_note(pick),
        ]
        return [text("free pool first: ", me, f" ({', '.join(notes)})")]
    always = [*five_hour_note(pick), f"{pick.inflight} in flight"]
    if arrangement.by_assignment:
        return [text(f"configured {request.tier} assignment (", me, ", ", f"{', '.join(always)})")]
    if pick.urgency_state == "urgent":
        return [text("expiring soon: ", me, f" {urgency_note(pick)} ({', '.join(always)})")]
    notes = [f"surplus {surplus(pick)}", *five_hour_note(pick), *load_note(pick)]
    return [text(f"most-behind capable pool{_headroom(pick)} ({', '.join(notes)})")]


def surplus(row: Candidate) -> str:
    """The effective surplus as people read it: ``-`` where a reading was expected and is missing."""
    return "-" if row.pace is None and row.metered else number(row.effective_surplus)


def urgency_note(row: Candidate) -> str:
    """When the pacing window resets, and what that makes of the surplus."""
    noun = _WINDOW_NOUNS[row.pacing_window or "weekly"]
    return (
        f"resets in {duration(row.pace_resets_in_minutes or 0.0)}, surplus {surplus(row)}"
        f" over {number(row.pacing_left_pct or 0.0)}% of the {noun} left → urgency {round(row.urgency or 0.0)},"
        f" forecast {number(row.forecast_pacing_pct or 0.0)}%"
    )


def _headroom(row: Candidate) -> str:
    if row.near_window is not None:
        return f" near its {LIMIT_NAMES[row.near_window].replace('5-hour', '5h')} limit"
    return "" if row.five_hour_used_pct is None else " with 5h headroom"


def _used_note(row: Candidate) -> list[str]:
    return [] if row.five_hour_used_pct is None else [f"5h used {number(row.five_hour_used_pct)}%"]


def load_note(row: Candidate) -> list[str]:
    """``2 in flight``; nothing for an idle pool."""
    return [f"{row.inflight} in flight"] if row.inflight else []


def five_hour_note(row: Candidate) -> list[str]:
    """``5h used 30% -> 41% projected``, near the limit with its clock; nothing without a 5-hour reading."""
    used, forecast, elapsed = row.five_hour_used_pct, row.forecast_five_hour_pct, row.five_hour_elapsed_pct
    if used is None or forecast is None:
        return []
    moved = f" -> {number(forecast)}% projected" if number(forecast) != number(used) else ""
    note = [f"5h used {number(used)}%{moved}"]
    if row.near_window == "5h" and elapsed is not None:
        clock = f"{number(elapsed)}% elapsed"
        note.append(f"under the clock ({clock})" if row.under_clock else clock)
    return note


def _passed_assignment(request: Request, arrangement: Arrangement) -> list[Segment]:
    passed, pick = arrangement.passed_assignment, arrangement.pick
    if passed is None:
        return []
    if passed.forecast_over_limit and not pick.forecast_over_limit:
        why = "ranked last by its forecast"
    elif passed.near_five_hour_penalty and not pick.near_five_hour_penalty:
        why = "last mile"
    elif passed.reserved and not pick.reserved:
        why = "reserved for you"
    elif pick.free and not passed.free:
        why = "not free"
    elif passed.urgency_state == "draining" and pick.urgency_state != "draining":
        why = "draining"
    elif pick.urgency_state == "urgent" and passed.urgency_state != "urgent":
        why = "not expiring"
    else:
        why = "too little left for the task"
    return [text(f"{request.tier} assignment passed over: ", pool(passed.pool), f" ({why})")]


def _ranked_below_free(arrangement: Arrangement) -> list[Segment]:
    metered = [row for row in arrangement.rows if not row.free]
    if not arrangement.pick.free or not metered:
        return []
    return told("metered pools ranked below free: ", metered, lambda row: text(pool(row.pool), f" {surplus(row)}"))


def _last_mile(row: Candidate) -> list[Segment]:
    if row.near_window is None:
        return []
    forecast = row.forecast_five_hour_pct if row.near_window == "5h" else row.forecast_daily_pct
    share = f"{number(forecast or 0.0)}% of {_WINDOW_NOUNS[row.near_window]}"
    return [text("last mile: ", pool(row.pool), f" {share}, a limit mid-attempt goes back to the caller")]


def _percent(row: Candidate, forecast: float | None, elapsed: float | None) -> Segment:
    clock = "" if elapsed is None else f" ({number(elapsed)}% elapsed)"
    return text(pool(row.pool), f" {number(forecast or 0.0)}%{clock}")


def _over_limit(rows: Sequence[Candidate]) -> list[Segment]:
    over = [row for row in rows if row.forecast_over_limit]
    return told("forecast over 100% (still eligible; ranked last): ", over, _over_window)


def _over_window(row: Candidate) -> Segment:
    if row.over_window == "5h":
        return _percent(row, row.forecast_five_hour_pct, row.five_hour_elapsed_pct)
    return _percent(row, row.forecast_daily_pct, row.daily_elapsed_pct)


def _reserved(rows: Sequence[Candidate]) -> list[Segment]:
    """The pools that were kept for the person, and the pick where nothing else was left."""
    items = [
        text(
            pool(row.pool),
            f" forecast {number(row.forecast_pacing_pct or 0.0)}% of its {_noun(row.pacing_window)},"
            f" {number(row.reserve_pct or 0.0)}% kept for you",
        )
        for row in rows
    ]
    return [text("reserve: ") + listed(items)] if items else []


def _slivers(rows: Sequence[Candidate]) -> list[Segment]:
    items = [
        text(
            pool(row.pool),
            f" has {number(row.sliver_headroom_pct or 0.0)}% of its {_noun(row.sliver_window)} left"
            f" and the task needs {number(row.sliver_need_pct or 0.0)}%",
        )
        for row in rows
    ]
    return [text("sliver: ") + listed(items)] if items else []


def _noun(kind: WindowKind | None) -> str:
    return _WINDOW_NOUNS[kind or "weekly"].removeprefix("its ")


def _draining(rows: Sequence[Candidate], excluded: Sequence[Exclusion]) -> list[Segment]:
    """The draining pools: candidates that went last, and those a workflow step left out."""
    items = [
        _percent(row, row.forecast_pacing_pct, row.pacing_elapsed_pct)
        for row in rows
        if row.urgency_state == "draining"
    ]
    for entry in excluded:
        if entry.kind == "draining":
            clock = f" ({number(entry.numbers['elapsed_pct'])}% elapsed)" if "elapsed_pct" in entry.numbers else ""
            items.append(text(pool(entry.pool), f" {number(entry.numbers['forecast_pct'])}%{clock}"))
    return [text("expiring but draining (forecast >= 95% and past its clock): ") + listed(items)] if items else []


def _busier(request: Request, arrangement: Arrangement) -> list[Segment]:
    """Selectable pools that would have come first but for their load."""
    pick = arrangement.pick
    if request.pin is not None or arrangement.by_assignment:
        return []
    rivals = [row for row in arrangement.rows[: arrangement.selectable] if row.inflight > pick.inflight]
    first = [row for row in rivals if _unloaded(row) >= _unloaded(pick)]
    return told("preferred over busier: ", first, lambda row: text(pool(row.pool), f" ({row.inflight} in flight)"))


def _unloaded(row: Candidate) -> float:
    pace = row.pace or 0.0
    if row.urgency_state != "urgent":
        return pace
    return pace / left_fraction(row.pacing_left_pct)


def _probes(excluded: Sequence[Exclusion]) -> list[Segment]:
    items = [
        text(entry.reason.removeprefix("probe: "), " (", pool(entry.pool), ")")
        for entry in excluded
        if entry.kind == "probe"
    ]
    return [text("probe: ") + listed(items)] if items else []


def _quarantined(excluded: Sequence[Exclusion]) -> list[Segment]:
    items = [
        text(pool(entry.pool), f" until {whole_second(entry.until)}")
        for entry in excluded
        if entry.kind in QUARANTINE_KINDS
    ]
    return [text("quarantined: ") + listed(items)] if items else []


def _burst_gated(excluded: Sequence[Exclusion]) -> Segment | None:
    """The pools that only a spent window left out; a bare name is at its 5-hour limit."""
    items = [
        text(pool(entry.pool)) if entry.kind == "burst" else text(pool(entry.pool), f" at its {entry.kind} limit")
        for entry in excluded
        if entry.kind in ("burst", "daily", "weekly", "monthly")
    ]
    return text(" (burst-gated: ") + listed(items) + text(")") if items else None
