"""What a CLI would cut short or leave unrecorded by itself is set in its connector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import bullswarm_providers

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
