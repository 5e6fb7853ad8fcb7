"""Codex: a table and perhaps the hooks' trust in config.toml, hooks.json, the skill, a block in AGENTS.md.

Or, where that is asked for, one plug-in with all but the block (``codex_plugin``). Both at once would start two servers and
run each hook twice, so the one form takes the other out.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bullswarm_server.integrate import codex_plugin
from bullswarm_server.integrate.agent import Agent, Form, Setup, instructions, skill
from bullswarm_server.integrate.hook_parts import HookTrust, JsonHooks
from bullswarm_server.integrate.parts import Part, TomlEntry
from bullswarm_server.integrate.person import Person
from bullswarm_server.integrate.sources import Sources

# Codex gives an MCP server none of its own environment but what is listed here.
_ENV_VARS = ("BULLSWARM_HOME", "BULLSWARM_DEPTH", "BULLSWARM_ROOT", "BULLSWARM_CALLER", "CODEX_HOME")
_STARTUP_SEC = 30
# Codex ends a tool call after 60, 120 or 300 s by version, whatever progress it hears of; ours waits 280 s at most.
_TOOL_SEC = 600


def _make(person: Person, sources: Sources, form: Form | None) -> Setup:
    folder = person.folder("CODEX_HOME", ".codex")
    entry = server_entry(sources.command)
    settings = _settings_parts(folder, person, sources, entry)
    plugin = codex_plugin.plugin_parts(folder, sources, entry)
    block = instructions(folder / "AGENTS.md")
    if (other := codex_plugin.other_plugin(folder)) is not None:
        return Setup((block,), replaced=settings, form=f"the plug-in {other}")
    on = codex_plugin.turned_on(folder)
    named = f"the plug-in {codex_plugin.PLUGIN_ID}"
    if form == "plugin" or (form is None and on == "ours"):
        return Setup((*plugin, block), replaced=settings, form=named)
    if form is None and on == "the person's":
        return Setup((codex_plugin.plugin_trust(folder), block), replaced=settings, form=named)
    return Setup((*settings, block), replaced=plugin if codex_plugin.is_known(folder) else ())


def server_entry(command: str) -> dict[str, Any]:
    """Return how Codex starts the MCP server and how long it waits for it."""
    return {
        "command": command,
        "args": ["mcp"],
        "env_vars": list(_ENV_VARS),
        "startup_timeout_sec": _STARTUP_SEC,
        "tool_timeout_sec": _TOOL_SEC,
        # `codex exec` can't ask anybody, and refuses every tool that writes without this.
        "default_tools_approval_mode": "approve",
    }


def _settings_parts(folder: Path, person: Person, sources: Sources, entry: dict[str, Any]) -> tuple[Part, ...]:
    config = folder / "config.toml"
    parts: list[Part] = [TomlEntry(config, ("mcp_servers", "bullswarm"), entry, fixed=("command", "args"))]
    if (hooks := sources.hooks("codex")) is not None:
        file = folder / "hooks.json"
        parts += [JsonHooks(file, hooks), HookTrust(config, file, _as_codex_names_it(file, person))]
    return (*parts, skill(folder / "skills", sources))


def _as_codex_names_it(file: Path, person: Person) -> str:
    # Codex resolves the links of a CODEX_HOME that it was given, and not those of the usual folder.
    folder = os.path.realpath(file.parent) if person.environ.get("CODEX_HOME") else str(file.parent)
    return os.path.join(folder, file.name)  # noqa: PTH118 - a text, as it stands in the settings


AGENT = Agent("codex", "Codex", "codex", _make)
