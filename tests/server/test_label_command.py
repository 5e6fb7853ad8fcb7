"""`bullswarm label`: sets, shows, lists and clears what people see instead of a pool id."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bullswarm_core.errors import UsageError
from bullswarm_core.store.home import Home, read_json
from bullswarm_server.cli import label
from bullswarm_server.cli.context import CommandContext

Ask = Callable[..., str]


@pytest.fixture
def context(own_home: Path, tmp_path: Path) -> CommandContext:
    (tmp_path / "codex").write_text("#!/bin/sh\n")
    (tmp_path / "codex").chmod(0o755)
    environ = {"HOME": str(own_home), "PATH": str(tmp_path)}
    return CommandContext(Home(own_home / ".bullswarm"), environ, io.StringIO(), io.StringIO())


@pytest.fixture
def ask(context: CommandContext) -> Ask:
    def call(*words: str) -> str:
        assert isinstance(context.out, io.StringIO)
        context.out.seek(0)
        context.out.truncate()
        assert label.run(list(words), context) == 0
        return context.out.getvalue()

    return call


def test_a_label_is_set_shown_listed_and_cleared(ask: Ask, context: CommandContext) -> None:
    assert ask("codex", "cx") == "codex is shown as cx\n"
    assert ask("cx") == "codex cx\n"
    assert ask("--list") == ask() == "codex  cx\n"
    assert read_json(context.home.labels_file)["labels"] == {"codex": "cx"}
    assert ask("cx", "--clear") == "codex is shown by its id (its label was cx)\n"
    assert ask("codex", "--clear") == "codex had no label\n"
    assert ask("codex") == "codex has no label\n"
    assert ask("--list") == ""


def test_the_machine_form_keeps_the_id(ask: Ask) -> None:
    expected = {"schemaVersion": "bullswarm.labels.v1", "labels": [{"pool": "codex", "poolLabel": "cx"}]}
    assert json.loads(ask("codex", "cx", "--json")) == expected
    assert json.loads(ask("--list", "--json")) == expected
    assert json.loads(ask("cx", "--json")) == expected
    assert json.loads(ask("cx", "--clear", "--json"))["labels"] == [{"pool": "codex", "poolLabel": None}]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nobody", "x"], 'unknown pool "nobody" — bullswarm pools lists them'),
        (["nobody"], 'unknown pool "nobody" — bullswarm pools lists them'),
        (["codex", ""], "pool label must be non-empty and contain no spaces"),
        (["codex", "echo"], 'pool label "echo" is another pool\'s id'),
        (["--clear"], "--clear needs a pool · bullswarm label <pool> --clear"),
        (["codex", "cx", "--clear"], "--clear takes no label · bullswarm label codex --clear"),
        (["codex", "--list"], '--list takes no pool, and "codex" was given · bullswarm label --list'),
    ],
)
def test_a_wrong_call_changes_nothing(ask: Ask, context: CommandContext, words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        ask(*words)
    assert str(caught.value) == message
    assert not context.home.labels_file.exists()


@pytest.mark.parametrize("words", [["grok"], ["grok", "g"], ["grok", "--clear"]])
def test_a_cli_that_is_not_installed_is_named_as_such(ask: Ask, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        ask(*words)
    assert str(caught.value) == 'unknown pool "grok" — bullswarm pools lists them · grok was not found on PATH'
