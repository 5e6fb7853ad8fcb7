"""`bullswarm strategy`: each decision is written as the file of an older program knows it, shown, and undone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.errors import UsageError
from bullswarm_core.pools.labels import set_label
from bullswarm_core.pools.settings import Settings
from bullswarm_core.store.home import Home, read_json, write_json
from bullswarm_server.cli import strategy
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
        assert strategy.run(list(words), context) == 0
        return context.out.getvalue()

    return call


def state(context: CommandContext) -> dict[str, Any]:
    document: dict[str, Any] = read_json(context.home.state_file)
    return document


def test_show_without_decisions_writes_nothing(ask: Ask, context: CommandContext) -> None:
    text = ask("show")
    assert text.startswith("you decided nothing yet: ")
    for limit in (
        "policy pace: the pool",
        "inflight-penalty 3: points",
        "depth-limit 2: workers",
        "total-limit 1000: ",
    ):
        assert f"\n{limit}" in text
    assert not json.loads(ask("show", "--json"))["configured"]
    assert not context.home.root.exists()


def test_a_pool_is_turned_off_and_on_and_its_sandbox_opened(ask: Ask, context: CommandContext) -> None:
    set_label(context.home, "codex", "cx", ["codex"])
    assert "pool cx off sandbox=workspace\n" in ask("set-provider", "cx", "off", "--yes")
    assert "pool cx off sandbox=full inherits-config\n" in ask(
        "set-provider", "codex", "--sandbox", "full", "--inherits-config", "on", "--yes"
    )
    ask("set-provider", "codex", "on", "--yes")
    assert state(context)["pools"] == {"codex": {"enabled": True, "sandbox": "full", "workerInheritsConfig": True}}


def test_a_rung_is_set_says_what_it_takes_away_and_can_be_cleared(ask: Ask, context: CommandContext) -> None:
    text = ask("set-rung", "codex", "high", "--model", "gpt-5", "--reasoning", "xhigh", "--free", "no", "--yes")
    assert "rung codex high: gpt-5 reasoning=xhigh not free\n" in text
    assert "rung codex low: no model, the pool is left out\n" in text
    assert isinstance(context.err, io.StringIO)
    assert "left out on the tiers without a rung: medium, low" in context.err.getvalue()
    ask("set-rung", "codex", "low", "--model", "default", "--yes")
    assert state(context)["strategy"]["rungs"]["codex"] == {
        "high": {"model": "gpt-5", "reasoning": "xhigh", "free": False},
        "low": {"model": None, "reasoning": None},
    }
    assert "rung codex low: the default of its CLI reasoning=low (its connector's)\n" in ask("show")
    ask("clear-rungs", "codex", "--yes")
    assert Settings.load(context.home).rungs == {}


def test_assignments_subscriptions_and_exclusions(ask: Ask, context: CommandContext) -> None:
    assert "assigned high: codex gpt\n" in ask("assign", "high", "--pool", "codex", "--model", "gpt")
    ask("set-subscription", "codex", "--quota-window", "monthly", "--resets-at", "2026-01-31T10:00:00+02:00")
    ask("exclude-model", "gpt-5")
    ask("exclude-model", "gpt-5")
    assert state(context)["strategy"] == {
        "assignments": {"high": {"pool": "codex", "model": "gpt", "source": "user"}},
        "subscriptions": {"codex": {"quotaWindow": "monthly", "resetsAt": "2026-01-31T08:00:00Z"}},
        "excludedModels": ["gpt-5"],
    }
    document = json.loads(ask("show", "--json"))
    assert document["schemaVersion"] == "bullswarm.strategy.v1"
    assert document["subscriptions"]["codex"] == {
        "quotaWindow": "monthly",
        "resetsAt": "2026-01-31T08:00:00Z",
        "plan": None,
        "reservePct": 0,
    }
    assert document["excludedModels"] == ["gpt-5"]
    ask("clear-assignment", "high")
    ask("include-model", "gpt-5")
    ask("set-subscription", "codex", "--quota-window", "unknown", "--resets-at", "unknown")
    settings = Settings.load(context.home)
    assert (settings.assignments, settings.excluded_models) == ({}, frozenset())
    assert settings.subscriptions["codex"].resets_at is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set-provider", "codex", "--yes"], "nothing to set"),
        (["set-provider", "nobody", "off", "--yes"], 'unknown pool "nobody" — bullswarm pools lists them'),
        (
            ["set-rung", "codex", "high", "--model", "m", "--reasoning", "giant", "--yes"],
            'unknown reasoning level "giant"',
        ),
        (["set-subscription", "codex"], "nothing to set"),
        (["set-subscription", "codex", "--resets-at", "soon"], '--resets-at "soon" is not an ISO-8601 time'),
        (["assign", "high", "--pool", "nobody"], 'unknown pool "nobody"'),
        (
            ["set-provider", "grok", "off"],
            'unknown pool "grok" — bullswarm pools lists them · grok was not found on PATH',
        ),
    ],
)
def test_a_wrong_call_changes_nothing(ask: Ask, context: CommandContext, words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        ask(*words)
    assert str(caught.value).startswith(message)
    assert not context.home.state_file.exists()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["sho"],
        ["show", "--jso"],
        ["assign", "huge", "--pool", "codex"],
        ["set-provider", "codex", "maybe"],
        ["set-rung", "codex", "high"],
        ["set-rung", "codex", "high", "--model", " "],
        ["exclude-model", ""],
        ["set-subscription", "codex", "--quota-window", "yearly"],
        ["set-subscription", "codex", "--reserve", "101"],
        ["set-subscription", "codex", "--reserve", "nan"],
        ["set-subscription", "codex", "--reserve", "-1"],
        ["set-subscription", "codex", "--plan", ""],
        ["set-provider", "codex", "--allow-billing", "maybe"],
    ],
)
def test_bad_arguments_exit_2(ask: Ask, context: CommandContext, words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        ask(*words)
    assert caught.value.code == 2
    assert not context.home.root.exists()


@pytest.mark.parametrize(
    ("pool", "reserve", "told"), [("echo", "20", True), ("echo", "0", False), ("codex", "20", False)]
)
def test_a_reserve_that_nobody_can_measure_is_told(
    ask: Ask, context: CommandContext, pool: str, reserve: str, told: bool
) -> None:
    ask("set-subscription", pool, "--reserve", reserve)
    assert isinstance(context.err, io.StringIO)
    assert ("echo has no meter" in context.err.getvalue()) is told


CHANGES = [
    ("set-provider codex off", "codex is now off", "codex is off already"),
    (
        "set-provider codex --sandbox full --inherits-config on",
        "codex is now sandbox full, inherits-config on",
        "codex is sandbox full, inherits-config on already",
    ),
    ("set-provider codex --allow-billing on", "codex is now allow-billing on", "codex is allow-billing on already"),
    (
        "set-subscription codex --plan plus --reserve 20",
        "the plan of codex has name plus, reserve 20 %",
        "the plan of codex has name plus, reserve 20 % already",
    ),
    (
        "set-rung codex high --model gpt-5",
        "codex runs gpt-5 on the high tier, reasoning high (its connector's)",
        "codex runs gpt-5 on the high tier already",
    ),
    (
        "set-rung codex high --model gpt-5 --reasoning low",
        "codex runs gpt-5 on the high tier, reasoning low; it was high (its connector's)",
        "codex runs gpt-5 on the high tier already",
    ),
    (
        "assign high --pool codex --model gpt-5",
        "the high tier is assigned to codex with gpt-5, where it can take the task",
        "the high tier is assigned to codex with gpt-5 already",
    ),
    (
        "set-subscription codex --quota-window monthly",
        "the plan of codex has window monthly",
        "the plan of codex has window monthly already",
    ),
    (
        "exclude-model gpt-5",
        "the model gpt-5 is excluded: it is never run, whatever names it",
        "the model gpt-5 is excluded already",
    ),
]
UNDONE = [
    (
        "set-rung codex high --model m",
        "clear-rungs codex",
        "codex is back to the models of its connector on every tier",
        "codex has no rungs of yours",
    ),
    (
        "assign high --pool codex",
        "clear-assignment high",
        "the high tier is assigned to no pool any more (it was codex)",
        "the high tier is assigned to no pool",
    ),
    ("exclude-model m", "include-model m", "the model m may be run again", "the model m is not excluded"),
]


@pytest.mark.parametrize("agreed", ["", " --yes"])
@pytest.mark.parametrize(("words", "done", "nothing"), CHANGES)
def test_every_change_is_made_at_once_and_told(
    ask: Ask, context: CommandContext, words: str, done: str, nothing: str, agreed: str
) -> None:
    assert ask(*(words + agreed).split()).splitlines()[0] == done
    before = context.home.state_file.read_bytes()
    assert ask(*(words + agreed).split()).splitlines()[0] == f"nothing to do: {nothing}"
    assert context.home.state_file.read_bytes() == before


@pytest.mark.parametrize("agreed", ["", " --yes"])
@pytest.mark.parametrize(("first", "words", "done", "nothing"), UNDONE)
def test_what_is_undone_is_told_and_nothing_is_written_where_there_is_nothing(
    ask: Ask, context: CommandContext, first: str, words: str, done: str, nothing: str, agreed: str
) -> None:
    assert ask(*(words + agreed).split()).splitlines()[0] == f"nothing to do: {nothing}"
    assert not context.home.state_file.exists()
    ask(*first.split())
    assert ask(*(words + agreed).split()).splitlines()[0] == done
    assert ask(*(words + agreed).split()).splitlines()[0] == f"nothing to do: {nothing}"


def test_the_machine_form_keeps_what_was_done_apart(ask: Ask, context: CommandContext) -> None:
    set_label(context.home, "codex", "cx", ["codex"])
    assert json.loads(ask("set-provider", "cx", "off", "--json"))["pools"]["codex"]["enabled"] is False
    assert isinstance(context.err, io.StringIO) and context.err.getvalue() == "cx is now off\n"


def test_a_level_that_changes_back_is_told(ask: Ask) -> None:
    ask("set-rung", "codex", "high", "--model", "m", "--reasoning", "default")
    text = ask("set-rung", "codex", "high", "--model", "m")
    assert text.splitlines()[0].endswith(", reasoning high (its connector's); it was none passed")


def test_a_pool_that_went_away_can_still_be_turned_off(ask: Ask, context: CommandContext) -> None:
    write_json(context.home.state_file, {"version": 1, "pools": {"grok": {"enabled": True}}, "incumbents": {"a": "b"}})
    ask("set-provider", "grok", "off", "--yes")
    assert state(context) == {"version": 1, "pools": {"grok": {"enabled": False}}, "incumbents": {"a": "b"}}
