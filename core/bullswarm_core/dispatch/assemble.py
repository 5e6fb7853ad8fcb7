"""Puts together what routing judges: each pool's connector, the person's decisions, its meter and its load."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from bullswarm_core._dataclasses import replace
from bullswarm_core.pools.connector import PoolProfile, is_free
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.model import (
    DEFAULT_MODEL,
    EFFORTS,
    Effort,
    Inflight,
    Lane,
    Pool,
    Rate,
    Rung,
    Window,
    WindowKind,
    has_free_name,
)
from bullswarm_core.pools.reasoning import level_of, levels_of, sources_of
from bullswarm_core.pools.settings import NOTHING, RungChoice, Settings
from bullswarm_core.quota.overrides import SupposedMeter, with_declared_reset, with_supposed
from bullswarm_core.quota.reading import Reading, load_reading
from bullswarm_core.quota.refusals import PlanRefusal, PlanRefusals, load_plan_refusals
from bullswarm_core.quota.windows import PACING_KINDS
from bullswarm_core.routing.quarantine import Quarantine
from bullswarm_core.routing.request import RoutingContext
from bullswarm_core.store.home import Home

_NO_LABELS = Labels()
_NO_READING = Reading()
SUPPOSED = "--meter"
"""Who told a reading that a caller supposes: no source on this machine did."""
REFUSED_BY_PERSON = "you excluded it"
REFUSED_ON_POOL = "you turned it off on this pool"


def assemble_pools(
    profiles: Iterable[PoolProfile],
    settings: Settings,
    *,
    now: datetime,
    labels: Labels = _NO_LABELS,
    meters: Mapping[str, Reading] | None = None,
    inflight: Mapping[str, tuple[Inflight, ...]] | None = None,
    rates: Mapping[str, Mapping[WindowKind, Rate]] | None = None,
    plan_refusals: PlanRefusals | None = None,
) -> tuple[Pool, ...]:
    """Return one Pool per profile, by id; pure. The mappings are by pool id, and a pool may be missing from each."""
    found = sorted(profiles, key=lambda profile: profile.id)
    labels = labels.among([profile.id for profile in found])
    meters, inflight, rates = meters or {}, inflight or {}, rates or {}
    return tuple(
        _pool(
            profile,
            settings,
            now=now,
            label=labels.of(profile.id),
            reading=meters.get(profile.id, _NO_READING),
            inflight=inflight.get(profile.id, ()),
            rates=rates.get(profile.id, {}),
            refusals=(plan_refusals or {}).get(profile.id, {}),
        )
        for profile in found
    )


def current_pools(
    home: Home,
    profiles: Iterable[PoolProfile],
    settings: Settings,
    *,
    now: datetime,
    labels: Labels = _NO_LABELS,
    inflight: Mapping[str, tuple[Inflight, ...]] | None = None,
    rates: Mapping[str, Mapping[WindowKind, Rate]] | None = None,
) -> tuple[Pool, ...]:
    """Return one Pool per profile with the meters of the home as they are now; reads files and changes none."""
    found = tuple(profiles)
    meters = read_meters(home, [profile.id for profile in found], now=now)
    return assemble_pools(
        found,
        settings,
        now=now,
        labels=labels,
        meters=meters,
        inflight=inflight,
        rates=rates,
        plan_refusals=load_plan_refusals(home),
    )


def read_meters(home: Home, pool_ids: Iterable[str], *, now: datetime) -> dict[str, Reading]:
    """Return the last reading of each pool; a meter file that is missing or damaged is a reading without windows."""
    return {pool_id: load_reading(home, pool_id, now=now) for pool_id in pool_ids}


def rungs_of(
    profile: PoolProfile, settings: Settings, refusals: Mapping[str, PlanRefusal] | None = None
) -> dict[Effort, Rung]:
    """Return what the pool runs on each tier: the person's rungs if there are any, else the connector's.

    A tier that is missing has no model, so that the pool is left out on it: once a person sets rungs for a pool, only
    the tiers that they named are allowed. ``refusals`` are the models that its plan doesn't include.
    """
    defaults = profile.connector.tiers
    chosen = settings.rungs.get(profile.id)
    refused = _refused_models(profile.id, settings, refusals or {})
    found: dict[Effort, Rung] = {}
    for tier in EFFORTS:
        choice = chosen.get(tier) if chosen is not None else None
        rung = defaults.get(tier) if chosen is None else _chosen(choice)
        if rung is not None:
            levelled = _levelled(rung, tier, profile, settings, choice)
            found[tier] = _finished(levelled, profile, refused=refused, said_free=choice.free if choice else None)
    return found


def routing_context(
    settings: Settings,
    *,
    probes: Mapping[str, str] | None = None,
    route_summary: str | None = None,
    incumbents: Mapping[Lane, str] = NOTHING,
    quarantines: Mapping[str, Quarantine] = NOTHING,
) -> RoutingContext:
    """Return what a routing policy may know of the person's decisions and of what was done before."""
    return RoutingContext(
        inflight_penalty_pct=settings.inflight_penalty_pct,
        assignments={
            tier: (choice.pool, choice.model) if choice.model else choice.pool
            for tier, choice in settings.assignments.items()
        },
        reserves={pool_id: plan.reserve_pct for pool_id, plan in settings.subscriptions.items() if plan.reserve_pct},
        probes=probes or {},
        route_summary=route_summary,
        incumbents=incumbents,
        quarantines=quarantines,
    )


