"""One watch of a run: reads its journal and looks at its workers, prints what is asked for, and says where it goes on."""

from __future__ import annotations

import argparse
import json
import select
import time
from datetime import UTC, datetime
from typing import Any

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import UsageError
from bullswarm_core.kernel.liveness import KernelState, kernel_state
from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.notices import tell
from bullswarm_core.reports.stalls import DEFAULT_STALL_SEC, Activity, Life, LifeWatch
from bullswarm_core.reports.watch import WATCH_VERSION, Notice, Teller, standing
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.status import statuses
from bullswarm_core.store.database import open_database
from bullswarm_core.streams.table import StreamTable, compile_table
from bullswarm_core.wire import iso, parse_iso
from bullswarm_server.cli.context import CommandContext, escaped
from bullswarm_server.cli.run import EXIT_INTERRUPTED
from bullswarm_server.cli.runs_reading import print_run
from bullswarm_server.displays.text import Style
from bullswarm_server.displays.workflow_watch import (
    attach_document,
    attach_line,
    notice_lines,
    outcome_document,
    outcome_lines,
    progress,
)
from bullswarm_server.ops.launch import wait_for
from bullswarm_server.ops.runs import document_of, is_good
from bullswarm_server.ops.services import services_for


class Watch:
    """One watch of one run: what it has read, what it has told, and where it goes on."""

    def __init__(self, options: argparse.Namespace, context: CommandContext, state: RunState) -> None:
        self.options = options
        self.context = context
        self._at_start = state
        self.run_id = state.created.run_id
        self.folder = RunFolder.of(context.home, self.run_id)
        self.teller = Teller(folder=self.folder, telling=tell)
        self.lives: list[Life] = []
        self.reader_gone = False
        self._activity = Activity(self.folder, table_of=self._table_of)
        since = _moment(options.since) if options.since else None
        self._life_watch = LifeWatch(stall_after_sec=options.stall_after, since=since)
        self._tables: dict[str, StreamTable | None] | None = None
        self._first = True
        self._next_look = self._last_said = time.monotonic()

    @property
    def state(self) -> RunState:
        """The run as far as it was read."""
        return self.teller.state or self._at_start

    def follow(self) -> int:
        """Print what happens, line by line."""
        try:
            self._attach()
            if not (self._poll() or self.options.once):
                self.wait(self._look)
                if not self.reader_gone:
                    self._poll()
            return 0 if self.reader_gone else self._close()
        except KeyboardInterrupt:
            return self.leave()

    def wait(self, enough: Any) -> None:
        """Wait until the run ends, waits for somebody, or ``enough`` says so; a kernel that is gone is started again."""
        wait_for(
            self.context.home, self.run_id, environ=self.context.environ, timeout_sec=self.options.timeout,
            enough=enough,
        )  # fmt: skip

    def read(self) -> list[Notice]:
        """Read on in the journal and look at the workers; return what there is to tell."""
        connection = open_database(self.context.home)
        try:
            events = Journal(connection).read(self.run_id, after=self.teller.sequence)
        finally:
            connection.close()
        notices = self.teller.take(events, after=self.options.after or 0)
        if self._first and self.options.after is None:
            notices = standing(notices, self.state)
        self._first = False
        now = utc_now()
        over = self.state.finished is not None or self.state.parked is not None
        self.lives = [] if over else self._activity.lives(self.state, now=now)
        return [*notices, *self._life_watch.look(self.lives, now=now, sequence=self.state.seq)]

    def leave(self) -> int:
        """Say that the work goes on without the watcher, and how to come back."""
        self.context.note(f"left to itself: the run goes on · come back: {self.next_command()}")
        return EXIT_INTERRUPTED

    def next_command(self) -> str:
        """The command that goes on with this watch where it ended."""
        options = self.options
        words = ["bullswarm workflow watch", self.state.created.short_id]
        words += [f"--until {options.until}"] if options.until else []
        words += ["--next"] if options.next else []
        words += ["--jsonl"] if options.jsonl else []
        words += ["--verbose"] if options.verbose else []
        if options.stall_after != DEFAULT_STALL_SEC:
            words.append(f"--stall-after {options.stall_after:g}")
        if self.teller.state is not None:
            words += [f"--after {self.state.seq}", f"--since {iso(utc_now())}"]
        elif options.after is not None:
            words.append(f"--after {options.after}")
        return " ".join(words)

    def _attach(self) -> None:
        state = self._at_start
        known = statuses(state)
        sequence = state.seq if self.options.after is None else self.options.after
        if self.options.jsonl:
            self._say_json(attach_document(state, known, sequence=sequence, now=utc_now()))
        else:
            self._say(attach_line(state, known))

    def _look(self, _: RunState) -> bool:
        if reader_is_gone(self.context.out):
            self.reader_gone = True
            return True
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + self.options.interval
        return self._poll()

    def _poll(self) -> bool:
        """Look once and print what is new; True when that is what was waited for."""
        notices = self.read()
        shown = [notice for notice in notices if self._is_wanted(notice)]
        labels = Labels.load(self.context.home)
        for notice in shown:
            self._tell(notice, labels)
        self._beat()
        if self.options.next:
            return bool(shown)
        return self.options.until == "trouble" and any(notice.wakes for notice in shown)

    def _is_wanted(self, notice: Notice) -> bool:
        if self.options.verbose:
            return True
        return notice.trouble if self.options.until else notice.notable

    def _tell(self, notice: Notice, labels: Labels) -> None:
        if self.options.jsonl:
            self._say_json(notice.document())
            return
        # What is still to be decided when the run is over stands in the outcome.
        with_options = self.state.finished is None
        self._say(*notice_lines(
            notice, labels=labels, style=Style(colour=self.context.colour), with_options=with_options,
            with_time=self.options.verbose,
        ))  # fmt: skip

    def _beat(self) -> None:
        every = self.options.heartbeat
        if every is None or time.monotonic() - self._last_said < every:
            return
        known = statuses(self.state)
        running = [f"{life.step} {life.last_output:%H:%M:%S}Z" for life in self.lives]
        line = " · ".join(
            ["· alive", progress(self.state, known), *(["last output: " + ", ".join(running)] * bool(running))]
        )
        if self.options.jsonl:
            self._say_json(self._document("heartbeat", line=line))
        else:
            self._say(line)

    def _close(self) -> int:
        state = self.state
        over = state.finished is not None or state.parked is not None
        gone = not over and kernel_state(self.context.home, state, now=utc_now()) is KernelState.GONE
        if over or gone:
            self.print_outcome()
        if state.finished is None:
            command = self.next_command()
            if self.options.jsonl:
                self._say_json(self._document("cursor", since=iso(utc_now()), next=command))
            else:
                self._say(f"next: {command}")
        return self.exit_code(gone=gone)

    def exit_code(self, *, gone: bool = False) -> int:
        """0 while the run goes on or when it was delivered, 1 when it was not, waits where nobody asked, or is dead."""
        state = self.state
        if gone:
            return 1
        if state.finished is not None:
            return 0 if is_good(document_of(self.context.home, state)) else 1
        waits_in_vain = state.parked is not None and not self.options.next and self.options.until != "trouble"
        return 1 if waits_in_vain else 0

    def print_outcome(self) -> None:
        """Print how the run stands, which has ended or waits."""
        if self.state.is_single:
            if self.options.jsonl:
                verdict = document_of(self.context.home, self.state)
                self._say_json(self._document("outcome", **verdict, sequence=self.state.seq))
            else:
                print_run(self.context, self.state, as_json=False)
            return
        result = document_of(self.context.home, self.state)
        if self.options.jsonl:
            self._say_json(outcome_document(result, sequence=self.state.seq, now=utc_now()))
            return
        labels, style = Labels.load(self.context.home), Style(colour=self.context.colour)
        self._say(*outcome_lines(result, labels=labels, style=style))

    def _document(self, kind: str, **facts: Any) -> dict[str, Any]:
        own = {"schemaVersion": WATCH_VERSION, "sequence": self.state.seq, "at": iso(utc_now()), "type": kind}
        return {**facts, **own}

    def _say(self, *lines: str) -> None:
        self.context.print(*lines)
        self.context.out.flush()
        self._last_said = time.monotonic()

    def _say_json(self, document: dict[str, Any]) -> None:
        # Half a surrogate pair in a worker's text has no UTF-8; as an escape it is the same JSON.
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        self._say(escaped(text) if _is_encodable(text) else json.dumps(document, separators=(",", ":")))

    def _table_of(self, pool: str) -> StreamTable | None:
        if self._tables is None:
            self._tables = {}
        if pool not in self._tables:
            services = services_for(self.context.home, self.context.environ, write_cache=False)
            profile = services.profile(pool)
            table = profile.connector.stream_table() if profile is not None else {}
            self._tables[pool] = compile_table(table) if table else None
        return self._tables[pool]


def reader_is_gone(stream: Any) -> bool:
    """Tell whether nobody reads a pipe any more; a quiet watch would otherwise never notice."""
    try:
        poller = select.poll()
        poller.register(stream.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poller.poll(0))
    except (AttributeError, OSError, ValueError):
        return False


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _moment(text: str) -> datetime:
    """Read the moment at which an earlier watch ended."""
    try:
        found = parse_iso(text)
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(
            f'--since "{text}" is no time', hint="give one such as 2026-03-01T12:00:00Z, as the last watch printed it"
        ) from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
