"""What routing knows beside the request and the pools."""

from __future__ import annotations

from collections.abc import Mapping

from bullswarm_core.pools import Effort, Lane, refuse_nan
from bullswarm_core.routing.quarantine import Quarantine
from bullswarm_core.values import dataclass, field

DEFAULT_INFLIGHT_PENALTY_PCT = 3.0
"""Surplus points charged per agent in flight on a pool without a measured rate (config.inflightPenaltyPct; 0
= off).
"""


@dataclass(frozen=True, slots=True)
class RoutingContext:
    """Settings and facts that a policy may read; every field has a default.

    ``pace`` reads ``inflight_penalty_pct`` (points, 0 or more), ``assignments`` ({tier: pool id, or (pool id, model)}),
    ``reserves`` ({pool id: the share of its pacing window that the person keeps, 0 to 100}), ``probes`` ({pool id: why
    its free model did not answer}) and ``route_summary``. ``classic`` reads all of these, ``incumbents`` and
    ``quarantines``; ``foresight`` those of ``pace`` and ``task_spread`` (the standard deviation of the natural logarithm
    of what such tasks took; None while too few are known). The fields of other policies never change a pick of ``pace``.
    Raises ValueError for a penalty that is NaN, infinite or negative, and for a reserve outside its range.
    """

    inflight_penalty_pct: float = DEFAULT_INFLIGHT_PENALTY_PCT
    assignments: Mapping[Effort, str | tuple[str, str]] = field(default_factory=dict)
    reserves: Mapping[str, float] = field(default_factory=dict)
    task_spread: float | None = None
    incumbents: Mapping[Lane, str] = field(default_factory=dict)
    """The pool that last succeeded in the request's workspace, by lane."""
    quarantines: Mapping[str, Quarantine] = field(default_factory=dict)
    """The quarantines by pool id; one whose time has come counts for nothing."""
    probes: Mapping[str, str] = field(default_factory=dict)
    route_summary: str | None = None
    expected_minutes: Mapping[str, float] = field(default_factory=dict)
    """How long this task takes on a pool whose own work is known, by pool id; other pools take the request's number."""

    def __post_init__(self) -> None:
        refuse_nan(self)
        if self.inflight_penalty_pct < 0:
            raise ValueError(f"RoutingContext.inflight_penalty_pct is {self.inflight_penalty_pct}; it is 0 or more")
        for pool_id, reserve in self.reserves.items():
            if not 0 <= reserve <= 100:
                raise ValueError(f"RoutingContext.reserves[{pool_id!r}] is {reserve}; it is a percentage, 0 to 100")

    def assigned(self, tier: Effort) -> tuple[str, str | None] | None:
        """The pool that the person assigned to the tier and the model, if one was named; None without an assignment."""
        entry = self.assignments.get(tier)
        if entry is None:
            return None
        return (entry, None) if isinstance(entry, str) else (entry[0], entry[1])
