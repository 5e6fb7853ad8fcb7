"""The mod's copy for Claude Code: one version of it, loaded by a variable that may hold the person's own folders, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.server.integrate.conftest import COMMANDS, PersonsHome

from bullswarm_core.fast import VERSION
from bullswarm_server.integrate import claude_mod

SETTINGS = ".claude/settings.json"
CLAUDES_OWN = (".claude-plugin/types/claude-code/index.d.ts", "tsconfig.json", ".claude-plugin/.gitignore")


@pytest.fixture
def mods(tmp_path: Path) -> Path:
    return tmp_path / "state" / "claude-mod"


def states(persons: PersonsHome) -> dict[str, str]:
    (agent,) = persons.say("status", "--agents", "claude", "--json").document["agents"]
    return {part["part"]: part["state"] for part in agent["parts"]}


def folders(persons: PersonsHome) -> Any:
    return json.loads(persons.read(SETTINGS)).get("env", {}).get(claude_mod.VARIABLE)


def test_the_copy_is_the_mod_alone_with_the_absolute_command(persons: PersonsHome, mods: Path) -> None:
    assert persons.install("--agents", "claude").code == 0
    copy = mods / VERSION
    assert folders(persons) == str(copy)
    assert json.loads((copy / "hooks/hooks.json").read_text()) == {"modules": ["./register.tsx"]}
    assert f'COMMAND = "{COMMANDS["bullswarm"]}"' in (copy / "hooks/command.ts").read_text()
    assert json.loads((copy / ".claude-plugin/plugin.json").read_text())["name"] == "bullswarm"
    # The server and the skill stand in the settings: a second of either would come with the plug-in.
    assert not (copy / ".mcp.json").exists() and not (copy / "skills").exists()
    assert (states(persons)["mod"], states(persons)["mod entry"]) == ("installed", "installed")


def test_what_claude_code_writes_into_the_folder_is_no_change_and_goes_with_it(
    persons: PersonsHome, mods: Path
) -> None:
    before = persons.tree()
    persons.install("--agents", "claude")
    for name in CLAUDES_OWN:
        file = mods / VERSION / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}\n")
    assert states(persons)["mod"] == "installed"
    assert persons.remove("--agents", "claude").code == 0
    assert not mods.exists() and persons.tree() == before


def test_an_older_version_gives_way(persons: PersonsHome, mods: Path) -> None:
    persons.install("--agents", "claude")
    (mods / VERSION).rename(mods / "0.0.1")
    text = persons.read(SETTINGS)
    persons.write(SETTINGS, text.replace(str(mods / VERSION), str(mods / "0.0.1")))
    assert (states(persons)["mod"], states(persons)["mod entry"]) == ("outdated", "outdated")
    assert persons.install("--agents", "claude").code == 0
    assert [folder.name for folder in mods.iterdir()] == [VERSION]
    assert persons.read(SETTINGS) == text


@pytest.mark.parametrize("given", ["/their/mod", "/their/mod:/other"])
def test_the_persons_own_folders_stay_before_ours(persons: PersonsHome, mods: Path, given: str) -> None:
    before = json.dumps({"env": {claude_mod.VARIABLE: given, "A": "1"}}, indent=2) + "\n"
    persons.write(SETTINGS, before)
    assert persons.install("--agents", "claude").code == 0
    assert folders(persons) == f"{given}:{mods / VERSION}"
    persons.remove("--agents", "claude")
    assert persons.read(SETTINGS) == before


def test_a_variable_that_is_no_text_is_left_alone(persons: PersonsHome) -> None:
    before = json.dumps({"env": {claude_mod.VARIABLE: 7}}) + "\n"
    persons.write(SETTINGS, before)
    said = persons.install("--agents", "claude")
    assert said.code != 0 and f"env.{claude_mod.VARIABLE} is no text" in said.out + said.err
    assert persons.read(SETTINGS) == before
