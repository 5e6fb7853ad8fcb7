"""What the person decided: ``state.json`` (version 1), read whole and changed one decision at a time.

Other programs keep keys of their own in the same file. They are never read for meaning and never lost: a change
loads the file again under the lock, touches only our keys, and replaces the file as a whole. A value that cannot be what
it should be is named by its field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import StateError
from bullswarm_core.pools.model import EFFORTS, SANDBOXES, Effort, Sandbox
from bullswarm_core.store.home import Home, file_lock, read_json, write_json
from bullswarm_core.wire import parse_iso

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


class Reader:
    """Reads values of one file and names the field of the first one that cannot be what it should be."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def fail(self, place: str, value: Any, wanted: str) -> StateError:
        field_name = f" field {place}" if place else ""
        return StateError(
            f"{self._file}{field_name}: {value!r} is not {wanted}", hint="correct it; nothing was changed"
        )

    def mapping(self, value: Any, place: str) -> Mapping[str, Any]:
        if value is None and place:
            return {}
        if not isinstance(value, dict):
            raise self.fail(place, value, "a JSON object")
        return value

    def entries(self, value: Any, place: str, read: Callable[[Mapping[str, Any], str], Any]) -> dict[str, Any]:
        found = self.mapping(value, place)
        return {name: read(self.mapping(entry, f"{place}.{name}"), f"{place}.{name}") for name, entry in found.items()}

    def text(self, value: Any, place: str) -> str | None:
        if value is None or (isinstance(value, str) and value):
            return value
        raise self.fail(place, value, "a non-empty text")

    def flag(self, value: Any, place: str) -> bool | None:
        if value is None or isinstance(value, bool):
            return value
        raise self.fail(place, value, "true or false")

    def number(self, value: Any, place: str, default: float) -> float:
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
            raise self.fail(place, value, "a number of 0 or more")
        return float(value)

    def percent(self, value: Any, place: str) -> float:
        number = self.number(value, place, 0.0)
        if number > 100:
            raise self.fail(place, value, "a percentage from 0 to 100")
        return number

    def whole(self, value: Any, place: str, default: int) -> int:
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.fail(place, value, "a whole number of 0 or more")
        return value

    def choice(self, value: Any, place: str, choices: tuple[str, ...]) -> Any:
        if value is None or value in choices:
            return value
        raise self.fail(place, value, "one of " + ", ".join(choices))

    def names(self, value: Any, place: str) -> frozenset[str]:
        if value is None:
            return frozenset()
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise self.fail(place, value, "a list of model names")
        return frozenset(value)

    def command(self, value: Any, place: str) -> tuple[str, ...]:
        """Read a command: words, or one text that is split as a shell would; it is never given to a shell."""
        if value is None or value == []:
            return ()
        import shlex

        try:
            words = shlex.split(value) if isinstance(value, str) else value
        except ValueError as error:
            raise self.fail(place, value, f"a command ({error})") from error
        if not isinstance(words, list) or not words or not words[0]:
            raise self.fail(place, value, "a command: a text, or a list of words")
        if not all(isinstance(word, str) and "\0" not in word for word in words):
            raise self.fail(place, value, "a command: a text, or a list of words")
        return tuple(words)

    def pool_choice(self, entry: Mapping[str, Any], place: str) -> PoolChoice:
        enabled = self.flag(entry.get("enabled"), f"{place}.enabled")
        return PoolChoice(
            enabled=True if enabled is None else enabled,
            sandbox=self.choice(entry.get("sandbox"), f"{place}.sandbox", SANDBOXES) or "workspace",
            worker_inherits_config=bool(self.flag(entry.get("workerInheritsConfig"), f"{place}.workerInheritsConfig")),
            billing_granted=bool(self.flag(entry.get("allowBilling"), f"{place}.allowBilling")),
        )

    def digests(self, entry: Mapping[str, Any], place: str) -> dict[str, str]:
        return {name: self.text(value, f"{place}.{name}") or "" for name, value in entry.items()}

    def subscription(self, entry: Mapping[str, Any], place: str) -> Subscription:
        window = entry.get("quotaWindow")
        return Subscription(
            quota_window=None if window == "unknown" else self.choice(window, f"{place}.quotaWindow", QUOTA_WINDOWS),
            resets_at=self.moment(entry.get("resetsAt"), f"{place}.resetsAt"),
            plan=self.text(entry.get("plan"), f"{place}.plan"),
            reserve_pct=self.percent(entry.get("reservePct"), f"{place}.reservePct"),
        )

    def moment(self, value: Any, place: str) -> datetime | None:
        if value is None or value == "unknown":
            return None
        try:
            return parse_iso(value)
        except (TypeError, ValueError) as error:
            raise self.fail(place, value, "an ISO-8601 time such as 2026-03-01T00:00:00Z") from error

    def assignments(self, value: Any) -> dict[Effort, Assignment]:
        found: dict[Effort, Assignment] = {}
        entries = self.mapping(value, "strategy.assignments")
        for tier in EFFORTS:
            place = f"strategy.assignments.{tier}"
            entry = self.mapping(entries.get(tier), place)
            # Only a person's own assignment is a preference; earlier programs also pinned tiers by themselves.
            pool = self.text(entry.get("pool"), f"{place}.pool")
            if pool is not None and entry.get("source") == "user":
                found[tier] = Assignment(pool, self.text(entry.get("model"), f"{place}.model"))
        return found

    def excluded(self, strategy: Mapping[str, Any]) -> frozenset[str]:
        """Read the models that no pool may run; ``disabledModels`` as a plain list means the same."""
        disabled, place = strategy.get("disabledModels"), "strategy.disabledModels"
        names = self.names(strategy.get("excludedModels"), "strategy.excludedModels")
        return names | self.names(disabled, place) if isinstance(disabled, list) else names

    def models_by_pool(self, value: Any, place: str) -> dict[str, frozenset[str]]:
        """Read ``{pool: [models]}``; a plain list (an older program's) speaks of no pool."""
        if isinstance(value, list):
            return {}
        found = {pool: self.names(models, f"{place}.{pool}") for pool, models in self.mapping(value, place).items()}
        return {pool: models for pool, models in found.items() if models}

    def reasoning(self, strategy: Mapping[str, Any]) -> ReasoningLayers:
        place = "strategy.reasoning"
        layers = self.mapping(strategy.get("reasoning"), place)
        models = self.mapping(layers.get("models"), f"{place}.models")
        return ReasoningLayers(
            tiers=self.levels(layers.get("tiers"), f"{place}.tiers"),
            pools=self._levels_by_name(layers.get("pools"), f"{place}.pools"),
            models={
                pool: found
                for pool, entry in models.items()
                if (found := self._levels_by_name(entry, f"{place}.models.{pool}"))
            },
            recommended=self._levels_by_name(strategy.get("recommendedReasoning"), "strategy.recommendedReasoning"),
        )

    def levels(self, value: Any, place: str) -> dict[Effort, str]:
        """Read ``{tier: level}``; a level that is null is not set."""
        found: dict[Effort, str] = {}
        for tier, level in self.mapping(value, place).items():
            if tier not in EFFORTS:
                raise self.fail(f"{place}.{tier}", tier, "one of " + ", ".join(EFFORTS))
            if (name := self.text(level, f"{place}.{tier}")) is not None:
                found[tier] = name
        return found

    def _levels_by_name(self, value: Any, place: str) -> dict[str, Mapping[Effort, str]]:
        found = {name: self.levels(entry, f"{place}.{name}") for name, entry in self.mapping(value, place).items()}
        return {name: levels for name, levels in found.items() if levels}

    def rungs(self, strategy: Mapping[str, Any]) -> dict[str, Mapping[Effort, RungChoice]]:
        found: dict[str, dict[Effort, RungChoice]] = {}
        older = self.mapping(strategy.get("modelTiers"), "strategy.modelTiers")
        for pool, models in older.items():
            self._older_rungs(self.mapping(models, f"strategy.modelTiers.{pool}"), pool, found)
        newer = self.mapping(strategy.get("rungs"), "strategy.rungs")
        for pool, tiers in newer.items():
            for tier, entry in self.mapping(tiers, f"strategy.rungs.{pool}").items():
                place = f"strategy.rungs.{pool}.{tier}"
                if tier not in EFFORTS:
                    raise self.fail(place, tier, "one of " + ", ".join(EFFORTS))
                if entry is not None:
                    found.setdefault(pool, {})[tier] = self._rung(self.mapping(entry, place), place)
        return dict(found)

    def _rung(self, entry: Mapping[str, Any], place: str) -> RungChoice:
        return RungChoice(
            model=self.text(entry.get("model"), f"{place}.model"),
            reasoning=self.text(entry.get("reasoning"), f"{place}.reasoning"),
            free=self.flag(entry.get("free"), f"{place}.free"),
        )

    def _older_rungs(self, models: Mapping[str, Any], pool: str, found: dict[str, dict[Effort, RungChoice]]) -> None:
        """Read ``{model: [tiers]}`` of an older program; of two models on one tier the first counts."""
        for model, tiers in models.items():
            place = f"strategy.modelTiers.{pool}.{model}"
            if not isinstance(tiers, list):
                raise self.fail(place, tiers, "a list of tiers")
            rungs = found.setdefault(pool, {})
            for tier in tiers:
                if tier not in EFFORTS:
                    raise self.fail(place, tier, "one of " + ", ".join(EFFORTS))
                rungs.setdefault(tier, RungChoice(model=model))


