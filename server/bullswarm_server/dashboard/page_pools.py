"""Pools: the table, and below it all about the one under the cursor; label and switch it from here, end its quarantine."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from bullswarm_core.pools import WindowKind
from bullswarm_core.pools.labels import typed_name
from bullswarm_core.quota.history import History, read_history
from bullswarm_core.routing.overview import PoolOverview
from bullswarm_server.dashboard.bars import Bar, Key, Part
from bullswarm_server.dashboard.dialogs import Ask, Question
from bullswarm_server.dashboard.page import Page
from bullswarm_server.dashboard.row_list import RowList
from bullswarm_server.dashboard.rows import Place, RowTable
from bullswarm_server.dashboard.view_home import pool_rows
from bullswarm_server.dashboard.view_pools import detail_rows, next_kind
from bullswarm_server.displays.text import one_line


class PoolsPage(Page):
    """Every pool, and one of them whole."""

    TAB = "pools"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "label", show=False),
        Binding("e", "switch", show=False),
        Binding("w", "window", show=False),
        Binding("u", "resume", show=False),
        Binding("tab", "other", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    PoolsPage #rows { height: 4; }
    PoolsPage #detail { height: 1fr; border-top: solid $panel; }
    """

    def __init__(self, pool: str | None = None) -> None:
        super().__init__()
        self._wanted = pool
        self._kind: WindowKind | None = None
        self._history: tuple[str, History] = ("", History())
        self._stamp: tuple[object, ...] = ()

    def content(self) -> ComposeResult:
        """The table above, the pool below."""
        yield RowList("rows")
        yield RowList("detail")
        yield Bar("problems")

    def read(self) -> None:
        """Read the kept readings of the pool under the cursor."""
        item, home = self.item, self.dashboard.source.home
        if item is None:
            return
        try:
            told = home.meter_history_file(item.pool.id).stat()
            stamp: tuple[object, ...] = (item.pool.id, told.st_mtime_ns, told.st_size)
        except OSError:
            stamp = (item.pool.id,)
        if stamp != self._stamp:
            self._stamp, self._history = stamp, (item.pool.id, read_history(home, item.pool.id))

    @property
    def item(self) -> PoolOverview | None:
        """The pool under the cursor."""
        place = self.listing.place
        rows = self.dashboard.pools.rows
        return next((row for row in rows if place is not None and row.pool.id == place.name), None)

    def fill(self) -> None:
        """Draw the table and the pool."""
        look, sheet = self.dashboard.pools, self.sheet()
        self.listing.styles.height = max(1, min(len(look.rows), self.size.height // 3))
        self.listing.show(RowTable(pool_rows(look.rows, sheet)))
        if self._wanted is not None and self.listing.go_to(Place("pool", name=self._wanted)):
            self._wanted = None
        item, detail = self.item, self.query_one("#detail", RowList)
        history = self._history[1] if item is not None and self._history[0] == item.pool.id else History()
        runs = self.dashboard.runs
        if item is not None and runs is not None:
            detail.show(detail_rows(item, history, self._kind, runs.labels, sheet))
        problems = " · ".join(look.problems)
        self.query_one("#problems", Bar).say(Part(problems, "warn"))
        self.query_one("#problems", Bar).display = bool(problems)

    def keys(self) -> Sequence[Key]:
        """What may be decided about the pool."""
        item = self.item
        if item is None:
            return ()
        switch = "turn off" if item.pool.enabled else "turn on"
        resume = () if item.quarantine is None else (Key("u", "resume"),)
        return (*resume, Key("l", "label"), Key("e", switch), Key("w", "next window"), Key("tab", "details"))

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        """Show the pool under the cursor."""
        self._kind = None
        self.query_one("#detail", RowList).scroll_to(y=0, animate=False)
        self.redraw()
        self.dashboard.read_soon()

    def on_row_list_opened(self, message: RowList.Opened) -> None:
        """The pool is open already: go to its details."""
        message.stop()
        self.query_one("#detail", RowList).focus()

    def action_other(self) -> None:
        """Go from the table to the details, and back."""
        detail = self.query_one("#detail", RowList)
        (self.listing if detail.has_focus else detail).focus()

    def action_window(self) -> None:
        """Draw the next window."""
        if self.item is not None:
            self._kind = next_kind(self.item, self._history[1], self._kind)
            self.redraw()

    def action_label(self) -> None:
        """Ask for a label; an empty one takes it away."""
        item = self.item
        if item is None:
            return
        pool = item.pool
        name = typed_name(pool.id, pool.label)

        def words(label: str) -> list[str]:
            if not label:
                return ["label", name, "--clear"]
            # A label that begins like an option is none.
            return ["label", name, *(["--"] if label.startswith("-") else []), label]

        question = Question(
            title=f"a label for {pool.shown_name}",
            command=lambda label: _command(words(label)),
            asks="the name that people see; empty takes it away",
            given=pool.label or "",
        )
        self._ask(question, words)

    def action_switch(self) -> None:
        """Ask whether the pool is to be on or off."""
        item = self.item
        if item is None:
            return
        state = "off" if item.pool.enabled else "on"
        words = ["strategy", "set-provider", typed_name(item.pool.id, item.pool.label), state, "--yes"]
        told = () if state == "on" else ("what runs on it now goes on; it gets nothing new",)
        question = Question(title=f"turn {item.pool.shown_name} {state}", command=lambda _: _command(words), told=told)
        self._ask(question, lambda _: words)

    def action_resume(self) -> None:
        """Ask whether the quarantine is to end before its time."""
        item = self.item
        if item is None:
            return
        if item.quarantine is None:
            self.dashboard.say(f"{item.pool.shown_name} is not quarantined", "warn")
            return
        words = ["pools", "resume", typed_name(item.pool.id, item.pool.label)]
        told = (
            one_line(item.quarantine.why),
            "the next pick may try it again; a spent window keeps it out all the same",
        )
        title = f"end the quarantine of {item.pool.shown_name}"
        self._ask(Question(title=title, command=lambda _: _command(words), told=told), lambda _: words)

    def _ask(self, question: Question, words: object) -> None:
        def answered(answer: str | None) -> None:
            if answer is not None and callable(words):
                self.dashboard.run_verb(words(answer))

        self.app.push_screen(Ask(question), answered)


def _command(words: Sequence[str]) -> str:
    return f"bullswarm {shlex.join(words)}"
