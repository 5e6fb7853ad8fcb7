"""``cache/hook-state.json`` as hooks and the status line read it: pools, work in flight, the delegation switch.

The server writes it (``bullswarm_server.hook_state``) whenever one of them changes. Whoever reads it has no time for the
database, so what is here may be old: ``age`` says how old, and a window whose reset has passed counts as not read.
"""

from __future__ import annotations

import os

from bullswarm_core.fast.files import expanded, home_folder, read_json
from bullswarm_core.fast.moments import epoch_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SCHEMA_VERSION = "bullswarm.hook-state.v1"
# Surplus moves by some points an hour: numbers of this age are shown with their age, older ones are no help at all.
FRESH_SEC = 15 * 60.0
USEFUL_SEC = 24 * 3600.0
# The ledger's own limit: nothing of that age is still at work.
_OLDEST_RUN_SEC = 12 * 3600.0
# States in which a pool takes no work now.
_CLOSED = frozenset({"disabled", "unavailable", "billing-gated", "quarantined", "burst-gated"})


class Window:
    """One quota window: ``used_pct`` 0 or more, ``resets_at`` in Unix seconds or None."""

    __slots__ = ("kind", "resets_at", "used_pct")

    def __init__(self, kind: str, used_pct: float, resets_at: float | None) -> None:
        self.kind, self.used_pct, self.resets_at = kind, used_pct, resets_at


class Pool:
    """One pool as it was when the state was written. ``surplus`` None: not metered, or nothing was read."""

    __slots__ = (
        "config_dir",
        "enabled",
        "id",
        "label",
        "last_resort",
        "metered",
        "other_folders",
        "provider",
        "state",
        "surplus",
        "windows",
    )

    def __init__(self, entry: dict[str, Any]) -> None:
        self.id: str = entry["pool"]
        self.label: str = _text(entry.get("poolLabel")) or self.id
        self.provider: str = _text(entry.get("provider")) or self.id.partition(":")[0]
        self.config_dir: str | None = _text(entry.get("configDir"))
        others = entry.get("otherFolders")
        self.other_folders = [
            folder for item in (others if isinstance(others, list) else ()) if (folder := _text(item))
        ]
        self.state: str = _text(entry.get("state")) or "unavailable"
        self.enabled = entry.get("enabled") is True
        self.metered = entry.get("metered") is True
        self.last_resort = entry.get("lastResort") is True
        self.surplus = number(entry.get("surplus"))
        listed = entry.get("windows")
        self.windows = [found for item in (listed if isinstance(listed, list) else ()) if (found := _window(item))]

    @property
    def ready(self) -> bool:
        """Whether the pool could take work."""
        return self.enabled and self.state not in _CLOSED and not self.last_resort

    def window(self, *kinds: str, now: float) -> Window | None:
        """Return the first of these windows that was read and has not been reset since."""
        for kind in kinds:
            for window in self.windows:
                if window.kind == kind and (window.resets_at is None or window.resets_at > now):
                    return window
        return None


class RunInFlight:
    """A worker that was at work when the state was written."""

    __slots__ = ("kernel_pid", "lane", "pool_label", "short_id", "started_at")

    def __init__(self, entry: dict[str, Any]) -> None:
        self.short_id: str = entry["shortId"]
        self.pool_label: str = _text(entry.get("poolLabel")) or _text(entry.get("pool")) or "-"
        self.lane: str = _text(entry.get("lane")) or "-"
        self.started_at = epoch_of(entry.get("startedAt"))
        pid = entry.get("kernelPid")
        self.kernel_pid = pid if isinstance(pid, int) and not isinstance(pid, bool) and pid > 1 else None

    def alive(self, now: float) -> bool:
        """Whether it can still be at work: young enough, and its kernel exists."""
        if self.kernel_pid is None or self.started_at is None or now - self.started_at > _OLDEST_RUN_SEC:
            return False
        try:
            os.kill(self.kernel_pid, 0)
        except PermissionError:
            return True
        except (OSError, OverflowError):
            return False
        return True


class HookState:
    """The whole of it. ``at`` is when it was written, in Unix seconds."""

    __slots__ = ("accounts", "at", "delegation", "pools", "runs")

    def __init__(self, document: dict[str, Any], at: float) -> None:
        self.at = at
        self.delegation = document.get("delegation") is True
        self.pools = [Pool(entry) for entry in _entries(document.get("pools"), "pool")]
        self.runs = [RunInFlight(entry) for entry in _entries(document.get("runs"), "shortId")]
        accounts = document.get("accounts")
        self.accounts: dict[str, Any] = accounts if isinstance(accounts, dict) else {}

    def age(self, now: float) -> float:
        """Return its age in seconds; a time from the future comes from a wrong clock and counts as very old."""
        age = now - self.at
        return age if age > -FRESH_SEC else USEFUL_SEC * 2

    def named(self, name: str) -> Pool | None:
        """Return the pool with this id, else the one with this label."""
        by_id = [pool for pool in self.pools if pool.id == name]
        return next(iter(by_id or [pool for pool in self.pools if pool.label == name]), None)

    def own_pool(self, provider: str, environ: Mapping[str, str]) -> Pool | None:
        """Return the pool of the agent that runs in this environment: the account whose folder it uses."""
        own = [pool for pool in self.pools if pool.provider == provider]
        folder = self._folder(provider, environ)
        for pool in own:
            folders = (pool.config_dir, *pool.other_folders)
            if folder is not None and any(os.path.realpath(one) == folder for one in folders if one is not None):
                return pool
        return own[0] if len(own) == 1 and own[0].config_dir is None else None

    def _folder(self, provider: str, environ: Mapping[str, str]) -> str | None:
        account = self.accounts.get(provider)
        if not isinstance(account, dict):
            return None
        variable, default = _text(account.get("variable")), _text(account.get("default"))
        chosen = (environ.get(variable) if variable else None) or default
        return os.path.realpath(expanded(chosen, environ)) if chosen else None


def load(environ: Mapping[str, str]) -> HookState | None:
    """Read the state; None when there is none, it is damaged, or of another version."""
    document = read_json(os.path.join(home_folder(environ), "cache", "hook-state.json"))
    if not isinstance(document, dict) or document.get("schemaVersion") != SCHEMA_VERSION:
        return None
    at = epoch_of(document.get("at"))
    return None if at is None else HookState(document, at)


def number(value: object) -> float | None:
    """Return a number that can be a percentage, a surplus or a Unix time, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if abs(found) < 1e12 else None


def _entries(listed: object, key: str) -> list[dict[str, Any]]:
    found = listed if isinstance(listed, list) else []
    return [entry for entry in found if isinstance(entry, dict) and _text(entry.get(key))]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _window(entry: object) -> Window | None:
    if not isinstance(entry, dict):
        return None
    kind, used = _text(entry.get("kind")), number(entry.get("usedPct"))
    resets_at = epoch_of(entry.get("resetsAt"))
    if kind is None or used is None or used < 0 or (resets_at is None and entry.get("resetsAt") is not None):
        return None
    return Window(kind, used, resets_at)
