"""The in-flight ledger: booked with the pick, dropped when its processes are gone, never lost."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bullswarm_core.dispatch.ledger import (
    MAX_AGE,
    Booking,
    book,
    entries,
    host_name,
    inflight_by_pool,
    live,
    release,
    set_kernel,
    set_worker,
)
from bullswarm_core.process.identity import ProcessIdentity, current
from bullswarm_core.store.database import open_database, transaction
from bullswarm_core.store.home import Home

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KERNEL = ProcessIdentity(100, "1000", "boot-1")
WORKER = ProcessIdentity(200, "2000", "boot-1")
BOOKING = Booking(
    run="wf-1",
    step="run",
    attempt="run-1",
    pool="codex",
    lane="build",
    effort="medium",
    started_at=NOW,
    kernel=KERNEL,
    model="gpt",
    expected_minutes=6.0,
    expected_source="default",
    cwd="/repo",
    task_file="task",
    out_file="out",
    tree="/repo",
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def everybody(identity: ProcessIdentity) -> bool:
    return True


def nobody(identity: ProcessIdentity) -> bool:
    return False


def test_a_booking_is_read_as_it_was_written_until_it_is_released(home: Home) -> None:
    connection = open_database(home)
    with transaction(connection):
        number = book(connection, BOOKING)
    assert live(connection, now=NOW, alive=everybody) == [replace(BOOKING, id=number, host=host_name())]
    set_worker(connection, number, WORKER)
    assert live(connection, now=NOW, alive=everybody)[0].worker == WORKER
    release(connection, number)
    release(connection, number)
    assert live(connection, now=NOW, alive=everybody) == []
    connection.close()


def test_an_entry_lives_as_long_as_its_kernel_or_its_worker(home: Home) -> None:
    connection = open_database(home)
    number = book(connection, BOOKING)
    set_worker(connection, number, WORKER)
    assert live(connection, now=NOW, alive=lambda identity: identity == KERNEL)
    assert live(connection, now=NOW, alive=lambda identity: identity == WORKER)
    assert entries(connection, now=NOW, alive=nobody) == []
    assert len(entries(connection, now=NOW, alive=everybody)) == 1, "looking drops nothing"
    assert live(connection, now=NOW, alive=nobody) == []
    assert live(connection, now=NOW, alive=everybody) == [], "pruned for good"
    connection.close()


def test_a_new_kernel_takes_an_entry_over(home: Home) -> None:
    connection = open_database(home)
    number = book(connection, BOOKING)
    heir = ProcessIdentity(300, "3000", "boot-1")
    set_kernel(connection, number, heir)
    assert live(connection, now=NOW, alive=lambda identity: identity == heir)[0].kernel == heir
    connection.close()


@pytest.mark.parametrize(("age", "stays"), [(MAX_AGE, True), (MAX_AGE + timedelta(seconds=1), False)])
def test_an_entry_older_than_twelve_hours_is_dropped(home: Home, age: timedelta, stays: bool) -> None:
    connection = open_database(home)
    book(connection, BOOKING)
    assert bool(live(connection, now=NOW + age, alive=everybody)) is stays
    connection.close()


def test_processes_of_another_machine_count_until_they_are_too_old(home: Home) -> None:
    connection = open_database(home)
    book(connection, replace(BOOKING, host="elsewhere"))
    assert len(live(connection, now=NOW, alive=nobody)) == 1
    assert live(connection, now=NOW + MAX_AGE + timedelta(minutes=1), alive=nobody) == []
    connection.close()


def test_a_recycled_pid_keeps_nothing_alive(home: Home) -> None:
    """With the real check: this process has the pid of the entry, and another start time."""
    connection = open_database(home)
    me = current()
    book(connection, replace(BOOKING, kernel=me, attempt="mine"))
    book(connection, replace(BOOKING, kernel=replace(me, started="1"), attempt="recycled"))
    book(connection, replace(BOOKING, kernel=replace(me, boot="another boot"), attempt="rebooted"))
    assert [booking.attempt for booking in live(connection, now=NOW)] == ["mine"]
    connection.close()


def test_each_process_is_asked_for_once(home: Home) -> None:
    connection = open_database(home)
    for _ in range(5):
        book(connection, BOOKING)
    asked: list[ProcessIdentity] = []

    def alive(identity: ProcessIdentity) -> bool:
        asked.append(identity)
        return True

    assert len(live(connection, now=NOW, alive=alive)) == 5
    assert asked == [KERNEL]
    connection.close()


def test_what_is_in_flight_is_grouped_by_pool(home: Home) -> None:
    connection = open_database(home)
    book(connection, BOOKING)
    book(connection, replace(BOOKING, attempt="run-2", expected_minutes=None))
    book(connection, replace(BOOKING, pool="grok", attempt="run-3"))
    found = inflight_by_pool(live(connection, now=NOW, alive=everybody))
    assert {pool: [item.expected_minutes for item in items] for pool, items in found.items()} == {
        "codex": [6.0, None],
        "grok": [6.0],
    }
    assert found["grok"][0].started_at == NOW
    assert found["grok"][0].lane == "build"
    connection.close()


def test_a_pick_and_its_booking_are_one(home: Home) -> None:
    """Two connections pick the emptier of two pools in turn: each sees what the other booked."""
    first, second = open_database(home), open_database(home)
    for connection in (first, second) * 3:
        with transaction(connection):
            load = inflight_by_pool(live(connection, now=NOW, alive=everybody))
            pool = min(("codex", "grok"), key=lambda name: len(load.get(name, ())))
            book(connection, replace(BOOKING, pool=pool))
    load = inflight_by_pool(live(first, now=NOW, alive=everybody))
    assert {pool: len(items) for pool, items in load.items()} == {"codex": 3, "grok": 3}
    first.close()
    second.close()
