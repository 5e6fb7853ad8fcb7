"""What all pages share: the lines above and below, the keys, and the actions that one key each carries out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import Screen

from bullswarm_core.runs.intents import MOST_REASON
from bullswarm_server.dashboard.actions import Action
from bullswarm_server.dashboard.bars import Bar, Key, Part, key_parts
from bullswarm_server.dashboard.board import Board
from bullswarm_server.dashboard.dialogs import Ask, Question
from bullswarm_server.dashboard.ink import sheet
from bullswarm_server.dashboard.row_list import RowList
from bullswarm_server.displays.terminal import Terminal

TABS = (("home", "1", "Home"), ("runs", "2", "Runs"), ("pools", "3", "Pools"), ("help", "?", "Help"))
_LEAVE = (Key("question_mark", "help", "?"), Key("q", "quit"))
_BACK = Key("escape", "back", "esc")


class Page(Screen[None]):
    """A page: a bar of tabs, its own content, what was said last, and its keys."""

    TAB: ClassVar[str] = ""
    DEFAULT_CSS = """
    Page { layout: vertical; background: $background; }
    Page RowList { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "act('rerun')", show=False),
        Binding("a", "act('accept')", show=False),
        Binding("c", "act('continue')", show=False),
        Binding("o", "act('take-over')", show=False),
        Binding("u", "act('resume')", show=False),
    ]

    @property
    def dashboard(self) -> Board:
        """The program that the page is in."""
        assert isinstance(self.app, Board), "pages are of the dashboard alone"
        return self.app

    def compose(self) -> ComposeResult:
        """Lay the page out."""
        yield Bar("tabs", framed=True)
        yield from self.content()
        yield Bar("said")
        yield Bar("keys", framed=True)

    def content(self) -> ComposeResult:
        """Yield what is the page's own."""
        yield RowList("rows")

    @property
    def listing(self) -> RowList:
        """The page's list."""
        return self.query_one("#rows", RowList)

    def sheet(self) -> Terminal:
        """Return what the list's rows are drawn on."""
        size = self.listing.size
        # One cell stays free for the bar that shows where in the list one is.
        return sheet((size.width or self.size.width) - 1, height=size.height, unicode=self.dashboard.unicode)

    def on_mount(self) -> None:
        """Show what is known already."""
        self.listing.focus()
        self.redraw()
        self.dashboard.read_soon()

    def on_screen_resume(self) -> None:
        """Show what has come in the meantime."""
        self.redraw()
        self.dashboard.read_soon()

    def on_resize(self, event: Resize) -> None:
        """Draw for the new size, once the parts have theirs."""
        self.call_after_refresh(self.redraw)

    def read(self) -> None:
        """Read what only this page shows; called in a thread."""

    def redraw(self) -> None:
        """Draw what is known."""
        if not self.is_mounted:
            return
        self.fill()
        self._frame()

    def fill(self) -> None:
        """Put the page's rows into its list."""

    def keys(self) -> Sequence[Key]:
        """Return the page's own keys."""
        return ()

    def actions(self) -> list[Action]:
        """Return what may be done about what is under the cursor."""
        return []

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        """Show the keys of what is under the cursor now."""
        self._frame()

    def on_row_list_opened(self, message: RowList.Opened) -> None:
        """Open what is under the cursor."""
        self.dashboard.open(message.place)

    def action_act(self, name: str) -> None:
        """Ask for one of the actions, with the command that it equals."""
        action = next((one for one in self.actions() if one.name == name), None)
        if action is None:
            self.dashboard.say(f"nothing to {name.replace('-', ' ')} here", "faint")
            return
        question = Question(
            title=action.title,
            command=action.command_with,
            told=action.files,
            asks=action.asks,
            wrong=_no_reason if action.asks is not None else lambda answer: "",
        )
        self.app.push_screen(Ask(question), lambda answer: self._answered(action, answer))

    def _answered(self, action: Action, answer: str | None) -> None:
        if answer is not None:
            self.dashboard.carry_out(action, answer)

    def _frame(self) -> None:
        dashboard = self.dashboard
        narrow = self.size.width < 80
        tabs = [] if narrow else [Part(" bullswarm ", "strong")]
        tabs += [
            Part(f" {shown} {title} ", "", "question_mark" if shown == "?" else shown, on=name == self.TAB)
            for name, shown, title in TABS
        ]
        self.query_one("#tabs", Bar).say(*tabs, right=dashboard.summary())
        self.query_one("#said", Bar).say(Part(*dashboard.said))
        own = [*(Key(one.key, one.name.replace("-", " ")) for one in self.actions()), *self.keys()]
        back = [_BACK] if len(self.app.screen_stack) > 2 else []
        self.query_one("#keys", Bar).say(*key_parts([*own, *back], self.size.width, kept=_LEAVE))


def _no_reason(answer: str) -> str:
    if answer and len(answer) <= MOST_REASON and answer.isprintable():
        return ""
    return f"say in one line of 1 to {MOST_REASON} characters why it is good enough"
