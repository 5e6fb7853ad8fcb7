"""The dashboard itself: its pages, what it has read, and what it carries out.

It reads in a thread once a second, and each page draws only the lines that changed. What a person asks for is carried out by
the same functions as the command that is shown beside it.
"""

from __future__ import annotations

import asyncio
import io
import signal
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import BullswarmError
from bullswarm_server.dashboard.actions import Action
from bullswarm_server.dashboard.board import Board
from bullswarm_server.dashboard.follow import RunFollower, tables_of
from bullswarm_server.dashboard.ink import Tone, wants_light
from bullswarm_server.dashboard.page import Page
from bullswarm_server.dashboard.page_pools import PoolsPage
from bullswarm_server.dashboard.page_run import RunPage, StepPage
from bullswarm_server.dashboard.pages import HelpPage, HomePage, RunsPage
from bullswarm_server.dashboard.rows import Place
from bullswarm_server.dashboard.source import Source
from bullswarm_server.dashboard.view_home import all_needs
from bullswarm_server.dashboard.view_step import Part as StepPart

READ_SEC = 1.0
"""The clocks on the pages show seconds."""
POOLS_SEC = 10.0
"""Finding every pool and its meter takes tenths of a second; their numbers change by the minute."""
LIGHT, DARK = "textual-light", "textual-dark"


