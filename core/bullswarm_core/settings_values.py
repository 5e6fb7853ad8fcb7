"""The decisions of a person, one class per kind; each is read from ``state.json`` and none reads it itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal

from bullswarm_core.connector import Sandbox
from bullswarm_core.pools import Effort
from bullswarm_core.values import dataclass

QuotaWindow = Literal["weekly", "monthly"]
QUOTA_WINDOWS: tuple[QuotaWindow, ...] = ("weekly", "monthly")
NOTHING: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PoolChoice:
    """What the person decided about one pool; every default is what holds when nothing was decided.

    ``billing_granted`` True: work on this pool may be billed beside the plan (an API key, or overage switched on).
    """

    enabled: bool = True
    sandbox: Sandbox = "workspace"
    worker_inherits_config: bool = False
    billing_granted: bool = False


@dataclass(frozen=True, slots=True)
class RungChoice:
    """The model and reasoning level set for one tier of a pool; ``free`` None leaves that to the model's name."""

    model: str | None = None
    reasoning: str | None = None
    free: bool | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The pool (and model) that the person prefers for a tier, among the pools that can take the task."""

    pool: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """What the person declared about a plan: which window paces it, one moment at which it resets, and its name.

    ``reserve_pct`` (0 to 100) is the share of the pacing window that the person keeps for their own use.
    """

    quota_window: QuotaWindow | None = None
    resets_at: datetime | None = None
    plan: str | None = None
    reserve_pct: float = 0.0


@dataclass(frozen=True, slots=True)
class ReasoningLayers:
    """The reasoning levels that the person set, from the widest layer to the narrowest.

    ``tiers`` hold for every pool, ``pools`` for one pool, ``models`` for one model of a pool; all by effort tier.
    ``recommended`` is what `strategy apply` wrote; a level of ``pools`` outranks it.
    """

    tiers: Mapping[Effort, str] = NOTHING
    pools: Mapping[str, Mapping[Effort, str]] = NOTHING
    models: Mapping[str, Mapping[str, Mapping[Effort, str]]] = NOTHING
    recommended: Mapping[str, Mapping[Effort, str]] = NOTHING
