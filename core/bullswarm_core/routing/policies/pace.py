"""The ``pace`` policy: spend first what would expire unspent (seed: "The order decisions are made", checks 2 to 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from bullswarm_core.routing.context import RoutingContext
from bullswarm_core.routing.decision import Candidate, UrgencyState
from bullswarm_core.routing.policies.arrangement import Arrangement
from bullswarm_core.routing.request import Request

URGENCY_RANK: Mapping[UrgencyState | None, int] = {"urgent": 0, "normal": 1, None: 1, "draining": 2}

Group = tuple[bool, bool, bool, int]


def arrange(rows: Sequence[Candidate], request: Request, context: RoutingContext) -> Arrangement:
    """Order the eligible ``rows``, at least one, and pick from the leading group: the assigned pool, else the first.

    Selectable are the rows that no check puts behind another one: an assignment is a preference among them, never a way
    around the forecast, the last mile, free models, urgency or draining.
    """
    ordered = sorted(_with_last_mile(rows), key=_preference)
    leading = _group(ordered[0])
    selectable = list(takewhile(lambda row: _group(row) == leading, ordered))
    assigned = context.assigned(request.tier)
    wanted = next((row for row in ordered if assigned and row.pool == assigned[0]), None)
    if wanted is None:
        return Arrangement(tuple(ordered), ordered[0], len(selectable))
    if wanted in selectable:
        return Arrangement(tuple(ordered), wanted, len(selectable), by_assignment=True)
    return Arrangement(tuple(ordered), ordered[0], len(selectable), passed_assignment=wanted)


def _with_last_mile(rows: Sequence[Candidate]) -> list[Candidate]:
    """Mark rows near a limit and past its clock, where some other eligible pool is behind its pace (check 3)."""
    behind = sum(row.pace is not None and row.pace > 0 for row in rows)

    def mark(row: Candidate) -> Candidate:
        if not row.near_five_hour_limit or row.under_clock:
            return row
        others = behind - (row.pace is not None and row.pace > 0)
        return row.penalised() if others else row

    return [mark(row) for row in rows]


def _group(row: Candidate) -> Group:
    return (row.forecast_over_limit, row.near_five_hour_penalty, not row.free, URGENCY_RANK[row.urgency_state])


def score(row: Candidate) -> float:
    """What ranks a row within its group, more is better: urgency among urgent ones, else effective surplus (check
    6).
    """
    return row.urgency if row.urgency_state == "urgent" and row.urgency is not None else row.effective_surplus


def _preference(row: Candidate) -> tuple[Group, float, float, str]:
    return (_group(row), -score(row), _used_without_pace(row), row.pool)


def _used_without_pace(row: Candidate) -> float:
    """Breaks a tie between readings whose resets are unknown, so that more headroom comes first (bug report B67)."""
    return row.pacing_used_pct if row.pace is None and row.pacing_used_pct is not None else 0.0
