"""Signs of life of running attempts: when one has fallen quiet, and when it looks stale.

The rules are pure. Each sign has the moment from which it holds, so that a watcher that comes back knows whether the one
before it has reported it already. The signs are read from the attempts' files; nothing is written, and a missing file is
no error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast.text import clipped, duration, minutes_and_seconds, one_line
from bullswarm_core.process.capture import Follower, Gap, segments
from bullswarm_core.process.line_splitter import LineSplitter
from bullswarm_core.program.model import files_of
from bullswarm_core.reports.watch import Notice
from bullswarm_core.runs.run_files import AttemptFiles, RunFolder
from bullswarm_core.runs.state import AttemptState, RunState
from bullswarm_core.streams.state import StreamState, bind
from bullswarm_core.streams.table import Rule, StreamTable

# The numbers of the stale score.
STALE_SCORE = 2
QUIET = timedelta(minutes=10)
NO_CHANGE = timedelta(minutes=20)
COMMANDS_BEFORE_CHANGE = 5
SAME_COMMAND = 3
TIMES_EXPECTED = 3
DEFAULT_STALL_SEC = 300.0


@dataclass(frozen=True, slots=True)
class Life:
    """What is known of a running attempt. ``last_output`` is when it last wrote anything, its start before that.

    ``last_change`` is when a file of a writer's last changed, None for an analyze step; ``commands`` counts the commands it
    ran and ``same_command`` how often the last one stands in a row; ``in_flight`` that one is running, ``checking`` that the
    worker is done and its checks run. ``expected_minutes`` is None where nothing is known.
    """

    step: str
    ordinal: int
    started: datetime
    last_output: datetime
    last_change: datetime | None = None
    commands: int = 0
    same_command: int = 0
    last_command: str | None = None
    in_flight: bool = False
    checking: bool = False
    expected_minutes: float | None = None

    def quiet(self, now: datetime) -> timedelta:
        """How long it has written nothing."""
        return max(now - self.last_output, timedelta())


@dataclass(frozen=True, slots=True)
class Sign:
    """One reason for concern: its weight, the moment from which it holds, and its words."""

    weight: int
    since: datetime
    words: str


def stale_signs(life: Life, now: datetime) -> list[Sign]:
    """Return the signs that hold now; while checks run only quiet counts."""
    signs: list[Sign] = []
    if life.quiet(now) >= QUIET and not life.in_flight:
        signs.append(Sign(2, life.last_output + QUIET, f"quiet for {minutes_and_seconds(_sec(life.quiet(now)))}"))
    if life.checking:
        return signs
    if life.last_change is not None and life.commands >= COMMANDS_BEFORE_CHANGE and now - life.last_change >= NO_CHANGE:
        unchanged = duration(_sec(now - life.last_change) / 60)
        words = f"no file changed for {unchanged} while {life.commands} commands ran"
        signs.append(Sign(1, life.last_change + NO_CHANGE, words))
    if life.same_command >= SAME_COMMAND:
        signs.append(Sign(1, life.last_output, f"the same command {life.same_command} times in a row"))
    if life.expected_minutes:
        long = timedelta(minutes=life.expected_minutes * TIMES_EXPECTED)
        if now - life.started > long:
            words = f"{duration(_sec(now - life.started) / 60)} of an expected {duration(life.expected_minutes)}"
            signs.append(Sign(1, life.started + long, words))
    return signs


def stale_since(signs: Iterable[Sign]) -> datetime | None:
    """Return the moment at which the signs together came to the stale score, or None below it."""
    score = 0
    for sign in sorted(signs, key=lambda sign: sign.since):
        score += sign.weight
        if score >= STALE_SCORE:
            return sign.since
    return None


class LifeWatch:
    """Tells of stalls and staleness, each once: a stall once per silence, staleness once per attempt.

    What began before ``since`` was told by an earlier watch, which ended then.
    """

    def __init__(self, *, stall_after_sec: float = DEFAULT_STALL_SEC, since: datetime | None = None) -> None:
        self._stall_after = timedelta(seconds=stall_after_sec)
        self._since = since
        self._told: set[tuple[object, ...]] = set()

    def look(self, lives: Sequence[Life], *, now: datetime, sequence: int) -> list[Notice]:
        """Return what there is to tell now; ``sequence`` is the newest event that was read."""
        found: list[Notice] = []
        for life in lives:
            found += self._stale(life, now, sequence) or self._stall(life, now, sequence)
        return found

    def _stale(self, life: Life, now: datetime, sequence: int) -> list[Notice]:
        signs = stale_signs(life, now)
        began = stale_since(signs)
        if began is None or not self._is_new(("stale", life.step, life.ordinal), began):
            return []
        # A silence that makes it stale is told by that.
        self._told.add(("stall", life.step, life.ordinal, life.last_output))
        reasons = [sign.words for sign in signs]
        line = f"⚠ {life.step} looks stale: {', '.join(reasons)}"
        return [_notice("stale", line, life, now, sequence, reasons=reasons)]

    def _stall(self, life: Life, now: datetime, sequence: int) -> list[Notice]:
        quiet = life.quiet(now)
        if life.in_flight or quiet < self._stall_after:
            return []
        if not self._is_new(("stall", life.step, life.ordinal, life.last_output), life.last_output + self._stall_after):
            return []
        line = f"⚠ {life.step} quiet for {minutes_and_seconds(_sec(quiet))}"
        return [_notice("stall", line, life, now, sequence, quiet_sec=int(_sec(quiet)))]

    def _is_new(self, key: tuple[object, ...], began: datetime) -> bool:
        if key in self._told:
            return False
        self._told.add(key)
        return self._since is None or began > self._since


def _notice(
    kind: str,
    line: str,
    life: Life,
    now: datetime,
    sequence: int,
    *,
    reasons: Sequence[str] = (),
    quiet_sec: int | None = None,
) -> Notice:
    facts = {"attempt": f"{life.step}-{life.ordinal}", "reasons": list(reasons), "quietSec": quiet_sec}
    return Notice(sequence, now, kind, line, about=life.step, trouble=True, wakes=True, facts=facts)


def _sec(span: timedelta) -> float:
    return span.total_seconds()


_SHOWN_COMMAND = 120
# A look at a tree must not cost more than the worker that it is about.
_MOST_FILES_LOOKED_AT = 20_000
_NOT_LOOKED_INTO = frozenset({".git", "node_modules", ".venv", "__pycache__"})

TableOf = Callable[[str], StreamTable | None]


class Commands(StreamState):
    """Counts a worker's tool calls as its stream tells them."""

    __slots__ = ("_whole", "count", "in_a_row", "last", "paths", "seen")

    def __init__(self, table: StreamTable) -> None:
        super().__init__(table)
        self.count = self.in_a_row = 0
        self.last: str | None = None
        self._whole: str | None = None
        self.seen: set[str] = set()
        self.paths: dict[str, None] = {}

    def tool_call(self, got: Mapping[str, Any], rule: Rule) -> None:
        """Note a call that was not told before."""
        self._note(got)

    def side_call(self, got: Mapping[str, Any]) -> None:
        """Note a call of a subagent's: it is a sign of life, too."""
        self._note(got)

    def edit(self, got: Mapping[str, Any], rule: Rule) -> None:
        """Note the file that the worker says it wrote."""
        if isinstance(path := got.get("path"), str) and len(self.paths) < 1_000:
            self.paths[path] = None

    def _note(self, got: Mapping[str, Any]) -> None:
        identity = got.get("id")
        if isinstance(identity, str):
            if identity in self.seen:
                return
            self.seen.add(identity)
        called = f"{got.get('name') or 'tool'} {_said(got.get('input'))}".strip()
        self.in_a_row = self.in_a_row + 1 if called == self._whole else 1
        self._whole = called
        self.last = clipped(one_line(called), _SHOWN_COMMAND)
        self.count += 1


