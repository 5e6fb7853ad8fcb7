"""The person's decisions as a document for programs and as lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bullswarm_core.pools import EFFORTS, Effort
from bullswarm_core.pools.connector import NO_REASONING, PoolProfile
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.reasoning import Layer, Level, level_of
from bullswarm_core.pools.settings import NOTHING, ReasoningLayers, RungChoice, Settings, Subscription
from bullswarm_core.quota.refusals import PlanRefusal, PlanRefusals
from bullswarm_core.quota.windows import PACING_KINDS
from bullswarm_core.wire import iso
from bullswarm_server.displays.text import one_line

SCHEMA_VERSION = "bullswarm.strategy.v1"
_NO_MODEL = "no model, the pool is left out"
_SET_BY: Mapping[Layer, str] = {
    "connector": " (its connector's)",
    "tier": " (yours for the tier)",
    "pool": " (yours for the pool)",
    "recommended": " (recommended)",
}


def document(settings: Settings, refusals: PlanRefusals = NOTHING) -> dict[str, Any]:
    """Return the decisions as one JSON document; pools by id.

    `strategy configure` takes the same document; there ``configured`` and ``modelsNotInPlan`` are only read past.
    """
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
        "reasoning": {
            "tiers": dict(settings.reasoning.tiers),
            "pools": _plain(settings.reasoning.pools),
            "models": {pool: _plain(models) for pool, models in settings.reasoning.models.items()},
        },
        "recommendedReasoning": _plain(settings.reasoning.recommended),
        "excludedModels": sorted(settings.excluded_models),
        "disabledModels": {pool: sorted(models) for pool, models in settings.disabled_models.items()},
        "modelsNotInPlan": [
            {"pool": each.pool, "model": each.model, "at": iso(each.at), "why": each.why, "wayBack": each.way_back}
            for models in refusals.values()
            for each in models.values()
        ],
        "config": {
            "depthLimit": settings.depth_limit,
            "totalLimit": settings.total_limit,
            "inflightPenaltyPct": settings.inflight_penalty_pct,
            "routingPolicy": settings.routing_policy,
        },
    }


def lines(
    settings: Settings, labels: Labels, profiles: Mapping[str, PoolProfile], refusals: PlanRefusals = NOTHING
) -> list[str]:
    """Return the decisions as lines for people, in the order in which routing asks for them.

    ``profiles`` are the pools of this machine by id: where a rung names no reasoning level, or a subscription no
    window, theirs is in force.
    """
    found = []
    for pool_id, choice in sorted(settings.pools.items()):
        state = "on" if choice.enabled else "off"
        inherits = " inherits-config" if choice.worker_inherits_config else ""
        billing = " allow-billing" if choice.billing_granted else ""
        found.append(f"pool {labels.shown(pool_id)} {state} sandbox={choice.sandbox}{inherits}{billing}")
    for pool_id, rungs in sorted(settings.rungs.items()):
        connector = connector_levels(profiles.get(pool_id))
        for tier in EFFORTS:
            rung = rungs.get(tier)
            words = _rung_words(rung, rung_level(pool_id, tier, rung, settings, connector)) if rung else _NO_MODEL
            found.append(f"rung {labels.shown(pool_id)} {tier}: {words}")
    for tier, assigned in settings.assignments.items():
        found.append(f"assigned {tier}: {labels.shown(assigned.pool)} {assigned.model or ''}".rstrip())
    for pool_id, plan in sorted(settings.subscriptions.items()):
        found.append(f"subscription {labels.shown(pool_id)} {_subscription_words(plan, profiles.get(pool_id))}")
    found += _reasoning_lines(settings.reasoning, labels)
    found += [f"excluded model {model}" for model in sorted(settings.excluded_models)]
    for pool_id, models in sorted(settings.disabled_models.items()):
        found += [f"turned off on {labels.shown(pool_id)}: model {model}" for model in sorted(models)]
    for pool_id, refused in sorted(refusals.items()):
        shown = labels.shown(pool_id)
        found += [
            f"not in the plan of {shown}: model {each.model}, {labels.in_text(_refusal(each))}"
            for each in refused.values()
        ]
    found = found or ["you decided nothing yet: each pool that is found may take work, with its CLI's default model"]
    return [one_line(line) for line in [*found, *_limits(settings)]]


def _limits(settings: Settings) -> list[str]:
    penalty = "points of surplus that each attempt in flight costs a pool whose own rate isn't known"
    depth = "workers may start workers, this many deep"
    total = "workers that may be started under one task, all its workers' workers included"
    return [
        f"policy {settings.routing_policy}: {_policy_words(settings.routing_policy)}",
        f"inflight-penalty {settings.inflight_penalty_pct:g}: {penalty}",
        f"depth-limit {settings.depth_limit}: {depth}",
        f"total-limit {settings.total_limit}: {total}",
    ]


def _policy_words(name: str) -> str:
    """What a policy does, and of one that there isn't, how to choose one."""
    from bullswarm_core.routing.policies import POLICY_NAMES, policy_named

    if name in POLICY_NAMES:
        return policy_named(name).summary
    return f"there is no such policy, so that nothing can be picked · bullswarm strategy set-policy {POLICY_NAMES[0]}"


