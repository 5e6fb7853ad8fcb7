"""What is asked of routing, and what routing knows in addition to the request and the pools."""

from __future__ import annotations

from collections.abc import Mapping

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.errors import UsageError
from bullswarm_core.pools.model import DEFAULT_EFFORT, EFFORTS, LANES, Effort, Lane, refuse_nan
from bullswarm_core.routing.quarantine import Quarantine

_NAME_LISTS = ("capabilities", "use_pools", "avoid_pools", "use_providers", "avoid_providers")


@dataclass(frozen=True, slots=True)
class Request:
    """One task that needs a pool.

    ``effort`` None takes the lane's customary tier. Pools are named by id. ``caller`` is the pool of the agent that
    calls: never a candidate. ``pin`` leaves one pool to choose from and ``pin_reason`` says who pinned it (default
    ``--worker-pool``). ``candidate_minutes`` is how long this task is expected to take; None when unknown.
    ``workflow`` marks a workflow step. ``route_summary`` of the context, not this, is what the reason says about
    the filters. Raises UsageError for a lane or tier outside the closed lists, or a filter that both uses and
    avoids a name; ValueError for a NaN, infinite or negative number.
    """

    lane: Lane
    effort: Effort | None = None
    capabilities: tuple[str, ...] = ()
    model: str | None = None
    use_pools: tuple[str, ...] = ()
    avoid_pools: tuple[str, ...] = ()
    use_providers: tuple[str, ...] = ()
    avoid_providers: tuple[str, ...] = ()
    pin: str | None = None
    pin_reason: str | None = None
    caller: str | None = None
    candidate_minutes: float | None = None
    workflow: bool = False

    def __post_init__(self) -> None:
        if self.lane not in LANES:
            raise UsageError(f"unknown lane {self.lane}", hint=f"use {', '.join(LANES)}")
        if self.effort is not None and self.effort not in EFFORTS:
            raise UsageError(f"unknown effort {self.effort}", hint=f"use {', '.join(EFFORTS)}")
        for name in _NAME_LISTS:
            names = getattr(self, name)
            if isinstance(names, str):
                raise UsageError(f"{name} is the text {names!r}", hint="give a list of names")
            object.__setattr__(self, name, tuple(names))
        for used, avoided in ((self.use_pools, self.avoid_pools), (self.use_providers, self.avoid_providers)):
            if both := sorted(set(used) & set(avoided)):
                raise UsageError(f"{both[0]} is both to be used and to be avoided", hint="name it once")
        refuse_nan(self)
        if self.candidate_minutes is not None and self.candidate_minutes < 0:
            raise ValueError(f"Request.candidate_minutes is {self.candidate_minutes}; it is 0 or more, or None")

    @property
    def tier(self) -> Effort:
        """The effort tier that is asked for, or the lane's customary one."""
        return self.effort or DEFAULT_EFFORT[self.lane]

    def names(self, pool_id: str, provider: str) -> bool:
        """Whether the caller asked for this pool by name: pinned, or listed as a pool or provider to use."""
        return pool_id == self.pin or pool_id in self.use_pools or provider in self.use_providers

    def fixes(self, pool_id: str) -> bool:
        """Whether the caller left no other pool: a pin, or a route that allows only this one."""
        return pool_id == self.pin or set(self.use_pools) == {pool_id}


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
