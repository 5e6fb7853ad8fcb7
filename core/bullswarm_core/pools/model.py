"""Pools as routing sees them: what each account can run, what it has used, and what it is doing now.

All values are frozen and complete: building one refuses NaN, so that no comparison later depends on the order of a
list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from bullswarm_core._dataclasses import dataclass, field, fields

Sandbox = Literal["workspace", "network", "full"]
SANDBOXES: tuple[Sandbox, ...] = ("workspace", "network", "full")


DEFAULT_MODEL = "default"
"""Stands for the model that a CLI runs when it is given none."""


Lane = Literal["analyze", "build", "chore"]
Effort = Literal["high", "medium", "low"]
WindowKind = Literal["5h", "daily", "weekly", "monthly"]
WindowSource = Literal["live", "cache", "stale", "declared", "refusal"]
ResetSource = Literal["provider", "declared", "named", "measured", "guessed"]
RateSource = Literal["history", "bootstrap"]
Billing = Literal["subscription", "api-key", "unknown", "none"]

LANES: tuple[Lane, ...] = ("analyze", "build", "chore")
EFFORTS: tuple[Effort, ...] = ("high", "medium", "low")
WINDOW_KINDS: tuple[WindowKind, ...] = ("5h", "daily", "weekly", "monthly")
# "analyze", "build" and "chore" name the nature of the work; each has its customary effort tier.
DEFAULT_EFFORT: Mapping[Lane, Effort] = {"analyze": "medium", "build": "medium", "chore": "low"}
DEFAULT_COST_RANK = 5


def refuse_nan(value: Any) -> None:
    """Raise ValueError when a number of the dataclass ``value`` is NaN or infinite, or one of its times has no zone.

    Why: NaN compares false with everything, so that one of it makes a pick depend on the order of a list.
    """
    for item in fields(value):
        content = getattr(value, item.name)
        place = f"{type(value).__name__}.{item.name}"
        if isinstance(content, float) and not math.isfinite(content):
            raise ValueError(f"{place} is {content}; leave a missing number out (None)")
        if isinstance(content, datetime) and content.utcoffset() is None:
            raise ValueError(f"{place} {content.isoformat()} has no time zone; times are UTC")


def _keep_in_utc(value: Any, *names: str) -> None:
    """Write these times of the frozen ``value`` in UTC: between two times of one zone Python counts by the clock on the
    wall, so that an hour is lost or won where that clock changes.
    """
    for name in names:
        moment = getattr(value, name)
        if moment is not None and moment.tzinfo is not UTC:
            object.__setattr__(value, name, moment.astimezone(UTC))


def _refuse_negative(place: str, number: float | None) -> None:
    if number is not None and number < 0:
        raise ValueError(f"{place} is {number}; it is 0 or more, or None when it is unknown")


@dataclass(frozen=True, slots=True)
class Rung:
    """What one pool runs on one effort tier.

    ``model`` None means the CLI's own default, with no flag. ``free`` is a property of (pool, tier), never of a pool.
    ``refused`` says why this rung may not be used (an excluded model, say); None means that it may.
    ``source`` tells where the choice of the model came from: ``connector`` | ``settings`` | ``request``, and
    ``level_source`` where the reasoning level did (``reasoning.Source``).
    """

    model: str | None = None
    reasoning: str | None = None
    free: bool = False
    refused: str | None = None
    source: str = "connector"
    level_source: str = "cli-default"


@dataclass(frozen=True, slots=True)
class Window:
    """One quota window of a pool as last read: ``used_pct`` is 0 or more, in percent, never clamped.

    ``scope`` names the model that the window belongs to; it gates only rungs of that model and never paces.
    ``unstable`` says that two readings of it disagree and no third one has settled which is right: the worse counts.
    Raises ValueError for a NaN, infinite or negative number, a time without a zone, or a length that is not positive.
    """

    kind: WindowKind
    used_pct: float | None = None
    resets_at: datetime | None = None
    source: WindowSource = "cache"
    captured_at: datetime | None = None
    length: timedelta | None = None
    reset_source: ResetSource | None = None
    scope: str | None = None
    unstable: bool = False

    def __post_init__(self) -> None:
        refuse_nan(self)
        _keep_in_utc(self, "resets_at", "captured_at")
        _refuse_negative("Window.used_pct", self.used_pct)
        if self.length is not None and self.length <= timedelta(0):
            raise ValueError(f"Window.length is {self.length}; a window lasts longer than nothing")


@dataclass(frozen=True, slots=True)
class Inflight:
    """One attempt that is running on a pool now; an unknown duration is None. The last three fields are for display."""

    started_at: datetime
    expected_minutes: float | None = None
    id: str | None = None
    lane: Lane | None = None
    effort: Effort | None = None

    def __post_init__(self) -> None:
        refuse_nan(self)
        _keep_in_utc(self, "started_at")
        _refuse_negative("Inflight.expected_minutes", self.expected_minutes)


@dataclass(frozen=True, slots=True)
class Rate:
    """Percent of a window that one worker-minute of this pool spends, and how it was learned."""

    pct_per_minute: float
    source: RateSource
    samples: int = 0

    def __post_init__(self) -> None:
        refuse_nan(self)
        _refuse_negative("Rate.pct_per_minute", self.pct_per_minute)


@dataclass(frozen=True, slots=True)
class Pool:
    """One installed agent CLI, or one account of it, ready to be judged.

    ``pacing`` is the kind of the pacing window (the operator's choice, else the connector's); None means the default
    order weekly, then monthly. ``metered`` False says that the connector declares no meter, so that an absent
    reading is no surprise. ``levels`` and ``model_levels`` are the reasoning levels of models that no rung names, and
    ``refused_models`` says why a model may not be run here, whatever names it. ``unavailable`` says why the pool
    cannot be used at all; None means that it can. ``last_resort`` marks the embedded worker: used only when named or
    when no other pool is left. ``meter_error`` and ``meter_hold_until`` tell why a reading is stale and when the meter
    may be asked again, ``meter_read_by`` which source told it, ``meter_under_way`` that the first one is being read, and
    ``plan`` the name of the plan; they are shown and never judged.

    ``billing`` tells how work is paid, and ``overage`` True that work beyond what is included would be billed (None:
    nobody knows); what is paid apart is used only with ``billing_granted``, which only the person sets.
    """

    id: str
    provider: str
    label: str | None = None
    enabled: bool = True
    lanes: frozenset[Lane] = frozenset(LANES)
    capabilities: frozenset[str] = frozenset()
    tiers: Mapping[Effort, Rung] = field(default_factory=dict)
    levels: Mapping[Effort, str] = field(default_factory=dict)
    level_sources: Mapping[Effort, str] = field(default_factory=dict)
    model_levels: Mapping[str, Mapping[Effort, str]] = field(default_factory=dict)
    refused_models: Mapping[str, str] = field(default_factory=dict)
    windows: tuple[Window, ...] = ()
    pacing: Literal["weekly", "monthly"] | None = None
    inflight: tuple[Inflight, ...] = ()
    rates: Mapping[WindowKind, Rate] = field(default_factory=dict)
    cost_rank: int = DEFAULT_COST_RANK
    unavailable: str | None = None
    metered: bool = True
    last_resort: bool = False
    credential_group: str | None = None
    meter_error: str | None = None
    meter_hold_until: datetime | None = None
    meter_read_by: str | None = None
    meter_under_way: bool = False
    plan: str | None = None
    billing: Billing = "unknown"
    overage: bool | None = None
    billing_granted: bool = False

    def __post_init__(self) -> None:
        refuse_nan(self)

    @property
    def shown_name(self) -> str:
        """What people see: the label when there is one, else the id."""
        return self.label or self.id


def is_model_name(name: str) -> bool:
    """Tell whether a CLI would take ``name`` for a model: one printable line that no program reads as an option."""
    return name.isprintable() and name.strip() != "" and not name.startswith("-")


def _name_parts(name: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in name).split()


def has_free_name(model: str | None) -> bool:
    """Whether the model's name carries a standalone ``free`` part, as in ``openrouter/qwen:free``."""
    return model is not None and "free" in _name_parts(model.casefold())


def writes(lane: str) -> bool:
    """Tell whether workers of this lane may write, so that they can give an answer as a file."""
    return lane != "analyze"
