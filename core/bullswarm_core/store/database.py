"""The one SQLite database of a home: opening it, its numbered migrations, and write transactions that wait.

Journal mode WAL with synchronous NORMAL: safe against a killed process at any moment (only a power cut may drop the
last commits), and 16 processes write at once without losing a row. WAL needs shared memory, which network file systems
do not give, so there the database keeps SQLite's older rollback journal.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeVar, overload

from bullswarm_core.errors import LockTimeoutError, StateError, StorageError
from bullswarm_core.store.home import PRIVATE_FILE, Home

Result = TypeVar("Result")
Place = Path | sqlite3.Connection
"""The database: its file, or a connection that knows it."""

# One wait of SQLite itself; a server that met "database is locked" for 6 s died of it elsewhere.
BUSY_TIMEOUT_MS = 30_000
# Some locks fail at once, without SQLite's own wait, so we wait too: far longer than any healthy writer holds the lock
# (about a millisecond each).
LOCK_PATIENCE_SEC = 300.0
# How long to wait before a lock is asked for again: while writers take turns always the same (1 ms and 5 ms did no better),
# and ever longer where one keeps it.
_FIRST_POLL_SEC, _LAST_POLL_SEC = 0.003, 0.02
_POLLS_PER_WAIT = 50

_STORED_TIMES = {
    "runs": ("created_at", "finished_at"),
    "events": ("at",),
    "inflight": ("started_at",),
    "decisions": ("at", "started_at", "ended_at"),
    "quarantines": ("until", "at"),
}

MIGRATIONS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (
        1,
        (
            """CREATE TABLE runs (
                id TEXT PRIMARY KEY, short_id TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL, cwd TEXT, goal TEXT,
                caller TEXT, kind TEXT NOT NULL, root TEXT NOT NULL, state TEXT, finished_at TEXT, idempotency_key TEXT UNIQUE
            )""",
            "CREATE INDEX runs_by_time ON runs(created_at)",
            "CREATE INDEX runs_by_root ON runs(root)",
            """CREATE TABLE events (
                run TEXT NOT NULL, seq INTEGER NOT NULL, at TEXT NOT NULL, type TEXT NOT NULL, version INTEGER NOT NULL,
                payload TEXT NOT NULL, PRIMARY KEY (run, seq)
            )""",
            """CREATE TABLE inflight (
                id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, step TEXT NOT NULL, attempt TEXT NOT NULL,
                pool TEXT NOT NULL, model TEXT, lane TEXT NOT NULL, effort TEXT NOT NULL, started_at TEXT NOT NULL,
                expected_minutes REAL, expected_source TEXT, kernel_pid INTEGER, kernel_start TEXT, boot_id TEXT,
                worker_pid INTEGER, worker_start TEXT, host TEXT, cwd TEXT, task_file TEXT, out_file TEXT, tree TEXT
            )""",
            "CREATE INDEX inflight_by_tree ON inflight(tree)",
            """CREATE TABLE decisions (
                id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, run TEXT, step TEXT, attempt TEXT, kind TEXT,
                lane TEXT, effort TEXT, picked TEXT, model TEXT, ok INTEGER, failure_kind TEXT,
                stalled INTEGER NOT NULL DEFAULT 0,
                wall_sec REAL, started_at TEXT, ended_at TEXT, reason TEXT, payload TEXT
            )""",
            "CREATE INDEX decisions_by_work ON decisions(lane, effort)",
            "CREATE INDEX decisions_by_pool ON decisions(picked, started_at)",
        ),
    ),
    (
        2,
        (
            """CREATE TABLE quarantines (
                pool TEXT PRIMARY KEY, kind TEXT NOT NULL, until TEXT NOT NULL, why TEXT NOT NULL, at TEXT NOT NULL
            )""",
        ),
    ),
    (
        3,
        # Whole seconds were stored without a fraction, and as text 10:00:00Z stands after 10:00:00.500Z.
        tuple(
            f"UPDATE {table} SET {column} = rtrim({column}, 'Z') || '.000Z' WHERE {column} GLOB '????-??-??T??:??:??Z'"
            for table, columns in _STORED_TIMES.items()
            for column in columns
        ),
    ),
)
# A read-only connection reads an older schema as it is, since a verb that only shows something changes no file: readers do
# without what a later migration adds.
NEWEST = MIGRATIONS[-1][0]

# File systems whose clients do not share memory, or whose locks are known to differ between the two sides of a mount.
_NETWORK_FILE_SYSTEMS = frozenset({
    "9p", "afpfs", "afs", "ceph", "cifs", "coda", "davfs", "drvfs", "fuse.davfs", "fuse.glusterfs", "fuse.rclone",
    "fuse.sshfs", "fuse.vmhgfs-fuse", "gfs2", "gpfs", "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "ocfs2", "prl_fs",
    "smb3", "smbfs", "vboxsf", "virtiofs", "webdav",
})  # fmt: skip
_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_STORAGE_CODES = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
)


@overload
def open_database(home: Home) -> sqlite3.Connection: ...
@overload
def open_database(home: Home, *, readonly: Literal[False]) -> sqlite3.Connection: ...
@overload
def open_database(home: Home, *, readonly: bool) -> sqlite3.Connection | None: ...
def open_database(home: Home, *, readonly: bool = False) -> sqlite3.Connection | None:
    """Return a connection to the home's database at the newest schema; with ``readonly`` None when there is none.

    A read-only connection changes no file. Raises StateError (exit 2) for a damaged database or one that a newer
    program wrote, StorageError when the disk refuses, LockTimeoutError when another program holds it for minutes.
    Close it in the process that opened it; it must not be carried over a fork.
    """
    path = home.database_file
    if readonly:
        return _open_for_reading(path) if _exists(path) else None
    home.ensure()
    with _explained(path):
        _create_private(path)
        connection = _connect(path, "rw")
        try:
            _retried(lambda: _prepare(connection, path), path)
        except BaseException:
            connection.close()
            raise
        return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run the block as one write transaction: all of it happens, or, on an exception, none.

    The write lock is taken at once (a transaction that starts by reading and later wants to write would fail without
    waiting), and a locked database is waited for. Keep the block below a millisecond of work.
    """
    with _explained(connection):
        _take_write_lock(connection)
        try:
            yield connection
            _retried(lambda: connection.execute("COMMIT"), connection)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    # SQLite's lock is not fair: a writer that goes on at once takes it again before a waiter wakes. Giving way here halved
    # the p99 of 16 writers (60 to 120 ms before, 26 to 44 after) and took the longest wait from 1.8 s to 0.15 s.
    os.sched_yield()


