"""Pools as routing sees them: what each account can run, what it has used, and what it is doing now.

All values are frozen and complete: building one refuses NaN, so that no comparison later depends on the order of a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Literal

Lane = Literal["analyze", "build", "chore"]
Effort = Literal["high", "medium", "low"]
WindowKind = Literal["5h", "daily", "weekly", "monthly"]
WindowSource = Literal["live", "cache", "stale", "declared", "refusal"]
ResetSource = Literal["provider", "declared", "named", "measured", "guessed"]
RateSource = Literal["history", "bootstrap"]

LANES: tuple[Lane, ...] = ("analyze", "build", "chore")
EFFORTS: tuple[Effort, ...] = ("high", "medium", "low")
WINDOW_KINDS: tuple[WindowKind, ...] = ("5h", "daily", "weekly", "monthly")
# Seed: "analyze", "build" and "chore" name the nature of the work; each has its customary effort tier.
DEFAULT_EFFORT: Mapping[Lane, Effort] = {"analyze": "medium", "build": "medium", "chore": "low"}
DEFAULT_COST_RANK = 5


def refuse_nan(value: Any) -> None:
    """Raise ValueError when a number of the dataclass ``value`` is NaN."""
    for item in fields(value):
        number = getattr(value, item.name)
        if isinstance(number, float) and number != number:
            raise ValueError(f"{type(value).__name__}.{item.name} is NaN; leave a missing number out (None)")


@dataclass(frozen=True, slots=True)
class Rung:
    """What one pool runs on one effort tier.

    ``model`` None means the CLI's own default, with no flag. ``free`` is a property of (pool, tier), never of a pool.
    ``refused`` says why this rung may not be used (an excluded model, say); None means that it may.
    ``source`` tells where the choice came from: ``connector`` | ``settings`` | ``request``.
    """

    model: str | None = None
    reasoning: str | None = None
    free: bool = False
    refused: str | None = None
    source: str = "connector"


@dataclass(frozen=True, slots=True)
class Window:
    """One quota window of a pool as last read: ``used_pct`` is 0 or more, in percent, never clamped."""

    kind: WindowKind
    used_pct: float | None = None
    resets_at: datetime | None = None
    source: WindowSource = "cache"
    captured_at: datetime | None = None
    length: timedelta | None = None
    reset_source: ResetSource | None = None
    scope: str | None = None

    def __post_init__(self) -> None:
        refuse_nan(self)


@dataclass(frozen=True, slots=True)
class Inflight:
    """One attempt that is running on a pool now; an unknown duration is None."""

    started_at: datetime
    expected_minutes: float | None = None

    def __post_init__(self) -> None:
        refuse_nan(self)


@dataclass(frozen=True, slots=True)
class Rate:
    """Percent of a window that one worker-minute of this pool spends, and how it was learned."""

    pct_per_minute: float
    source: RateSource
    samples: int = 0

    def __post_init__(self) -> None:
        refuse_nan(self)


@dataclass(frozen=True, slots=True)
class Pool:
    """One installed agent CLI, or one account of it, ready to be judged.

    ``pacing`` is the kind of the pacing window (the operator's choice, else the connector's); None means the default
    order weekly, then monthly. ``metered`` False says that the connector declares no meter, so that an absent reading is
    no surprise. ``unavailable`` says why the pool cannot be used at all; None means that it can.
    """

    id: str
    provider: str
    label: str | None = None
    enabled: bool = True
    lanes: frozenset[Lane] = frozenset(LANES)
    capabilities: frozenset[str] = frozenset()
    tiers: Mapping[Effort, Rung] = field(default_factory=dict)
    windows: tuple[Window, ...] = ()
    pacing: Literal["weekly", "monthly"] | None = None
    inflight: tuple[Inflight, ...] = ()
    rates: Mapping[WindowKind, Rate] = field(default_factory=dict)
    cost_rank: int = DEFAULT_COST_RANK
    unavailable: str | None = None
    metered: bool = True
    last_resort: bool = False
    credential_group: str | None = None

    @property
    def shown_name(self) -> str:
        """What people see: the label when there is one, else the id."""
        return self.label or self.id
