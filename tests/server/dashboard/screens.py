"""What a dashboard under test shows, and its keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from textual.pilot import Pilot

from bullswarm_server.dashboard.app import Dashboard
from bullswarm_server.dashboard.page import Page
from bullswarm_server.dashboard.rows import Place


@dataclass(slots=True)
class Screens:
    """The dashboard and the hand at its keys."""

    app: Dashboard
    pilot: Pilot[Any]

    async def read(self) -> None:
        """Let it read everything, and draw."""
        await self.app.read_now()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        """Press keys, and let it read what they opened."""
        await self.pilot.press(*keys)
        await self.app.workers.wait_for_complete()
        await self.read()

    async def open(self, place: Place) -> None:
        """Open the page of a place."""
        self.app.open(place)
        await self.pilot.pause()
        await self.read()

    @property
    def page(self) -> Page:
        assert isinstance(self.app.screen, Page)
        return self.app.screen

    @property
    def lines(self) -> list[str]:
        """What is on the screen, line by line."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in line).rstrip() for line in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def cursor_line(self) -> str:
        """The line under the cursor."""
        place = self.page.listing.place
        assert place is not None
        found = self.page.listing.rows.find(place)
        assert found is not None
        return self.page.listing.rows[found].line
