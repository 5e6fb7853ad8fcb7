"""Tells the person of a run that needs them or has ended: their command in ``config.notify``, run by the kernel.

A courtesy that never holds or fails a run: the command has 10 s, nobody waits for it while work goes on, and what is wrong with
it stands in the kernel's log. It is told once; a kernel that is killed in between tells nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from bullswarm_core.errors import BullswarmError
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Settings
from bullswarm_core.process.identity import current
from bullswarm_core.reports import commands
from bullswarm_core.reports.handback import failure_of
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.status import statuses
from bullswarm_core.store.home import Home

TIMEOUT_SEC = 10.0
# Set for the command: what it starts in turn tells nobody, else a command that runs bullswarm would never come to an end.
NOTIFYING = "BULLSWARM_NOTIFYING"
NEEDS_YOU = "needs-you"
_LINE_LENGTH = 300


class Notifier:
    """Watches one run for its kernel, from the state ``before`` on; ``environ`` is what the run was asked for in."""

    def __init__(
        self,
        home: Home,
        before: RunState,
        *,
        environ: Mapping[str, str],
        say: Callable[[str], None],
        timeout_sec: float = TIMEOUT_SEC,
    ) -> None:
        self._home = home
        self._environ = environ
        self._say = say
        self._timeout_sec = timeout_sec
        self._told = frozenset(_in_need(before))
        self._threads: list[threading.Thread] = []

    def look(self, state: RunState) -> None:
        """Tell of steps that came back and of gates that wait while other work goes on; each of them once."""
        if not any(step.running for step in state.steps.values()):
            return  # the run is about to end or to wait, and tells of all of it then
        for name, why in _in_need(state).items():
            if name not in self._told:
                self._tell(state, NEEDS_YOU, why)
        self._told |= _in_need(state).keys()

    def rest(self, state: RunState) -> None:
        """Tell of the run's end, or of what it waits for, and wait for the commands.

        Nothing is told of a pause, which somebody asked for, nor of an end that another kernel brought about.
        """
        ours = state.kernel is not None and state.kernel.identity == current().to_json()
        if ours and state.finished is not None:
            self._tell(state, state.finished.outcome, _ending(state))
        elif ours and state.parked is not None and state.parked.reason == "waiting":
            waiting = ", ".join(state.parked.waiting_for)
            self._tell(state, "waiting", f"waiting for you at {waiting} · {commands.show(state.created.short_id)}")
        for thread in self._threads:
            thread.join()

    def _tell(self, state: RunState, outcome: str, line: str) -> None:
        if self._environ.get(NOTIFYING):
            return
        try:
            command = Settings.load(self._home).notify
            line = Labels.load(self._home).in_text(line)
        except BullswarmError as error:
            self._say(f"config.notify: {error}")
            return
        if command:
            thread = threading.Thread(target=self._run, args=(command, state, outcome, line), name="notify")
            self._threads.append(thread)
            thread.start()

    def _run(self, command: tuple[str, ...], state: RunState, outcome: str, line: str) -> None:
        import subprocess

        created = state.created
        told = {
            NOTIFYING: "1",
            "BULLSWARM_RUN_ID": created.run_id,
            "BULLSWARM_RUN_SHORT_ID": created.short_id,
            "BULLSWARM_RUN_OUTCOME": outcome,
            "BULLSWARM_RUN_LINE": " ".join(f"{created.short_id} {outcome}: {line}".split())[:_LINE_LENGTH],
        }
        try:
            process = subprocess.Popen(
                command,
                cwd=created.cwd if Path(created.cwd).is_dir() else self._home.root,
                env={**self._environ, **told},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._say(f"config.notify: {command[0]} could not be started: {error}")
            return
        try:
            code = process.wait(self._timeout_sec)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self._say(f"config.notify: {command[0]} took longer than {self._timeout_sec:g} s and was ended")
            return
        if code:
            self._say(f"config.notify: {command[0]} ended with {code}")


def _in_need(state: RunState) -> dict[str, str]:
    """Return the steps that came back and the gates and loops that wait, each with why; none of a single run."""
    if state.is_single:
        return {}
    found: dict[str, str] = {}
    for name, status in statuses(state).items():
        if status == "failed":
            kind, why = failure_of(state.steps[name])
            found[name] = f"{name} failed ({kind}): {why}"
        elif status == "waiting":
            found[name] = f"{name} waits for you"
    return found


def _ending(state: RunState) -> str:
    assert state.finished is not None, "a run that has ended"
    verdict = state.finished.verdict
    return f"{verdict.get('reason') or verdict.get('why') or ''} · {state.created.goal}"
