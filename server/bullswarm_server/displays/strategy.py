"""The person's decisions as a document for programs and as lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bullswarm_core.connector import NO_REASONING, PoolProfile
from bullswarm_core.labels import Labels
from bullswarm_core.pools import EFFORTS
from bullswarm_core.settings import DEFAULT_POLICY, RungChoice, Settings, Subscription
from bullswarm_core.wire import iso
from bullswarm_server.displays.text import one_line

SCHEMA_VERSION = "bullswarm.strategy.v1"


def document(settings: Settings) -> dict[str, Any]:
    """Return the decisions as one JSON document; pools by id."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "configured": settings.configured,
        "pools": {
            pool_id: {
                "enabled": choice.enabled,
                "sandbox": choice.sandbox,
                "workerInheritsConfig": choice.worker_inherits_config,
                "allowBilling": choice.billing_granted,
            }
            for pool_id, choice in settings.pools.items()
        },
        "rungs": {
            pool_id: {tier: _rung_document(rungs[tier]) for tier in EFFORTS if tier in rungs}
            for pool_id, rungs in settings.rungs.items()
        },
        "assignments": {
            tier: {"pool": choice.pool, "model": choice.model} for tier, choice in settings.assignments.items()
        },
        "subscriptions": {
            pool_id: {
                "quotaWindow": plan.quota_window,
                "resetsAt": iso(plan.resets_at) if plan.resets_at else None,
                "plan": plan.plan,
                "reservePct": plan.reserve_pct,
            }
            for pool_id, plan in settings.subscriptions.items()
        },
        "excludedModels": sorted(settings.excluded_models),
        "config": {
            "depthLimit": settings.depth_limit,
            "totalLimit": settings.total_limit,
            "inflightPenaltyPct": settings.inflight_penalty_pct,
            "routingPolicy": settings.routing_policy,
        },
    }


def lines(settings: Settings, labels: Labels, profiles: Mapping[str, PoolProfile]) -> list[str]:
    """Return the decisions as lines for people, in the order in which routing asks for them.

    ``profiles`` are the pools of this machine by id: where a rung names no reasoning level, theirs is in force.
    """
    found = []
    for pool_id, choice in sorted(settings.pools.items()):
        state = "on" if choice.enabled else "off"
        inherits = " inherits-config" if choice.worker_inherits_config else ""
        billing = " allow-billing" if choice.billing_granted else ""
        found.append(f"pool {labels.shown(pool_id)} {state} sandbox={choice.sandbox}{inherits}{billing}")
    for pool_id, rungs in sorted(settings.rungs.items()):
        levels = connector_levels(profiles.get(pool_id))
        found += [
            f"rung {labels.shown(pool_id)} {tier}: {_rung_words(rungs.get(tier), levels.get(tier))}" for tier in EFFORTS
        ]
    for tier, assigned in settings.assignments.items():
        found.append(f"assigned {tier}: {labels.shown(assigned.pool)} {assigned.model or ''}".rstrip())
    for pool_id, plan in sorted(settings.subscriptions.items()):
        found.append(f"subscription {labels.shown(pool_id)} {_subscription_words(plan)}")
    found += [f"excluded model {model}" for model in sorted(settings.excluded_models)]
    found = found or ["you decided nothing yet: each pool that is found may take work, with its CLI's default model"]
    return [one_line(line) for line in [*found, *_limits(settings)]]


def _limits(settings: Settings) -> list[str]:
    policy = "the pool with the most quota that would expire unused comes first"
    penalty = "points of surplus that each attempt in flight costs a pool whose own rate isn't known"
    depth = "workers may start workers, this many deep"
    total = "workers that may be started under one task, all its workers' workers included"
    return [
        f"policy {settings.routing_policy}" + (f": {policy}" if settings.routing_policy == DEFAULT_POLICY else ""),
        f"inflight-penalty {settings.inflight_penalty_pct:g}: {penalty}",
        f"depth-limit {settings.depth_limit}: {depth}",
        f"total-limit {settings.total_limit}: {total}",
    ]


def connector_levels(profile: PoolProfile | None) -> dict[str, str | None]:
    """Return the reasoning level by tier that a pool's connector sets; nothing for a pool that isn't there."""
    return {tier: rung.reasoning for tier, rung in profile.connector.tiers.items()} if profile else {}


def reasoning_words(chosen: str | None, connector: str | None) -> str:
    """Say which reasoning level is in force: the person's, else the connector's, else none."""
    if chosen == NO_REASONING:
        return "none passed"
    return chosen or (f"{connector} (its connector's)" if connector else "none passed")


def _subscription_words(plan: Subscription) -> str:
    name = f"plan={plan.plan} " if plan.plan else ""
    reset = iso(plan.resets_at) if plan.resets_at else "unknown"
    reserve = f" reserve={plan.reserve_pct:g}%" if plan.reserve_pct else ""
    return f"{name}window={plan.quota_window or 'unknown'} resets={reset}{reserve}"


def _rung_document(choice: RungChoice) -> dict[str, Any]:
    return {"model": choice.model, "reasoning": choice.reasoning, "free": choice.free}


def _rung_words(choice: RungChoice | None, connector_level: str | None) -> str:
    if choice is None:
        return "no model, the pool is left out"
    free = "" if choice.free is None else " free" if choice.free else " not free"
    return f"{choice.model or 'the default of its CLI'} reasoning={reasoning_words(choice.reasoning, connector_level)}{free}"