def connector_levels(profile: PoolProfile | None) -> dict[Effort, str | None]:
    """Return the reasoning level by tier that a pool's connector sets; nothing for a pool that isn't there."""
    return {tier: rung.reasoning for tier, rung in profile.connector.tiers.items()} if profile else {}


def rung_level(
    pool_id: str, tier: Effort, rung: RungChoice | None, settings: Settings, connector: Mapping[Effort, str | None]
) -> Level:
    """Return the reasoning level with which a rung of the person's runs (None: the connector's rung)."""
    return level_of(
        tier,
        pool=pool_id,
        model=rung.model if rung else None,
        layers=settings.reasoning,
        rung=rung.reasoning if rung else None,
        connector=connector.get(tier),
    )


def level_words(level: Level) -> str:
    """Say which reasoning level is in force and who set it, where it was not set beside the model itself."""
    if level.level is None or level.level == NO_REASONING:
        return "none passed"
    return level.level + _SET_BY.get(level.layer, "")


def _reasoning_lines(layers: ReasoningLayers, labels: Labels) -> list[str]:
    found = [f"reasoning {tier}: {level}" for tier, level in layers.tiers.items()]
    for pool, levels in sorted(layers.pools.items()):
        found += [f"reasoning {labels.shown(pool)} {tier}: {level}" for tier, level in levels.items()]
    for pool, models in sorted(layers.models.items()):
        for model, levels in sorted(models.items()):
            found += [f"reasoning {labels.shown(pool)} {model} {tier}: {level}" for tier, level in levels.items()]
    for pool, levels in sorted(layers.recommended.items()):
        found += [f"recommended reasoning {labels.shown(pool)} {tier}: {level}" for tier, level in levels.items()]
    return found


def _refusal(refusal: PlanRefusal) -> str:
    return f"since {iso(refusal.at)} (“{refusal.why}”) · {refusal.way_back} tries it again"


def _plain(levels: Mapping[str, Mapping[Effort, str]]) -> dict[str, dict[Effort, str]]:
    return {name: dict(entry) for name, entry in levels.items()}


def _subscription_words(plan: Subscription, profile: PoolProfile | None) -> str:
    name = f"plan={plan.plan} " if plan.plan else ""
    reset = iso(plan.resets_at) if plan.resets_at else "unknown"
    reserve = f" reserve={plan.reserve_pct:g}%" if plan.reserve_pct else ""
    return f"{name}window={_window_words(plan, profile)} resets={reset}{reserve}"


def _window_words(plan: Subscription, profile: PoolProfile | None) -> str:
    """Say which window paces the pool and who named it; where nobody did, the first of these that is read does."""
    if plan.quota_window:
        return plan.quota_window
    if profile is None:
        return "unknown (the pool is not on this machine)"
    if profile.connector.quota_window:
        return f"{profile.connector.quota_window} (its connector's)"
    return f"{'/'.join(PACING_KINDS)} (the first that is read)"


def _rung_document(choice: RungChoice) -> dict[str, Any]:
    return {"model": choice.model, "reasoning": choice.reasoning, "free": choice.free}


def _rung_words(choice: RungChoice, level: Level) -> str:
    free = "" if choice.free is None else " free" if choice.free else " not free"
    return f"{choice.model or 'the default of its CLI'} reasoning={level_words(level)}{free}"
