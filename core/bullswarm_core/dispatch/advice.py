"""What bullswarm would set for each pool and tier, and why: from the models that the CLIs offer, the paces and the rates.

A recommendation decides nothing by itself and never names a preferred pool: which pool takes a task stays a matter of quota.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast.text import duration, number
from bullswarm_core.pools.connector import REASONING_LEVELS, PoolProfile, made_for
from bullswarm_core.pools.model import EFFORTS, Effort, Pool
from bullswarm_core.pools.model_catalog import ModelEntry, ModelList
from bullswarm_core.pools.reasoning import clamped
from bullswarm_core.pools.settings import Settings
from bullswarm_core.routing.overview import PoolOverview, overview
from bullswarm_core.routing.request import RoutingContext

AHEAD_POINTS = 10.0
"""Points ahead of its pace from which a pool is advised to spend less: below that the older doctrine calls two paces equal."""
_SPARED: tuple[Effort, ...] = ("medium", "low")


@dataclass(frozen=True, slots=True)
class TierAdvice:
    """What one pool should run on one tier: ``model`` None is its CLI's default, ``level`` None passes nothing."""

    model: str | None
    level: str | None
    why: str


@dataclass(frozen=True, slots=True)
class PoolAdvice:
    """The advice for one pool, by tier. ``kept`` says why nothing of it would be written; ``standing`` tells its quota."""

    pool: str
    pool_label: str | None
    tiers: Mapping[Effort, TierAdvice]
    standing: str
    kept: str | None = None
    hints: tuple[str, ...] = ()

    @property
    def names_models(self) -> bool:
        """Say whether any tier is advised another model than the CLI's default."""
        return any(advice.model is not None for advice in self.tiers.values())


def advise(
    pool: Pool,
    profile: PoolProfile,
    known: ModelList,
    settings: Settings,
    *,
    now: datetime,
    own_rungs: bool,
    context: RoutingContext,
) -> PoolAdvice:
    """Return the advice for one pool; pure. ``own_rungs``: the person set rungs for it, which no advice replaces."""
    seen = overview(pool, now=now, context=context)
    tiers = {tier: _tier(tier, pool, profile, known, seen, now=now) for tier in EFFORTS}
    kept = None
    if own_rungs:
        kept = f"you set its rungs yourself (to let it be advised: bullswarm strategy clear-rungs {pool.id})"
    elif not settings.enabled(pool.id):
        kept = f"it is off (bullswarm strategy set-provider {pool.id} on)"
    return PoolAdvice(pool.id, pool.label, tiers, _standing(seen), kept, tuple(_hints(pool, known, seen)))


def _tier(
    tier: Effort, pool: Pool, profile: PoolProfile, known: ModelList, seen: PoolOverview, *, now: datetime
) -> TierAdvice:
    model, why = _model(tier, pool, profile, known, now=now)
    level, why_level = _level(tier, profile, model, seen)
    name = None if model is None or model.default else model.id
    return TierAdvice(name, level, f"{why}; {why_level}")


def _model(
    tier: Effort, pool: Pool, profile: PoolProfile, known: ModelList, *, now: datetime
) -> tuple[ModelEntry | None, str]:
    """Return the model made for the tier: the CLI's default where it is one, else the first that its list names."""
    fitting = [each for each in known.models if made_for(profile.connector, each.id) == tier]
    allowed = [each for each in fitting if each.id not in pool.refused_models]
    if not known.models:
        return None, "the default of its CLI: its models are not known"
    if not allowed:
        why = "those made for this tier may not be run" if fitting else "none is known to be made for this tier"
        return None, f"the default of its CLI: of {len(known.models)} models {why}"
    chosen = next((each for each in allowed if each.default), allowed[0])
    age = duration((now - known.asked_at).total_seconds() / 60) if known.asked_at else "?"
    what = (
        "its CLI's default, and made for this tier"
        if chosen.default
        else "the first in its list that is made for this tier"
    )
    return chosen, f"{what} ({len(known.models)} models, asked {age} ago)"


def _level(tier: Effort, profile: PoolProfile, model: ModelEntry | None, seen: PoolOverview) -> tuple[str | None, str]:
    rung = profile.connector.tiers.get(tier)
    level = rung.reasoning if rung else None
    if level is None:
        return None, "no reasoning level, as its connector has it"
    if model is not None and model.levels and (fitting := clamped(level, model.levels)) not in (None, level):
        return fitting, f"reasoning {fitting}, the nearest to {level} that this model takes"
    pace = seen.row.pace
    if tier in _SPARED and pace is not None and pace <= -AHEAD_POINTS and (lower := _lower(level, profile)) is not None:
        return lower, f"reasoning {lower}, one below its connector's: it is {number(-pace)} points ahead of its pace"
    return level, f"reasoning {level}, its connector's for this tier"


def _lower(level: str, profile: PoolProfile) -> str | None:
    """Return the next lower level that the CLI takes; None where there is none."""
    levels = profile.connector.launch.reasoning.levels or ()
    ranked = sorted((each for each in levels if each in REASONING_LEVELS), key=REASONING_LEVELS.index)
    return ranked[ranked.index(level) - 1] if level in ranked[1:] else None


def _standing(seen: PoolOverview) -> str:
    """Tell how much of the plan is left, and how long it lasts at the measured rate."""
    pool, row = seen.pool, seen.row
    if pool.unavailable is not None:
        return pool.unavailable
    if row.pacing_window is None or row.pacing_used_pct is None:
        return "no reading of its quota" if pool.metered else "unmetered"
    words = f"{row.pacing_window} used {number(row.pacing_used_pct)}%"
    if row.pace is not None:
        words += f", surplus {number(row.pace)}"
    rate = row.pacing_rate_per_minute
    if rate:
        learned = pool.rates.get(row.pacing_window) or pool.rates.get("weekly")
        left = max(0.0, 100.0 - (row.reserve_pct or 0.0) - row.pacing_used_pct) / rate
        source = f" ({learned.source}, {learned.samples} samples)" if learned else ""
        words += f", about {duration(left)} of work left at {rate:.3g} %/min{source}"
    return words


def _hints(pool: Pool, known: ModelList, seen: PoolOverview) -> list[str]:
    """Name what only the person can add, each with its command."""
    import shlex

    found = []
    if known.problem is not None:
        found.append(f"its models: {known.problem} · bullswarm strategy inventory --refresh asks again")
    elif known.asked_at is None:
        found.append("its models were never asked for · bullswarm strategy inventory")
    if pool.billing == "api-key" and not pool.billing_granted:
        found.append(
            f"it is paid by API key and not used · bullswarm strategy set-provider {pool.id} --allow-billing on"
        )
    window = seen.pacing
    if window is not None and window.used_pct is not None and window.resets_at is None:
        found.append(f"its reset is unknown · bullswarm strategy set-subscription {pool.id} --resets-at <one reset>")
    free = [each.id for each in known.models if each.free and each.id not in pool.refused_models]
    if free and not any(rung.free for rung in pool.tiers.values()):
        more = f" and {len(free) - 1} more" if len(free) > 1 else ""
        found.append(
            f"{free[0]}{more} cost no quota · bullswarm strategy set-rung {pool.id} low --model {shlex.quote(free[0])}"
        )
    return found
