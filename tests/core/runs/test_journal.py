"""The journal keeps every fact in order, finds runs by what people type, and survives what it does not know."""

import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bullswarm_core.errors import DamagedRunError, StateError, UnknownNameError
from bullswarm_core.runs.attempt_result import LaunchRecord
from bullswarm_core.runs.events import (
    AttemptLaunched,
    AttemptPicked,
    KernelStarted,
    RunCreated,
    RunFinished,
    StopRequested,
)
from bullswarm_core.runs.fold import fold
from bullswarm_core.runs.journal import SHORT_ID_LENGTH, Journal, new_run_id, new_short_id
from bullswarm_core.store.database import open_database, transaction
from bullswarm_core.store.home import Home

NOW = datetime(2026, 11, 30, 6, 0, tzinfo=UTC)


@pytest.fixture
def connection(own_home: Path) -> Iterator[sqlite3.Connection]:
    connection = open_database(Home(own_home / ".bullswarm"))
    yield connection
    connection.close()


def created(run_id: str, *, caller: str | None = None, root: str | None = None) -> RunCreated:
    program = {"steps": [{"id": "run", "prompt": "p", "lane": "analyze"}]}
    return RunCreated(
        run_id=run_id, short_id="", kind="run", goal="g", cwd="/", program=program, caller=caller, root=root
    )


def test_events_come_back_in_order_and_fold(connection: sqlite3.Connection) -> None:
    journal = Journal(connection)
    made = journal.create(created("wf-a"), at=NOW)
    journal.append("wf-a", [KernelStarted({"pid": 1}), StopRequested(by="me")], at=NOW + timedelta(seconds=1))
    assert [event.seq for event in journal.read("wf-a")] == [1, 2, 3]
    assert [event.type for event in journal.read("wf-a", after=2)] == ["run.stop-requested"]
    state = journal.state("wf-a")
    assert state.created == made
    assert state.stop_requested == StopRequested(by="me")
    assert state.finished is None
    assert journal.last_seq("wf-a") == state.seq == 3


def test_finishing_shows_in_the_list(connection: sqlite3.Connection) -> None:
    journal = Journal(connection)
    journal.create(created("wf-a"), at=NOW)
    journal.create(created("wf-b"), at=NOW + timedelta(seconds=1))
    journal.append("wf-a", [RunFinished("completed", {"ok": True})], at=NOW + timedelta(seconds=2))
    assert [(row.run_id, row.outcome) for row in journal.rows()] == [("wf-b", None), ("wf-a", "completed")]
    assert [row.run_id for row in journal.rows(unfinished_only=True)] == ["wf-b"]
    assert [row.run_id for row in journal.rows(limit=1)] == ["wf-b"]


def test_the_newer_of_two_runs_of_one_second_is_the_newest(connection: sqlite3.Connection) -> None:
    journal = Journal(connection)
    journal.create(created("wf-b"), at=NOW)
    journal.create(created("wf-a"), at=NOW + timedelta(milliseconds=120))
    assert [row.run_id for row in journal.rows()] == ["wf-a", "wf-b"]
    assert journal.find("last") == "wf-a"


def test_a_run_that_ended_before_wrote_nothing_since(connection: sqlite3.Connection) -> None:
    journal = Journal(connection)
    journal.create(created("wf-a"), at=NOW - timedelta(minutes=2))
    picked = AttemptPicked("run", 1, "p", "p", None, None, "build", "low", "", {}, booking=1, tree="/t")
    journal.append("wf-a", [picked, AttemptLaunched("run", 1, {}, LaunchRecord())], at=NOW - timedelta(minutes=1))
    journal.append("wf-a", [RunFinished("completed", {})], at=NOW)
    assert journal.others_wrote("/t", run_id="wf-b", since=NOW)
    assert not journal.others_wrote("/t", run_id="wf-b", since=NOW + timedelta(milliseconds=120))


def test_an_unknown_event_is_kept_and_skipped(connection: sqlite3.Connection) -> None:
    journal = Journal(connection)
    journal.create(created("wf-a"), at=NOW)
    connection.execute("INSERT INTO events VALUES ('wf-a', 2, '2027-01-01T00:00:00Z', 'step.dreamt', 9, '{\"a\": 1}')")
    connection.execute("INSERT INTO events VALUES ('wf-a', 3, '2027-01-01T00:00:00Z', 'run.stop-requested', 7, '{}')")
    journal.append("wf-a", [StopRequested(by="me")], at=NOW)
    state = journal.state("wf-a")
    assert state.skipped == 2
    assert state.stop_requested is not None
    assert state.seq == 4


def test_a_damaged_event_is_named(connection: sqlite3.Connection) -> None:
    journal = Journal(connection)
    journal.create(created("wf-a"), at=NOW)
    connection.execute("INSERT INTO events VALUES ('wf-a', 2, '2027-01-01T00:00:00Z', 'run.finished', 1, '{}')")
    with pytest.raises(StateError, match=r"event 2 of run wf-a is damaged \(run.finished\): RunFinished lacks outcome"):
        journal.state("wf-a")


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("judgement", {"changedFiles": 5}, "judgement.changedFiles must be a list, not 5"),
        ("judgement", None, "judgement must be a JSON object, not NoneType"),
        ("meta", {"wallSec": "long"}, "meta.wallSec must be a number, not 'long'"),
    ],
)
def test_a_damaged_result_names_its_run_its_event_and_the_key(
    connection: sqlite3.Connection, part: str, value: object, words: str
) -> None:
    journal = Journal(connection)
    journal.create(created("wf-a"), at=NOW)
    payload = {
        "step": "run",
        "ordinal": 1,
        "ok": True,
        "why": "w",
        "failureKind": None,
        "judgement": {},
        "meta": {},
        part: value,
    }
    connection.execute(
        "INSERT INTO events VALUES ('wf-a', 2, '2027-01-01T00:00:00Z', 'attempt.finished', 1, ?)",
        (json.dumps(payload),),
    )
    with pytest.raises(DamagedRunError) as raised:
        journal.state("wf-a")
    assert (raised.value.run, raised.value.event) == ("wf-a", 2)
    assert raised.value.message == f"event 2 of run wf-a is damaged (attempt.finished): {words}"


