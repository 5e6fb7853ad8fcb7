"""Changes of a person's decisions, as functions on the content of ``state.json``.

Each one changes the document in place and touches nothing but its own keys; what other programs keep there stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bullswarm_core.pools import EFFORTS
from bullswarm_core.pools.settings import Document


def section(state: Document, *names: str) -> Document:
    """Return the object under ``names``, made where it is missing or null."""
    for name in names:
        if state.get(name) is None:
            state[name] = {}
        state = state[name]
    return state


def look(state: Document, *names: str) -> Document:
    """Return the object under ``names`` for reading and taking from; an empty one where there is none."""
    for name in names:
        state = state.get(name) or {}
    return state


def drop(state: Document, key: str, *names: str) -> None:
    """Take ``key`` out of the object under ``names``, where there is one."""
    look(state, *names).pop(key, None)


def put(state: Document, key: str, value: Any, *names: str) -> None:
    """Set ``key`` under ``names``, or take it out for None."""
    if value is None:
        drop(state, key, *names)
    else:
        section(state, *names)[key] = value


def set_rung(state: Document, pool: str, tier: str, rung: Document | None) -> None:
    """Set what a pool runs on a tier; None takes its rung away, so that the pool is left out on the tier."""
    put(state, tier, rung, "strategy", "rungs", pool)
    if rung is None:
        _drop_older(state, pool, [tier])
        _stay_without_rungs(state, pool)
    else:
        # What set one model's level beside its rung speaks last.
        drop(state, tier, "strategy", "reasoning", "models", pool, rung["model"] or "")


def clear_rungs(state: Document, pool: str) -> None:
    """Bring the models of the connector back on every tier of a pool."""
    for name in ("rungs", "modelTiers"):
        drop(state, pool, "strategy", name)


def set_model(state: Document, pool: str, model: str, tiers: Iterable[str]) -> None:
    """Let a pool run ``model`` on exactly ``tiers``; on none of them it is turned off, whatever names it."""
    wanted = tuple(tiers)
    for tier in EFFORTS:
        rung = look(state, "strategy", "rungs", pool).get(tier)
        named = rung is not None and rung.get("model") == model
        if tier in wanted and not named:
            section(state, "strategy", "rungs", pool)[tier] = {"model": model, "reasoning": None}
        elif tier not in wanted and named:
            drop(state, tier, "strategy", "rungs", pool)
    older = look(state, "strategy", "modelTiers", pool)
    if model in older:
        older[model] = [tier for tier in older[model] if tier in wanted]
    if wanted:
        enable_model(state, model, pool)
    else:
        disabled = section(state, "strategy").get("disabledModels")
        if not isinstance(disabled, dict):
            # A plain list, an older program's, speaks of every pool: `excludedModels` says the same.
            exclude_models(state, disabled or [])
            state["strategy"]["disabledModels"] = disabled = {}
        names = disabled.get(pool) or []
        disabled[pool] = names if model in names else [*names, model]
        _stay_without_rungs(state, pool, model)


def enable_model(state: Document, model: str, pool: str | None = None) -> None:
    """Take back that ``model`` is turned off on ``pool``, or on every pool."""
    disabled = look(state, "strategy").get("disabledModels") or {}
    if isinstance(disabled, list):
        if pool is None and model in disabled:
            disabled.remove(model)
        return
    for name in [each for each in disabled if pool in (None, each) and model in (disabled[each] or ())]:
        disabled[name] = [each for each in disabled[name] if each != model]
        if not disabled[name]:
            del disabled[name]


def exclude_model(state: Document, model: str) -> None:
    """Never run ``model``."""
    exclude_models(state, [model])


def exclude_models(state: Document, models: Iterable[str]) -> None:
    """Never run any of ``models``."""
    names = section(state, "strategy").get("excludedModels") or []
    state["strategy"]["excludedModels"] = [*names, *(name for name in models if name not in names)]


def include_model(state: Document, model: str) -> None:
    """Take back an exclusion; nothing is touched where there is none."""
    names = look(state, "strategy").get("excludedModels") or []
    if model in names:
        state["strategy"]["excludedModels"] = [name for name in names if name != model]


def reset_tier(state: Document, tier: str, defaults: dict[str, Document]) -> None:
    """Take back every decision about a tier.

    ``defaults`` are the connectors' own rungs of the tier, by pool: a pool with rungs on other tiers gets its one back as
    a rung, since a tier without one would leave it out.
    """
    drop(state, tier, "strategy", "assignments")
    named = {**look(state, "strategy", "modelTiers"), **look(state, "strategy", "rungs")}
    for pool in named:
        drop(state, tier, "strategy", "rungs", pool)
        _drop_older(state, pool, [tier])
        if has_rungs(state, pool):
            section(state, "strategy", "rungs", pool)[tier] = defaults.get(pool) or {"model": None, "reasoning": None}
        else:
            clear_rungs(state, pool)
    reset_reasoning(state, tier=tier)


def set_reasoning(state: Document, tier: str, level: str, *, pool: str | None, model: str | None) -> None:
    """Set the reasoning level of a tier for every pool, for one pool, or for one model of a pool."""
    names = ("pools", pool) if pool and model is None else ("models", pool, model) if pool and model else ("tiers",)
    section(state, "strategy", "reasoning", *names)[tier] = level


def reset_reasoning(state: Document, *, tier: str | None = None, pool: str | None = None) -> None:
    """Take reasoning levels back, the recommended ones too; None matches every tier or pool.

    With a pool the levels that hold for every pool stay.
    """
    layers = look(state, "strategy", "reasoning")
    if pool is None:
        _reset_levels(layers, "tiers", tier)
    for holder, name in ((layers, "pools"), (look(state, "strategy"), "recommendedReasoning")):
        _reset_named(holder, name, tier, pool)
    models = layers.get("models") or {}
    for each in [name for name in models if pool in (None, name)]:
        _reset_named(models, each, tier, None)


def rungs_in_force(state: Document, pool: str) -> dict[str, Document] | None:
    """Return the person's rungs of a pool by tier, also those of the older form; None where nothing was said."""
    older, newer = look(state, "strategy", "modelTiers"), look(state, "strategy", "rungs")
    found: dict[str, Document] = {}
    for model, tiers in (older.get(pool) or {}).items():
        for tier in tiers:
            found.setdefault(tier, {"model": model})
    found |= {tier: rung for tier, rung in (newer.get(pool) or {}).items() if rung is not None}
    return found if found or pool in older else None


