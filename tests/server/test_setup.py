"""`bullswarm setup` records what was found, once, and never over an earlier decision."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.pools.settings import Settings
from bullswarm_core.store.home import Home
from bullswarm_server.cli import setup
from bullswarm_server.cli.context import CommandContext


@pytest.fixture
def context(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandContext:
    for name in ("codex", "opencode", "grok"):
        (tmp_path / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    environ = {"HOME": str(own_home), "PATH": str(tmp_path), "XAI_API_KEY": "xai-123456789"}
    return CommandContext(Home(), environ, io.StringIO(), io.StringIO())


def written(context: CommandContext) -> str:
    assert isinstance(context.out, io.StringIO)
    return context.out.getvalue()


def as_json(context: CommandContext) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(written(context))
    return document


def test_without_yes_and_without_a_terminal_it_shows_and_writes_nothing(context: CommandContext) -> None:
    assert setup.run([], context) == 1
    assert "codex" in written(context)
    assert "not signed in · run codex login" in written(context)
    assert not context.home.state_file.exists()


def test_yes_records_the_pools_that_can_work(context: CommandContext) -> None:
    assert setup.run(["--yes", "--json"], context) == 0
    document = as_json(context)
    assert document["schemaVersion"] == "bullswarm.setup.v1"
    assert document["recorded"] == ["grok", "opencode"]
    assert document["configured"] is True
    pools = {entry["pool"]: entry for entry in document["pools"]}
    assert pools["codex"]["signedIn"] is False
    assert pools["grok"]["billing"] == "api-key"
    assert "xai-123456789" not in written(context)
    assert set(Settings.load(context.home).pools) == {"grok", "opencode"}


def test_only_what_is_found_is_called_found(context: CommandContext, tmp_path: Path) -> None:
    assert setup.run(["--yes"], context) == 0
    found, _, missing = written(context).partition("Not found:\n")
    assert found.startswith("Found:\n  codex")
    assert "claude-code" not in found and missing.startswith("  claude-code  claude was not found on PATH")


def test_what_is_recorded_now_is_not_told_as_your_earlier_word(context: CommandContext) -> None:
    assert setup.run(["--yes"], context) == 0
    assert "(turned on)" in written(context) and "you turned it" not in written(context)
    assert setup.run(["--yes"], context) == 0
    assert "(you turned it on)" in written(context)


def test_an_earlier_decision_and_unknown_keys_stay(context: CommandContext) -> None:
    context.home.ensure()
    context.home.state_file.write_text(
        '{"version": 1, "pools": {"grok": {"enabled": false}}, "theirs": 1}', encoding="utf-8"
    )
    assert setup.run(["--yes"], context) == 0
    assert not Settings.load(context.home).enabled("grok")
    assert json.loads(context.home.state_file.read_text(encoding="utf-8"))["theirs"] == 1
    assert "you turned it off" in written(context)


def test_with_nothing_installed_it_says_what_to_do(context: CommandContext, tmp_path: Path) -> None:
    bare = CommandContext(context.home, {"HOME": context.environ["HOME"], "PATH": "/nowhere"}, context.out, context.err)
    assert setup.run(["--yes"], bare) == 0
    assert "Install an agent CLI" in written(context) and "Found:" not in written(context)
    assert written(context).startswith("No agent CLI was found on PATH.\nNot found:\n  claude-code")


@pytest.mark.parametrize(("answer", "code"), [("\n", 0), ("y\n", 0), ("n\n", 1), ("", 1)])
def test_on_a_terminal_it_asks(
    context: CommandContext, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    terminal = io.StringIO(answer)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    assert setup.run([], context) == code
    assert "Record this? [Y/n]" in written(context)
    assert context.home.state_file.exists() is (code == 0)


def test_an_unknown_flag_is_exit_2(context: CommandContext) -> None:
    with pytest.raises(SystemExit) as caught:
        setup.run(["--ye"], context)
    assert caught.value.code == 2
