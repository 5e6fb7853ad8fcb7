"""Supervision of one running worker: drain its pipes, watch its clocks, and end it with everything it started."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.keeper.clocks import AwakeClock, Progress, due
from bullswarm_core.keeper.spec import KeeperSpec
from bullswarm_core.keeper.start import Started
from bullswarm_core.process import descendants
from bullswarm_core.process.capture import BoundedCapture
from bullswarm_core.process.descendants import Tree
from bullswarm_core.process.guard import Guard
from bullswarm_core.streams.facts import EndReason
from bullswarm_core.streams.terminal import TerminalWatch, matches_from_json
from bullswarm_core.trees.activity import TreeWatch

# A quiet worker wakes its keeper four times a second: the stop file is seen in time, the CPU is not felt (under 0.1 %).
TICK_SEC = 0.25
# While something is ending, a quarter of a second would be felt by whoever waits.
ENDING_TICK_SEC = 0.05
# A daemonised grandchild may hold the pipe for ever: after the worker's end it gets this long.
DRAIN_SEC = 2.0
# What a worker leaves behind without holding its pipes may take this long to end by itself, and as long after TERM.
LEFTOVER_SEC = 0.5
# Nothing survives KILL but a process stuck in the kernel; it must not hold the verdict for ever.
KILL_SEC = 10.0
READ_BYTES = 256 * 1024
PIPE_BYTES = 1024 * 1024
SET_PIPE_SIZE = 1031


@dataclass(slots=True)
class Interrupts:
    """Signals that reached the keeper. ``wake`` is the pipe that ends a wait as soon as one arrives."""

    wake: int
    stop: str | None = None

    @classmethod
    def install(cls) -> Interrupts:
        """Catch what asks for an end and what tells of a child's; ignore what would kill the keeper by accident."""
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        found = cls(wake=read)

        def stop(number: int, _frame: object) -> None:
            found.stop = signal.Signals(number).name

        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)
        return found


@dataclass(frozen=True, slots=True)
class Stop:
    """Somebody's wish that the worker end."""

    reason: EndReason
    detail: str = ""


def stop_request(interrupts: Interrupts, stop_file: str) -> Stop | None:
    """Return a stop asked for by signal or by the stop file; a damaged stop file is a stop all the same."""
    if interrupts.stop is not None:
        return Stop("stopped", f"the keeper received {interrupts.stop}")
    if not os.path.exists(stop_file):
        return None
    try:
        with open(stop_file, encoding="utf-8") as file:
            value = json.load(file)
        reason, detail = value["reason"], str(value.get("detail") or "")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Stop("stopped", "the stop file could not be read")
    return Stop(reason if reason in ("stopped", "limit") else "stopped", detail)


@dataclass(slots=True)
class Ended:
    """How the supervision came to its end."""

    reason: EndReason
    status: int | None
    wall: float
    silent: float
    detail: str = ""
    leftovers: set[int] = field(default_factory=set)
    survivors: int = 0


