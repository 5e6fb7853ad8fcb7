"""Rules that a person or a simpler tool would pick by, to compare the policies with; each sees the eligible pools only.

Eligibility (a spent window, the lanes) is the same for everyone: a rival only orders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import UsageError
from bullswarm_core.pools.model import Pool
from bullswarm_core.routing import Candidate, Request, RoutingContext, decide
from bullswarm_core.routing.policies import POLICY_NAMES


@dataclass(slots=True)
class Memory:
    """What a rival remembers: the pools in the person's ``order``, and the one that it used ``last``."""

    order: Sequence[str]
    last: str | None = None

    def place(self, pool: str) -> int:
        """Where the pool stands in the person's order."""
        return self.order.index(pool)


def first_until_wall(rows: Sequence[Candidate], memory: Memory) -> Candidate:
    """Stay with one pool until it is spent, then take the next in order: what people do by hand."""
    return min(rows, key=lambda row: memory.place(row.pool))


def round_robin(rows: Sequence[Candidate], memory: Memory) -> Candidate:
    """Take the next pool after the last one."""
    begin = 0 if memory.last is None else memory.place(memory.last) + 1
    return min(rows, key=lambda row: (memory.place(row.pool) - begin) % len(memory.order))


def least_used(rows: Sequence[Candidate], memory: Memory) -> Candidate:
    """Take the pool whose week or month shows the lowest use; nothing read counts as 0."""
    return min(rows, key=lambda row: (row.pacing_used_pct or 0.0, memory.place(row.pool)))


def least_loaded(rows: Sequence[Candidate], memory: Memory) -> Candidate:
    """Take the pool with the fewest attempts in flight; of equal ones that which was not used last."""
    return min(rows, key=lambda row: (row.inflight, row.pool == memory.last, memory.place(row.pool)))


def bare_surplus(rows: Sequence[Candidate], memory: Memory) -> Candidate:
    """Take the pool furthest behind its own pace (elapsed less used), with none of the other checks of ``pace``."""
    return min(rows, key=lambda row: (-(row.pace or 0.0), memory.place(row.pool)))


Rival = Callable[[Sequence[Candidate], Memory], Candidate]
RIVALS: Mapping[str, Rival] = {
    "first-until-wall": first_until_wall,
    "round-robin": round_robin,
    "least-used": least_used,
    "least-loaded": least_loaded,
    "bare-surplus": bare_surplus,
}


def known_policies() -> tuple[str, ...]:
    """The names that can be played: the rivals, then the policies of routing."""
    return (*RIVALS, *POLICY_NAMES)


def pick(
    policy: str, request: Request, pools: Sequence[Pool], *, now: datetime, context: RoutingContext, memory: Memory
) -> str | None:
    """The id of the pool that ``policy`` gives the task to, or None where no pool can take it now.

    Raises UsageError for a name that is neither a policy nor a rival.
    """
    if policy in POLICY_NAMES:
        chosen = decide(request, pools, now=now, policy=policy, context=context).pool
    elif policy in RIVALS:
        rows = decide(request, pools, now=now, context=context).candidates
        chosen = RIVALS[policy](rows, memory).pool if rows else None
    else:
        raise UsageError(f"unknown routing policy {policy}", hint=f"known are {', '.join(known_policies())}")
    memory.last = chosen or memory.last
    return chosen
