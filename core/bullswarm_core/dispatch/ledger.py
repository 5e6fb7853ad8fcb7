"""The in-flight ledger: which attempt runs on which pool now, across every bullswarm process of this home.

An attempt is booked in the same transaction in which its pool was picked, so that ten picks at once see each other and
spread. An entry whose kernel and worker are both gone is dropped by whoever reads next; the processes are known by pid,
start time and boot, so that a recycled pid keeps nothing alive.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import cast

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools.model import Effort, Inflight, Lane
from bullswarm_core.process.identity import ProcessIdentity, is_alive
from bullswarm_core.wire import parse_iso, stamp

# Older entries are pruned, since no attempt of that age was ever still at work.
MAX_AGE = timedelta(hours=12)

_COLUMNS = (
    "run, step, attempt, pool, model, lane, effort, started_at, expected_minutes, expected_source, "
    "kernel_pid, kernel_start, boot_id, worker_pid, worker_start, host, cwd, task_file, out_file, tree"
)
_INSERT = f"INSERT OR REPLACE INTO inflight (id, {_COLUMNS}) VALUES (?, {', '.join('?' * len(_COLUMNS.split(', ')))})"
_SELECT = f"SELECT id, {_COLUMNS} FROM inflight"


@dataclass(frozen=True, slots=True)
class Booking:
    """One attempt in flight. ``expected_minutes`` None is unknown; ``tree`` is the git tree it may write in, if any.

    ``host`` is the machine: processes of another one (a home shared over the network) cannot be seen from here, so that
    their entries count until they are released or too old.
    """

    run: str
    step: str
    attempt: str
    pool: str
    lane: Lane
    effort: Effort
    started_at: datetime
    kernel: ProcessIdentity
    model: str | None = None
    expected_minutes: float | None = None
    expected_source: str | None = None
    worker: ProcessIdentity | None = None
    host: str = ""
    cwd: str | None = None
    task_file: str | None = None
    out_file: str | None = None
    tree: str | None = None
    id: int | None = None

    def inflight(self) -> Inflight:
        """Return the entry as routing sees it."""
        return Inflight(
            self.started_at, self.expected_minutes, id=f"{self.run}/{self.attempt}", lane=self.lane, effort=self.effort
        )


def host_name() -> str:
    """Return the name of this machine as the ledger records it."""
    import os

    return os.uname().nodename


def book(connection: sqlite3.Connection, entry: Booking) -> int:
    """Record an attempt as in flight and return its number; call it inside the transaction that picked the pool.

    An entry that has a number already takes its old place again, whether or not somebody has dropped it since.
    """
    values = (
        entry.id, entry.run, entry.step, entry.attempt, entry.pool, entry.model, entry.lane, entry.effort,
        stamp(entry.started_at),
        entry.expected_minutes, entry.expected_source, entry.kernel.pid, entry.kernel.started, entry.kernel.boot,
        entry.worker.pid if entry.worker else None, entry.worker.started if entry.worker else None,
        entry.host or host_name(), entry.cwd, entry.task_file, entry.out_file, entry.tree,
    )  # fmt: skip
    number = connection.execute(_INSERT, values).lastrowid
    assert number is not None  # an INSERT always has one
    return number


def set_worker(connection: sqlite3.Connection, number: int, worker: ProcessIdentity) -> None:
    """Record the process that does the work of a booked attempt; a released attempt is left alone."""
    connection.execute(
        "UPDATE inflight SET worker_pid = ?, worker_start = ? WHERE id = ?", (worker.pid, worker.started, number)
    )


def set_kernel(connection: sqlite3.Connection, number: int, kernel: ProcessIdentity) -> None:
    """Record the kernel that now drives a booked attempt (one that was started again after the first had died)."""
    connection.execute(
        "UPDATE inflight SET kernel_pid = ?, kernel_start = ?, boot_id = ? WHERE id = ?",
        (kernel.pid, kernel.started, kernel.boot, number),
    )


def release(connection: sqlite3.Connection, number: int) -> None:
    """Take an attempt out of the ledger; releasing it twice does no harm."""
    connection.execute("DELETE FROM inflight WHERE id = ?", (number,))


def entries(
    connection: sqlite3.Connection,
    *,
    now: datetime,
    alive: Callable[[ProcessIdentity], bool] = is_alive,
    host: str | None = None,
) -> list[Booking]:
    """Return what is in flight at ``now``, oldest first, and change nothing (for dry runs and displays)."""
    return _living(connection, now, alive, host or host_name())[0]


def live(
    connection: sqlite3.Connection,
    *,
    now: datetime,
    alive: Callable[[ProcessIdentity], bool] = is_alive,
    host: str | None = None,
) -> list[Booking]:
    """Return what is in flight at ``now``, oldest first, and drop what is dead or older than 12 hours.

    Dead is an entry whose kernel and worker are both gone. Call it inside the transaction of the pick.
    """
    living, dead = _living(connection, now, alive, host or host_name())
    for number in dead:
        release(connection, number)
    return living


def inflight_by_pool(bookings: Iterable[Booking]) -> dict[str, tuple[Inflight, ...]]:
    """Group what is in flight by pool id, as routing wants it."""
    found: dict[str, list[Inflight]] = {}
    for booking in bookings:
        found.setdefault(booking.pool, []).append(booking.inflight())
    return {pool: tuple(items) for pool, items in found.items()}


def _living(
    connection: sqlite3.Connection, now: datetime, alive: Callable[[ProcessIdentity], bool], host: str
) -> tuple[list[Booking], list[int]]:
    known: dict[ProcessIdentity, bool] = {}  # one kernel drives many attempts: ask the system once per process

    def runs(identity: ProcessIdentity | None) -> bool:
        if identity is None:
            return False
        if identity not in known:
            known[identity] = alive(identity)
        return known[identity]

    living, dead = [], []
    for row in connection.execute(f"{_SELECT} ORDER BY id"):
        booking = _booking(row)
        young = now - booking.started_at <= MAX_AGE
        if young and (booking.host != host or runs(booking.kernel) or runs(booking.worker)):
            living.append(booking)
        else:
            dead.append(int(row["id"]))
    return living, dead


def _booking(row: sqlite3.Row) -> Booking:
    boot = row["boot_id"] or ""
    worker = row["worker_pid"]
    return Booking(
        run=row["run"],
        step=row["step"],
        attempt=row["attempt"],
        pool=row["pool"],
        lane=cast(Lane, row["lane"]),
        effort=cast(Effort, row["effort"]),
        started_at=parse_iso(row["started_at"]),
        kernel=ProcessIdentity(row["kernel_pid"] or 0, row["kernel_start"] or "", boot),
        model=row["model"],
        expected_minutes=row["expected_minutes"],
        expected_source=row["expected_source"],
        worker=ProcessIdentity(worker, row["worker_start"] or "", boot) if worker else None,
        host=row["host"] or "",
        cwd=row["cwd"],
        task_file=row["task_file"],
        out_file=row["out_file"],
        tree=row["tree"],
        id=row["id"],
    )
