"""The journal of runs in the database: append events, read them back, find a run by a name that people use.

The states of runs are kept as they were last folded, so that only newer events are folded at the next look. A workflow of 500
steps has some thousand events, and folding them takes 0.2 s; a kernel looks whenever a worker starts or ends, at its own run
and at all others that are not over.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.dispatch.ledger import MAX_AGE
from bullswarm_core.errors import DamagedRunError, UnknownNameError, UsageError
from bullswarm_core.runs.events import Event, Payload, RunCreated, RunFinished, RunReopened, decode, encode
from bullswarm_core.runs.fold import apply, fold
from bullswarm_core.runs.state import RunState
from bullswarm_core.store.database import transaction
from bullswarm_core.wire import parse_iso, stamp

LAST = "last"
# A request that is sent again comes within minutes; the same words a week later mean new work.
KEY_LIFE = timedelta(hours=24)
# An id has 18 characters, and SQLite refuses patterns of 50,000 bytes.
_LONGEST_NAME = 64
# What stands for the time of a run whose row is damaged: nothing was run then.
UNREADABLE = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWS_OTHERS = "`bullswarm runs list` shows the others"


@dataclass(frozen=True, slots=True)
class RunRow:
    """One line of `runs list`; ``outcome`` is None while the run is unfinished."""

    run_id: str
    short_id: str
    created_at: datetime
    cwd: str
    goal: str
    kind: str
    caller: str | None = None
    outcome: str | None = None
    finished_at: datetime | None = None


@contextlib.contextmanager
def _damage_named(run_id: str) -> Iterator[None]:
    """Raise DamagedRunError where every event has its form, and yet they contradict each other: a step is unknown, say."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise DamagedRunError(
            f"the journal of run {run_id} is damaged: {type(error).__name__}: {error}", run=run_id, hint=_SHOWS_OTHERS
        ) from error