def with_supposed_meters(
    pools: Sequence[Pool], supposed: Iterable[SupposedMeter], *, labels: Labels = _NO_LABELS
) -> tuple[Pool, ...]:
    """Put what a caller supposes with ``--meter`` in the place of what was read; raise UnknownNameError for no pool."""
    ids: Collection[str] = {pool.id for pool in pools}
    by_pool: dict[str, dict[WindowKind, Window]] = {}
    for meter in supposed:
        by_pool.setdefault(labels.resolve(meter.pool, ids), {})[meter.window.kind] = meter.window
    return tuple(_supposing(pool, by_pool[pool.id]) if pool.id in by_pool else pool for pool in pools)


def _supposing(pool: Pool, supposed: Mapping[WindowKind, Window]) -> Pool:
    """Put supposed windows in their places; the source that is told beside a pool is that of what paces it."""
    paced = any(kind in PACING_KINDS for kind in supposed)
    read_by = SUPPOSED if paced else pool.meter_read_by
    return replace(pool, windows=with_supposed(pool.windows, supposed), meter_read_by=read_by)


def _pool(
    profile: PoolProfile,
    settings: Settings,
    *,
    now: datetime,
    label: str | None,
    reading: Reading,
    inflight: tuple[Inflight, ...],
    rates: Mapping[WindowKind, Rate],
    refusals: Mapping[str, PlanRefusal],
) -> Pool:
    connector = profile.connector
    reading = reading.of(profile.billing)
    subscription = settings.subscriptions.get(profile.id)
    declared = subscription.quota_window if subscription else None
    pacing = declared or connector.quota_window
    of_connector = {tier: rung.reasoning for tier, rung in connector.tiers.items()}
    levels, model_levels = levels_of(profile.id, layers=settings.reasoning, connector=of_connector)
    return Pool(
        id=profile.id,
        provider=connector.name,
        label=label,
        enabled=settings.enabled(profile.id),
        lanes=connector.lanes,
        capabilities=connector.capabilities,
        tiers=rungs_of(profile, settings, refusals),
        levels=levels,
        level_sources=sources_of(profile.id, layers=settings.reasoning, connector=of_connector),
        model_levels=model_levels,
        refused_models=_refused_models(profile.id, settings, refusals),
        windows=with_declared_reset(
            reading.windows, anchor=subscription.resets_at if subscription else None, kind=pacing, now=now
        ),
        pacing=pacing,
        inflight=inflight,
        rates=rates,
        cost_rank=connector.cost_rank,
        unavailable=profile.why_not(),
        metered=connector.meter.type != "none",
        last_resort=connector.last_resort,
        credential_group=connector.credential_group,
        meter_error=reading.told_trouble,
        meter_hold_until=reading.held_until(now),
        meter_read_by=reading.read_by,
        meter_under_way=reading.under_way and connector.meter.type != "none",
        plan=(subscription.plan if subscription else None) or reading.plan,
        billing=profile.billing,
        overage=reading.overage,
        billing_granted=settings.pool(profile.id).billing_granted,
    )


def _chosen(choice: RungChoice | None) -> Rung | None:
    return Rung(model=choice.model, source="settings") if choice else None


def _levelled(rung: Rung, tier: Effort, profile: PoolProfile, settings: Settings, choice: RungChoice | None) -> Rung:
    default = profile.connector.tiers.get(tier)
    level = level_of(
        tier,
        pool=profile.id,
        model=rung.model,
        layers=settings.reasoning,
        rung=choice.reasoning if choice else None,
        connector=default.reasoning if default else None,
    )
    return replace(rung, reasoning=level.level, level_source=level.source)


def _finished(rung: Rung, profile: PoolProfile, *, refused: Mapping[str, str], said_free: bool | None) -> Rung:
    known_free = rung.free or is_free(profile.connector, rung.model) or has_free_name(rung.model)
    return replace(
        rung,
        free=known_free if said_free is None else said_free,
        refused=refused.get(rung.model or DEFAULT_MODEL),
    )


def _refused_models(pool_id: str, settings: Settings, refusals: Mapping[str, PlanRefusal]) -> dict[str, str]:
    """Say why each model that this pool may not run may not be run; the person's own word before the provider's."""
    return {
        **{model: refusal.reason for model, refusal in refusals.items()},
        **dict.fromkeys(settings.disabled_models.get(pool_id, ()), REFUSED_ON_POOL),
        **dict.fromkeys(settings.excluded_models, REFUSED_BY_PERSON),
    }