class CommandReader:
    """Follows the stream of one attempt; a CLI without an event stream tells no commands."""

    def __init__(self, files: AttemptFiles, table: StreamTable | None) -> None:
        self._follower = Follower(files.stream)
        self._splitter = LineSplitter()
        self._table = table
        self.commands = Commands(table) if table is not None else None
        self._actions = bind(table, self.commands) if table is not None and self.commands is not None else {}
        self.in_flight = False

    def read(self) -> None:
        """Take what has come since the last call."""
        if self.commands is None:
            return
        for piece in self._follower.pieces():
            if isinstance(piece, Gap):
                self._splitter.rest()
                continue
            for line in self._splitter.split(piece):
                self._line(line.strip())

    def _line(self, line: bytes) -> None:
        # What stands behind the telling of a call, even a line that no table reads, says that it came back.
        if not line or self.commands is None or self._table is None:
            return
        before = self.commands.count
        try:
            event = json.loads(line)
            kind = self._table.kind(event) if isinstance(event, dict) else None
            if isinstance(kind, str) and (apply := self._actions.get(kind)) is not None:
                apply(event)
        except (ValueError, RecursionError):
            pass
        self.in_flight = self.commands.count > before


class Activity:
    """The signs of life of a run's attempts; ``table_of`` gives the stream table of a pool's CLI."""

    def __init__(self, folder: RunFolder, *, table_of: TableOf) -> None:
        self._folder = folder
        self._table_of = table_of
        self._readers: dict[tuple[str, int], CommandReader] = {}

    def lives(self, state: RunState, *, now: datetime) -> list[Life]:
        """Return the signs of life of every attempt that runs, in the order of the program."""
        running = [step.running for step in state.steps.values()]
        found = [attempt for attempt in running if attempt is not None and attempt.launched_at is not None]
        keys = {(attempt.picked.step, attempt.picked.ordinal) for attempt in found}
        self._readers = {key: reader for key, reader in self._readers.items() if key in keys}
        return [self._life(state, attempt, now) for attempt in found]

    def _life(self, state: RunState, attempt: AttemptState, now: datetime) -> Life:
        picked = attempt.picked
        files = self._folder.attempt(picked.step, picked.ordinal)
        key = (picked.step, picked.ordinal)
        reader = self._readers.get(key)
        if reader is None:
            reader = self._readers[key] = CommandReader(files, self._table_of(picked.pool))
        reader.read()
        commands, started = reader.commands, attempt.launched_at or attempt.picked_at
        checking = files.concluded.exists()
        count = commands.count if commands else 0
        return Life(
            step=picked.step,
            ordinal=picked.ordinal,
            started=started,
            last_output=max(started, min(now, last_output(files))),
            last_change=_last_change(state, attempt, commands, started, now),
            commands=count,
            same_command=commands.in_a_row if commands else 0,
            last_command=commands.last if commands else None,
            in_flight=reader.in_flight and not checking,
            checking=checking,
            expected_minutes=picked.expected_minutes,
        )


