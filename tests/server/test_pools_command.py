"""`bullswarm pools`: its lines, the JSON document, supposed meters, and nothing written but the cache."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.dispatch.ledger import Booking, book
from bullswarm_core.errors import StateError, UsageError
from bullswarm_core.pools import Window
from bullswarm_core.pools.labels import set_label
from bullswarm_core.pools.settings import update_settings
from bullswarm_core.process.identity import current
from bullswarm_core.quota.reading import write_reading
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home, write_json
from bullswarm_server.cli import pools
from bullswarm_server.cli.context import CommandContext

Ask = Callable[..., str]


@pytest.fixture
def context(own_home: Path, tmp_path: Path) -> CommandContext:
    """A machine with two agent CLIs, codex signed in by key and opencode without a sign-in."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("codex", "opencode"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    environ = {"HOME": str(own_home), "PATH": str(folder), "CODEX_API_KEY": "secret-key"}
    return CommandContext(Home(own_home / ".bullswarm"), environ, io.StringIO(), io.StringIO())


@pytest.fixture
def ask(context: CommandContext) -> Ask:
    def call(*words: str) -> str:
        assert isinstance(context.out, io.StringIO)
        context.out.seek(0)
        context.out.truncate()
        assert pools.run(list(words), context) == 0
        return context.out.getvalue()

    return call


def line_of(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.split(" ", 1)[0] == name)


def row_of(text: str, pool_id: str) -> dict[str, Any]:
    document = json.loads(text)
    assert document["schemaVersion"] == "bullswarm.pools.v1"
    return next(row for row in document["pools"] if row["pool"] == pool_id)


def test_every_pool_has_a_line_and_a_key_is_said_to_be_billed(ask: Ask) -> None:
    text = ask()
    assert line_of(text, "codex").startswith("codex")
    command = "bullswarm strategy set-provider codex --allow-billing on"
    assert line_of(text, "codex").endswith(
        f"unmetered surplus=- inflight=0 BILLING-GATED (to allow it: {command}) billing=api-key"
    )
    assert line_of(text, "opencode").endswith("unmetered surplus=0 inflight=0 ready")
    assert "claude was not found on PATH" in line_of(text, "claude-code")
    assert line_of(text, "echo").endswith("ready")
    assert "secret-key" not in text


def test_a_key_that_the_person_allowed_is_ready_and_still_said_to_be_billed(ask: Ask, context: CommandContext) -> None:
    allow_billing(context.home)
    assert line_of(ask(), "codex").endswith("unmetered surplus=- inflight=0 ready billing=api-key")


def allow_billing(home: Home) -> None:
    update_settings(home, lambda state: state.setdefault("pools", {}).update(codex={"allowBilling": True}))


def test_a_meter_file_paces_the_pool(ask: Ask, context: CommandContext) -> None:
    allow_billing(context.home)
    now = datetime.now(UTC)
    reset = now + timedelta(days=7 * (1 - 0.656))
    weekly = Window("weekly", 30, reset, captured_at=now)
    burst = Window("5h", 15, now + timedelta(minutes=300 * 0.56), captured_at=now)
    write_reading(context.home, "codex", [weekly, burst], captured_at=now - timedelta(minutes=10))
    line = line_of(ask(), "codex")
    assert "weekly used 30% elapsed 65.6% [cache] surplus=35.6 inflight=0 5h=15% (44% elapsed) ready" in line
    row = row_of(ask("--json"), "codex")
    assert (row["pace"], row["pacingWindow"], row["resetSource"]) == (35.6, "weekly", "provider")
    assert row["billing"] == "api-key"


def test_a_supposed_meter_is_shown_and_not_kept(ask: Ask, context: CommandContext) -> None:
    allow_billing(context.home)
    text = ask("--meter", "codex:weekly=30%@+2d", "--meter", "codex:5h=100@+1h")
    assert "weekly used 30% elapsed 71.4% [live] surplus=41.4" in line_of(text, "codex")
    assert "BURST-GATED (5h limit, resets in 1h" in line_of(text, "codex")
    assert "unmetered" in line_of(ask(), "codex")


