"""The ``pace`` policy: spend first what would expire unspent (docs/design/routing.md, "The order of checks")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from bullswarm_core.routing.decision import Candidate, UrgencyState
from bullswarm_core.routing.policies.base import Arrangement, Policy
from bullswarm_core.routing.request import Request, RoutingContext

URGENCY_RANK: Mapping[UrgencyState | None, int] = {"urgent": 0, "normal": 1, None: 1, "draining": 2}

Group = tuple[bool, bool, bool, bool, int, bool]
_RESERVED, _SLIVER = 2, 5
"""Places of the two sparing keys in a group: after the last mile, and after urgency."""


def arrange(rows: Sequence[Candidate], request: Request, context: RoutingContext) -> Arrangement:
    """Order the eligible ``rows``, at least one, and pick from the leading group: the assigned pool, else the first.

    Selectable are the rows that no check puts behind another one: an assignment is a preference among them, never a way
    around the forecast, the last mile, a reserve, free models, urgency, draining or a rest too small for the task.
    """
    ordered = sorted(_with_last_mile(rows), key=_preference)
    leading = _group(ordered[0])
    selectable = list(takewhile(lambda row: _group(row) == leading, ordered))
    assigned = context.assigned(request.tier)
    wanted = next((row for row in ordered if row.pool == assigned[0]), None) if assigned else None
    chosen = wanted is not None and wanted in selectable
    pick = wanted if wanted is not None and chosen else ordered[0]
    return Arrangement(
        tuple(ordered),
        pick,
        len(selectable),
        by_assignment=chosen,
        passed_assignment=None if chosen else wanted,
        reserved=_spared([row for row in ordered if row.reserved], pick, wanted, _RESERVED),
        slivers=_spared([row for row in ordered if row.sliver_window], pick, wanted, _SLIVER),
    )


def _spared(held: Sequence[Candidate], pick: Candidate, wanted: Candidate | None, place: int) -> tuple[Candidate, ...]:
    """Those of the ``held`` rows that the key at ``place`` kept from being picked, and the pick if it is one of them."""
    if not held:
        return ()
    group, rest = _without(pick, place)

    def decided(row: Candidate) -> bool:
        own_group, own_rest = _without(row, place)
        if row is pick or (row is wanted and own_group <= group):
            return True
        return (own_group, own_rest) < (group, rest) and (wanted is not pick or own_group < group)

    return tuple(row for row in held if decided(row))


def _without(row: Candidate, place: int) -> tuple[tuple[object, ...], tuple[object, ...]]:
    group, *rest = _preference(row)
    return (*group[:place], *group[place + 1 :]), tuple(rest)


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
    return (
        row.forecast_over_limit,
        row.near_five_hour_penalty,
        row.reserved,
        not row.free,
        URGENCY_RANK[row.urgency_state],
        row.sliver_window is not None,
    )


def score(row: Candidate) -> float:
    """What ranks a row within its group, more is better: urgency among urgent ones, else effective surplus (check
    6).
    """
    return row.urgency if row.urgency_state == "urgent" and row.urgency is not None else row.effective_surplus


def _preference(row: Candidate) -> tuple[Group, float, float, bool, str]:
    """Order rows; of two that are equal in all else, one whose numbers are old comes last."""
    return (_group(row), -score(row), _used_without_pace(row), row.pacing_source == "stale", row.pool)


def _used_without_pace(row: Candidate) -> float:
    """Breaks a tie between readings whose resets are unknown, so that more headroom comes first."""
    return row.pacing_used_pct if row.pace is None and row.pacing_used_pct is not None else 0.0


POLICY = Policy(arrange, "the pool with the most quota that would expire unused comes first")
