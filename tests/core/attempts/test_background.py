"""Work beside a kernel's loop: begun at once, looked at now and then, with a connection that only reads."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from bullswarm_core.attempts.background import Aside
from bullswarm_core.errors import StorageError
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    open_database(home).close()
    return home


def test_it_is_done_when_its_work_is_and_wakes_whoever_waits(home: Home) -> None:
    go, woken = threading.Event(), threading.Event()

    def work(connection: sqlite3.Connection) -> int:
        go.wait()
        return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0]) + 41

    aside = Aside(work, home=home, name="work", wake=woken.set)
    assert not aside.done and not woken.is_set()
    go.set()
    assert aside.result() == 41 and aside.done
    assert woken.wait(60)


def test_what_the_work_raises_is_raised_to_whoever_asks_for_its_result(home: Home) -> None:
    def work(_: sqlite3.Connection) -> None:
        raise LookupError("none there")

    with pytest.raises(LookupError, match="none there"):
        Aside(work, home=home, name="work", wake=lambda: None).result()


def test_its_connection_writes_nothing(home: Home) -> None:
    aside = Aside(lambda own: own.execute("DELETE FROM runs"), home=home, name="work", wake=lambda: None)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        aside.result()


def test_a_home_that_was_deleted_is_not_brought_back(tmp_path: Path) -> None:
    home = Home(tmp_path / "gone")
    with pytest.raises(StorageError, match="was deleted"):
        Aside(lambda _: None, home=home, name="work", wake=lambda: None).result()
    assert not home.root.exists()
