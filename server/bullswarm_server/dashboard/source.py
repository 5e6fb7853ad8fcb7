"""Reads what the dashboard shows: runs from the database, pools from their meters. Nothing is decided here.

What has not changed is not read again: the database's files tell by their size and time whether anything was written.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import DamagedRunError, UnknownNameError
from bullswarm_core.kernel.liveness import KernelState, kernel_state
from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.workflow_result import status_of
from bullswarm_core.routing.overview import PoolOverview
from bullswarm_core.runs.journal import Journal, RunRow
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.status import NodeStatus, statuses
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home
from bullswarm_server.ops.context import Context
from bullswarm_server.ops.run_forms import checked, read_state, readable_rows

MOST_RUNS = 20_000
"""Of more runs nobody scrolls to the end; the rows of these take some MB."""
NEWEST = 50
RECENT = timedelta(hours=24)
"""How long the failed steps of a workflow that is over are still put before the person."""
MOST_OPEN = 200


@dataclass(frozen=True, slots=True)
class Glance:
    """A run that is not over, or that ended lately with something missing: its state and how it stands."""

    state: RunState
    known: Mapping[str, NodeStatus]
    status: str


@dataclass(frozen=True, slots=True)
class RunsLook:
    """Runs at one moment: ``rows`` newest first, and a glance at those that somebody may have to look after.

    ``whole`` says that ``rows`` are all of them. ``damaged`` are ids of runs whose journal can't be read.
    """

    now: datetime
    labels: Labels
    rows: tuple[RunRow, ...] = ()
    glances: Mapping[str, Glance] = field(default_factory=dict)
    damaged: frozenset[str] = frozenset()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class PoolsLook:
    """Every pool at one moment; ``problems`` are providers that could not be loaded, in words."""

    now: datetime
    rows: tuple[PoolOverview, ...] = ()
    problems: tuple[str, ...] = ()


class Source:
    """What a home holds; its methods may be called in a thread, one at a time."""

    def __init__(self, home: Home, environ: Mapping[str, str]) -> None:
        self.home = home
        self.environ = environ
        self._states: dict[str, RunState] = {}
        self._rows: tuple[RunRow, ...] = ()
        self._rows_stamp: tuple[object, ...] | None = None

    def pools(self) -> PoolsLook:
        """Return every pool as it is now; readings that are old are renewed, for a second at most."""
        from bullswarm_server.displays.text import one_line
        from bullswarm_server.ops.pools import look_at_pools

        seen = look_at_pools(Context(self.home, self.environ))
        problems = tuple(one_line(f"provider {each.name}: {each.message}") for each in seen.registry.problems)
        return PoolsLook(seen.now, seen.rows, problems)

    def runs(self, *, whole: bool) -> RunsLook:
        """Return the newest runs, or with ``whole`` all, and a glance at those that are not over."""
        now, labels = utc_now(), Labels.load(self.home)
        connection = open_database(self.home, readonly=True)
        if connection is None:
            return RunsLook(now, labels, whole=True)
        with contextlib.closing(connection):
            return self._look(connection, labels, now=now, whole=whole)

    def _look(self, connection: sqlite3.Connection, labels: Labels, *, now: datetime, whole: bool) -> RunsLook:
        journal = Journal(connection)
        rows = self._all_rows(journal) if whole else tuple(journal.rows(limit=NEWEST))
        unfinished = journal.rows(unfinished_only=True, limit=MOST_OPEN)
        lately = [row for row in rows[:NEWEST] if row.outcome == "partial" and _is_recent(row, now)]
        states, damaged = self._read(journal, [*unfinished, *lately])
        glances = {run_id: self._glance(state, now) for run_id, state in states.items()}
        rows, damaged_rows = readable_rows(rows)
        return RunsLook(now, labels, rows, glances, damaged_rows.union(damaged), whole)

    def _all_rows(self, journal: Journal) -> tuple[RunRow, ...]:
        stamp = self._stamp()
        if stamp != self._rows_stamp:
            self._rows, self._rows_stamp = tuple(journal.rows(limit=MOST_RUNS)), stamp
        return self._rows

    def _read(self, journal: Journal, rows: Iterable[RunRow]) -> tuple[dict[str, RunState], list[str]]:
        found: dict[str, RunState] = {}
        damaged: list[str] = []
        for row in rows:
            try:
                found[row.run_id] = self._state(journal, row.run_id)
            except (DamagedRunError, UnknownNameError):
                damaged.append(row.run_id)
        self._states = found
        return found, damaged

    def _state(self, journal: Journal, run_id: str) -> RunState:
        """Go on from the state that was read before: a journal only grows."""
        state = self._states.get(run_id)
        if state is None:
            return read_state(journal, run_id)
        after = journal.read_on(state)
        return after if after is state else checked(after)

    def _glance(self, state: RunState, now: datetime) -> Glance:
        alive = kernel_state(self.home, state, now=now) is not KernelState.GONE
        return Glance(state, statuses(state), status_of(state, kernel_alive=alive))

    def _stamp(self) -> tuple[object, ...]:
        found: list[object] = []
        for name in (self.home.database_file, self.home.database_file.with_name(f"{self.home.database_file.name}-wal")):
            try:
                told = name.stat()
                found += [told.st_mtime_ns, told.st_size]
            except OSError:
                found.append(None)
        return tuple(found)


def _is_recent(row: RunRow, now: datetime) -> bool:
    return row.finished_at is not None and now - row.finished_at < RECENT
