"""A person's home with the settings of every agent."""

from __future__ import annotations

from tests.server.integrate.conftest import PersonsHome

CLAUDE_JSON = '{\n  "numStartups": 7,\n  "mcpServers": {\n    "other": {\n      "command": "x"\n    }\n  }\n}'
SETTINGS = """{
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "/mine/guard.sh"}]}
    ]
  }
}
"""
CONFIG = '# my codex\nmodel = "gpt" # the good one\n\n[mcp_servers.other]\ncommand = "x"\n\n[mcp_servers.other.env]\nK = "v"\n'
JSONC = """{
  // mine
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "x": {"type": "remote", "url": "u"}, // keep
  },
}
"""
RULES = "# Rules\n\n- be kind"


def furnish(persons: PersonsHome) -> None:
    """A home as people have it: settings of every agent, with content of their own."""
    persons.write(".claude.json", CLAUDE_JSON)
    persons.write(".claude/settings.json", SETTINGS, mode=0o644)
    persons.write(".claude/CLAUDE.md", RULES, mode=0o644)
    persons.write(".codex/config.toml", CONFIG)
    persons.write(".codex/AGENTS.md", RULES.replace("\n", "\r\n") + "\r\n", mode=0o640)
    persons.write(".config/opencode/opencode.jsonc", JSONC, mode=0o644)
    persons.write(".grok/config.toml", "[models]\ndefault = 'grok'\n")
