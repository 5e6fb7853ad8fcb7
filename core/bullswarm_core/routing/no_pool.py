"""Why no pool can take a task: one sentence that names the pools, the numbers and the way out.

Wording: docs/design/routing.md, "When no pool is left".
"""

from __future__ import annotations

from collections.abc import Sequence

from bullswarm_core.pools.model import Pool
from bullswarm_core.routing.decision import LIMIT_KINDS, QUARANTINE_KINDS, Decision, Exclusion, FailureKind
from bullswarm_core.routing.eligibility import filtered
from bullswarm_core.routing.request import Request
from bullswarm_core.routing.sentences import Segment, joined, left_out, listed, pool, render, text

CALLER_KEEPS = "nothing else is eligible: the caller keeps the task"
_WAITING = LIMIT_KINDS | QUARANTINE_KINDS | {"unavailable", "probe"}


def no_pick(
    request: Request, excluded: Sequence[Exclusion], pools: Sequence[Pool], *, caller_keeps: bool = False
) -> Decision:
    """The decision without a pool: its reason, its failure kind, and the earliest time at which a pool is known to
    return. ``pools`` are those that ``excluded`` speaks of. With ``caller_keeps`` the reason says first, where the
    caller's own pool is the one that is left, that the caller keeps the task.
    """
    waiting = [entry for entry in excluded if entry.kind in _WAITING]
    held = [entry for entry in waiting if entry.kind in LIMIT_KINDS]
    returning = [entry for entry in waiting if entry.kind in LIMIT_KINDS | QUARANTINE_KINDS]
    quota = bool(waiting) and len(held) == len(waiting)
    if waiting:
        parts = _waiting(waiting, quota=quota) + _unpaid(excluded) + (() if quota else _beside(excluded, pools))
    else:
        parts = _none_fits(request, excluded)
    parts += _unknown_model(request, pools)
    if caller_keeps and _caller_could(request, excluded, pools):
        others = any(entry.kind != "caller" for entry in excluded)
        parts = joined([text(CALLER_KEEPS), *([parts] if others else [])])
    kind: FailureKind = "quota" if quota else "unavailable"
    returns = [entry.until for entry in returning if entry.until is not None]
    return Decision(
        pool=None,
        reason=render(parts),
        excluded=tuple(excluded),
        failure_kind=kind,
        back_at=min(returns, default=None),
        forecast={"candidateMinutes": request.candidate_minutes, "gated": []},
        reason_parts=parts,
    )


def _caller_could(request: Request, excluded: Sequence[Exclusion], pools: Sequence[Pool]) -> bool:
    """Whether the caller's own pool is there, takes the lane and is not ruled out by the words of the request."""
    if request.pin is not None or not any(entry.kind == "caller" for entry in excluded):
        return False
    own = next(each for each in pools if each.id == request.caller)
    return own.enabled and request.lane in own.lanes and filtered(own, request) is None


def _waiting(entries: Sequence[Exclusion], *, quota: bool) -> Segment:
    opening = "no pool with quota to spare: " if quota else "no pool free: "
    return text(opening) + listed([left_out(entry) for entry in entries], separator="; ")


def _unpaid(excluded: Sequence[Exclusion]) -> Segment:
    """The pools that one word of the person would open: a way out that need not wait."""
    entries = [entry for entry in excluded if entry.kind == "billing"]
    return text("; ") + _each(entries) if entries else ()


def _beside(excluded: Sequence[Exclusion], pools: Sequence[Pool]) -> Segment:
    """Why no last resort stands in; what the caller's own words left out needs no reason."""
    last = {each.id for each in pools if each.last_resort}
    entries = [entry for entry in excluded if entry.pool in last and entry.kind not in (*_WAITING, "filter", "caller")]
    return text("; ") + _each(entries) if entries else ()


def _unknown_model(request: Request, pools: Sequence[Pool]) -> Segment:
    """Say that the model asked for is in nobody's rungs: it may be a slip of the pen."""
    model = request.model
    if model is None or any(rung.model == model for each in pools for rung in each.tiers.values()):
        return ()
    return text(f" · no pool has the model {model} on a tier: bullswarm strategy show lists what they have")


def _none_fits(request: Request, excluded: Sequence[Exclusion]) -> Segment:
    """No pool could take this task at any time: say which demand emptied the list."""
    if request.pin is not None:
        return _pin_unfit(request, excluded)
    if not excluded:
        return text("no eligible pool: no agent CLI was found; bullswarm doctor lists what is missing")
    allowed = [entry for entry in excluded if entry.kind not in ("filter", "last_resort")]
    filtered = [entry for entry in excluded if entry.kind == "filter"]
    if filtered and all(entry.kind in ("disabled", "caller") for entry in allowed):
        return _filters_left_none(request, filtered, allowed)
    capable = [entry for entry in allowed if entry.kind not in ("disabled", "caller", "lane", "capability")]
    if capable and all(entry.kind == "tier" for entry in capable):
        if all(entry.kind == "tier" for entry in allowed):
            return text(f"no pool has a model allowed for the {request.tier} tier")
        return text(
            f"no eligible pool: no enabled pool has a model on the {request.tier} tier for {request.lane} work: "
        ) + _each(allowed)
    if request.model is None and capable and all(entry.kind in ("tier", "model") for entry in capable):
        opening = f"no pool has an allowed {request.tier} model under the current model policy ("
        return text(opening) + _each([entry for entry in capable if entry.kind == "model"]) + text(")")
    demand = f" with capabilities: {', '.join(request.capabilities)}" if request.capabilities else ""
    return text(f"no eligible pool{demand}: ") + _each(allowed or excluded)


def _each(entries: Sequence[Exclusion]) -> Segment:
    return listed([left_out(entry) for entry in entries], separator="; ")


def _pin_unfit(request: Request, excluded: Sequence[Exclusion]) -> Segment:
    pin = request.pin or ""
    entry = next((entry for entry in excluded if entry.pool == pin), None)
    if entry is None:
        why = "no such pool; bullswarm pools lists them"
    elif entry.kind in ("disabled", "tier"):
        why = f"it is disabled or has no model on the {request.tier} tier"
    else:
        why = f"it {entry.reason}"
    work = f" cannot run {request.lane}/{request.tier} work ({why})"
    way_out: Segment = ()
    if entry is not None and entry.kind == "disabled":
        way_out = text(" · bullswarm strategy set-provider ", pool(pin), " on takes it back in")
    return text("no eligible pool: the pinned pool ", pool(pin), work) + way_out


def _filters_left_none(request: Request, filtered: Sequence[Exclusion], others: Sequence[Exclusion]) -> Segment:
    lists = {
        "use pools": request.use_pools,
        "avoid pools": request.avoid_pools,
        "use providers": request.use_providers,
        "avoid providers": request.avoid_providers,
    }
    filters = "; ".join(f"{name} {', '.join(names)}" for name, names in lists.items() if names)
    items = [text(pool(entry.pool), f" ({entry.reason})") for entry in filtered]
    parts = text(f"no pool left after route filters ({filters}): ") + listed(items)
    disabled = [text(pool(entry.pool)) for entry in others if entry.kind == "disabled"]
    if disabled:
        parts += text("; passes the filters but disabled: ") + listed(disabled)
    callers = [text(pool(entry.pool)) for entry in others if entry.kind == "caller"]
    if callers:
        parts += text("; passes the filters but is the caller: ") + listed(callers)
    return parts