VERSION = 1
DEFAULT_DEPTH_LIMIT = 2
DEFAULT_TOTAL_LIMIT = 1000
DEFAULT_INFLIGHT_PENALTY_PCT = 3.0
DEFAULT_POLICY = "pace"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """The decisions in force. ``configured`` tells whether there is a state.json at all.

    ``rungs`` holds only pools for which the person set rungs: such a pool has no model on the tiers that are not named.
    ``notify`` is the command that tells the person of a run that needs them or has ended; empty for none.
    ``project_settings`` holds, by a repository's root, the digest of each settings file of it that the person allowed.
    """

    configured: bool = False
    pools: Mapping[str, PoolChoice] = NOTHING
    rungs: Mapping[str, Mapping[Effort, RungChoice]] = NOTHING
    assignments: Mapping[Effort, Assignment] = NOTHING
    subscriptions: Mapping[str, Subscription] = NOTHING
    excluded_models: frozenset[str] = frozenset()
    disabled_models: Mapping[str, frozenset[str]] = NOTHING
    reasoning: ReasoningLayers = ReasoningLayers()
    depth_limit: int = DEFAULT_DEPTH_LIMIT
    total_limit: int = DEFAULT_TOTAL_LIMIT
    inflight_penalty_pct: float = DEFAULT_INFLIGHT_PENALTY_PCT
    routing_policy: str = DEFAULT_POLICY
    notify: tuple[str, ...] = ()
    project_settings: Mapping[str, Mapping[str, str]] = NOTHING

    @classmethod
    def load(cls, home: Home) -> Settings:
        """Read the home's state.json; a missing file is all defaults.

        Raises StateError, with file and field, for one that cannot be understood: a pool that the person turned off
        must never run because the file that says so was misread.
        """
        document = read_json(home.state_file)
        return cls() if document is None else settings_from(document, file=home.state_file)

    def pool(self, pool_id: str) -> PoolChoice:
        """Return what was decided about a pool; the defaults when nothing was."""
        return self.pools.get(pool_id, PoolChoice())

    def enabled(self, pool_id: str) -> bool:
        """Say whether the pool may take work as far as the person is concerned."""
        return self.pool(pool_id).enabled


