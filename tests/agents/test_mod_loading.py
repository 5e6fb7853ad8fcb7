"""The Claude Mod's code agrees with the declarations that the real Claude Code writes, and each way of loading it works."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.install import NODE, TYPE_CHECKER
from tests.agents.machine import COMMAND_LIMIT_SEC, Machine
from tests.agents.mod_sessions import claude, furnish
from tests.agents.scripted_model.scenario import say as answer
from tests.agents.setups import CLAUDE
from tests.processes import until

pytestmark = pytest.mark.real_cli

MODULES = ("claude-code", "claude-code-tools")
SAID = "nothing is running"


@pytest.fixture
def machine(make_machine: MachineMaker) -> Machine:
    return make_machine(CLAUDE, [answer("Hello there.")])


def ask(machine: Machine, *words: str) -> str:
    """Run Claude Code to its end and return what it printed."""
    done = subprocess.run(
        ["claude", *words], cwd=machine.project, env={**machine.environ, "PWD": str(machine.project)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_LIMIT_SEC, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_code_agrees_with_the_declarations_of_this_claude_code(machine: Machine) -> None:
    mod = furnish(machine)
    written = [mod / ".claude-plugin/types" / name / "index.d.ts" for name in MODULES]
    with claude(machine, "--plugin-dir", str(mod)):
        until(lambda: all(file.is_file() for file in [*written, mod / "tsconfig.json"]), "the declarations are written")
    assert check(mod) == ""
    # And the check finds what is wrong.
    (mod / "hooks/command.ts").write_text("export const COMMAND: number = 7\n")
    assert "hooks/program.ts" in check(mod)


def check(mod: Path) -> str:
    # The second check reads of the first what it found of the 30,000 lines of declarations, which takes seconds.
    known = ("--incremental", "--tsBuildInfoFile", str(mod.parent / "checked.json"))
    done = subprocess.run(
        [str(NODE), str(TYPE_CHECKER), "-p", str(mod), *known],
        cwd=mod,
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_SEC,
    )
    return done.stdout


def test_claude_codes_own_check_of_a_plugin_is_content(machine: Machine) -> None:
    mod = furnish(machine)
    said = ask(machine, "plugin", "validate", str(mod))
    assert "Validation passed" in said and "tool.call{tool=Agent}" in said
    assert "$.tool.register" not in said


def from_a_folder(machine: Machine, mod: Path) -> list[str]:
    return ["--plugin-dir", str(mod)]


def from_the_skills(machine: Machine, mod: Path) -> list[str]:
    shutil.copytree(mod, machine.home / ".claude/skills/bullswarm")
    return []


def from_a_marketplace(machine: Machine, mod: Path) -> list[str]:
    ask(machine, "plugin", "marketplace", "add", str(mod))
    ask(machine, "plugin", "install", "bullswarm@bullswarm")
    return []


def by_integrate(machine: Machine, mod: Path) -> list[str]:
    done = machine.bullswarm("integrate", "install", "--yes", "--agents", "claude")
    assert done.returncode == 0, done.stdout + done.stderr
    return []


@pytest.mark.parametrize("load", [from_a_folder, from_the_skills, from_a_marketplace, by_integrate])
def test_it_loads(machine: Machine, load: Callable[[Machine, Path], list[str]]) -> None:
    options = load(machine, furnish(machine))
    assert SAID in ask(machine, *options, "-p", "/bullswarm runs")
    assert json.loads((machine.state / "cache/mod-state.json").read_text())["runs"] == []
