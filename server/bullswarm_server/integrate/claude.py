"""Claude Code: an MCP entry in .claude.json, hooks (and a status line) in settings.json, mod, skill, a block in CLAUDE.md.

The same can come as one plugin (the packaged ``claude-mod``). Both at once would start two servers and run each hook
twice, so with the plugin turned on only the block is written.
"""

from __future__ import annotations

from pathlib import Path

from bullswarm_server.integrate.agent import Agent, Form, Setup, instructions, json_value, skill
from bullswarm_server.integrate.claude_mod import mod_parts
from bullswarm_server.integrate.hook_parts import JsonHooks
from bullswarm_server.integrate.parts import JsonEntry, Part
from bullswarm_server.integrate.person import Person
from bullswarm_server.integrate.sources import Sources
from bullswarm_server.integrate.status_line import StatusLine

_PLUGIN = "bullswarm"
_PLUGIN_SERVER = "plugin_bullswarm_bullswarm"


def _make(person: Person, sources: Sources, form: Form | None) -> Setup:
    folder = person.folder("CLAUDE_CONFIG_DIR", ".claude")
    # As `claude mcp add --scope user` writes it. Claude Code waits 28 hours for a tool, so it needs no limit.
    entry = {"type": "stdio", "command": sources.command, "args": ["mcp"], "env": {}}
    path = ("mcpServers", "bullswarm")
    parts: list[Part] = [JsonEntry(settings_file(folder, person), path, entry, fixed=("command", "args"))]
    if (hooks := sources.hooks("claude")) is not None:
        parts.append(JsonHooks(folder / "settings.json", hooks))
    parts += mod_parts(folder, person, sources)
    line = StatusLine(folder / "settings.json", sources.command)
    parts.append(skill(folder / "skills", sources))
    block = instructions(folder / "CLAUDE.md")
    if (plugin := plugin_form(folder)) is not None:
        return Setup((block, line), replaced=tuple(parts), form=f"the plugin {plugin}", hint=_hint(_PLUGIN_SERVER))
    return Setup((*parts, block, line), hint=_hint("bullswarm"))


def _hint(server: str) -> str:
    return f'with nobody to ask, Claude Code uses no tool that you didn\'t allow: claude -p "…" --allowedTools mcp__{server}'


def settings_file(folder: Path, person: Person) -> Path:
    """Return where Claude Code keeps its user-wide MCP servers: in its own folder only when that was named."""
    return folder / ".claude.json" if person.environ.get("CLAUDE_CONFIG_DIR") else person.home / ".claude.json"


def plugin_form(folder: Path) -> str | None:
    """Return the id under which Claude Code has our plugin turned on; None when it hasn't."""
    settings = json_value(folder / "settings.json")
    enabled = settings.get("enabledPlugins") if isinstance(settings, dict) else None
    for name, on in enabled.items() if isinstance(enabled, dict) else ():
        if on is True and str(name).partition("@")[0] == _PLUGIN:
            return str(name)
    skills = folder / "skills"
    for manifest in sorted(skills.glob("*/.claude-plugin/plugin.json")):
        value = json_value(manifest)
        if isinstance(value, dict) and value.get("name") == _PLUGIN:
            return f"{_PLUGIN}@skills-dir"
    return None


AGENT = Agent("claude", "Claude Code", "claude", _make)