def last_output(files: AttemptFiles) -> datetime:
    """Return when the attempt, or a check of its, last wrote anything; the epoch where nothing was written."""
    captures = [segment.path for stream in (files.stream, files.stdout) for segment in segments(stream)]
    logs = [files.evidence_log(number) for number in range(1, 33)] if files.concluded.exists() else []
    return _newest([*captures, files.stderr, files.concluded, *logs])


def _last_change(
    state: RunState, attempt: AttemptState, commands: Commands | None, started: datetime, now: datetime
) -> datetime | None:
    """Return when a writer last changed a file, as far as that matters for the stale score."""
    if attempt.picked.lane == "analyze":
        return None
    cwd = Path(state.created.cwd)
    named = [*files_of(state.program.step(attempt.picked.step)), *(commands.paths if commands else ())]
    known = max(started, _newest([cwd / name for name in named]))
    if commands is None or commands.count < COMMANDS_BEFORE_CHANGE or now - known < NO_CHANGE:
        return known
    # It may write files that it names nowhere; only now is it worth a look at the whole tree.
    return max(known, _newest_below(cwd, newer_than=now - NO_CHANGE))


def _newest(paths: list[Path]) -> datetime:
    newest = 0.0
    for path in paths:
        try:
            newest = max(newest, path.stat().st_mtime)
        except (OSError, ValueError):
            continue
    return datetime.fromtimestamp(newest, UTC)


def _newest_below(root: Path, *, newer_than: datetime) -> datetime:
    """Return the time of the first file found that is newer, or the epoch."""
    looked_at, limit, folders = 0, newer_than.timestamp(), [str(root)]
    while folders and looked_at < _MOST_FILES_LOOKED_AT:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:
            continue
        for entry in entries:
            looked_at += 1
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders += [entry.path] if entry.name not in _NOT_LOOKED_INTO else []
                elif (changed := entry.stat(follow_symlinks=False).st_mtime) > limit:
                    return datetime.fromtimestamp(changed, UTC)
            except (OSError, ValueError):
                continue
    return datetime.fromtimestamp(0, UTC)


def _said(value: object) -> str:
    """Return a call's input: its command or file where it names one."""
    if isinstance(value, Mapping):
        named = next(
            (value[name] for name in ("command", "cmd", "file_path", "filePath", "path", "query") if name in value),
            None,
        )
        value = named if isinstance(named, str) else json.dumps(value, ensure_ascii=False, default=str)
    return str(value or "")
