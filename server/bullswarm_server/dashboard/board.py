"""What the pages know of the program that they are in: what it has read, what it says, and what they may ask of it."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence

from textual.app import App

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_server.dashboard.actions import Action, actions_at, resume_of
from bullswarm_server.dashboard.bars import Part
from bullswarm_server.dashboard.follow import RunFollower
from bullswarm_server.dashboard.ink import Tone, safe, wants_ascii
from bullswarm_server.dashboard.rows import Place
from bullswarm_server.dashboard.source import PoolsLook, RunsLook, Source
from bullswarm_server.dashboard.view_home import Need, under_way


class Board(App[None]):
    """The dashboard without its pages; ``served`` as in Dashboard, which is above the pages and opens them."""

    def __init__(self, source: Source, *, served: bool) -> None:
        super().__init__()
        self.source = source
        self.unicode = served or not wants_ascii(source.environ)
        self.runs: RunsLook | None = None
        self.pools = PoolsLook(utc_now())
        self.needs: Sequence[Need] = ()
        self.said: tuple[str, Tone] = ("reading", "faint")
        self.soon = asyncio.Event()

    @abstractmethod
    def say(self, text: str, tone: Tone = "") -> None:
        """Say something in the line above the keys."""

    def put(self, text: str, tone: Tone = "") -> None:
        """Have the next drawing of the line above the keys say something."""
        line = safe(text)
        self.said = (line if self.unicode else line.encode("ascii", "replace").decode(), tone)

    def summary(self) -> list[Part]:
        """Return what stands at the right end of the upper bar: how much needs the person, and how much runs."""
        if self.runs is None:
            return []
        needs, running = len(self.needs), len(under_way(self.runs, at_rest=False))
        found = [Part(f" {needs} need{'s' if needs == 1 else ''} you ", "warn", "1")] if needs else []
        return [*found, Part(f" {running} running ", "faint", "1")]

    def read_soon(self) -> None:
        """Read on without waiting for the next second."""
        self.soon.set()

    def actions_at(self, place: Place | None) -> list[Action]:
        """Return what may be done at a place of a run that stands open."""
        glance = self.runs.glances.get(place.run_id) if self.runs and place else None
        if glance is None or place is None or self.runs is None:
            return []
        found = actions_at(
            glance.state, place.name, glance.known, folder=self.folder(place.run_id), labels=self.runs.labels
        )
        resume = resume_of(glance.state, glance.status)
        return [*found, *([resume] if resume else [])]

    @abstractmethod
    def open(self, place: Place) -> None:
        """Open the page of a place."""

    @abstractmethod
    def open_run(self, follower: RunFollower) -> None:
        """Open the page of a run; one that is below the page that is open is gone back to."""

    @abstractmethod
    def open_step(self, follower: RunFollower, step: str) -> None:
        """Open the page of a step."""

    @abstractmethod
    def carry_out(self, action: Action, answer: str) -> None:
        """Do what was agreed to, and say what came of it."""

    @abstractmethod
    def run_verb(self, words: list[str]) -> None:
        """Run a verb as if it had been typed, and say what it said."""

    def folder(self, run_id: str) -> RunFolder:
        """Return the folder of a run."""
        return RunFolder.of(self.source.home, run_id)