def test_a_run_is_found_by_what_people_type(connection: sqlite3.Connection) -> None:
    journal = Journal(connection)
    first = journal.create(created("wf-aaa-1", caller="codex"), at=NOW)
    second = journal.create(created("wf-aab-2"), at=NOW + timedelta(seconds=1))
    assert journal.find("wf-aaa-1") == journal.find(first.short_id) == journal.find("wf-aaa") == "wf-aaa-1"
    assert journal.find(second.short_id[:5]) == "wf-aab-2" or second.short_id[:5] == first.short_id[:5]
    assert journal.find("last") == "wf-aab-2"
    assert journal.find("last", caller="codex") == "wf-aaa-1"
    with pytest.raises(UnknownNameError, match="is the start of 2 runs"):
        journal.find("wf-aa")
    with pytest.raises(UnknownNameError, match='unknown run "%"'):
        journal.find("%")
    with pytest.raises(UnknownNameError, match="there is no last run by grok"):
        journal.find("last", caller="grok")


def test_a_taken_short_id_is_drawn_again(connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["aaaaaa", "aaaaaa", "bbbbbb"])
    monkeypatch.setattr("bullswarm_core.runs.journal.new_short_id", lambda: next(drawn))
    journal = Journal(connection)
    assert journal.create(created("wf-a"), at=NOW).short_id == "aaaaaa"
    assert journal.create(created("wf-b"), at=NOW).short_id == "bbbbbb"


def test_all_events_of_an_append_or_none(connection: sqlite3.Connection) -> None:
    journal = Journal(connection)
    journal.create(created("wf-a"), at=NOW)
    with pytest.raises(TypeError):
        journal.append("wf-a", [StopRequested(by="me"), KernelStarted({"pid": object()})], at=NOW)
    assert journal.last_seq("wf-a") == 1
    with transaction(connection):
        journal.append("wf-a", [StopRequested(by="me")], at=NOW)
    assert journal.last_seq("wf-a") == 2


def test_worker_starts_are_counted_under_their_root(connection: sqlite3.Connection) -> None:
    journal = Journal(connection)
    journal.create(created("wf-a"), at=NOW)
    journal.create(created("wf-b", root="wf-a"), at=NOW)
    for run in ("wf-a", "wf-b"):
        payload = json.dumps({"step": "run", "ordinal": 1, "keeper": {}, "launch": {}})
        connection.execute(
            "INSERT INTO events VALUES (?, 9, '2027-01-01T00:00:00Z', 'attempt.launched', 1, ?)", (run, payload)
        )
    assert journal.starts_under("wf-a") == 2
    assert journal.starts_under("wf-b") == 0


def test_ids_have_the_form_that_people_are_shown() -> None:
    run_id, short_id = new_run_id(NOW), new_short_id()
    assert run_id.startswith("wf-") and len(run_id.split("-")[2]) == 6
    assert len(short_id) == SHORT_ID_LENGTH and not set(short_id) & set("01ilo")
    assert new_run_id(NOW) < new_run_id(NOW + timedelta(days=400))


def test_an_empty_journal_has_no_state(connection: sqlite3.Connection) -> None:
    assert fold([]) is None
    with pytest.raises(UnknownNameError, match='unknown run "wf-x"'):
        Journal(connection).state("wf-x")


@pytest.mark.parametrize("name", ["", "x" * 60_000, "wf-\udcff", "wf-\0", "é"])
def test_a_name_that_no_run_can_have_is_unknown(connection: sqlite3.Connection, name: str) -> None:
    journal = Journal(connection)
    journal.create(created("wf-a"), at=NOW)
    with pytest.raises(UnknownNameError) as refused:
        journal.find(name)
    assert len(str(refused.value).encode()) < 600


@pytest.mark.parametrize("payload", ['{"kernel": 1}', "[]", "3", "null"])
def test_a_journal_that_cannot_be_folded_is_named(connection: sqlite3.Connection, payload: str) -> None:
    journal = Journal(connection)
    journal.create(created("wf-a"), at=NOW)
    connection.execute("UPDATE events SET payload = ? WHERE run = 'wf-a'", (payload,))
    with pytest.raises(StateError, match="wf-a is damaged"):
        journal.state("wf-a")


@pytest.mark.parametrize("damage", ["yesterday", b"\xff", 3, "9999-99-99T00:00:00Z", ""])
def test_a_row_with_a_time_that_is_none_hides_no_other_run(connection: sqlite3.Connection, damage: object) -> None:
    journal = Journal(connection)
    journal.create(created("wf-a"), at=NOW)
    journal.create(created("wf-b"), at=NOW)
    connection.execute("UPDATE runs SET created_at = ?, finished_at = ? WHERE id = 'wf-a'", (damage, damage))
    rows = {row.run_id: row for row in journal.rows()}
    assert rows["wf-b"].created_at == NOW
    assert (rows["wf-a"].created_at.year, rows["wf-a"].finished_at) == (1970, None)
