"""Codex's other form: one plug-in from a local marketplace, as `codex plugin add` leaves it.

Codex never looks at the marketplace's folder again: it loads the copy below ``plugins/cache``, so that is what is written
here, with the absolute commands, beside the two tables that turn it on. The packaged folder is a marketplace for Codex as it
is for Claude Code; one that a person added from it stays theirs.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from bullswarm_server.integrate.agent import json_value
from bullswarm_server.integrate.hook_parts import HookTrust
from bullswarm_server.integrate.own_files import OwnFiles
from bullswarm_server.integrate.parts import Part, PartState, TomlEntry
from bullswarm_server.integrate.sources import SKILL_NAME, Sources, claude_mod

PLUGIN_ID = "bullswarm@bullswarm"
_NAME = "bullswarm"
_MANIFEST, _SERVERS, _HOOKS = (f".codex-plugin/{name}.json" for name in ("plugin", "mcp", "hooks"))
# Where Codex puts a plug-in that states no version, and what it loads before any other: the place is the same after an update.
_VERSION = "local"
# How the packaged folder is called: in a checkout, and inside the installed package.
_MARKETPLACE_FOLDERS = ("claude-mod", "_claude_mod")

Installed = Literal["ours", "the person's"]


def plugin_parts(folder: Path, sources: Sources, entry: Mapping[str, Any]) -> tuple[Part, ...]:
    """Return what the plug-in form consists of in Codex's ``folder``; ``entry`` is how the MCP server is started."""
    market = {"source_type": "local", "source": claude_mod()}
    config, cache = folder / "config.toml", _cache(folder)
    return (
        OwnFiles(cache, plugin_folder(cache), plugin_files(sources, entry), name="plug-in"),
        TomlEntry(
            config, ("marketplaces", _NAME), market, fixed=tuple(market), name="marketplace", judge=_marketplace_state
        ),
        TomlEntry(
            config,
            ("plugins", PLUGIN_ID),
            {"enabled": True},
            fixed=("enabled",),
            name="plug-in entry",
            judge=_entry_state,
        ),
        plugin_trust(folder),
    )


def plugin_trust(folder: Path) -> HookTrust:
    """Return the trust in the plug-in's hooks: Codex names them by the plug-in, and hashes them as any others."""
    hooks_file = plugin_folder(_cache(folder)) / _HOOKS
    return HookTrust(folder / "config.toml", hooks_file, f"{PLUGIN_ID}:{_HOOKS}", name="plug-in hook trust")


def plugin_files(sources: Sources, entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of the plug-in's files by their place in it."""
    manifest: dict[str, Any] = json.loads((Path(claude_mod()) / _MANIFEST).read_text(encoding="utf-8"))
    files = {
        f"skills/{SKILL_NAME}/SKILL.md": sources.skill,
        _SERVERS: _json({"mcpServers": {_NAME: entry}}),
    }
    if (hooks := sources.hooks("codex")) is None:
        del manifest["hooks"]
    else:
        files[_HOOKS] = _json({"hooks": hooks})
    return {_MANIFEST: _json(manifest), **files}


def other_plugin(folder: Path) -> str | None:
    """Return the id under which Codex has our plug-in turned on from another marketplace; None when it hasn't."""
    for name, entry in _plugins(folder).items():
        on = isinstance(entry, Mapping) and entry.get("enabled") is True
        if on and name != PLUGIN_ID and name.partition("@")[0] == _NAME:
            return name
    return None


def is_known(folder: Path) -> bool:
    """Tell whether Codex has the plug-in in its settings, turned on or off."""
    return PLUGIN_ID in _plugins(folder)


def turned_on(folder: Path) -> Installed | None:
    """Tell who installed the plug-in that is turned on: the packaged one starts `bullswarm` by PATH, ours by its place."""
    entry = _plugins(folder).get(PLUGIN_ID)
    if not isinstance(entry, Mapping) or entry.get("enabled") is not True:
        return None
    servers: Any = json_value(plugin_folder(_cache(folder)) / _SERVERS)
    try:
        command = servers["mcpServers"][_NAME]["command"]
    except (TypeError, KeyError):
        return "ours"
    return "ours" if isinstance(command, str) and os.path.isabs(command) else "the person's"  # noqa: PTH117 - a text


def plugin_folder(cache: Path) -> Path:
    """Return where the plug-in's files are in its part of Codex's cache."""
    return cache / _NAME / _VERSION


def _cache(folder: Path) -> Path:
    return folder / "plugins" / "cache" / _NAME


def _plugins(folder: Path) -> Mapping[str, Any]:
    """Read the table for a decision only: empty where the file is missing or can't be read."""
    try:
        document = tomllib.loads((folder / "config.toml").read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    found = document.get("plugins")
    return found if isinstance(found, Mapping) else {}


def _marketplace_state(found: Any, wanted: Mapping[str, Any], fixed: tuple[str, ...]) -> PartState:
    if found is None:
        return PartState("missing")
    source = found.get("source") if isinstance(found, Mapping) else None
    if not isinstance(source, str) or Path(source).name not in _MARKETPLACE_FOLDERS:
        return PartState("foreign", "the marketplace named bullswarm is somebody else's")
    if any(found.get(key) != wanted[key] for key in fixed):
        return PartState("outdated", f"it leads to {source}")
    return PartState("installed")


def _entry_state(found: Any, wanted: Mapping[str, Any], fixed: tuple[str, ...]) -> PartState:
    if found is None:
        return PartState("missing")
    if not isinstance(found, Mapping):
        return PartState("foreign", f"plugins.{PLUGIN_ID} is no table")
    agrees = all(found.get(key) == wanted[key] for key in fixed)
    return PartState("installed") if agrees else PartState("outdated", "it is turned off (enabled = false)")


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
