"""Hook groups among the person's own, and what Codex hashes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bullswarm_server.integrate.hook_parts import JsonHooks, event_key, is_our_group, trust_hash
from bullswarm_server.integrate.parts import Notes
from bullswarm_server.integrate.workspace import Workspace


def group(command: str, **more: Any) -> dict[str, Any]:
    return {**more, "hooks": [{"type": "command", "command": command, "timeout": 5}]}


OURS = {
    "SessionStart": [group("/opt/bin/bullswarm-hook codex SessionStart")],
    "PreToolUse": [
        group("/opt/bin/bullswarm-hook codex PreToolUse", matcher="^Bash$"),
        group("/opt/bin/bullswarm-hook codex PreToolUse", matcher="spawn_agent$"),
    ],
}
theirs = st.dictionaries(
    st.sampled_from(["SessionStart", "PreToolUse", "Stop"]),
    st.lists(
        st.sampled_from([group("/mine/a.sh"), group("echo bullswarm-hook", matcher="x"), {"hooks": []}]), max_size=3
    ),
)
documents = st.fixed_dictionaries({}, optional={"theme": st.just("dark"), "hooks": theirs, "z": st.just([1])})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents, st.sampled_from([None, 2, "\t", 4]), st.booleans())
def test_taking_out_gives_the_original_bytes(
    tmp_path: Path, document: dict[str, Any], indent: Any, edited: bool
) -> None:
    file = tmp_path / "hooks.json"
    text = json.dumps(document, indent=indent)
    file.write_text(text, encoding="utf-8")
    part, space = JsonHooks(file, OURS), Workspace((tmp_path,))
    notes: Notes = part.install(space, {})
    assert part.state(space).state == "installed"
    installed = json.loads(space.text(file) or "")
    for event, groups in document.get("hooks", {}).items():
        assert installed["hooks"][event][: len(groups)] == groups
    if edited:  # the person adds a group behind ours
        installed["hooks"]["PreToolUse"].append(group("/mine/late.sh"))
        space.put(file, json.dumps(installed, indent=3))
    part.remove(space, json.loads(json.dumps(notes)))
    assert part.state(space).state == "missing"
    if not edited:
        assert space.text(file) == text
        return
    expected = {**document, "hooks": {**document.get("hooks", {})}}
    expected["hooks"]["PreToolUse"] = [*expected["hooks"].get("PreToolUse", []), group("/mine/late.sh")]
    assert json.loads(space.text(file) or "") == expected


@pytest.mark.parametrize(
    ("found", "ours"),
    [
        (group("/a/bullswarm-hook claude Stop"), True),
        (group("'/a b/bullswarm-hook' claude Stop"), True),
        (group("bullswarm-hook claude Stop"), True),
        (group("/a/bullswarm-hook-of-mine x"), False),
        (group("echo /a/bullswarm-hook"), False),
        (group("'unclosed"), False),
        (
            {"hooks": [{"type": "command", "command": "/a/bullswarm-hook x"}, {"type": "command", "command": "y"}]},
            False,
        ),
        ({"hooks": []}, False),
        ({"hooks": [{"type": "prompt"}]}, False),
        ("text", False),
    ],
)
def test_ours_is_known_by_its_command(found: Any, ours: bool) -> None:
    assert is_our_group(found) is ours


def test_the_hash_is_the_one_that_codex_0_171_shows() -> None:
    wanted = "sha256:ca863ab298370d18e091a5f070285f58052f43b1b20d5b6cd5c84523a7d8f5df"
    command = "/tmp/lab/bullswarm-hook codex pre-tool-use"
    found = {"matcher": "^Bash$", "hooks": [{"type": "command", "command": command, "timeout": 5}]}
    assert trust_hash("PreToolUse", found, found["hooks"][0]) == wanted  # type: ignore[arg-type]
    assert event_key("PreToolUse") == "pre_tool_use"