def update_settings(home: Home, change: Callable[[Document], None]) -> Settings:
    """Apply ``change`` to the fresh content of state.json, under its lock, and return the settings that result.

    Raises StateError and changes nothing when the file is unreadable, before or after the change; LockTimeoutError when
    another process holds the lock; StorageError when the disk refuses.
    """
    home.ensure()
    with file_lock(home.root / "state.lock"):
        document = read_json(home.state_file, default={})
        settings_from(document, file=home.state_file)
        change(document)
        document.setdefault("version", VERSION)
        settings = settings_from(document, file=home.state_file)
        write_json(home.state_file, document)
        return settings


def settings_from(document: Any, *, file: Path) -> Settings:
    """Read the decisions in the content of a state.json; raise StateError with the ``file`` and field that is wrong."""
    read = Reader(file)
    root = read.mapping(document, "")
    _check_version(root.get("version", VERSION), file)
    strategy = read.mapping(root.get("strategy"), "strategy")
    config = read.mapping(root.get("config"), "config")
    return Settings(
        configured=True,
        pools=read.entries(root.get("pools"), "pools", read.pool_choice),
        rungs=read.rungs(strategy),
        assignments=read.assignments(strategy.get("assignments")),
        subscriptions=read.entries(strategy.get("subscriptions"), "strategy.subscriptions", read.subscription),
        excluded_models=read.excluded(strategy),
        disabled_models=read.models_by_pool(strategy.get("disabledModels"), "strategy.disabledModels"),
        reasoning=read.reasoning(strategy),
        depth_limit=read.whole(config.get("depthLimit"), "config.depthLimit", DEFAULT_DEPTH_LIMIT),
        total_limit=read.whole(config.get("totalLimit"), "config.totalLimit", DEFAULT_TOTAL_LIMIT),
        inflight_penalty_pct=read.number(
            config.get("inflightPenaltyPct"), "config.inflightPenaltyPct", DEFAULT_INFLIGHT_PENALTY_PCT
        ),
        routing_policy=read.text(config.get("routingPolicy"), "config.routingPolicy") or DEFAULT_POLICY,
        notify=read.command(config.get("notify"), "config.notify"),
        project_settings=read.entries(root.get("projectSettings"), "projectSettings", read.digests),
    )


def _check_version(version: Any, file: Path) -> None:
    if version == VERSION and not isinstance(version, bool):
        return
    if isinstance(version, int) and version > VERSION:
        raise StateError(
            f"{file} has version {version}, and this program knows version {VERSION}", hint="update bullswarm"
        )
    raise StateError(f"{file} field version: {version!r} is not {VERSION}", hint="correct it, or move the file aside")