class Journal:
    """Reads and writes the events of runs; ``connection`` belongs to the caller."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def create(self, created: RunCreated, *, at: datetime) -> RunCreated:
        """Record a new run and return it with the short id that it got; a short id that is taken is drawn again.

        A run of the same idempotency key from the last 24 hours is returned instead. Raises UsageError when that one was
        asked for something else.
        """
        while True:
            created = replace(created, short_id=new_short_id())
            try:
                with transaction(self._connection):
                    if created.idempotency_key is not None:
                        if earlier := self.of_key(created.idempotency_key, now=at):
                            return _same_request(self.state(earlier).created, created)
                        self._connection.execute(
                            "UPDATE runs SET idempotency_key = NULL WHERE idempotency_key = ?",
                            (created.idempotency_key,),
                        )
                    self._connection.execute(
                        "INSERT INTO runs (id, short_id, created_at, cwd, goal, caller, kind, root, idempotency_key)"
                        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        (
                            created.run_id,
                            created.short_id,
                            stamp(at),
                            created.cwd,
                            created.goal,
                            created.caller,
                            created.kind,
                            created.root or created.run_id,
                            created.idempotency_key,
                        ),
                    )
                    self._insert(created.run_id, created, at)
                return created
            except sqlite3.IntegrityError as error:
                if "short_id" not in str(error):
                    raise

    def of_key(self, key: str, *, now: datetime) -> str | None:
        """Return the run that was started under an idempotency key within the last 24 hours, or None."""
        row = self._connection.execute(
            "SELECT id FROM runs WHERE idempotency_key = ? AND created_at > ?", (key, stamp(now - KEY_LIFE))
        ).fetchone()
        return str(row[0]) if row else None

    def append(self, run_id: str, payloads: Sequence[Payload], *, at: datetime) -> None:
        """Add events to a run, all or none. Inside a transaction of the caller's it joins that one."""
        if self._connection.in_transaction:
            self._append(run_id, payloads, at)
            return
        with transaction(self._connection):
            self._append(run_id, payloads, at)

    def append_after(self, run_id: str, payloads: Sequence[Payload], *, seq: int, at: datetime) -> bool:
        """Add events only while event ``seq`` is the newest; False when somebody said something in between."""
        with transaction(self._connection):
            if self.last_seq(run_id) != seq:
                return False
            self._append(run_id, payloads, at)
            return True

    def read(self, run_id: str, *, after: int = 0) -> list[Event]:
        """Return the events of a run with a sequence number above ``after``, in order."""
        rows = self._connection.execute(
            "SELECT seq, at, type, version, payload FROM events WHERE run = ? AND seq > ? ORDER BY seq", (run_id, after)
        )
        return [self._event(run_id, *row) for row in rows]

    def last_seq(self, run_id: str) -> int:
        """Return the number of the newest event of a run; 0 without any."""
        (seq,) = self._connection.execute(
            "SELECT coalesce(max(seq), 0) FROM events WHERE run = ?", (run_id,)
        ).fetchone()
        return int(seq)

    def state(self, run_id: str) -> RunState:
        """Fold the whole journal of a run. Raises UnknownNameError when there is none, DamagedRunError when it is damaged."""
        return self._folded(run_id, self.read(run_id))

    def _folded(self, run_id: str, events: Sequence[Event]) -> RunState:
        with _damage_named(run_id):
            state = fold(events)
            if state is not None and state.finished is not None and not isinstance(state.finished.verdict, dict):
                raise TypeError("the verdict is no object")
        if state is None:
            raise UnknownNameError(f'unknown run "{run_id}"', hint="`bullswarm runs list` shows them")
        return state

    def outline(self, run_id: str) -> RunState:
        """Fold only how a run began and how it last ended: enough for its verdict, at a price that doesn't grow with it.

        Its steps are as they were before it began. Raises as `state` does.
        """
        rows = self._connection.execute(
            "SELECT seq, at, type, version, payload FROM events WHERE run = ?1 AND seq IN (1,"
            " (SELECT seq FROM events WHERE run = ?1 AND type = 'run.finished' ORDER BY seq DESC LIMIT 1)) ORDER BY seq",
            (run_id,),
        ).fetchall()
        return self._folded(run_id, [self._event(run_id, *row) for row in rows])

    def read_on(self, state: RunState) -> RunState:
        """Return the state of a run with what was said since: a long journal is folded once, not for each event."""
        with _damage_named(state.created.run_id):
            for event in self.read(state.created.run_id, after=state.seq):
                state = apply(state, event) or state
        return state

    def find(self, name: str, *, caller: str | None = None) -> str:
        """Return the run id for an id, a short id, an unambiguous start of either, or ``last``.

        ``last`` is the newest run of ``caller``, or the newest of all for a person. Raises UnknownNameError.
        """
        if name == LAST:
            return self._newest(caller)
        if not name:
            raise UnknownNameError("the name of the run is empty", hint="give an id, a short id, or last")
        if len(name) > _LONGEST_NAME or not name.isascii() or not name.isprintable():
            shown = name[:_LONGEST_NAME].encode("ascii", "backslashreplace").decode()
            raise UnknownNameError(f'unknown run "{shown}"', hint="`bullswarm runs list` shows them")
        pattern = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        rows = self._connection.execute(
            "SELECT id, short_id FROM runs WHERE id LIKE ? ESCAPE '\\' OR short_id LIKE ? ESCAPE '\\' ORDER BY created_at DESC",
            (pattern, pattern),
        ).fetchall()
        exact = [run_id for run_id, short_id in rows if name in (run_id, short_id)]
        if exact or len(rows) == 1:
            return str(exact[0] if exact else rows[0][0])
        if not rows:
            raise UnknownNameError(f'unknown run "{name}"', hint="`bullswarm runs list` shows them")
        shown = ", ".join(short_id for _, short_id in rows[:5])
        raise UnknownNameError(f'"{name}" is the start of {len(rows)} runs ({shown})', hint="give more of the id")

    def short_id(self, run_id: str) -> str:
        """Return the short id of a run, the id itself of one that has no row (deleted, or of another home)."""
        row = self._connection.execute("SELECT short_id FROM runs WHERE id = ?", (run_id,)).fetchone()
        return str(row[0]) if row else run_id

    def rows(self, *, limit: int | None = None, unfinished_only: bool = False) -> list[RunRow]:
        """Return runs, newest first."""
        where = "WHERE finished_at IS NULL" if unfinished_only else ""
        found = self._connection.execute(
            "SELECT id, short_id, created_at, cwd, goal, kind, caller, state, finished_at FROM runs"
            f" {where} ORDER BY created_at DESC, id DESC LIMIT ?",
            (-1 if limit is None else limit,),
        )
        return [
            RunRow(
                run_id=run_id,
                short_id=short_id,
                created_at=_time_of(created_at) or UNREADABLE,
                cwd=cwd,
                goal=goal,
                kind=kind,
                caller=caller,
                outcome=outcome,
                finished_at=_time_of(finished_at),
            )
            for run_id, short_id, created_at, cwd, goal, kind, caller, outcome, finished_at in found
        ]

    def starts_under(self, root: str) -> int:
        """Return how many worker starts the runs under one root task have made."""
        (count,) = self._connection.execute(
            "SELECT count(*) FROM events JOIN runs ON runs.id = events.run"
            " WHERE runs.root = ? AND events.type = 'attempt.launched'",
            (root,),
        ).fetchone()
        return int(count)

    def others_wrote(self, tree: str, *, run_id: str, since: datetime) -> bool:
        """Tell whether a build or chore attempt of another run was at work in ``tree`` at any time after ``since``.

        A run that ended without a launch never was; while it is unfinished, its kernel may have died right after one.
        """
        row = self._connection.execute(
            "SELECT 1 FROM events AS picked JOIN runs ON runs.id = picked.run"
            " WHERE picked.type = 'attempt.picked' AND picked.run != ?"
            " AND json_extract(picked.payload, '$.tree') = ? AND json_extract(picked.payload, '$.lane') != 'analyze'"
            " AND picked.at >= ? AND (runs.finished_at IS NULL OR runs.finished_at >= ? AND EXISTS"
            " (SELECT 1 FROM events WHERE run = picked.run AND type = 'attempt.launched')) LIMIT 1",
            (run_id, tree, stamp(since - MAX_AGE), stamp(since)),
        ).fetchone()
        return row is not None

    def _newest(self, caller: str | None) -> str:
        row = self._connection.execute(
            "SELECT id FROM runs WHERE ? IS NULL OR caller = ? ORDER BY created_at DESC, id DESC LIMIT 1",
            (caller, caller),
        ).fetchone()
        if row is None:
            whose = f" by {caller}" if caller else ""
            raise UnknownNameError(f"there is no last run{whose}", hint='start one: bullswarm run --lane analyze "…"')
        return str(row[0])

    def _append(self, run_id: str, payloads: Sequence[Payload], at: datetime) -> None:
        for payload in payloads:
            self._insert(run_id, payload, at)
            if isinstance(payload, RunFinished):
                self._connection.execute(
                    "UPDATE runs SET state = ?, finished_at = ? WHERE id = ?", (payload.outcome, stamp(at), run_id)
                )
            elif isinstance(payload, RunReopened):
                self._connection.execute("UPDATE runs SET state = NULL, finished_at = NULL WHERE id = ?", (run_id,))

    def _insert(self, run_id: str, payload: Payload, at: datetime) -> None:
        kind, version, document = encode(payload)
        self._connection.execute(
            "INSERT INTO events (run, seq, at, type, version, payload)"
            " SELECT ?, coalesce(max(seq), 0) + 1, ?, ?, ?, ? FROM events WHERE run = ?",
            (run_id, stamp(at), kind, version, json.dumps(document, ensure_ascii=False), run_id),
        )

    def _event(self, run_id: str, seq: int, at: str, kind: str, version: int, payload: str) -> Event:
        try:
            return Event(run_id, seq, parse_iso(at), kind, decode(kind, version, json.loads(payload)))
        except (DamagedRunError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise DamagedRunError(
                f"event {seq} of run {run_id} is damaged ({kind}): {error}",
                run=run_id,
                event=seq,
                hint=_SHOWS_OTHERS,
            ) from error


def _time_of(value: object) -> datetime | None:
    """Return the time in a row of the list; None for none, and for one that is damaged, which must not hide the others."""
    try:
        return parse_iso(value) if isinstance(value, str) and value else None
    except (ValueError, OverflowError):
        return None


def _same_request(earlier: RunCreated, again: RunCreated) -> RunCreated:
    """Return the earlier run; a key that stands for other work must not hand out that work's verdict."""
    if (earlier.cwd, earlier.program, earlier.options) != (again.cwd, again.program, again.options):
        raise UsageError(
            f'the idempotency key "{again.idempotency_key}" belongs to run {earlier.short_id}, which was asked for something'
            f" else ({earlier.goal})",
            hint="use another key for other work",
        )
    return earlier


class Folds:
    """What one process has folded so far; it holds the states of the runs that it was last told to keep."""

    def __init__(self) -> None:
        self._states: dict[str, RunState] = {}

    def state(self, journal: Journal, run_id: str) -> RunState:
        """Return the state of a run as it is now. Raises UnknownNameError and StateError as `Journal.state` does."""
        known = self._states.pop(run_id, None)
        state = journal.state(run_id) if known is None else journal.read_on(known)
        self._states[run_id] = state
        return state

    def keep(self, run_ids: Iterable[str]) -> None:
        """Forget every run but these."""
        self._states = {run_id: self._states[run_id] for run_id in run_ids if run_id in self._states}


_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
# Without 0 1 i l o, so that a short id read aloud or copied by hand can't be mistaken.
_SHORT_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
SHORT_ID_LENGTH = 6


def new_run_id(now: datetime) -> str:
    """Return ``wf-<base36 milliseconds>-<6 hex>``."""
    number, digits = int(now.timestamp() * 1000), ""
    while number:
        number, digit = divmod(number, 36)
        digits = _BASE36[digit] + digits
    return f"wf-{digits}-{secrets.token_hex(3)}"


def new_short_id() -> str:
    """Return six characters of an alphabet without look-alikes; the journal refuses one that is taken."""
    return "".join(secrets.choice(_SHORT_ALPHABET) for _ in range(SHORT_ID_LENGTH))
