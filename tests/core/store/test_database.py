"""The database opens, migrates once, waits for locks, survives kills, and names damage with the way out."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from bullswarm_core.errors import LockTimeoutError, StateError, StorageError
from bullswarm_core.store import database
from bullswarm_core.store.database import NEWEST, network_mount, on_network_file_system, open_database, transaction
from bullswarm_core.store.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def files(home: Home) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.root.iterdir()}


def add_event(connection: sqlite3.Connection, run: str) -> None:
    connection.execute(
        "INSERT INTO events (run, seq, at, type, version, payload) VALUES (?, 1, '', 't', 1, '{}')", (run,)
    )


def runs_in(connection: sqlite3.Connection) -> list[str]:
    return [row["run"] for row in connection.execute("SELECT run FROM events ORDER BY run")]


def test_a_new_database_is_private_and_in_wal_mode(home: Home) -> None:
    connection = open_database(home)
    assert home.database_file.stat().st_mode & 0o777 == 0o600
    assert (home.root / "bullswarm.db-wal").stat().st_mode & 0o777 == 0o600
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 1
    assert connection.execute("PRAGMA busy_timeout").fetchone()[0] == 30_000
    assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    assert connection.execute("PRAGMA user_version").fetchone()[0] == NEWEST
    connection.close()
    assert set(files(home)) == {"bullswarm.db"}


def test_reading_without_a_database_makes_none(home: Home) -> None:
    assert open_database(home, readonly=True) is None
    assert not home.root.exists()


def test_reading_changes_no_file(home: Home) -> None:
    connection = open_database(home)
    with transaction(connection):
        add_event(connection, "one")
    connection.close()
    before = files(home)
    reader = open_database(home, readonly=True)
    assert reader is not None
    assert runs_in(reader) == ["one"]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        add_event(reader, "two")
    reader.close()
    assert files(home) == before


def test_a_reader_sees_what_a_living_writer_committed(home: Home) -> None:
    writer = open_database(home)
    with transaction(writer):
        add_event(writer, "one")
    reader = open_database(home, readonly=True)
    assert reader is not None
    assert runs_in(reader) == ["one"]
    with transaction(writer):
        add_event(writer, "two")
    assert runs_in(reader) == ["one", "two"]
    reader.close()
    writer.close()


@pytest.mark.skipif(os.getuid() == 0 and sys.platform != "linux", reason="needs a way to drop root's powers")
def test_a_home_that_may_not_be_written_is_still_readable() -> None:
    """Runs as another user when the tests run as root, who may write anywhere."""
    script = (
        "import os, sys\n"
        "from bullswarm_core.store.database import open_database; from bullswarm_core.store.home import Home\n"
        "if os.getuid() == 0:\n os.setuid(65534)\n"
        "reader = open_database(Home(sys.argv[1]), readonly=True)\n"
        "print([row[0] for row in reader.execute('SELECT run FROM events')]); reader.close()\n"
        "try:\n open_database(Home(sys.argv[1]))\nexcept Exception as error:\n print(type(error).__name__, error)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        home = Home(Path(folder) / "home")
        connection = open_database(home)
        with transaction(connection):
            add_event(connection, "one")
        connection.close()
        home.database_file.chmod(0o444)
        home.root.chmod(0o555)
        done = run_script(script, home)
        home.root.chmod(0o000)
        closed = run_script(script, home)
        home.root.chmod(0o700)
    assert done.stdout.startswith("['one']\nStorageError"), done.stderr
    assert "StateError: cannot read" in closed.stderr


def run_script(script: str, home: Home) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", script, str(home.root)], capture_output=True, text=True, env=environment, check=False
    )


def test_a_transaction_is_all_or_nothing(home: Home) -> None:
    connection = open_database(home)
    with pytest.raises(RuntimeError), transaction(connection):
        add_event(connection, "one")
        raise RuntimeError("in the middle")
    assert runs_in(connection) == []
    with transaction(connection):
        add_event(connection, "two")
    assert runs_in(connection) == ["two"]
    connection.close()


def test_a_locked_database_is_waited_for(home: Home) -> None:
    holder = open_database(home)
    waiter = open_database(home)
    holder.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, lambda: None)
    release.start()
    done = threading.Event()
    waited: list[float] = []

    def write() -> None:
        connection = open_database(home)
        begun = time.monotonic()
        with transaction(connection):
            add_event(connection, "late")
        waited.append(time.monotonic() - begun)
        connection.close()
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    release.join()
    holder.execute("COMMIT")
    thread.join(10)
    assert done.is_set()
    assert waited[0] > 0.1
    assert runs_in(waiter) == ["late"]
    holder.close()
    waiter.close()


def test_a_lock_that_never_ends_is_named_at_last(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    holder, waiter = open_database(home), open_database(home)
    monkeypatch.setattr(database, "LOCK_PATIENCE_SEC", 0.1)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(LockTimeoutError, match=r"bullswarm\.db"), transaction(waiter):
        pass
    assert sqlite_waits(waiter) == database.BUSY_TIMEOUT_MS, "reads still wait for whoever recovers the database"
    holder.execute("ROLLBACK")
    with transaction(waiter):
        assert sqlite_waits(waiter) == database.BUSY_TIMEOUT_MS
        add_event(waiter, "one")
    holder.close()
    waiter.close()


def test_a_second_connection_of_a_process_costs_the_first_no_lock(home: Home) -> None:
    """Else another program that leaves takes itself for the last one, and removes the log that the first still writes to."""
    another = (
        "import sys; from bullswarm_core.store.database import open_database\nfrom bullswarm_core.store.home import Home\n"
        "c = open_database(Home(sys.argv[1]))\n"
        "c.execute(f\"INSERT INTO events SELECT 'another', count(*), '', 't', 1, '{{}}' FROM events\")\nc.close()"
    )
    first = open_database(home)
    add_event(first, "one")
    second = open_database(home)
    assert run_script(another, home).returncode == 0
    add_event(first, "two")
    assert run_script(another, home).returncode == 0
    first.close()
    second.close()
    after = open_database(home)
    assert runs_in(after) == ["another", "another", "one", "two"]
    after.close()


def sqlite_waits(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA busy_timeout").fetchone()[0])


def test_many_processes_may_be_the_first(home: Home) -> None:
    script = (
        "import sys; from bullswarm_core.store.database import open_database, transaction; "
        "from bullswarm_core.store.home import Home\n"
        "c = open_database(Home(sys.argv[1]))\n"
        "with transaction(c):\n c.execute(\"INSERT INTO events VALUES (?, 1, '', 't', 1, '{}')\", (sys.argv[2],))\n"
        "c.close()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(home.root), str(number)], env=environment)
        for number in range(8)
    ]
    assert [child.wait(60) for child in children] == [0] * 8
    reader = open_database(home)
    assert reader.execute("SELECT count(*) FROM events").fetchone()[0] == 8
    reader.close()


def test_a_writer_killed_in_mid_transaction_leaves_nothing_behind(home: Home) -> None:
    open_database(home).close()
    script = (
        "import sys, time; from bullswarm_core.store.database import open_database, transaction\n"
        "from bullswarm_core.store.home import Home\n"
        "c = open_database(Home(sys.argv[1]))\n"
        "with transaction(c):\n"
        " c.execute(\"INSERT INTO events VALUES ('x', 1, '', 't', 1, '{}')\")\n print('in', flush=True)\n"
        " time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script, str(home.root)], stdout=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.kill()
        child.wait()
        connection = open_database(home)
        with transaction(connection):
            add_event(connection, "after")
        assert runs_in(connection) == ["after"]
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        connection.close()


@pytest.mark.parametrize("readonly", [False, True])
def test_a_database_of_a_newer_program_is_left_alone(home: Home, readonly: bool) -> None:
    connection = open_database(home)
    connection.execute(f"PRAGMA user_version = {NEWEST + 1}")
    connection.close()
    before = files(home)
    with pytest.raises(StateError, match=f"schema {NEWEST + 1}") as caught:
        open_database(home, readonly=readonly)
    assert caught.value.exit_code == 2
    assert files(home)["bullswarm.db"] == before["bullswarm.db"]


def test_times_that_were_stored_in_two_forms_get_the_one_that_sorts(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, begun, damaged = "2026-03-01T12:00:05Z", "2026-03-01T12:00:05.120Z", "noon Z"
    with monkeypatch.context() as former:
        former.setattr(database, "NEWEST", 2)
        former.setattr(database, "MIGRATIONS", database.MIGRATIONS[:2])
        old = open_database(home)
        columns = time_columns(old)
        assert len(columns) >= 9
        for table in {table for table, _ in columns}:
            for number, moment in enumerate((begun, whole, damaged)):
                add_row(old, table, number, moment)
        old.close()
    connection = open_database(home)
    assert time_columns(connection) == columns
    for table, column in columns:
        stored = [row[0] for row in connection.execute(f"SELECT {column} FROM {table} ORDER BY {column}")]
        assert stored == ["2026-03-01T12:00:05.000Z", begun, damaged], (table, column)
    connection.close()


def time_columns(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        (table, row["name"])
        for table in tables
        for row in connection.execute(f"PRAGMA table_info({table})")
        if row["name"] in ("at", "until") or row["name"].endswith("_at")
    }


def add_row(connection: sqlite3.Connection, table: str, number: int, moment: str) -> None:
    times = {column for name, column in time_columns(connection) if name == table}
    row: dict[str, object] = {}
    for column in connection.execute(f"PRAGMA table_info({table})"):
        text = column["type"] == "TEXT"
        row[column["name"]] = moment if column["name"] in times else str(number) if text else number
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("content", [b"not a database " * 500, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_database_is_named_with_the_way_out(home: Home, readonly: bool, content: bytes) -> None:
    home.ensure()
    home.database_file.write_bytes(content)
    with pytest.raises(StateError) as caught:
        open_database(home, readonly=readonly)
    assert str(home.database_file) in str(caught.value)
    assert "mv " in str(caught.value)
    assert home.database_file.read_bytes() == content


def test_damage_found_in_a_transaction_is_named_too(home: Home) -> None:
    connection = open_database(home)
    with transaction(connection):
        for number in range(200):
            add_event(connection, f"{number:050}")
    connection.close()
    data = bytearray(home.database_file.read_bytes())
    data[8192:] = b"\xaa" * (len(data) - 8192)
    home.database_file.write_bytes(bytes(data))
    broken = open_database(home)
    with pytest.raises(StateError, match="is damaged"), transaction(broken):
        broken.execute("SELECT * FROM events ORDER BY payload").fetchall()
    broken.close()


def test_a_full_disk_is_named_and_rolled_back(home: Home) -> None:
    connection = open_database(home)
    with transaction(connection):
        add_event(connection, "one")
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError) as caught, transaction(connection):
        for number in range(2000):
            add_event(connection, f"{number:050}")
    assert "free space" in str(caught.value)
    assert runs_in(connection) == ["one"]
    connection.close()


def test_an_empty_file_is_a_database_that_is_not_there_yet(home: Home) -> None:
    home.ensure()
    home.database_file.touch()
    assert open_database(home, readonly=True) is None
    open_database(home).close()
    reader = open_database(home, readonly=True)
    assert reader is not None
    reader.close()


def test_a_database_that_another_process_is_just_making_is_not_there_yet(home: Home) -> None:
    home.ensure()
    maker = sqlite3.connect(home.database_file, isolation_level=None)
    maker.execute("PRAGMA journal_mode = wal")  # from here on the file has a header, and no tables before the migration
    assert home.database_file.stat().st_size > 0
    assert open_database(home, readonly=True) is None
    maker.close()


def test_network_file_systems_are_known_by_their_mount() -> None:
    mounts = (
        "22 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n"
        "40 22 0:45 / /home rw,relatime shared:9 master:2 - nfs4 server:/home rw,vers=4.2\n"
        "41 22 0:46 / /mnt/c rw - 9p drvfs rw\n"
        "broken line\n"
    )
    assert not network_mount(mounts, "254:0")
    assert network_mount(mounts, "0:45")
    assert network_mount(mounts, "0:46")
    assert not network_mount(mounts, "9:9")


def test_this_folder_is_local(tmp_path: Path) -> None:
    assert not on_network_file_system(tmp_path / "bullswarm.db")


def test_on_a_network_file_system_the_journal_is_a_file(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    open_database(home).close()
    monkeypatch.setattr(database, "on_network_file_system", lambda path: True)
    connection = open_database(home)
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
    with transaction(connection):
        add_event(connection, "one")
    reader = open_database(home, readonly=True)
    assert reader is not None
    assert runs_in(reader) == ["one"]
    reader.close()
    connection.close()
    assert set(files(home)) == {"bullswarm.db"}
