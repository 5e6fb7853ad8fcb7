"""Drives one run to its verdict: the body of the kernel process (design D4).

A kernel may die at any moment. Everything that matters is in the journal and in the files of the keepers, so that the next
kernel folds, takes over what is still running, reads out what has ended, and goes on.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
import traceback
from collections.abc import Callable, Iterator

from bullswarm_core.errors import BullswarmError, LockTimeoutError, RunConflictError
from bullswarm_core.home import file_lock
from bullswarm_core.runs.attempt import LiveAttempt
from bullswarm_core.runs.events import AttemptPicked, KernelStarted, RunFinished, StepUnplaced
from bullswarm_core.runs.folder import RunFolder
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.pick import pick_pool
from bullswarm_core.runs.scheduler import Finish, Start, TakeOver, next_actions
from bullswarm_core.runs.services import Services
from bullswarm_core.runs.state import RunState, apply
from bullswarm_core.runs.verdict_document import verdict_of
from bullswarm_core.values import dataclass, field
from bullswarm_core.workers.identity import current

# Looks ten times a second while something happens, and four times while a worker is quiet (budget: 1 % of a processor).
_BUSY_PAUSE_SEC = 0.1
_QUIET_PAUSE_SEC = 0.25
# Somebody who looks whether a kernel is alive holds a shared lock for an instant; that must not look like a second kernel.
_LEASE_WAIT_SEC = 2.0


@contextlib.contextmanager
def kernel_lease(folder: RunFolder) -> Iterator[None]:
    """Be the one kernel of a run; the lock dies with the process. Raises RunConflictError when another one drives it."""
    try:
        with file_lock(folder.kernel_lock, timeout_sec=_LEASE_WAIT_SEC):
            yield
    except LockTimeoutError as error:
        raise RunConflictError(f"run {folder.path.name} is driven by another kernel", hint="wait for it") from error


def drive(services: Services, connection: sqlite3.Connection, run_id: str, *, say: Callable[[str], None]) -> RunState:
    """Bring the run to its verdict and return its final state; ``say`` is given lines for the kernel's log.

    Raises RunConflictError when another kernel has the run, UnknownNameError when there is no such run.
    """
    journal = Journal(connection)
    folder = RunFolder.of(services.home, run_id)
    state = journal.state(run_id)
    if state.finished is not None:
        return state
    with kernel_lease(folder):
        # Another kernel may have finished the run while this one waited for its turn.
        state = journal.state(run_id)
        if state.finished is not None:
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

    def run(self) -> RunState:
        while True:
            self._read_on()
            if self.state.finished is not None:
                return self.state
            for action in next_actions(self.state, now=self.services.now()):
                if isinstance(action, Start):
                    self._start(action)
                elif isinstance(action, TakeOver):
                    self._follow(action)
                elif isinstance(action, Finish):
                    self._finish()
            moved = self._poll()
            if self.live:
                time.sleep(_BUSY_PAUSE_SEC if moved else _QUIET_PAUSE_SEC)

    def _read_on(self) -> None:
        for event in self.journal.read(self.state.created.run_id, after=self.state.seq):
            state = apply(self.state, event)
            assert state is not None, "a state never turns into none"
            self.state = state

    def _start(self, action: Start) -> None:
        outcome = pick_pool(self.services, self.connection, self.journal, self.state, action.step, action.again)
        if isinstance(outcome, StepUnplaced):
            self.say(f"{action.step}: {outcome.why}")
            return
        self._guarded(outcome, lambda live: live.start())
        self.services.load_changed()

    def _follow(self, action: TakeOver) -> None:
        if action.step not in self.live:
            self._guarded(action.attempt.picked, lambda live: live.take_over(action.attempt))

    def _guarded(self, picked: AttemptPicked, begin: Callable[[LiveAttempt], None]) -> None:
        """Begin an attempt; whatever goes wrong with it is the end of this attempt only, never of the kernel."""
        live = LiveAttempt(self.services, self.journal, self.connection, self.state, picked, self.folder)
        self.live[picked.step] = live
        try:
            if self.state.stop_requested is not None:
                # Before the start: a keeper that finds the wish starts no worker.
                live.ask_to_stop(self.state.stop_requested.by)
            begin(live)
        except Exception as error:
            self._break_off(live, error)

    def _poll(self) -> bool:
        moved = False
        for step_id, live in list(self.live.items()):
            try:
                if self.state.stop_requested is not None:
                    live.ask_to_stop(self.state.stop_requested.by)
                moved = live.poll() or moved
                if live.ended:
                    live.finish()
                    del self.live[step_id]
                    self.services.load_changed()
            except Exception as error:
                self._break_off(live, error)
        return moved

    def _break_off(self, live: LiveAttempt, error: Exception) -> None:
        if not isinstance(error, BullswarmError):
            self.say(traceback.format_exc())
        live.break_off(error)
        self.live.pop(live.picked.step, None)

    def _finish(self) -> None:
        # One step, one verdict: a program of several gets its own result document.
        step = next(iter(self.state.steps.values()))
        label = self.services.label(step.current.picked.pool) if step.current else None
        verdict = verdict_of(self.state, step, folder=self.folder, label=label)
        outcome = {"succeeded": "completed", "failed": "failed"}.get(step.status, "cancelled")
        if verdict["failureKind"] in ("cancelled", "interrupted"):
            outcome = verdict["failureKind"]
        self.journal.append(
            self.state.created.run_id, [RunFinished(outcome=outcome, verdict=verdict)], at=self.services.now()
        )
