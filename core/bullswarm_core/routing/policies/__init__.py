"""Routing policies: each orders the eligible pools and picks one; none changes what a failure is.

A policy is a module of this package with the name that ``config.routingPolicy`` takes; it holds ``POLICY``, and only the
one that is in force is imported.
"""

from __future__ import annotations

from bullswarm_core.errors import UsageError
from bullswarm_core.routing.policies.base import Policy

POLICY_NAMES: tuple[str, ...] = ("pace", "classic", "foresight")


def policy_named(name: str) -> Policy:
    """The policy of that name; UsageError names the known ones."""
    if name not in POLICY_NAMES:
        raise UsageError(f"unknown routing policy {name}", hint=f"config.routingPolicy takes {', '.join(POLICY_NAMES)}")
    from importlib import import_module

    policy = import_module(f"{__name__}.{name}").POLICY
    assert isinstance(policy, Policy)
    return policy
