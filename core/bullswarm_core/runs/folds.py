"""The states of runs as they were last folded: whoever looks at them again folds only what was said since.

A workflow of 500 steps has some thousand events, and folding them takes 0.2 s; a kernel looks whenever a worker starts or
ends, at its own run and at all others that are not over.
"""

from __future__ import annotations

from collections.abc import Iterable

from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.state import RunState


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