class Dashboard(Board):
    """Bullswarm on a whole terminal; ``read_sec`` None reads only on demand.

    ``served``: a browser shows it, and draws every letter, whatever the locale of the server.
    """

    TITLE = "bullswarm"
    ENABLE_COMMAND_PALETTE = False
    # What the screen's library draws by itself, in letters that every terminal has.
    CSS = """
    .-ascii RowList { scrollbar-size-vertical: 0; }
    .-ascii Ask > Vertical { border: ascii $primary; }
    .-ascii Input { border: ascii $primary; }
    .-ascii PoolsPage #detail { border-top: ascii $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "go('home')", show=False),
        Binding("2", "go('runs')", show=False),
        Binding("3", "go('pools')", show=False),
        Binding("question_mark,f1", "go('help')", show=False),
        Binding("escape", "back", show=False),
        Binding("t", "theme", show=False),
        Binding("q,ctrl+c,ctrl+q", "quit", show=False, priority=False),
    ]

    def __init__(
        self, source: Source, *, call: Callable[..., int], read_sec: float | None = READ_SEC, served: bool = False
    ) -> None:
        super().__init__(source, served=served)
        # Carries out a verb of the command line, as ``bullswarm`` does; given, since the command line is above this.
        self._call = call
        self._read_sec = read_sec
        self._next_pools = 0.0
        self._reading = asyncio.Lock()
        self._tables = tables_of(source.home, source.environ)

    def on_mount(self) -> None:
        """Open Home and begin to read."""
        self.theme = LIGHT if wants_light(self.source.environ) else DARK
        self.set_class(not self.unicode, "-ascii")
        self.push_screen(HomePage())
        # A terminal that is not given back is left without its cursor.
        leave = partial(self.exit, return_code=128 + signal.SIGTERM)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave)
        if self._read_sec is not None:
            self.run_worker(self._keep_reading(self._read_sec), group="reading")

    def say(self, text: str, tone: Tone = "") -> None:
        """Say something in the line above the keys."""
        self.put(text, tone)
        self._draw()

    async def read_now(self) -> None:
        """Read everything that is due, and draw it."""
        async with self._reading:
            page = self.screen
            try:
                self.runs = await asyncio.to_thread(self.source.runs, whole=isinstance(page, RunsPage))
                self.needs = all_needs(self.runs, self.folder)
                if isinstance(page, Page):
                    await asyncio.to_thread(page.read)
                self._well()
                self._draw()
                if time.monotonic() >= self._next_pools:
                    self._next_pools = time.monotonic() + POOLS_SEC
                    self.pools = await asyncio.to_thread(self.source.pools)
                    self._draw()
            except (BullswarmError, sqlite3.Error, OSError) as error:
                self.say(f"cannot read: {str(error) or type(error).__name__}", "bad")

    def open(self, place: Place) -> None:
        """Open the page of a place."""
        if place.kind == "pool":
            self._tab(PoolsPage(place.name))
            return
        follower = RunFollower(self.source.home, place.run_id, tables=self._tables)
        glance = self.runs.glances.get(place.run_id) if self.runs else None
        row = next((one for one in self.runs.rows if one.run_id == place.run_id), None) if self.runs else None
        if place.kind == "step":
            self.open_step(follower, place.name)
        elif (row.kind if row else glance.state.created.kind if glance else "") == "run":
            self.open_step(follower, "run")
        else:
            self.open_run(follower)

    def open_run(self, follower: RunFollower) -> None:
        """Open the page of a run; one that is below the page that is open is gone back to."""
        below = self.screen_stack[-2] if len(self.screen_stack) > 2 else None
        if isinstance(below, RunPage) and below.follower.run_id == follower.run_id:
            self.pop_screen()
            return
        self.push_screen(RunPage(RunFollower(self.source.home, follower.run_id, tables=self._tables)))

    def open_step(self, follower: RunFollower, step: str, *, part: StepPart = "activity") -> None:
        """Open the page of a step."""
        self.push_screen(StepPage(RunFollower(self.source.home, follower.run_id, tables=self._tables), step, part=part))

    def action_go(self, tab: str) -> None:
        """Open one of the main pages."""
        pages = {"home": HomePage, "runs": RunsPage, "pools": PoolsPage, "help": HelpPage}
        self._tab(pages[tab]())

    async def action_back(self) -> None:
        """Go back to the page before; the words of a filter are taken away first."""
        page = self.screen
        if isinstance(page, RunsPage) and page.clear_filter():
            return
        if len(self.screen_stack) > 2:
            self.pop_screen()
        elif not isinstance(page, HomePage):
            self._tab(HomePage())

    def action_theme(self) -> None:
        """Change between light and dark."""
        self.theme = DARK if self.theme == LIGHT else LIGHT

    def carry_out(self, action: Action, answer: str) -> None:
        """Do what was agreed to, and say what came of it."""
        if action.name == "take-over":
            follower = RunFollower(self.source.home, action.run_id, tables=self._tables)
            if isinstance(self.screen, StepPage) and self.screen.place.name == action.node:
                self.screen.show_part("output")
            else:
                self.open_step(follower, action.node, part="output")
            self.say(f"yours: {' · '.join(action.files)}", "good")
            return
        self.run_worker(self._carry_out(action, answer), group="acting")

    def run_verb(self, words: list[str]) -> None:
        """Run a verb as if it had been typed, and say what it said."""
        self.run_worker(self._run_verb(words), group="acting")

    async def _carry_out(self, action: Action, answer: str) -> None:
        try:
            await asyncio.to_thread(self._act, action, answer)
            self.say(f"done: {action.command_with(answer)}", "good")
        except (BullswarmError, sqlite3.Error, OSError) as error:
            self.say(str(error), "bad")
        await self.read_now()

    def _act(self, action: Action, answer: str) -> None:
        from bullswarm_server.ops.launch import start_kernel
        from bullswarm_server.ops.runs import act

        home, environ = self.source.home, self.source.environ
        if action.single:
            start_kernel(home, action.run_id, environ=environ)
            return
        wish = action.wish(answer)
        if wish is not None:
            act(home, action.run_id, wish, environ=environ, now=utc_now())

    async def _run_verb(self, words: list[str]) -> None:
        out, err = io.StringIO(), io.StringIO()
        code = await asyncio.to_thread(self._call, words, environ=self.source.environ, out=out, err=err)
        said = (err.getvalue() if code else out.getvalue()).strip().splitlines()
        self._next_pools = 0.0
        await self.read_now()
        self.say(said[0] if said else f"exit {code}", "bad" if code else "good")

    async def _keep_reading(self, seconds: float) -> None:
        while True:
            self.soon.clear()
            await self.read_now()
            try:
                await asyncio.wait_for(self.soon.wait(), seconds)
            except TimeoutError:
                continue

    def _tab(self, page: Page) -> None:
        while len(self.screen_stack) > 2:
            self.pop_screen()
        self.switch_screen(page)

    def _draw(self) -> None:
        if isinstance(self.screen, Page):
            self.screen.redraw()

    def _well(self) -> None:
        if self.said[0] == "reading" or self.said[0].startswith(("cannot read", "cannot show")):
            self.said = ("", "")
