"""What a CLI would cut short or leave unrecorded by itself is set in its connector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import bullswarm_providers
from bullswarm_core.launch.plan import plan_launch
from bullswarm_core.pools import Rung
from bullswarm_core.store.home import Home
from bullswarm_providers import registry

FOLDER = Path(bullswarm_providers.__file__).parent


def words(name: str) -> list[str]:
    """Every word of a connector that may come to stand in a command."""
    launch: dict[str, Any] = json.loads((FOLDER / name / "connector.json").read_bytes())["launch"]
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(item)

    walk(launch)
    return found


def test_command_code_works_beyond_its_hundred_turns() -> None:
    listed = words("command_code")
    assert int(listed[listed.index("--max-turns") + 1]) >= 10_000


@pytest.mark.parametrize("name", sorted(path.parent.name for path in FOLDER.glob("*/connector.json")))
def test_no_cli_is_kept_from_recording_its_session(name: str) -> None:
    """Its session is where usage, denials and the way to go on are found."""
    for word in words(name):
        assert word not in {"--no-session", "--ephemeral", "--no-session-persistence", "--no-save"}, word


def test_opencode_says_that_a_level_may_not_be_in_force(own_home: Path, tmp_path: Path) -> None:
    """It ignores the name of a variant that the model doesn't have, so that nobody can know."""
    binary = tmp_path / "opencode"
    binary.write_text("#!/bin/sh\n", encoding="utf-8")
    binary.chmod(0o755)
    environ = {"HOME": str(own_home), "PATH": str(tmp_path)}
    pool = registry.load(Home(), environ).profile("opencode")
    places: dict[str, Any] = {"lane": "build", "cwd": "/w", "prompt_file": "/r/task.md", "private_tmp": "/r/tmp"}
    asked = plan_launch(pool, rung=Rung("stub/model", "high"), environ=environ, **places)
    assert asked.argv[asked.argv.index("--variant") + 1] == "high"
    assert any("high may not be in force" in note for note in asked.notes)
    left = plan_launch(pool, rung=Rung("stub/model"), environ=environ, **places)
    assert "--variant" not in left.argv and not any("in force" in note for note in left.notes)
