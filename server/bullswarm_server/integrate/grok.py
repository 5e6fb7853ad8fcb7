"""Grok: a table in config.toml, the skill, a block in AGENTS.md.

No hooks: Grok has no place for a session's context, and runs the hooks of Claude Code's settings on its own.
"""

from __future__ import annotations

from bullswarm_server.integrate.agent import Agent, Form, Setup, instructions, skill
from bullswarm_server.integrate.parts import TomlEntry
from bullswarm_server.integrate.person import Person
from bullswarm_server.integrate.sources import Sources

_HINT = (
    'with nobody to ask, Grok ends without a word at a tool that you didn\'t allow: grok --allow mcp__bullswarm -p "…"'
)


def _make(person: Person, sources: Sources, form: Form | None) -> Setup:
    folder = person.folder("GROK_HOME", ".grok")
    # As `grok mcp add` writes it. Grok waits 6000 s for a tool, longer than bullswarm ever makes it wait.
    entry = {"command": sources.command, "args": ["mcp"], "enabled": True}
    table = TomlEntry(folder / "config.toml", ("mcp_servers", "bullswarm"), entry, fixed=("command", "args"))
    return Setup((table, skill(folder / "skills", sources), instructions(folder / "AGENTS.md")), hint=_HINT)


AGENT = Agent("grok", "Grok", "grok", _make)
