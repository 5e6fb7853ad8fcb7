"""What the person decided: ``state.json`` (version 1), read whole and changed one decision at a time.

An older program of the same name keeps its own keys in the same file. They are never read for meaning and never lost: a change
loads the file anew under the lock, touches only its own keys, and replaces the file as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.errors import StateError
from bullswarm_core.home import Home, file_lock, read_json, write_json
from bullswarm_core.pools import Effort
from bullswarm_core.settings_reader import Reader
from bullswarm_core.settings_values import (
    NOTHING,
    QUOTA_WINDOWS,
    Assignment,
    PoolChoice,
    QuotaWindow,
    ReasoningLayers,
    RungChoice,
    Subscription,
)
from bullswarm_core.values import dataclass

__all__ = [
    "DEFAULT_DEPTH_LIMIT", "DEFAULT_INFLIGHT_PENALTY_PCT", "DEFAULT_POLICY", "DEFAULT_TOTAL_LIMIT", "QUOTA_WINDOWS",
    "VERSION", "Assignment", "Document", "PoolChoice", "QuotaWindow", "ReasoningLayers", "RungChoice", "Settings",
    "Subscription", "settings_from", "update_settings",
]  # fmt: skip

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
