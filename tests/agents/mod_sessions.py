"""Interactive sessions of the real Claude Code with the mod in it, in a terminal, before a scripted model."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.agents.install import BIN_FOLDER
from tests.agents.machine import Machine
from tests.agents.setups import CODEX
from tests.agents.terminal import Terminal, terminal

from bullswarm_server.integrate.sources import claude_mod

# A key or a click that Claude Code didn't take is given again: after so long, and so often.
TRY_SEC = 5.0
TRIES = 20
MOST_NOTCHES = 200
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


def by_click(opened: Terminal, words: str, wanted: str | Callable[[str], bool], *, gone: bool = False) -> str:
    """Click on these words until it counts, and return the screen: what has only just appeared may not take a click yet."""
    for _ in range(TRIES):
        place = _place(opened.screen(), words)
        if place is not None:
            opened.click(*place)
        with contextlib.suppress(AssertionError):
            return opened.wait(wanted, gone=gone, seconds=TRY_SEC)
    raise AssertionError(f"no click on {words!r} counts: {wanted!r}\n{opened.screen()}")


def by_wheel(opened: Terminal, words: str, wanted: str, *, up: bool = False) -> str:
    """Turn the wheel over these words, or where they stood last, until the screen holds what is wanted; return the screen."""
    place = _place(opened.wait(lambda screen: _place(screen, words) is not None), words)
    for _ in range(MOST_NOTCHES):
        if wanted in (screen := opened.screen()):
            return screen
        place = _place(screen, words) or place
        assert place is not None
        opened.wheel(*place, up=up)
    return opened.wait(lambda screen: wanted in screen)


def _place(screen: str, words: str) -> tuple[int, int] | None:
    """The column and the row of the middle of these words, counted from 1; None where they are not on the screen."""
    for row, line in enumerate(screen.splitlines(), 1):
        if words in line:
            return line.index(words) + len(words) // 2 + 1, row
    return None
