"""The ``classic`` policy: an older set of rules, in which a pool that already does the work tends to keep it.

From the strongest: the 90 % gates, 5-hour headroom, the person's reserve, expiring-soon urgency, the assignment of the
tier, incumbency, and the time-adjusted surplus less the load. Quarantine and "the caller wins only when nothing else is
eligible" are eligibility, which the policy switches on here and routing applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from bullswarm_core.routing.context import RoutingContext
from bullswarm_core.routing.decision import Candidate
from bullswarm_core.routing.policies.arrangement import Arrangement, Policy
from bullswarm_core.routing.policies.classic_rules import choose, group, load, preference, weigh
from bullswarm_core.routing.policies.classic_words import notes, opening
from bullswarm_core.routing.request import Request


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
