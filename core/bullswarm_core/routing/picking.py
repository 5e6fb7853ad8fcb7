"""The pick itself: judge every pool, arrange those that can take the task, and say why the first one is first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bullswarm_core.pools.model import Pool
from bullswarm_core.routing.decision import Candidate, Decision
from bullswarm_core.routing.eligibility import judge
from bullswarm_core.routing.no_pool import no_pick
from bullswarm_core.routing.policies import policy_named
from bullswarm_core.routing.reasons import reason_of
from bullswarm_core.routing.request import Request, RoutingContext
from bullswarm_core.routing.sentences import render

_NO_CONTEXT = RoutingContext()


def decide(
    request: Request,
    pools: Sequence[Pool],
    *,
    now: datetime,
    policy: str = "pace",
    context: RoutingContext = _NO_CONTEXT,
) -> Decision:
    """Pick the pool for ``request`` among ``pools`` at ``now``, or say why none can take it; pure, and blind to
    their order.

    Raises UsageError for an unknown policy and ValueError for a clock without a time zone or two pools with one id.
    """
    rules = policy_named(policy)
    if now.utcoffset() is None:
        raise ValueError(f"the clock {now.isoformat()} has no time zone; times are UTC")
    judged = judge(request, pools, now=now, context=context, policy=rules)
    if not judged.rows:
        return no_pick(request, judged.excluded, pools, caller_keeps=rules.caller_keeps)
    arrangement = rules.arrange(judged.rows, request, context)
    parts = reason_of(request, judged, arrangement, context)
    pick = arrangement.pick
    return Decision(
        pool=pick.pool,
        rung=judged.rungs[pick.pool],
        reason=render(parts),
        candidates=arrangement.rows,
        excluded=judged.excluded,
        forecast=_forecast_of(pick, arrangement.rows),
        reason_parts=parts,
    )


def _forecast_of(pick: Candidate, rows: Sequence[Candidate]) -> dict[str, Any]:
    """The winning row's forecast, never computed a second time, and the pools that a gate left out."""
    return {
        "inflight": pick.inflight,
        "projectedFiveHourPct": pick.projected_five_hour_pct,
        "forecastFiveHourPct": pick.forecast_five_hour_pct,
        "ratePerMinute": pick.rate_per_minute,
        "estimateSource": pick.estimate_source,
        "expectedMinutes": pick.expected_minutes,
        "candidateMinutes": pick.expected_minutes,
        "gated": [row.pool for row in rows if row.forecast_gated],
    }
