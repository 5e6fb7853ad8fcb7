"""Nothing of ours hooks into the end of a turn, so that nothing of ours can keep a session going."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bullswarm_hooks.call import Call
from bullswarm_hooks.main import answer

ROOT = Path(__file__).parents[2]
ENDS = ("Stop", "SubagentStop", "SessionEnd", "Notification", "PreCompact", "TeammateIdle")


def hook_files() -> list[Path]:
    parts = ("hooks", "server", "providers", "core", "claude-mod")
    return [path for part in parts for path in (ROOT / part).rglob("*hooks*.json") if "node_modules" not in path.parts]


def test_no_hook_of_ours_is_asked_at_the_end_of_a_turn() -> None:
    assert hook_files()
    for path in hook_files():
        assert not set(ENDS) & set(json.loads(path.read_text(encoding="utf-8")).get("hooks", {})), path


@pytest.mark.parametrize("event", ENDS)
@pytest.mark.parametrize(
    "payload", [{"stop_hook_active": True, "session_id": "s"}, {"session_id": ""}, {"session_id": None}, {}]
)
def test_whoever_asks_all_the_same_hears_nothing(event: str, payload: dict[str, Any]) -> None:
    assert answer(Call("claude", event, {"hook_event_name": event, **payload}, {"HOME": "/nonexistent"})) is None


def test_a_session_without_a_name_leaves_no_trace(own_home: Path) -> None:
    environ = {"HOME": str(own_home), "BULLSWARM_HOME": str(own_home / ".bullswarm")}
    for name in ("", " ", None, 7):
        answer(Call("claude", "SessionStart", {"session_id": name, "cwd": "/srv"}, environ))
    assert not [path for path in own_home.rglob("*") if path.is_file()]
