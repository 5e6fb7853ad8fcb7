"""The hooks as an integration writes them into an agent's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bullswarm_hooks
from bullswarm_server.integrate.sources import Sources

TEMPLATES = Path(bullswarm_hooks.__path__[0]) / "templates"


def hooks_of(agent: str, command: str) -> dict[str, list[Any]]:
    """Return the hook groups by event of ``claude`` or ``codex`` for the absolute path ``command``."""
    hooks = _sources(command).hooks(agent)
    assert hooks is not None
    return hooks


def plugin_of(agent: str, command: str) -> str:
    """Return the plug-in file of ``opencode`` for the absolute path ``command``."""
    text = _sources(command).plugin(agent)
    assert text is not None
    return text


def _sources(command: str) -> Sources:
    files = [file for file in TEMPLATES.iterdir() if file.suffix in (".json", ".js")]
    templates = {file.name: file.read_text(encoding="utf-8") for file in files}
    return Sources(command="bullswarm", hook_command=command, skill="", templates=templates)
