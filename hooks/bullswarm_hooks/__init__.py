"""What the calling agents run at their own events: tiny, standard library only, silent whenever in doubt.

Rule: docs/design/surfaces.md, "Hooks".
"""

# The agents that may call, each with the provider that its CLI belongs to. The names are here, since the command reads this
# file in any case: it lets most events through before it loads anything else.
AGENTS = {"claude": "claude-code", "codex": "codex", "opencode": "opencode"}