def _take_write_lock(connection: sqlite3.Connection) -> None:
    """Begin a write transaction, and do the waiting here: SQLite sleeps longer each time, up to 0.1 s, so that of 16 writers
    the one that has waited longest is passed most often (two cores that 12 others wanted: p99 65 ms and the longest wait
    168, as it is done here 56 and 119).
    """
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        _retried(lambda: connection.execute("BEGIN IMMEDIATE"), connection)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")


def _exists(path: Path) -> bool:
    try:
        _refuse_no_file(path)
        return path.exists()
    except OSError as error:  # a folder above that we may not enter
        raise StateError(f"cannot read {path}: {error.strerror or error}", hint="check who may read there") from error


def _connect(path: Path, mode: str, extra: str = "") -> sqlite3.Connection:
    from urllib.parse import quote

    address = f"file:{quote(str(path))}?mode={mode}{extra}"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000)
    connection.row_factory = sqlite3.Row
    return connection


def _refuse_no_file(path: Path) -> None:
    """Raise StorageError for a pipe, a device or a folder in its place: SQLite would wait for a pipe for ever."""
    if path.exists() and not path.is_file():
        raise StorageError(
            f"cannot open {path}: it is no ordinary file", hint=f"move it aside: mv {path} {path}.broken"
        )


def _create_private(path: Path) -> None:
    _refuse_no_file(path)
    # SQLite would create it readable by everybody; its -wal and -shm files take the mode of the database itself. One that is
    # there is only asked about: to close a file ends every lock that this process holds on it, those of its other
    # connections too, and the next program to leave would then take away the log that they still write to.
    try:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
        if not os.access(path, os.R_OK | os.W_OK):
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))  # fails, and says why
    except OSError as error:
        raise StorageError(
            f"cannot open {path}: {error.strerror or error}", hint="check who may write there, or set BULLSWARM_HOME"
        ) from error


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = _version(connection, path)
    journal = "delete" if on_network_file_system(path) else "wal"
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != journal:
        connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    if version < NEWEST:
        _migrate(connection, path)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    with transaction(connection):
        version = _version(connection, path)  # another process may have been first
        for number, statements in MIGRATIONS:
            if number > version:
                for statement in statements:
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {NEWEST}")


