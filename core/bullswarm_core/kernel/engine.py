"""Drives one run to its verdict: the body of the kernel process (docs/design/processes.md, "The kernel").

A kernel may die at any moment. Everything that matters is in the journal and in the files of the keepers, so that the next
kernel folds, takes over what is still running, reads out what has ended, and goes on.
"""

from __future__ import annotations

import sqlite3
import threading
import traceback
from collections.abc import Callable, Sequence
from datetime import datetime

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.attempts.attempt import LiveAttempt
from bullswarm_core.attempts.pick import pick_pool
from bullswarm_core.dispatch.services import Services
from bullswarm_core.errors import BullswarmError
from bullswarm_core.judging.model import StopKind
from bullswarm_core.kernel.liveness import kernel_lease
from bullswarm_core.kernel.outcome import finished_event
from bullswarm_core.process.identity import current
from bullswarm_core.runs.events import AttemptPicked, KernelStarted, Payload, StepUnplaced
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.scheduler import Action, Finish, Park, Record, Start, TakeOver, next_actions, next_moment
from bullswarm_core.runs.state import RunState

# Looks ten times a second while something happens, and four times while a worker is quiet (budget: 1 % of a processor).
_BUSY_PAUSE_SEC = 0.1
_QUIET_PAUSE_SEC = 0.25


def drive(services: Services, connection: sqlite3.Connection, run_id: str, *, say: Callable[[str], None]) -> RunState:
    """Bring the run to its verdict, or to where it waits for somebody, and return its state; ``say`` is given log lines.

    Raises RunConflictError when another kernel has the run, UnknownNameError when there is no such run.
    """
    journal = Journal(connection)
    folder = RunFolder.of(services.home, run_id)
    while True:
        state = journal.state(run_id)
        if state.finished is not None:
            return state
        with kernel_lease(folder):
            state = _drive_once(services, journal, connection, folder, run_id, say)
        # Whoever acted on a parked run while this kernel still held the lease started another one, which found it held and
        # ended: what they asked for is this kernel's to do.
        latest = journal.state(run_id)
        if latest.finished is not None or latest.parked is not None or latest.seq == state.seq:
            return latest


def _drive_once(
    services: Services,
    journal: Journal,
    connection: sqlite3.Connection,
    folder: RunFolder,
    run_id: str,
    say: Callable[[str], None],
) -> RunState:
    # Another kernel may have finished the run while this one waited for its turn.
    state = journal.state(run_id)
    if state.finished is not None or state.parked is not None:
        return state
    resumed = state.kernel is not None
    journal.append(run_id, [KernelStarted(current().to_json(), resumed)], at=services.now())
    return _Engine(services, journal, connection, folder, state, say).run()


