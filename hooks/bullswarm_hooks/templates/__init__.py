"""What an agent's settings hold to call ``bullswarm-hook``: data, in which that word stands for the absolute command.

``claude.json`` and ``codex.json`` are the agents' own hook format, with time-outs in seconds; ``opencode.js`` is a plug-in
file. Whoever may not import this package finds the files beside it, by ``importlib.util.find_spec("bullswarm_hooks")``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PLACEHOLDER = "bullswarm-hook"


def render(agent: str, command: str) -> dict[str, Any]:
    """Return the hook settings of ``claude`` or ``codex`` for the absolute path ``command`` of ``bullswarm-hook``."""
    from bullswarm_hooks.shell import quoted

    settings: dict[str, Any] = json.loads(_read(f"{agent}.json"))
    for groups in settings["hooks"].values():
        for group in groups:
            for hook in group["hooks"]:
                hook["command"] = quoted(command) + hook["command"].removeprefix(PLACEHOLDER)
    return settings


def render_plugin(command: str) -> str:
    """Return OpenCode's plug-in file for the absolute path ``command`` of ``bullswarm-hook``."""
    return _read("opencode.js").replace(f'"{PLACEHOLDER}"', json.dumps(command))


def _read(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
