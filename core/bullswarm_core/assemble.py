"""Puts together what routing judges: each pool's connector, the person's decisions, its meter and its load."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from bullswarm_core.connector import PoolProfile, is_free
from bullswarm_core.home import Home
from bullswarm_core.labels import Labels
from bullswarm_core.pools import EFFORTS, Effort, Inflight, Pool, Rate, Rung, Window, WindowKind
from bullswarm_core.quota.declared import with_declared_reset
from bullswarm_core.quota.readings import Reading, load_reading
from bullswarm_core.quota.supposed import SupposedMeter, with_supposed
from bullswarm_core.quota.windows import has_free_name
from bullswarm_core.routing.context import RoutingContext
from bullswarm_core.settings import RungChoice, Settings
from bullswarm_core.values import replace

_NO_LABELS = Labels()
_NO_READING = Reading()
REFUSED_BY_PERSON = "you excluded it"


def assemble_pools(
    profiles: Iterable[PoolProfile],
    settings: Settings,
    *,
    now: datetime,
    labels: Labels = _NO_LABELS,
    meters: Mapping[str, Reading] | None = None,
    inflight: Mapping[str, tuple[Inflight, ...]] | None = None,
    rates: Mapping[str, Mapping[WindowKind, Rate]] | None = None,
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
) -> tuple[Pool, ...]:
    """Return one Pool per profile with the meters of the home as they are now; reads files and changes none."""
    found = tuple(profiles)
    meters = read_meters(home, [profile.id for profile in found], now=now)
    return assemble_pools(found, settings, now=now, labels=labels, meters=meters, inflight=inflight)


def read_meters(home: Home, pool_ids: Iterable[str], *, now: datetime) -> dict[str, Reading]:
    """Return the last reading of each pool; a meter file that is missing or damaged is a reading without windows."""
    return {pool_id: load_reading(home, pool_id, now=now) for pool_id in pool_ids}


def rungs_of(profile: PoolProfile, settings: Settings) -> dict[Effort, Rung]:
    """Return what the pool runs on each tier: the person's rungs if there are any, else the connector's.

    A tier that is missing has no model, so that the pool is left out on it: once a person sets rungs for a pool, only
    the tiers that they named are allowed (design D16).
    """
    defaults = profile.connector.tiers
    chosen = settings.rungs.get(profile.id)
    if chosen is None:
        rungs = {tier: defaults[tier] for tier in EFFORTS if tier in defaults}
    else:
        rungs = {tier: _chosen(chosen[tier], defaults.get(tier)) for tier in EFFORTS if tier in chosen}
    return {
        tier: _finished(rung, profile, excluded=settings.excluded_models, said_free=_said_free(chosen, tier))
        for tier, rung in rungs.items()
    }


def routing_context(
    settings: Settings, *, probes: Mapping[str, str] | None = None, route_summary: str | None = None
) -> RoutingContext:
    """Return what a routing policy may know of the person's decisions."""
    return RoutingContext(
        inflight_penalty_pct=settings.inflight_penalty_pct,
        assignments={
            tier: (choice.pool, choice.model) if choice.model else choice.pool
            for tier, choice in settings.assignments.items()
        },
        reserves={pool_id: plan.reserve_pct for pool_id, plan in settings.subscriptions.items() if plan.reserve_pct},
        probes=probes or {},
        route_summary=route_summary,
    )


def with_supposed_meters(
    pools: Sequence[Pool], supposed: Iterable[SupposedMeter], *, labels: Labels = _NO_LABELS
) -> tuple[Pool, ...]:
    """Put what a caller supposes with ``--meter`` in the place of what was read; raise UnknownNameError for no pool."""
    ids: Collection[str] = {pool.id for pool in pools}
    by_pool: dict[str, dict[WindowKind, Window]] = {}
    for meter in supposed:
        by_pool.setdefault(labels.resolve(meter.pool, ids), {})[meter.window.kind] = meter.window
    return tuple(
        replace(pool, windows=with_supposed(pool.windows, by_pool[pool.id])) if pool.id in by_pool else pool
        for pool in pools
    )


def _pool(
    profile: PoolProfile,
    settings: Settings,
    *,
    now: datetime,
    label: str | None,
    reading: Reading,
    inflight: tuple[Inflight, ...],
    rates: Mapping[WindowKind, Rate],
) -> Pool:
    connector = profile.connector
    subscription = settings.subscriptions.get(profile.id)
    declared = subscription.quota_window if subscription else None
    pacing = declared or connector.quota_window
    return Pool(
        id=profile.id,
        provider=connector.name,
        label=label,
        enabled=settings.enabled(profile.id),
        lanes=connector.lanes,
        capabilities=connector.capabilities,
        tiers=rungs_of(profile, settings),
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
        meter_error=reading.problem,
        billing=profile.billing,
        billing_granted=settings.pool(profile.id).billing_granted,
    )


def _chosen(choice: RungChoice, default: Rung | None) -> Rung:
    reasoning = choice.reasoning or (default.reasoning if default else None)
    return Rung(model=choice.model, reasoning=reasoning, source="settings")


def _said_free(chosen: Mapping[Effort, RungChoice] | None, tier: Effort) -> bool | None:
    return chosen[tier].free if chosen is not None else None


def _finished(rung: Rung, profile: PoolProfile, *, excluded: frozenset[str], said_free: bool | None) -> Rung:
    known_free = rung.free or is_free(profile.connector, rung.model) or has_free_name(rung.model)
    return replace(
        rung,
        free=known_free if said_free is None else said_free,
        refused=REFUSED_BY_PERSON if rung.model in excluded else None,
    )