def has_rungs(state: Document, pool: str) -> bool:
    """Say whether the pool has a rung of the person's on any tier."""
    return bool(rungs_in_force(state, pool))


def _drop_older(state: Document, pool: str, tiers: Iterable[str]) -> None:
    older = look(state, "strategy", "modelTiers", pool)
    gone = tuple(tiers)
    for model in older:
        older[model] = [tier for tier in older[model] if tier not in gone]


def _stay_without_rungs(state: Document, pool: str, model: str = "default") -> None:
    """Keep a pool whose last rung was taken left out: no rung at all would bring its connector's models back."""
    rungs = look(state, "strategy", "rungs")
    if pool not in rungs or has_rungs(state, pool):
        return
    del rungs[pool]
    section(state, "strategy", "modelTiers", pool).setdefault(model, [])


def _reset_named(holder: Document, name: str, tier: str | None, pool: str | None) -> None:
    """Take levels out of ``{name: {pool: {tier: level}}}``, and what is empty afterwards too."""
    entries = holder.get(name) or {}
    for each in [key for key in entries if pool in (None, key)]:
        _reset_levels(entries, each, tier)
    if not entries:
        holder.pop(name, None)


def _reset_levels(holder: Document, name: str, tier: str | None) -> None:
    levels = holder.get(name) or {}
    for each in [key for key in levels if tier in (None, key)]:
        del levels[each]
    if not levels:
        holder.pop(name, None)
