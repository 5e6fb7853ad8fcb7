"""What is installed in the agents' settings: our command, seconds, and only events that we answer."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
from tests.hooks.rendered import TEMPLATES, hooks_of, plugin_of

from bullswarm_hooks import AGENTS, answers
from bullswarm_hooks.delegation import MOST_WAIT_SEC
from bullswarm_hooks.main import DEADLINE_SEC

COMMAND = "/opt/a b/bin/bullswarm-hook"


def entries(agent: str) -> list[tuple[str, str, dict[str, Any]]]:
    """(event, matcher, handler) of each hook."""
    return [
        (event, group.get("matcher", ""), hook)
        for event, groups in hooks_of(agent, COMMAND).items()
        for group in groups
        for hook in group["hooks"]
    ]


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_every_hook_calls_us_with_its_own_event(agent: str) -> None:
    for event, _, hook in entries(agent):
        assert hook["type"] == "command"
        assert shlex.split(hook["command"]) == [COMMAND, agent, event]
        assert event in answers.FIELDS and agent in AGENTS
        assert event not in ("Stop", "SubagentStop", "UserPromptSubmit")


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_time_limits_are_seconds_and_our_own_come_first(agent: str) -> None:
    limits = {hook["timeout"] for _, _, hook in entries(agent)}
    assert limits == {5, 570}
    assert DEADLINE_SEC < 5 and MOST_WAIT_SEC + 20 < 570
    for event, matcher, hook in entries(agent):
        assert (hook["timeout"] == 570) is (event == "PreToolUse" and "gent" in matcher)


@pytest.mark.parametrize(
    ("agent", "tool", "times"),
    [
        ("claude", "Bash", 1), ("claude", "Agent", 1), ("claude", "Task", 1), ("claude", "mcp__bullswarm__run", 1),
        ("claude", "mcp__plugin_bullswarm_bullswarm__run", 1), ("claude", "Read", 0), ("claude", "BashOutput", 0),
        ("codex", "Bash", 1), ("codex", "spawn_agent", 1), ("codex", "collaborationspawn_agent", 1),
        ("codex", "mcp__bullswarm__run", 1), ("codex", "apply_patch", 0), ("codex", "mcp__other__run", 0),
    ],
)  # fmt: skip
def test_a_tool_meets_one_hook_before_it_runs(agent: str, tool: str, times: int) -> None:
    # Claude Code wants the whole name to match, Codex searches.
    match = re.fullmatch if agent == "claude" else re.search
    found = [matcher for event, matcher, _ in entries(agent) if event == "PreToolUse" and match(matcher, tool)]
    assert len(found) == times


def test_the_plugin_holds_the_command_and_limits_in_milliseconds() -> None:
    text = plugin_of("opencode", COMMAND)
    assert f"const HOOK = {json.dumps(COMMAND)}" in text
    assert "QUICK_MS = 5_000" in text and "DELEGATION_MS = 570_000" in text


def test_the_files_hold_the_bare_command_for_whoever_reads_them_by_path() -> None:
    assert sorted(file.name for file in TEMPLATES.iterdir() if file.suffix in (".json", ".js")) == [
        "claude.json",
        "codex.json",
        "opencode.js",
    ]
    for name in ("claude.json", "codex.json"):
        for groups in json.loads((TEMPLATES / name).read_text())["hooks"].values():
            assert all(hook["command"].split()[0] == "bullswarm-hook" for group in groups for hook in group["hooks"])
    assert '"bullswarm-hook"' in (TEMPLATES / "opencode.js").read_text()
