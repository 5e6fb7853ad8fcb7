"""Which reasoning level a task runs with: the first layer that names one wins, not the strongest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools.connector import REASONING_LEVELS
from bullswarm_core.pools.model import EFFORTS, Effort
from bullswarm_core.pools.settings import ReasoningLayers

Layer = Literal["step", "run", "model", "pool", "recommended", "tier", "connector", "none"]
Source = Literal["request", "settings", "recommendation", "connector", "cli-default"]
_SOURCES: dict[Layer, Source] = {
    "step": "request",
    "run": "request",
    "model": "settings",
    "pool": "settings",
    "recommended": "recommendation",
    "tier": "settings",
    "connector": "connector",
    "none": "cli-default",
}


@dataclass(frozen=True, slots=True)
class Level:
    """A reasoning level and the layer that set it; ``level`` None passes nothing, since no layer named one.

    ``default`` is a level like any other here: whoever names it says that nothing is to be passed.
    """

    level: str | None
    layer: Layer

    @property
    def source(self) -> Source:
        """Who set the level, in the words of a verdict; ``cli-default``: nobody, the CLI does as it does by itself."""
        return _SOURCES[self.layer]


def level_of(
    tier: Effort,
    *,
    pool: str,
    model: str | None,
    layers: ReasoningLayers,
    step: str | None = None,
    run_wide: str | None = None,
    rung: str | None = None,
    connector: str | None = None,
) -> Level:
    """Return the level of a task on ``pool`` with ``model`` (None: the CLI's own default); pure.

    ``step`` and ``run_wide`` are what the caller asked for, ``rung`` what the person set beside the model of this rung,
    ``connector`` what the CLI's connector sets for the tier. Rule: step > run-wide > pool, model and tier > pool and
    tier, then the recommendation > tier > connector > nothing.
    """
    own = layers.models.get(pool, {}).get(model, {}) if model is not None else {}
    found: tuple[tuple[str | None, Layer], ...] = (
        (step, "step"),
        (run_wide, "run"),
        (own.get(tier), "model"),
        (rung, "model"),
        (layers.pools.get(pool, {}).get(tier), "pool"),
        (layers.recommended.get(pool, {}).get(tier), "recommended"),
        (layers.tiers.get(tier), "tier"),
        (connector, "connector"),
    )
    return next((Level(level, layer) for level, layer in found if level is not None), Level(None, "none"))


def levels_of(
    pool: str, *, layers: ReasoningLayers, connector: Mapping[Effort, str | None]
) -> tuple[dict[Effort, str], dict[str, dict[Effort, str]]]:
    """Return what a pool runs with by tier when no model is named, and what the person set for single models of it."""
    by_tier = _by_tier(pool, layers, connector)
    models = {model: dict(levels) for model, levels in layers.models.get(pool, {}).items()}
    return {tier: level.level for tier, level in by_tier.items() if level.level is not None}, models


def sources_of(pool: str, *, layers: ReasoningLayers, connector: Mapping[Effort, str | None]) -> dict[Effort, Source]:
    """Return who set the levels that ``levels_of`` gives by tier."""
    by_tier = _by_tier(pool, layers, connector)
    return {tier: level.source for tier, level in by_tier.items() if level.level is not None}


def _by_tier(pool: str, layers: ReasoningLayers, connector: Mapping[Effort, str | None]) -> dict[Effort, Level]:
    return {
        tier: level_of(tier, pool=pool, model=None, layers=layers, connector=connector.get(tier)) for tier in EFFORTS
    }


def clamped(level: str, accepted: Sequence[str]) -> str | None:
    """Return the accepted level nearest to ``level``: the next one down, never up; below them all, the lowest.

    None when ``level`` or everything accepted is a name of a CLI's own, which has no rank.
    """
    if level in accepted:
        return level
    ranked = sorted((each for each in accepted if each in REASONING_LEVELS), key=REASONING_LEVELS.index)
    if level not in REASONING_LEVELS or not ranked:
        return None
    below = [each for each in ranked if REASONING_LEVELS.index(each) < REASONING_LEVELS.index(level)]
    return below[-1] if below else ranked[0]