def test_decisions_labels_and_load_are_shown(ask: Ask, context: CommandContext) -> None:
    set_label(context.home, "opencode", "oc", ["opencode", "codex"])
    update_settings(context.home, lambda state: state.update(pools={"codex": {"enabled": False}}))
    connection = open_database(context.home)
    now = datetime.now(UTC)
    book(connection, Booking("wf-1", "run", "run-1", "opencode", "build", "low", now, current(), expected_minutes=5.0))
    connection.close()
    text = ask()
    assert line_of(text, "codex").split(" billing=")[0].endswith("disabled")
    assert "inflight=1" in line_of(text, "oc")
    assert not any(line.startswith("opencode") for line in text.splitlines())
    row = row_of(ask("--json"), "opencode")
    assert row["poolLabel"] == "oc"
    assert row["inflight"]["count"] == 1
    assert row["inflight"]["records"][0]["expectedMinutes"] == 5.0
    assert row_of(ask("--json"), "codex")["poolLabel"] is None


def test_a_declared_reset_dates_an_undated_reading(ask: Ask, context: CommandContext) -> None:
    now = datetime.now(UTC)
    write_reading(context.home, "codex", [Window("weekly", 30, captured_at=now)], captured_at=now)
    assert row_of(ask("--json"), "codex")["resetSource"] is None
    anchor = (now - timedelta(days=700 - 2)).isoformat()
    plan = {"codex": {"quotaWindow": "weekly", "resetsAt": anchor}}
    update_settings(context.home, lambda state: state.update(strategy={"subscriptions": plan}))
    row = row_of(ask("--json"), "codex")
    assert row["resetSource"] == "declared"
    assert row["pacingElapsedPct"] == 71.4


def test_nothing_but_the_cache_is_written(ask: Ask, context: CommandContext) -> None:
    ask()
    ask("--json")
    assert not context.home.root.exists() or {path.name for path in context.home.root.iterdir()} <= {"cache"}


def test_a_broken_provider_is_reported_on_itself(ask: Ask, context: CommandContext) -> None:
    write_json(context.home.providers_dir / "mine" / "connector.json", {"name": 3})
    document = json.loads(ask("--json"))
    assert [problem["name"] for problem in document["problems"]] == ["mine"]
    assert "codex" in {row["pool"] for row in document["pools"]}
    ask()
    assert isinstance(context.err, io.StringIO)
    assert "provider mine: " in context.err.getvalue()


@pytest.mark.parametrize("words", [["--meter", "codex:5h"], ["--meter", "nobody:5h=1"]])
def test_a_bad_supposition_is_a_usage_error(ask: Ask, words: list[str]) -> None:
    with pytest.raises(UsageError):
        ask(*words)


def test_an_unknown_flag_is_refused(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        ask("--jso")
    assert caught.value.code == 2
    assert "--jso" in capsys.readouterr().err


def test_a_damaged_state_file_stops_it_with_the_line(ask: Ask, context: CommandContext) -> None:
    context.home.ensure()
    context.home.state_file.write_text('{"pools":\n oops}')
    with pytest.raises(StateError, match=r"state\.json line 2"):
        ask()


def test_pools_label_names_a_pool(ask: Ask) -> None:
    assert ask("label", "codex", "cx") == "codex is shown as cx\n"
    assert line_of(ask(), "cx")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("resum", "did you mean resume[?] "),
        ("lable", "did you mean label[?] "),
        ("hsitory", "did you mean history[?] "),
        ("codex", ""),
    ],
)
def test_a_word_that_pools_does_not_take_is_told_with_those_that_it_does(ask: Ask, word: str, meant: str) -> None:
    with pytest.raises(
        UsageError, match=f'takes no word "{word}" · {meant}bullswarm pools alone.*label, history and resume'
    ):
        ask(word, "codex")
