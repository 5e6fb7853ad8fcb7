"""What is handed to the agents: the plugin, the skill, the awareness text, and the commands by their absolute paths."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import get_args

import pytest

from bullswarm_core.errors import UsageError
from bullswarm_core.fast import VERSION
from bullswarm_core.judging.model import FailureKind
from bullswarm_core.pools import Effort, Lane
from bullswarm_server.cli.main import VERBS
from bullswarm_server.integrate import sources
from bullswarm_server.integrate.sources import (
    AWARENESS,
    SKILL_MARK,
    Sources,
    claude_mod,
    find_sources,
    installed_command,
)

PLUGIN = Path(claude_mod())
SKILL = (PLUGIN / "skills" / "delegate" / "SKILL.md").read_text(encoding="utf-8")


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


# --- the plugin


def test_the_plugin_is_of_this_version_and_starts_what_integrate_starts() -> None:
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8"))
    market = json.loads((PLUGIN / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8"))
    servers = json.loads((PLUGIN / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"]
    assert (manifest["name"], manifest["version"]) == ("bullswarm", VERSION)
    assert [entry["name"] for entry in market["plugins"]] == ["bullswarm"]
    assert servers == {"bullswarm": {"type": "stdio", "command": "bullswarm", "args": ["mcp"]}}


def test_the_plugins_hooks_are_those_of_the_settings() -> None:
    found = find_sources({"PATH": "/nowhere"}).templates["claude.json"]
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text(encoding="utf-8"))
    assert hooks == {"modules": ["./register.tsx"], **json.loads(found)}


# --- the skill and the awareness text


def test_the_skill_has_the_head_that_agents_need() -> None:
    lines = SKILL.splitlines()
    assert len(lines) < 120
    assert lines[0] == "---"
    head = dict(line.split(": ", 1) for line in lines[1 : lines.index("---", 1)])
    assert head["name"] == "delegate"
    assert 0 < len(head["description"]) <= 1024
    assert SKILL.rstrip().endswith(SKILL_MARK)


def test_the_skill_names_only_what_there_is() -> None:
    words = set(re.findall(r"`([^`\n]+)`", SKILL))
    kinds = [line for line in SKILL.splitlines() if line.startswith("| `")]
    named = {kind for line in kinds for kind in re.findall(r"`([\w-]+)`", line.split("|")[1])} - set(get_args(Lane))
    assert named <= set(get_args(FailureKind))
    assert set(get_args(Lane)) | set(get_args(Effort)) <= words
    assert {word.split()[1] for word in words if word.startswith("bullswarm ")} <= set(VERBS)
    assert "BULLSWARM_DEPTH" in words


def test_the_skill_teaches_the_arguments_that_the_tools_take() -> None:
    arguments = pytest.importorskip("bullswarm_server.mcp.arguments")
    run, runs = arguments.RunArguments.model_fields, arguments.RunsArguments.model_fields
    words = set(re.findall(r"`([a-z_]+)`", SKILL))
    assert {"lane", "prompt", "cwd", "pool", "effort", "run_id", "idempotency_key", "avoid_pools"} <= words & set(run)
    assert {"op", "run_id"} <= words & set(runs)
    operations = set(get_args(runs["op"].annotation))
    of_workflows = {"rerun", "restart", "accept", "continue", "pause", "resume", "steer", "add"}
    assert {"list", "show", "result", "wait", "stop"} | of_workflows == operations
    assert operations <= words


def test_the_awareness_text_is_four_short_rules() -> None:
    assert len([line for line in AWARENESS.splitlines() if line.startswith("- ")]) == 4
    assert len(AWARENESS) < 700
    assert "BULLSWARM_DEPTH" in AWARENESS
    assert "<!--" not in AWARENESS


# --- the commands


def test_the_command_beside_this_python_is_taken_before_the_one_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = executable(tmp_path / "venv" / "bullswarm")
    on_path = executable(tmp_path / "bin" / "bullswarm")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "python"))
    assert installed_command("bullswarm", {"PATH": str(on_path.parent)}) == str(beside)
    beside.unlink()
    assert installed_command("bullswarm", {"PATH": str(on_path.parent)}) == str(on_path)
    assert installed_command("bullswarm", {"PATH": str(tmp_path)}) is None


def test_a_passing_copy_and_no_copy_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passing = executable(tmp_path / "uv" / "archive-v0" / "x1" / "bin" / "bullswarm")
    monkeypatch.setattr(sys, "executable", str(passing.parent / "python"))
    with pytest.raises(UsageError, match="a passing copy that uvx made"):
        find_sources({"PATH": "/nowhere"})
    monkeypatch.setattr(sources, "installed_command", lambda name, environ: None)
    with pytest.raises(UsageError, match="the bullswarm command is not installed"):
        find_sources({})


def test_a_command_with_a_space_stays_one_word() -> None:
    template = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "bullswarm-hook claude Stop"}]}]}}'
    plugin = 'const HOOK = "bullswarm-hook"\n'
    given = Sources("/x", "/my apps/bullswarm-hook", "", {"claude.json": template, "opencode.js": plugin})
    hooks = given.hooks("claude")
    assert hooks is not None
    assert hooks["Stop"][0]["hooks"][0]["command"] == "'/my apps/bullswarm-hook' claude Stop"
    assert given.plugin("opencode") == 'const HOOK = "/my apps/bullswarm-hook"\n'
    without = Sources("/x", None, "", {"claude.json": template, "opencode.js": plugin})
    assert without.hooks("claude") is None
    assert without.plugin("opencode") is None