@dataclass(slots=True)
class _Engine:
    services: Services
    journal: Journal
    connection: sqlite3.Connection
    folder: RunFolder
    state: RunState
    say: Callable[[str], None]
    live: dict[str, LiveAttempt] = field(default_factory=dict)
    # Up to which event the state was acted on, and when it asks for something although no event comes.
    acted_on: int = 0
    due: datetime | None = None
    # Set when something that was done aside is over.
    awake: threading.Event = field(default_factory=threading.Event)

    def run(self) -> RunState:
        while True:
            self._read_on()
            if self.state.finished is not None or self.state.parked is not None:
                return self.state
            went_on = self._go_on()
            moved = self._poll()
            if not went_on:
                self.awake.wait(_BUSY_PAUSE_SEC if moved else _QUIET_PAUSE_SEC)
            self.awake.clear()

    def _go_on(self) -> bool:
        """Act on what is new; for 500 steps it takes milliseconds to find that nothing is to be done."""
        now = self.services.now()
        if self.state.seq == self.acted_on and (self.due is None or now < self.due):
            return False
        self.acted_on, self.due = self.state.seq, next_moment(self.state, now=now)
        return self._act(next_actions(self.state, now=now))

    def _read_on(self) -> None:
        self.state = self.journal.read_on(self.state)

    def _act(self, actions: Sequence[Action]) -> bool:
        """Do what is to be done; True when the state has moved on by it, so that there may be more at once."""
        went_on = False
        for action in actions:
            if isinstance(action, Start):
                self._start(action)
                went_on = went_on or action.step not in self.live
            elif isinstance(action, TakeOver):
                self._follow(action)
            elif isinstance(action, (Record, Park)):
                went_on = self._say_unless_overtaken([action.payload])
            elif isinstance(action, Finish):
                verdict = finished_event(
                    self.state, folder=self.folder, label=self.services.label, now=self.services.now()
                )
                went_on = self._say_unless_overtaken([verdict])
            if isinstance(action, (Record, Park, Finish)) and not went_on:
                break
        return went_on

    def _say_unless_overtaken(self, payloads: Sequence[Payload]) -> bool:
        """Write down what follows from the state, unless somebody has said something since it was read."""
        said = self.journal.append_after(
            self.state.created.run_id, payloads, seq=self.state.seq, at=self.services.now()
        )
        if said:
            self._read_on()
        return said

    def _start(self, action: Start) -> None:
        outcome = pick_pool(self.services, self.connection, self.journal, self.state, action.step, action.again)
        if isinstance(outcome, StepUnplaced):
            self.say(f"{action.step}: {outcome.why}")
            return
        self._guarded(outcome, lambda live: live.start())

    def _follow(self, action: TakeOver) -> None:
        if action.step not in self.live:
            self._guarded(action.attempt.picked, lambda live: live.take_over(action.attempt))

    def _guarded(self, picked: AttemptPicked, begin: Callable[[LiveAttempt], None]) -> None:
        """Begin an attempt; whatever goes wrong with it is the end of this attempt only, never of the kernel."""
        live = LiveAttempt(
            self.services,
            self.journal,
            self.connection,
            self.state,
            picked,
            self.folder,
            wake=self.awake.set,
            say=self.say,
        )
        self.live[picked.step] = live
        try:
            # Before the start: a keeper that finds the wish starts no worker.
            self._stop_if_unwanted(live)
            begin(live)
        except Exception as error:
            self._break_off(live, error)

    def _poll(self) -> bool:
        moved = False
        for step_id, live in list(self.live.items()):
            try:
                self._stop_if_unwanted(live)
                prepared = live.is_preparing
                moved = live.poll() or moved
                if prepared and not live.is_preparing:
                    self.services.load_changed()
                if live.ended and live.finish(stop=_stop_kind(self.state, live.picked)):
                    del self.live[step_id]
                    self.services.load_changed()
                    moved = True
            except Exception as error:
                self._break_off(live, error)
        return moved

    def _stop_if_unwanted(self, live: LiveAttempt) -> None:
        by = _unwanted_by(self.state, live.picked)
        if by is not None:
            live.ask_to_stop(by)

    def _break_off(self, live: LiveAttempt, error: Exception) -> None:
        if not isinstance(error, BullswarmError):
            self.say(traceback.format_exc())
        live.break_off(error)
        self.live.pop(live.picked.step, None)


def _superseded(state: RunState, picked: AttemptPicked) -> bool:
    return state.steps[picked.step].generation != picked.generation


def _unwanted_by(state: RunState, picked: AttemptPicked) -> str | None:
    """Who wants an attempt to end, or None."""
    if state.stop_requested is not None:
        return state.stop_requested.by
    if _superseded(state, picked):
        return "the step begins anew"
    if state.paused is not None and state.paused.at_once:
        return state.paused.by
    return None


def _stop_kind(state: RunState, picked: AttemptPicked) -> StopKind:
    """What it means that an attempt was stopped: a machine that goes down sends its keeper a signal too."""
    if state.stop_requested is not None:
        return "cancelled"
    if _superseded(state, picked):
        return "restarted"
    return "paused" if state.paused is not None and state.paused.at_once else "interrupted"