class Supervision:
    """Keeps one worker from its start until nothing of it is left."""

    def __init__(
        self,
        spec: KeeperSpec,
        started: Started,
        interrupts: Interrupts,
        stdout: BoundedCapture,
        stderr: BoundedCapture,
        *,
        at_once: Callable[[], None] | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._spec = spec
        self._clocks = spec.clocks
        self._worker = started.pid
        self._interrupts = interrupts
        self._tree = Tree(started.pid, at_once=at_once, guard=guard)
        self._captures = {started.stdout: stdout, started.stderr: stderr}
        self._stdout = started.stdout
        self._terminal = TerminalWatch(matches_from_json(spec.terminal))
        self._progress = Progress()
        self._clock = AwakeClock(last=time.monotonic())
        self._now = 0.0
        self._next_look = 0.0
        self._ended = Ended(reason="exited", status=None, wall=0.0, silent=0.0)
        every = max(TICK_SEC, (self._clocks.no_progress_sec or 0.0) / 4)
        self._watch = TreeWatch(spec.watch_tree, every_sec=every) if spec.watch_tree else None
        self._poller = select.poll()
        self._poller.register(interrupts.wake, select.POLLIN)
        for fd in self._captures:
            os.set_blocking(fd, False)
            _widen(fd)
            self._poller.register(fd, select.POLLIN)

    def run(self) -> Ended:
        """Supervise until the end and return it."""
        while self._ended.status is None:
            self._turn(TICK_SEC)
            reason = None if self._ended.status is not None else self._reason()
            if reason is not None:
                self._ended.reason = reason
                self._end_all(self._clocks.term_grace_sec)
                break
        self._heed_unseen_stop()
        self._ended.wall = self._now
        self._ended.silent = self._now - (self._progress.last_byte or 0.0)
        self._let_finish()
        for fd in list(self._captures):
            self._drain(fd, until_empty=True)
            self._forget(fd)
        return self._ended

    def _heed_unseen_stop(self) -> None:
        """Let a stop hold that was asked for before the worker's end was noticed, as while the keeper was frozen.

        A limit's stop is no wish of a person: a worker that came to its end in spite of the notice did its work.
        """
        stop = stop_request(self._interrupts, self._spec.stop_file) if self._ended.reason == "exited" else None
        if stop is not None and stop.reason == "stopped":
            self._ended.reason, self._ended.detail = stop.reason, stop.detail

    def _turn(self, seconds: float) -> None:
        ready = self._poller.poll(seconds * 1000)
        self._now = self._clock.tick(time.monotonic())
        for fd, _events in ready:
            if fd == self._interrupts.wake:
                _swallow(fd)
            else:
                self._drain(fd)
        self._reap()

    def _drain(self, fd: int, *, until_empty: bool = False) -> None:
        turns = 0
        while fd in self._captures and (until_empty or turns < 4):
            turns += 1
            try:
                chunk = os.read(fd, READ_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            if not chunk:
                self._forget(fd)
                return
            self._progress.last_byte = self._now
            self._captures[fd].feed(chunk)
            if fd == self._stdout:
                self._progress.last_stdout = self._now
                if self._terminal.feed(chunk):
                    self._progress.terminal_at = self._now

    def _forget(self, fd: int) -> None:
        if self._captures.pop(fd, None) is None:
            return
        self._poller.unregister(fd)
        os.close(fd)

    def _reap(self) -> None:
        self._tree.reap()
        self._ended.status = self._tree.status

    def _reason(self) -> EndReason | None:
        if self._now < self._next_look:
            return None
        self._next_look = self._now + TICK_SEC * 0.9
        stop = stop_request(self._interrupts, self._spec.stop_file)
        if stop is not None:
            self._ended.detail = stop.detail
            return stop.reason
        self._look_at_files()
        reason = due(self._clocks, self._progress, self._now)
        return None if reason == "no-progress" and not self._looked_enough() else reason

    def _look_at_files(self) -> None:
        watch, limit = self._watch, self._clocks.no_progress_sec
        idle = self._now - self._progress.last_change
        if watch is None or not limit or watch.changed(self._now, at_once=idle >= limit):
            self._progress.last_change = self._now

    def _looked_enough(self) -> bool:
        # Nobody is stopped on an old look: a complete one must have begun after the limit was reached.
        deadline = self._progress.last_change + (self._clocks.no_progress_sec or 0.0)
        return self._watch is not None and self._watch.looked_at >= deadline

    def _let_finish(self) -> None:
        """Give what the worker left behind a moment to end by itself, then end it."""
        if self._ended.status is None:
            return
        begun = self._now
        while self._captures or not self._tree.is_empty():
            limit = DRAIN_SEC if self._captures else LEFTOVER_SEC
            if self._now - begun >= limit or self._ended.reason not in ("exited", "after-terminal"):
                break
            if self._tree.flooded:
                # Whatever ends by the hundred doesn't come to its end, and fills the system's table of processes meanwhile.
                break
            self._turn(ENDING_TICK_SEC)
        if not self._tree.is_empty():
            self._end_all(LEFTOVER_SEC)

    def _end_all(self, grace: float) -> None:
        """TERM to everything, KILL after ``grace`` seconds, until nothing is left."""
        descendants.hurry()
        try:
            self._end_within(grace)
        finally:
            descendants.hurry(on=False)

    def _end_within(self, grace: float) -> None:
        # What ends by the hundred heeds no TERM, and each look at the system's processes takes long then.
        if not (self._tree.flooded and self._tree.reaped):
            self._count(self._tree.signal(signal.SIGTERM))
            if self._gone_within(grace):
                return
        begun = self._now
        while self._now - begun < KILL_SEC:
            self._count(self._tree.kill_at_once())
            if not self._tree.is_empty():
                self._count(self._tree.signal(signal.SIGKILL))
            if self._gone_within(ENDING_TICK_SEC):
                return
            if sys.platform == "linux" and self._tree.reaped:
                self._count(self._tree.kill_children(KILL_SEC - (self._now - begun)))
                self._turn(0)
        self._ended.survivors = self._tree.survivors()
        if self._ended.survivors:
            sys.stderr.write(f"processes that KILL did not end: {sorted(self._tree.members())}\n")

    def kill_survivors(self) -> None:
        """Go on killing until nothing is left, after the exit record said that something was (Linux)."""
        if sys.platform == "linux":
            descendants.hurry()
            self._tree.kill_children(None)

    def _gone_within(self, seconds: float) -> bool:
        begun = self._now
        while True:
            self._turn(ENDING_TICK_SEC)
            if self._tree.is_empty():
                return True
            if self._now - begun >= seconds or (self._tree.flooded and self._tree.reaped):
                return False

    def _count(self, members: set[int]) -> None:
        if self._ended.status is not None:
            self._ended.leftovers |= members - {self._worker}


def _swallow(fd: int) -> None:
    try:
        while os.read(fd, 512):
            pass
    except BlockingIOError:
        return


def _widen(fd: int) -> None:
    # A pipe of 1 MiB wakes the keeper a sixteenth as often in a flood; past the user's allowance it stays at 64 KiB.
    if sys.platform == "linux":
        try:
            fcntl.fcntl(fd, SET_PIPE_SIZE, PIPE_BYTES)
        except OSError:
            return
