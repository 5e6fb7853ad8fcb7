"""OpenCode: an MCP entry in opencode.json or opencode.jsonc, a plugin file for the hooks, the skill, a block in AGENTS.md."""

from __future__ import annotations

from pathlib import Path

from bullswarm_server.integrate.agent import Agent, Form, Setup, instructions, skill
from bullswarm_server.integrate.parts import JsonEntry, OwnFile, Part
from bullswarm_server.integrate.person import Person
from bullswarm_server.integrate.sources import PLUGIN_MARK, Sources

_FRESH = '{\n  "$schema": "https://opencode.ai/config.json"\n}\n'
# One limit for starting a server and for a call. Our progress extends a call without end; a server that hangs at the
# start would hold OpenCode up for as long.
_TIMEOUT_MS = 120_000


def _make(person: Person, sources: Sources, form: Form | None) -> Setup:
    folder = person.folder("XDG_CONFIG_HOME", ".config") / "opencode"
    entry = {"type": "local", "command": [sources.command, "mcp"], "enabled": True, "timeout": _TIMEOUT_MS}
    parts: list[Part] = [
        JsonEntry(config_file(folder), ("mcp", "bullswarm"), entry, fixed=("command",), comments=True, fresh=_FRESH)
    ]
    if (plugin := sources.plugin("opencode")) is not None:
        parts.append(OwnFile(folder / "plugin" / "bullswarm.js", plugin, PLUGIN_MARK, "hooks"))
    return Setup((*parts, skill(folder / "skills", sources), instructions(folder / "AGENTS.md")))


def config_file(folder: Path) -> Path:
    """Return the settings file to edit: the one with our entry, else the last of those that OpenCode reads."""
    there = [folder / name for name in ("opencode.jsonc", "opencode.json") if (folder / name).exists()]
    for file in there:
        if b'"bullswarm"' in file.read_bytes():
            return file
    return there[0] if there else folder / "opencode.json"


AGENT = Agent("opencode", "OpenCode", "opencode", _make)
