"""Routing policies: each orders the eligible pools and picks one; none changes what is eligible or what a failure
is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bullswarm_core.errors import UsageError
from bullswarm_core.routing.context import RoutingContext
from bullswarm_core.routing.decision import Candidate
from bullswarm_core.routing.policies import pace
from bullswarm_core.routing.policies.arrangement import Arrangement
from bullswarm_core.routing.request import Request

Policy = Callable[[Sequence[Candidate], Request, RoutingContext], Arrangement]

POLICIES: Mapping[str, Policy] = {"pace": pace.arrange}


def policy_named(name: str) -> Policy:
    """The policy of that name; UsageError names the known ones."""
    policy = POLICIES.get(name)
    if policy is None:
        raise UsageError(f"unknown routing policy {name}", hint=f"config.routingPolicy takes {', '.join(POLICIES)}")
    return policy
