"""The rules of the ``classic`` policy, as functions over candidate rows: its gates, its load, its urgency, incumbency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from bullswarm_core.quota.windows import one_decimal
from bullswarm_core.routing.decision import Candidate, UrgencyState
from bullswarm_core.routing.measure import DRAINING_FORECAST_PCT, left_fraction
from bullswarm_core.values import dataclass

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
