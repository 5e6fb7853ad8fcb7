"""The first check, eligibility: which pools can take the task now, and why each other one is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.fast.text import number
from bullswarm_core.pools.model import EFFORTS, Effort, Pool, Rung, Window, WindowKind, has_free_name
from bullswarm_core.quota.windows import readings, spent_window
from bullswarm_core.routing.billing import billing_held, overage_held
from bullswarm_core.routing.decision import (
    LIMIT_KINDS,
    QUARANTINE_KINDS,
    Candidate,
    Exclusion,
    ExclusionKind,
)
from bullswarm_core.routing.measure import measure
from bullswarm_core.routing.policies.base import Policy
from bullswarm_core.routing.request import Request, RoutingContext
from bullswarm_core.wire import whole_second

LIMIT_NAMES: Mapping[WindowKind, str] = {"5h": "5-hour", "daily": "daily", "weekly": "weekly", "monthly": "monthly"}
_RETURNING = LIMIT_KINDS | QUARANTINE_KINDS | {"probe", "billing", "filter"}
_SPENT_KINDS: Mapping[WindowKind, ExclusionKind] = {
    "5h": "burst", "daily": "daily", "weekly": "weekly", "monthly": "monthly",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judged:
    """The pools after eligibility: rows to order, and entries left out by id; ``stand_in`` when only a last resort
    is left.
    """

    rows: tuple[Candidate, ...]
    rungs: Mapping[str, Rung]
    excluded: tuple[Exclusion, ...]
    stand_in: bool = False


def judge(request: Request, pools: Sequence[Pool], *, now: datetime, context: RoutingContext, policy: Policy) -> Judged:
    """Divide ``pools`` into candidates and left-out ones; a last resort enters only when named or when nothing else
    is left. ``policy`` says whether a quarantine keeps a pool out, and a draining pool a workflow step.

    A pool that a limit or a failed probe holds is still there: it returns, so that no stand-in answers in its place;
    nor does one answer for a pool that waits for one word of the person, or that the task's own filters left out: a
    retry elsewhere, or a review by another provider, must never come from a worker that only repeats its task. Where the
    ``policy`` says that the caller keeps what nobody else can take, nobody stands in for it either.
    Raises ValueError when two pools have one id, since a pick between them would depend on the order of the list.
    """
    if len({pool.id for pool in pools}) != len(pools):
        raise ValueError("two pools have the same id; a pool is given once")
    rows: list[Candidate] = []
    rungs: dict[str, Rung] = {}
    excluded: list[Exclusion] = []
    backups: list[Pool] = []

    def enter(pool: Pool) -> None:
        result = _judge_one(pool, request, now=now, context=context, policy=policy)
        if isinstance(result, Exclusion):
            excluded.append(result)
        else:
            rows.append(result[0])
            rungs[pool.id] = result[1]

    for pool in pools:
        if pool.last_resort and not request.names(pool.id, pool.provider):
            backups.append(pool)
        else:
            enter(pool)
    no_stand_in = _RETURNING | {"caller"} if policy.caller_keeps else _RETURNING
    held = any(entry.kind in no_stand_in for entry in excluded)
    stand_in = not rows and not held
    for pool in backups:
        if stand_in:
            enter(pool)
        else:
            reason = "is used only when named or when no other pool is left"
            excluded.append(Exclusion(pool.id, "last_resort", reason, pool_label=pool.label))
    excluded.sort(key=lambda entry: entry.pool)
    return Judged(tuple(rows), rungs, tuple(excluded), stand_in and bool(rows))


def _judge_one(
    pool: Pool, request: Request, *, now: datetime, context: RoutingContext, policy: Policy
) -> tuple[Candidate, Rung] | Exclusion:
    rung = rung_for(pool, request, context)
    refusal = _unfit(pool, request, rung)
    if refusal or rung is None:
        kind, reason = refusal or ("tier", f"has no model on the {request.tier} tier")
        return Exclusion(pool.id, kind, reason, pool_label=pool.label)
    current = readings(pool.windows, now)
    minutes = context.expected_minutes.get(pool.id, request.candidate_minutes)
    penalty = context.inflight_penalty_pct
    reserve = context.reserves.get(pool.id, 0.0)
    row = measure(pool, rung, current, now=now, candidate_minutes=minutes, penalty=penalty, reserve_pct=reserve)
    drains = request.workflow and not policy.steps_drain
    held = _held(pool, row, request, spent_window(current.values(), now, model=rung.model), drains=drains)
    if policy.remembers:
        held = _quarantined(pool, context, held, now=now)
    held = held or overage_held(pool, rung, current, now=now, candidate_minutes=minutes, penalty=penalty)
    if held:
        return held
    if pool.id in context.probes:
        return Exclusion(pool.id, "probe", f"probe: {context.probes[pool.id]}", pool_label=pool.label)
    return row, rung


def rung_for(pool: Pool, request: Request, context: RoutingContext) -> Rung | None:
    """What the pool would run: the tier's rung, the model assigned to the tier on this pool, or the model asked for.

    None when the pool has nothing for it. A model that is asked for runs where one of the pool's rungs names it, or
    where a rung is open (the CLI takes any model); never on a last resort that doesn't name it.
    """
    rung = pool.tiers.get(request.tier)
    if request.model is not None:
        found = _rung_naming(pool, request.model, request)
        return replace(found, source="request") if found else None
    assigned = context.assigned(request.tier)
    if rung is None or assigned is None or assigned[0] != pool.id:
        return rung
    model = assigned[1]
    # An assignment is a preference: a model that may not be run leaves the pool with what its rung names.
    if model is None or model == rung.model or model in pool.refused_models:
        return rung
    found = _rung_naming(pool, model, request) or _of_model(pool, rung, model, request.tier)
    own = pool.model_levels.get(model, {}).get(request.tier)
    level, source = (own, "settings") if own else (rung.reasoning, rung.level_source)
    return replace(found, source="settings", reasoning=level, level_source=source)


def _rung_naming(pool: Pool, model: str, request: Request) -> Rung | None:
    order = (request.tier, *(tier for tier in EFFORTS if tier != request.tier))
    rungs = [(tier, rung) for tier in order if (rung := pool.tiers.get(tier))]
    for tier, rung in rungs:
        if rung.model == model:
            return rung if tier == request.tier else _of_model(pool, rung, model, request.tier)
    open_rung = next((rung for _, rung in rungs if rung.model is None and not pool.last_resort), None)
    return _of_model(pool, open_rung, model, request.tier) if open_rung else None


def _of_model(pool: Pool, rung: Rung, model: str, tier: Effort) -> Rung:
    """Return ``rung`` as it is with another model, or on another tier: the level and the refusal are of that model."""
    level, source = _level_of_model(pool, rung, model, tier)
    free = rung.free if rung.model == model else has_free_name(model)
    refused = pool.refused_models.get(model)
    return replace(rung, model=model, free=free, reasoning=level, level_source=source, refused=refused)


def _level_of_model(pool: Pool, rung: Rung, model: str, tier: Effort) -> tuple[str | None, str]:
    if own := pool.model_levels.get(model, {}).get(tier):
        return own, "settings"
    if level := pool.levels.get(tier):
        return level, pool.level_sources.get(tier, rung.level_source)
    return rung.reasoning, rung.level_source


def _unfit(pool: Pool, request: Request, rung: Rung | None) -> tuple[ExclusionKind, str] | None:
    """Why the pool could not take the task at any time; the first reason in order of how much it tells."""
    if pool.id == request.caller:
        return "caller", "is the caller's own pool"
    if left_out := filtered(pool, request):
        return "filter", left_out
    if not pool.enabled:
        return "disabled", "is disabled"
    if request.lane not in pool.lanes:
        return "lane", f"does not take {request.lane} work"
    if request.capabilities and (missing := [name for name in request.capabilities if name not in pool.capabilities]):
        return "capability", f"lacks {', '.join(missing)}"
    if rung is None and request.model is not None:
        return "model", f"cannot run {request.model}"
    if rung is None:
        return "tier", f"has no model on the {request.tier} tier"
    if rung.refused is not None:
        return "model", f"may not run {rung.model or 'its default model'}: {rung.refused}"
    if pool.unavailable is not None:
        return "unavailable", pool.unavailable
    return billing_held(pool)


def filtered(pool: Pool, request: Request) -> str | None:
    """Why the request's own words leave the pool out; None when they don't."""
    if request.pin is not None and pool.id != request.pin:
        return "is not the pinned pool"
    if request.use_pools and pool.id not in request.use_pools:
        return "is not among the pools to use"
    if request.use_providers and pool.provider not in request.use_providers:
        return "is not of a provider to use"
    if pool.id in request.avoid_pools:
        return "is a pool to avoid"
    return "is of a provider to avoid" if pool.provider in request.avoid_providers else None


def _held(pool: Pool, row: Candidate, request: Request, window: Window | None, *, drains: bool) -> Exclusion | None:
    """What keeps a fit pool out for now: a spent window, or, where it ``drains``, draining; the one that lasts
    longest.
    """
    draining = drains and row.urgency_state == "draining" and not request.fixes(pool.id)
    if draining and (window is None or _outlasts(row.pacing_resets_at, window)):
        return _draining(row)
    return _spent(pool, window) if window else None


def _quarantined(pool: Pool, context: RoutingContext, held: Exclusion | None, *, now: datetime) -> Exclusion | None:
    """The pool's quarantine, where that keeps it out longer than what holds it besides; a pin is no way around it."""
    entry = context.quarantines.get(pool.id)
    if entry is None or entry.until <= now:
        return held
    if held is not None and (held.until is None or held.until >= entry.until):
        return held
    return Exclusion(
        pool.id,
        "quota_quarantine" if entry.kind == "quota" else "auth_quarantine",
        f"is quarantined until {whole_second(entry.until)} ({entry.why}); bullswarm pools resume {pool.id} ends it now",
        until=entry.until,
        pool_label=pool.label,
    )


def _outlasts(moment: datetime | None, window: Window) -> bool:
    return window.resets_at is not None and (moment is None or moment > window.resets_at)


def _spent(pool: Pool, window: Window) -> Exclusion:
    until = f"until {whole_second(window.resets_at)}" if window.resets_at else "with no known reset"
    return Exclusion(
        pool.id,
        _SPENT_KINDS[window.kind],
        f"at its {LIMIT_NAMES[window.kind]} limit {until}",
        window=window.kind,
        until=window.resets_at,
        numbers={"used_pct": window.used_pct or 0.0},
        pool_label=pool.label,
    )


def _draining(row: Candidate) -> Exclusion:
    numbers = {"forecast_pct": row.forecast_pacing_pct, "elapsed_pct": row.pacing_elapsed_pct}
    return Exclusion(
        row.pool,
        "draining",
        f"nearly spent (forecast {number(row.forecast_pacing_pct or 0.0)}%) until {whole_second(row.pacing_resets_at)}",
        window=row.pacing_window,
        until=row.pacing_resets_at,
        numbers={name: value for name, value in numbers.items() if value is not None},
        pool_label=row.pool_label,
    )