def _version(connection: sqlite3.Connection, path: Path) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > NEWEST:
        raise StateError(
            f"{path} has schema {version}, and this program knows up to {NEWEST}",
            hint="a newer bullswarm wrote it: update this one, or point BULLSWARM_HOME at another folder",
        )
    return version


def _open_for_reading(path: Path) -> sqlite3.Connection | None:
    with _explained(path):
        try:
            connection = _reading_connection(path)
        except sqlite3.OperationalError:
            # A folder that we may not write: SQLite cannot make its -shm file, and nobody else can write here.
            connection = _connect(path, "ro", "&immutable=1")
        try:
            version = _retried(lambda: _version(connection, path), path)
        except BaseException:
            connection.close()
            raise
    if version > 0:
        return connection
    # Version 0 is a database that another process is just making: the file has a header before it has its tables.
    connection.close()
    return None


def _reading_connection(path: Path) -> sqlite3.Connection:
    # Opened "ro" while nobody writes, SQLite leaves -wal and -shm files behind; a connection that could write, but is
    # told not to, takes its own away. With a -wal file there, "ro" is right: it reads it and leaves it as it is.
    has_wal = path.with_name(path.name + "-wal").exists()
    connection = _connect(path, "ro" if has_wal else "rw")
    try:
        connection.execute("PRAGMA query_only = ON")
        _retried(lambda: connection.execute("SELECT count(*) FROM sqlite_master").fetchone(), path)
    except BaseException:
        connection.close()
        raise
    return connection


def _retried(action: Callable[[], Result], place: Place) -> Result:
    begun = time.monotonic()
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if _primary_code(error) not in _BUSY_CODES:
                raise
            waited = time.monotonic() - begun
            if waited >= LOCK_PATIENCE_SEC:
                raise LockTimeoutError(
                    f"{_path_of(place)} was locked by another program for {LOCK_PATIENCE_SEC:g} s",
                    hint="end that program and try again",
                ) from error
        time.sleep(min(max(_FIRST_POLL_SEC, waited / _POLLS_PER_WAIT), _LAST_POLL_SEC))


def _primary_code(error: sqlite3.Error) -> int:
    # Extended codes (SQLITE_BUSY_SNAPSHOT, SQLITE_IOERR_WRITE, ...) keep the primary code in the low byte.
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


@contextlib.contextmanager
def _explained(place: Place) -> Iterator[None]:
    """Turn SQLite's own words about damage and full disks into errors that say what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = _primary_code(error)
        if code not in _DAMAGE_CODES | _STORAGE_CODES:
            raise
        path = _path_of(place)
        if code in _DAMAGE_CODES:
            raise StateError(
                f"{path} is damaged ({error})",
                hint=f"move it and its -wal and -shm files aside (mv {path} {path}.broken); the files of each run stay "
                f"in {path.parent / 'workflows'}",
            ) from error
        raise StorageError(
            f"cannot use {path}: {error}", hint="check the free space and who may write in that folder, and try again"
        ) from error


def _path_of(place: Place) -> Path:
    """The file for a message; a transaction that goes well never asks its connection for it."""
    return place if isinstance(place, Path) else Path(place.execute("PRAGMA database_list").fetchone()[2])


def on_network_file_system(path: Path) -> bool:
    """Say whether ``path`` (or its folder) is on a file system where WAL is unsafe; unknown counts as local."""
    try:
        device = os.stat(path.parent).st_dev  # noqa: PTH116
        if sys.platform == "darwin":
            return not _is_local_on_mac(path.parent)
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return network_mount(mounts, f"{os.major(device)}:{os.minor(device)}")


def network_mount(mountinfo: str, device: str) -> bool:
    """Say whether the mount of ``device`` ("major:minor") in Linux's mountinfo text is a network file system."""
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if dash and len(fields) > 2 and fields[2] == device:
            return after.split(" ", 1)[0] in _NETWORK_FILE_SYSTEMS
    return False


def _is_local_on_mac(folder: Path) -> bool:
    import ctypes

    # struct statfs with 64-bit inodes: f_flags is the 32-bit word at offset 64, MNT_LOCAL is 0x1000 (sys/mount.h).
    buffer = ctypes.create_string_buffer(4096)
    library = ctypes.CDLL(None, use_errno=True)
    statfs = getattr(library, "statfs$INODE64", None) or library.statfs
    if statfs(os.fsencode(folder), buffer) != 0:
        return True
    return bool(int.from_bytes(buffer.raw[64:68], sys.byteorder) & 0x1000)
