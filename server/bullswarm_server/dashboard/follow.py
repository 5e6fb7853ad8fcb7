"""Follows one run: its journal as it grows, its attempts' signs of life, and what a step's worker calls and writes."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import UnknownNameError
from bullswarm_core.fast.text import clipped, one_line
from bullswarm_core.kernel.liveness import KernelState, kernel_state
from bullswarm_core.pools.labels import Labels
from bullswarm_core.process.capture import read_tail
from bullswarm_core.reports.notices import tell
from bullswarm_core.reports.stalls import Activity, CommandReader, Commands, Life
from bullswarm_core.reports.watch import Notice, Teller
from bullswarm_core.reports.workflow_result import status_of
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.run_files import AttemptFiles, RunFolder
from bullswarm_core.runs.state import AttemptState, RunState
from bullswarm_core.runs.status import NodeStatus, statuses
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home
from bullswarm_core.streams.state import bind
from bullswarm_core.streams.table import StreamTable, compile_table
from bullswarm_server.ops.run_forms import checked, read_state

MOST_NOTICES = 2_000
MOST_CALLS = 500
TEXT_BYTES = 256 * 1024
"""Of a longer text the end is shown: what a page can scroll through and a person reads."""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run at one moment; ``notices`` are what happened, oldest first."""

    state: RunState
    known: Mapping[str, NodeStatus]
    status: str
    lives: Mapping[str, Life]
    notices: tuple[Notice, ...]
    labels: Labels
    now: datetime


@dataclass(frozen=True, slots=True)
class StepTexts:
    """What files say of a step's newest attempt: each text with what was left out before it; None where there is none."""

    calls: tuple[str, ...] = ()
    task: str | None = None
    output: str | None = None
    output_from: str = ""
    cut: int = 0
    logs: Mapping[str, str] = field(default_factory=dict)


class RunFollower:
    """Reads on in one run; ``profiles`` gives the connectors of the machine's pools. One call at a time."""

    def __init__(self, home: Home, run_id: str, *, tables: Callable[[str], StreamTable | None]) -> None:
        self.home = home
        self.run_id = run_id
        self.folder = RunFolder.of(home, run_id)
        self._teller = Teller(folder=self.folder, telling=tell)
        self._notices: deque[Notice] = deque(maxlen=MOST_NOTICES)
        self._checked: RunState | None = None
        self._activity = Activity(self.folder, table_of=tables)
        self._tables = tables
        self._calls: tuple[tuple[str, int], _CallLog] | None = None

    def read(self) -> RunView:
        """Read on. Raises UnknownNameError when the run is gone, DamagedRunError when it can't be understood."""
        connection = open_database(self.home, readonly=True)
        if connection is None:
            raise UnknownNameError(f"run {self.run_id} is gone: the database is away")
        with contextlib.closing(connection):
            journal = Journal(connection)
            known = self._checked
            self._checked = read_state(journal, self.run_id) if known is None else checked(journal.read_on(known))
            events = journal.read(self.run_id, after=self._teller.sequence)
        self._notices.extend(self._teller.take(events))
        state, now = self._teller.state, utc_now()
        if state is None:
            raise UnknownNameError(f"run {self.run_id} is gone", hint="it was deleted")
        over = state.finished is not None or state.parked is not None
        lives = [] if over else self._activity.lives(state, now=now)
        alive = kernel_state(self.home, state, now=now) is not KernelState.GONE
        return RunView(
            state=state,
            known=statuses(state),
            status=status_of(state, kernel_alive=alive),
            lives={life.step: life for life in lives},
            notices=tuple(self._notices),
            labels=Labels.load(self.home),
            now=now,
        )

    def texts(self, view: RunView, step: str) -> StepTexts:
        """Read what belongs to a step's newest attempt."""
        known = view.state.steps.get(step)
        attempt = known.attempts[-1] if known and known.attempts else None
        if attempt is None:
            return StepTexts()
        files = self.folder.attempt(step, attempt.picked.ordinal)
        output, source, cut = _output(files, attempt)
        return StepTexts(
            calls=self._calls_of(attempt, files),
            task=_text(files.task)[0],
            output=output,
            output_from=source,
            cut=cut,
            logs=_logs(attempt),
        )

    def _calls_of(self, attempt: AttemptState, files: AttemptFiles) -> tuple[str, ...]:
        key = (attempt.picked.step, attempt.picked.ordinal)
        if self._calls is None or self._calls[0] != key:
            self._calls = (key, _CallLog(files, self._tables(attempt.picked.pool)))
        return self._calls[1].read_on()


def tables_of(home: Home, environ: Mapping[str, str]) -> Callable[[str], StreamTable | None]:
    """Return what gives the stream table of a pool's CLI; the machine's pools are looked up once, when first asked."""
    known: dict[str, StreamTable | None] = {}

    def table(pool: str) -> StreamTable | None:
        if not known:
            from bullswarm_providers.registry import load

            for profile in load(home, environ, write_cache=False).profiles:
                told = profile.connector.stream_table()
                known[profile.id] = compile_table(told) if told else None
        return known.get(pool)

    return table


class _Calls(Commands):
    """Keeps the newest calls of a worker, each in one line."""

    __slots__ = ("recent",)

    def __init__(self, table: StreamTable) -> None:
        super().__init__(table)
        self.recent: deque[str] = deque(maxlen=MOST_CALLS)

    def _note(self, got: Mapping[str, Any]) -> None:
        before = self.count
        super()._note(got)
        if self.count > before and self.last:
            self.recent.append(self.last)


class _CallLog(CommandReader):
    """Follows the stream of one attempt for what its worker called."""

    def __init__(self, files: AttemptFiles, table: StreamTable | None) -> None:
        super().__init__(files, table)
        self._log = _Calls(table) if table is not None else None
        if table is not None and self._log is not None:
            self.commands = self._log
            self._actions = bind(table, self._log)

    def read_on(self) -> tuple[str, ...]:
        self.read()
        return tuple(self._log.recent) if self._log else ()


def _output(files: AttemptFiles, attempt: AttemptState) -> tuple[str | None, str, int]:
    """Return what the worker gave: its output once it is over, before that what a plain CLI has written so far."""
    path = attempt.finished.output_file if attempt.finished else None
    if path:
        text, cut = _text(Path(path))
        return text, path, cut
    tail = read_tail(files.stdout, TEXT_BYTES)
    return (tail.decode("utf-8", "replace"), str(files.stdout), 0) if tail else (None, "", 0)


def _text(path: Path) -> tuple[str | None, int]:
    """Return the end of a file and how many bytes stand before it; None for one that can't be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            cut = max(0, size - TEXT_BYTES)
            file.seek(cut)
            return file.read(TEXT_BYTES).decode("utf-8", "replace"), cut
    except (OSError, ValueError):
        return None, 0


def _logs(attempt: AttemptState) -> dict[str, str]:
    """Return the last line of each check's log."""
    results = attempt.finished.judgement.evidence_results if attempt.finished else None
    found: dict[str, str] = {}
    for item in results or ():
        path = item.log
        if path is not None and (text := _text(Path(path))[0]):
            lines = [line for line in text.splitlines() if line.strip()]
            found[path] = clipped(one_line(lines[-1]), 200) if lines else ""
    return found
