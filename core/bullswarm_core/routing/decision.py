"""What routing answers: the pick, the rows behind it, the pools left out, and a reason that can be checked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal

from bullswarm_core._dataclasses import dataclass, field, fields
from bullswarm_core.pools.model import Rung, WindowKind, WindowSource
from bullswarm_core.wire import camel, whole_second

ExclusionKind = Literal[
    "disabled", "unavailable", "caller", "filter", "lane", "capability", "tier", "model", "probe",
    "burst", "daily", "weekly", "monthly", "draining", "overage", "billing", "last_resort",
    "quota_quarantine", "auth_quarantine",
]  # fmt: skip
FailureKind = Literal["quota", "unavailable"]
EstimateSource = Literal["history", "bootstrap", "penalty", "none"]
UrgencyState = Literal["urgent", "normal", "draining"]

LIMIT_KINDS: frozenset[ExclusionKind] = frozenset(
    {"burst", "daily", "weekly", "monthly", "draining", "overage", "quota_quarantine"}
)
"""Left out by quota alone: the pool comes back by itself."""
QUARANTINE_KINDS: frozenset[ExclusionKind] = frozenset({"quota_quarantine", "auth_quarantine"})
"""Left out because a task failed there a while ago; only a policy that honours quarantines has them."""


def to_document(value: Any) -> dict[str, Any]:
    """A flat dataclass of plain values as a camelCase JSON object."""
    return {camel(item.name): _plain(getattr(value, item.name)) for item in fields(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return whole_second(value)
    if isinstance(value, Mapping):
        return {camel(str(key)): _plain(content) for key, content in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class Candidate:
    """The numbers that one eligible pool was judged by: percent with one decimal, minutes, None where nothing is known.

    ``pace`` is elapsed% - used% of the pacing window; ``effective_surplus`` is what the pool is ordered by: the pace (0
    without one) less its load. The ``five_hour`` and ``daily`` numbers protect, the ``pacing`` ones rank.
    ``near_window`` is the protecting window whose forecast passed the near-limit line, ``under_clock`` that no such
    window is ahead of its own clock. ``forecast_gated`` is set by ``classic`` alone: at or over its 90 % gate.
    ``reserve_pct`` is what the person's reserve comes to now and ``reserved`` that the forecast reaches into it; the
    ``sliver`` numbers tell which window can't hold the task, what is left of it and what the task needs.
    """

    pool: str
    pool_label: str | None
    provider: str
    model: str | None
    reasoning: str | None
    model_policy: str
    metered: bool
    pace: float | None
    effective_surplus: float
    inflight: int
    expected_minutes: float | None
    cost_rank: int
    five_hour_used_pct: float | None
    projected_five_hour_pct: float | None
    forecast_five_hour_pct: float | None
    five_hour_elapsed_pct: float | None
    five_hour_resets_at: datetime | None
    daily_used_pct: float | None
    forecast_daily_pct: float | None
    daily_elapsed_pct: float | None
    projected_weekly_pct: float | None
    projected_monthly_pct: float | None
    pacing_window: WindowKind | None
    pacing_source: WindowSource | None
    pacing_used_pct: float | None
    pacing_elapsed_pct: float | None
    pacing_left_pct: float | None
    pacing_resets_at: datetime | None
    pace_resets_in_minutes: float | None
    projected_pacing_pct: float | None
    forecast_pacing_pct: float | None
    rate_per_minute: float | None
    pacing_rate_per_minute: float | None
    daily_rate_per_minute: float | None
    estimate_source: EstimateSource
    near_five_hour_limit: bool
    near_five_hour_penalty: bool
    near_window: WindowKind | None
    under_clock: bool
    forecast_gated: bool
    forecast_over_limit: bool
    over_window: WindowKind | None
    reserve_pct: float | None
    reserved: bool
    sliver_window: WindowKind | None
    sliver_headroom_pct: float | None
    sliver_need_pct: float | None
    expiring_soon: bool
    urgency: float | None
    urgency_state: UrgencyState | None
    free: bool
    free_model: str | None

    def penalised(self) -> Candidate:
        """The same row behind the last-mile line."""
        return self.altered(near_five_hour_penalty=True)

    def altered(self, **changes: Any) -> Candidate:
        """The same row with other values in some fields (``replace`` is four times slower on so wide a row)."""
        values = list(_ROW_VALUES(self))
        for name, value in changes.items():
            values[_ROW_PLACES[name]] = value
        return Candidate(*values)

    def to_json(self) -> dict[str, Any]:
        """The row as a camelCase object; the pool by id, its label beside it."""
        return to_document(self)


_ROW_NAMES = [item.name for item in fields(Candidate)]
_ROW_VALUES = attrgetter(*_ROW_NAMES)
_ROW_PLACES = {name: place for place, name in enumerate(_ROW_NAMES)}


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A pool that was left out: ``reason`` is a phrase that follows its name, ``numbers`` holds every number in it.

    ``until`` is when the pool is known to return; None when nobody knows, or when it will not by itself.
    """

    pool: str
    kind: ExclusionKind
    reason: str
    window: WindowKind | None = None
    until: datetime | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    pool_label: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The entry as a camelCase object; the pool by id, its label beside it."""
        return to_document(self)


@dataclass(frozen=True, slots=True)
class ReasonPart:
    """A piece of a reason: plain ``text``, or the id of a ``pool`` that people see by its label."""

    text: str = ""
    pool: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The pick, or why there is none.

    ``pool`` is an id or None. ``candidates`` stand in preference order, ``excluded`` by id. ``reason`` carries ids;
    ``reason_parts`` is the same sentence in pieces. ``failure_kind`` (``quota`` when every pool that could take the
    task is held by a limit, else ``unavailable``) and ``back_at`` (the earliest known return) are set only without
    a pick. ``forecast`` is read off the winning row.
    """

    pool: str | None
    rung: Rung | None = None
    reason: str = ""
    candidates: tuple[Candidate, ...] = ()
    excluded: tuple[Exclusion, ...] = ()
    failure_kind: FailureKind | None = None
    back_at: datetime | None = None
    forecast: Mapping[str, Any] = field(default_factory=dict)
    reason_parts: tuple[ReasonPart, ...] = ()

    @property
    def row(self) -> Candidate | None:
        """The candidate row of the pick; None without one."""
        return next((row for row in self.candidates if row.pool == self.pool), None)

    @property
    def labels(self) -> dict[str, str]:
        """Label by pool id, for every pool that this decision speaks of and that has one."""
        entries: tuple[Candidate | Exclusion, ...] = (*self.candidates, *self.excluded)
        return {entry.pool: entry.pool_label for entry in entries if entry.pool_label}

    def to_json(self) -> dict[str, Any]:
        """The decision as a camelCase object, without a schema version of its own."""
        rung = self.rung
        return {
            "pool": self.pool,
            "poolLabel": self.labels.get(self.pool) if self.pool else None,
            "model": rung.model if rung else None,
            "reasoning": rung.reasoning if rung else None,
            "reason": self.reason,
            "failureKind": self.failure_kind,
            "backAt": whole_second(self.back_at),
            "forecast": dict(self.forecast),
            "candidates": [row.to_json() for row in self.candidates],
            "excluded": [entry.to_json() for entry in self.excluded],
        }
