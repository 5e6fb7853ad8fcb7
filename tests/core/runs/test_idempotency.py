"""One key, one run: what is sent again comes back as the run that it started."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest

from bullswarm_core.errors import UsageError
from bullswarm_core.runs.events import RunCreated
from bullswarm_core.runs.journal import KEY_LIFE, Journal, new_run_id
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    connection = open_database(Home(tmp_path / "state"))
    yield Journal(connection)
    connection.close()


def asked(key: str | None, *, prompt: str = "Explain the parser.", cwd: str = "/p") -> RunCreated:
    step = {"id": "run", "prompt": prompt, "lane": "analyze"}
    return RunCreated(
        run_id=new_run_id(NOW),
        short_id="",
        kind="run",
        goal=prompt,
        cwd=cwd,
        program={"steps": [step]},
        idempotency_key=key,
    )


def test_the_same_key_gives_the_same_run(journal: Journal) -> None:
    first = journal.create(asked("k"), at=NOW)
    again = journal.create(asked("k"), at=NOW + timedelta(hours=1))
    assert (again.run_id, again.short_id) == (first.run_id, first.short_id)
    assert len(journal.rows()) == 1
    assert len(journal.read(first.run_id)) == 1


def test_other_keys_and_no_key_give_other_runs(journal: Journal) -> None:
    runs = {journal.create(asked(key), at=NOW).run_id for key in ("k", "l", None, None)}
    assert len(runs) == 4


@pytest.mark.parametrize("other", [asked("k", prompt="Delete the parser."), asked("k", cwd="/q")])
def test_a_key_never_hands_out_the_verdict_of_other_work(journal: Journal, other: RunCreated) -> None:
    first = journal.create(asked("k"), at=NOW)
    with pytest.raises(UsageError, match=f"belongs to run {first.short_id}"):
        journal.create(other, at=NOW)
    assert len(journal.rows()) == 1


def test_a_key_is_free_again_after_a_day_and_the_old_run_stays(journal: Journal) -> None:
    first = journal.create(asked("k"), at=NOW)
    second = journal.create(asked("k"), at=NOW + KEY_LIFE)
    assert second.run_id != first.run_id
    assert journal.of_key("k", now=NOW + KEY_LIFE) == second.run_id
    assert journal.state(first.run_id).created.idempotency_key == "k"


def test_many_at_once_start_one_run(tmp_path: Path) -> None:
    home = Home(tmp_path / "state")
    open_database(home).close()
    found: list[str] = []

    def create() -> None:
        connection = open_database(home)
        found.append(Journal(connection).create(asked("k"), at=NOW).run_id)
        connection.close()

    threads = [Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
