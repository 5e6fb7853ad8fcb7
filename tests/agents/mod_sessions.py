"""Interactive sessions of the real Claude Code with the mod in it, in a terminal, before a scripted model."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.agents.install import BIN_FOLDER
from tests.agents.machine import Machine
from tests.agents.setups import CODEX
from tests.agents.terminal import Terminal, terminal

from bullswarm_server.integrate.sources import claude_mod

SCRIPT = "import sys; from {module} import main; sys.exit(main())"


def furnish(machine: Machine) -> Path:
    """Put the commands on PATH, Codex as the other pool, and the person's answers to what Claude Code asks a new user.

    Returns the folder of the mod: a copy, since the binary writes into a plug-in's folder.
    """
    for name, module in (("bullswarm", "bullswarm_server.cli.main"), ("bullswarm-hook", "bullswarm_hooks.main")):
        script(machine.root / "bin" / name, f"exec {sys.executable} -c '{SCRIPT.format(module=module)}' \"$@\"")
    (machine.root / "bin" / CODEX.binary).symlink_to(BIN_FOLDER / CODEX.binary)
    machine.environ |= CODEX.prepare(machine.home, machine.model.url)
    machine.environ["TERM"] = "xterm-256color"
    allowed = {"version": 1, "pools": {"codex": {"allowBilling": True}}}
    (machine.state / "state.json").write_text(json.dumps(allowed), encoding="utf-8")
    answered = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "projects": {str(machine.project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
    }
    (machine.home / ".claude.json").write_text(json.dumps(answered), encoding="utf-8")
    folder = machine.root / "mod"
    shutil.copytree(claude_mod(), folder)
    return folder


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


@contextmanager
def claude(machine: Machine, *options: str, columns: int = 120, rows: int = 40) -> Iterator[Terminal]:
    """A session in a terminal, ready for a prompt."""
    words = ["claude", "--model", "claude-sonnet-5", "--permission-mode", "dontAsk", *options]
    environ = {**machine.environ, "PWD": str(machine.project)}
    with terminal(machine.root, words, cwd=machine.project, environ=environ, columns=columns, rows=rows) as opened:
        opened.wait(r"(?m)^\W*❯")
        yield opened


def say(opened: Terminal, text: str) -> None:
    """Type a line and send it, once the composer shows it."""
    opened.type(text)
    opened.wait(lambda screen: text[:30] in screen)
    opened.press("Enter")
