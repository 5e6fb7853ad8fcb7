"""`bullswarm assignments`: what is in flight, across every process, without changing the ledger."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bullswarm_core.dispatch.ledger import Booking, book
from bullswarm_core.pools.labels import set_label
from bullswarm_core.process.identity import current
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home
from bullswarm_server.cli import assignments
from bullswarm_server.cli.context import CommandContext


@pytest.fixture
def context(own_home: Path) -> CommandContext:
    return CommandContext(Home(own_home / ".bullswarm"), {}, io.StringIO(), io.StringIO())


def ask(context: CommandContext, *words: str) -> str:
    assert isinstance(context.out, io.StringIO)
    context.out.seek(0)
    context.out.truncate()
    assert assignments.run(list(words), context) == 0
    return context.out.getvalue()


def test_an_empty_ledger_makes_no_database(context: CommandContext) -> None:
    assert ask(context) == ""
    assert isinstance(context.err, io.StringIO)
    assert context.err.getvalue() == "nothing is in flight\n"
    assert json.loads(ask(context, "--json"))["assignments"] == []
    assert not context.home.root.exists()


def test_living_attempts_are_listed_and_dead_ones_are_left_out_but_kept(context: CommandContext) -> None:
    set_label(context.home, "codex", "cx", ["codex"])
    connection = open_database(context.home)
    begun = datetime.now(UTC) - timedelta(minutes=2)
    living = Booking(
        "wf-1", "run", "run-1", "codex", "build", "high", begun, current(),
        model="gpt", expected_minutes=10.0, expected_source="default", cwd="/repo\x1b[2J",
    )  # fmt: skip
    book(connection, living)
    book(connection, replace(living, attempt="run-2", kernel=replace(current(), started="1")))
    text = ask(context)
    assert text.startswith("cx build/high model=gpt 2m of 10m run=wf-1 attempt=run-1 /repo")
    assert "\x1b" not in text
    assert len(text.splitlines()) == 1
    (row,) = json.loads(ask(context, "--json"))["assignments"]
    assert (row["pool"], row["poolLabel"], row["model"]) == ("codex", "cx", "gpt")
    assert (row["elapsedMinutes"], row["expectedMinutes"]) == (2.0, 10.0)
    assert 7.9 < row["remainingMinutes"] <= 8.0
    assert connection.execute("SELECT count(*) FROM inflight").fetchone()[0] == 2
    connection.close()
