"""Codex: a table and perhaps the hooks' trust in config.toml, hooks.json, the skill, a block in AGENTS.md."""

from __future__ import annotations

import os
from pathlib import Path

from bullswarm_server.integrate.agent import Agent, Setup, instructions, skill
from bullswarm_server.integrate.hook_parts import HookTrust, JsonHooks
from bullswarm_server.integrate.parts import Part, TomlEntry
from bullswarm_server.integrate.person import Person
from bullswarm_server.integrate.sources import Sources

# Codex gives an MCP server none of its own environment but what is listed here.
_ENV_VARS = ("BULLSWARM_HOME", "BULLSWARM_DEPTH", "BULLSWARM_ROOT", "BULLSWARM_CALLER", "CODEX_HOME")
_STARTUP_SEC = 30
# Codex ends a tool call after 60, 120 or 300 s by version, whatever progress it hears of; ours waits 280 s at most.
_TOOL_SEC = 600


def _make(person: Person, sources: Sources) -> Setup:
    folder = person.folder("CODEX_HOME", ".codex")
    entry = {
        "command": sources.command,
        "args": ["mcp"],
        "env_vars": list(_ENV_VARS),
        "startup_timeout_sec": _STARTUP_SEC,
        "tool_timeout_sec": _TOOL_SEC,
        # `codex exec` can't ask anybody, and refuses every tool that writes without this.
        "default_tools_approval_mode": "approve",
    }
    config = folder / "config.toml"
    parts: list[Part] = [TomlEntry(config, ("mcp_servers", "bullswarm"), entry, fixed=("command", "args"))]
    if (hooks := sources.hooks("codex")) is not None:
        file = folder / "hooks.json"
        parts += [JsonHooks(file, hooks), HookTrust(config, file, _as_codex_names_it(file, person))]
    return Setup((*parts, skill(folder / "skills", sources), instructions(folder / "AGENTS.md")))


def _as_codex_names_it(file: Path, person: Person) -> str:
    # Codex resolves the links of a CODEX_HOME that it was given, and not those of the usual folder.
    folder = os.path.realpath(file.parent) if person.environ.get("CODEX_HOME") else str(file.parent)
    return os.path.join(folder, file.name)  # noqa: PTH118 - a text, as it stands in the settings


AGENT = Agent("codex", "Codex", "codex", _make)
