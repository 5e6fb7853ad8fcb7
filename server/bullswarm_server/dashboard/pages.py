"""Home, Runs and Help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from bullswarm_server.dashboard.actions import Action
from bullswarm_server.dashboard.bars import Bar, Key, Part
from bullswarm_server.dashboard.page import Page
from bullswarm_server.dashboard.row_list import RowList
from bullswarm_server.dashboard.view_help import help_rows
from bullswarm_server.dashboard.view_home import home_rows
from bullswarm_server.dashboard.view_runs import STANDINGS, Standing, chosen, count_line, run_list


class HomePage(Page):
    """What needs the person, what runs, the pools, what has just ended."""

    TAB = "home"

    def fill(self) -> None:
        """Put everything into one list."""
        dashboard = self.dashboard
        if dashboard.runs is not None:
            self.listing.show(home_rows(dashboard.runs, dashboard.pools, dashboard.needs, self.sheet()))

    def actions(self) -> list[Action]:
        """Return what may be done about the need, or the run, under the cursor."""
        return self.dashboard.actions_at(self.listing.place)

    def keys(self) -> Sequence[Key]:
        """A need, a run and a pool can all be opened."""
        return (Key("enter", "open"),) if self.listing.place else ()


class RunsPage(Page):
    """The history, narrowed by words and by how a run stands."""

    TAB = "runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", show=False),
        Binding("f", "standing", show=False),
    ]
    DEFAULT_CSS = """
    RunsPage Input { display: none; height: 3; }
    RunsPage Input.-open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._words = ""
        self._standing: Standing = "all"

    def content(self) -> ComposeResult:
        """A line of how many, the field of words, the list."""
        yield Bar("count")
        yield Input(placeholder="words of id, goal, folder, kind, caller or state", id="words")
        yield RowList("rows")

    def fill(self) -> None:
        """Show the runs that were chosen."""
        look = self.dashboard.runs
        if look is None:
            return
        rows = chosen(look, words=self._words, standing=self._standing)
        self.listing.show(run_list(look, rows, self.sheet()))
        count = count_line(look, len(rows), words=self._words, standing=self._standing) if look.whole else "reading"
        self.query_one("#count", Bar).say(Part(self.sheet().spelled(count), "faint"))

    def actions(self) -> list[Action]:
        """Return how the run under the cursor may go on."""
        return self.dashboard.actions_at(self.listing.place)

    def keys(self) -> Sequence[Key]:
        """The list's own keys."""
        return (Key("enter", "open"), Key("slash", "filter", "/"), Key("f", self._standing))

    def action_filter(self) -> None:
        """Open the field of words."""
        field = self.query_one(Input)
        field.add_class("-open")
        field.focus()

    def action_standing(self) -> None:
        """Choose by how runs stand, in turn."""
        self._standing = STANDINGS[(STANDINGS.index(self._standing) + 1) % len(STANDINGS)]
        self.redraw()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Choose while it is typed."""
        self._words = event.value
        self.redraw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes to the list."""
        self.close_filter()

    def close_filter(self) -> None:
        """Close the field; what was chosen stays chosen while there are words in it."""
        field = self.query_one(Input)
        field.set_class(bool(field.value), "-open")
        self.listing.focus()

    def clear_filter(self) -> bool:
        """Take the words away; False when there were none."""
        field = self.query_one(Input)
        if not field.has_class("-open"):
            return False
        field.value = ""
        self.close_filter()
        return True


class HelpPage(Page):
    """Every key, and what the words mean."""

    TAB = "help"

    def fill(self) -> None:
        """Put the text into the list."""
        self.listing.show(help_rows(self.sheet()))
