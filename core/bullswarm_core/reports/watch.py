"""What a watcher of a run is told: the journal's events as notices, each with the sequence number of its event. Pure.

A notice follows from the events up to its own alone. That is what makes cursors exact: however a journal is cut, every
notice is told once, and always in the same words.
Rule: docs/design/runs.md, "Signs of life".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.runs.events import Event
from bullswarm_core.runs.fold import apply
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.status import statuses
from bullswarm_core.wire import iso

WATCH_VERSION = "bullswarm.workflow-watch.v1"


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing that happened: ``line`` and the ``details`` below it, with pools by id.

    ``about`` is the step, gate or loop. ``trouble`` is told to who asks for trouble alone, ``wakes`` also ends a wait for
    it; what is not ``notable`` is told on request only. ``options`` are the lines with the ways on.
    """

    sequence: int
    at: datetime
    kind: str
    line: str
    about: str | None = None
    trouble: bool = False
    wakes: bool = False
    notable: bool = True
    details: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the notice as the one JSON object that stands for it."""
        return {
            "schemaVersion": WATCH_VERSION,
            "sequence": self.sequence,
            "at": iso(self.at),
            "type": self.kind,
            "about": self.about,
            "trouble": self.trouble,
            "line": self.line,
            **self.facts,
        }


@dataclass(frozen=True, slots=True)
class Moment:
    """One event between the states before and after it."""

    before: RunState | None
    event: Event
    after: RunState
    folder: RunFolder

    def notice(self, kind: str, line: str, **more: Any) -> Notice:
        """Make a notice of this event."""
        return Notice(self.event.seq, self.event.at, kind, line, **more)


Telling = Callable[[Moment], Sequence[Notice]]


class Teller:
    """Folds a journal as it grows and tells what its events mean; begins at the first event."""

    def __init__(self, *, folder: RunFolder, telling: Telling) -> None:
        self.state: RunState | None = None
        self._folder = folder
        self._telling = telling

    @property
    def sequence(self) -> int:
        """The number of the newest event that was taken, 0 before any."""
        return self.state.seq if self.state is not None else 0

    def take(self, events: Iterable[Event], *, after: int = 0) -> list[Notice]:
        """Take the next events of the journal and return the notices of those above the cursor ``after``."""
        found: list[Notice] = []
        for event in events:
            before = self.state
            self.state = apply(before, event)
            if event.seq > after and self.state is not None:
                found += self._telling(Moment(before, event, self.state, self._folder))
        return found


def standing(notices: Iterable[Notice], state: RunState) -> list[Notice]:
    """Return the troubles that still stand: what a watcher without a cursor must not miss.

    Of each step the newest that needs somebody, and each gate and loop that waits.
    """
    known = statuses(state)
    wanted = {"needs-you": ("failed",), "gate-waiting": ("waiting",), "loop-out-of-rounds": ("waiting",)}
    newest: dict[str, Notice] = {}
    for notice in notices:
        if notice.about is not None and known.get(notice.about) in wanted.get(notice.kind, ()):
            newest[notice.about] = notice
    return sorted(newest.values(), key=lambda notice: notice.sequence)
