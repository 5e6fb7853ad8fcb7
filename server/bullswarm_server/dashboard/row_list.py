"""The list that every page is made of: rows with a cursor; only those in sight are drawn, and only when they change."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from bullswarm_server.dashboard.ink import pieces
from bullswarm_server.dashboard.rows import Place, Rows, RowTable

TONES = ("strong", "faint", "good", "bad", "warn")


class RowList(ScrollView, can_focus=True):
    """Shows rows; the cursor stops at those that lead to a place, and without any the keys scroll."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"rows--{tone}" for tone in (*TONES, "cursor")}
    DEFAULT_CSS = """
    RowList { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; background: $background; }
    RowList > .rows--strong { text-style: bold; color: $text-primary; }
    RowList > .rows--faint { text-style: dim; }
    RowList > .rows--good { color: $text-success; }
    RowList > .rows--bad { color: $text-error; }
    RowList > .rows--warn { color: $text-warning; }
    RowList > .rows--cursor { background: $block-cursor-blurred-background; }
    RowList:focus > .rows--cursor { background: $primary-muted; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("home,g", "edge(False)", show=False),
        Binding("end,G", "edge(True)", show=False),
        Binding("enter", "open", show=False),
    ]

    class Opened(Message):
        """Somebody wants to see the place under the cursor."""

        def __init__(self, place: Place) -> None:
            super().__init__()
            self.place = place

    class Moved(Message):
        """The cursor is at another place."""

    def __init__(self, element: str) -> None:
        super().__init__(id=element)
        self._rows: Rows = RowTable()
        self._cursor: int | None = None
        self._drawn: dict[int, str] = {}
        self.lines_drawn = 0

    @property
    def rows(self) -> Rows:
        """The rows that are shown."""
        return self._rows

    @property
    def place(self) -> Place | None:
        """The place under the cursor; None without any."""
        if self._cursor is None or self._cursor >= len(self._rows):
            return None
        return self._rows[self._cursor].place

    def show(self, rows: Rows) -> None:
        """Show these rows in place of the former; the cursor stays at its place, and what is the same is not drawn anew."""
        before = self.place
        self._rows = rows
        self._cursor = self._cursor_for(before)
        self._measure(len(rows))
        top = self.scroll_offset.y
        for index in range(top, top + self.size.height):
            if self._drawn.get(index, "") != self._line(index):
                self.refresh_line(index)
        self._drawn = {index: line for index, line in self._drawn.items() if top <= index < top + self.size.height}
        if self.place != before:
            self.post_message(self.Moved())

    def go_to(self, place: Place) -> bool:
        """Put the cursor at a place; False where it isn't shown."""
        found = self._rows.find(place)
        if found is None:
            return False
        self._put(found)
        return True

    def render_line(self, y: int) -> Strip:
        """Draw one line of what is in sight."""
        index, width = y + self.scroll_offset.y, self.size.width
        line = self._line(index)
        self._drawn[index] = line
        self.lines_drawn += 1
        base = self.rich_style
        if index == self._cursor and self.place is not None:
            base += self.get_component_rich_style("rows--cursor", partial=True)
        return Strip([Segment(text, base + self._tone(tone)) for text, tone in pieces(line)]).adjust_cell_length(
            width, base
        )

    def action_move(self, by: int) -> None:
        """Go to the next place up or down; where there is none, scroll."""
        at = self._next(self._cursor, by)
        if at is None:
            self.scroll_relative(y=by, animate=False)
        else:
            self._put(at)

    def action_page(self, by: int) -> None:
        """Go a screen up or down."""
        jump = by * max(1, self.size.height - 1)
        if self._cursor is None:
            self.scroll_relative(y=jump, animate=False)
            return
        wanted = min(max(0, self._cursor + jump), len(self._rows) - 1)
        self._put(self._near(wanted, by))

    def action_edge(self, end: bool) -> None:
        """Go to the first or the last place."""
        if self._cursor is None:
            self.scroll_to(y=len(self._rows) if end else 0, animate=False)
            return
        self._put(self._near(len(self._rows) - 1 if end else 0, -1 if end else 1))
        if not end:
            self.scroll_to(y=0, animate=False)

    def action_open(self) -> None:
        """Open the place under the cursor."""
        if self.place is not None:
            self.post_message(self.Opened(self.place))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where it was clicked; a click on the cursor opens."""
        index = event.y + self.scroll_offset.y
        if index >= len(self._rows) or self._rows[index].place is None:
            return
        if index == self._cursor:
            self.action_open()
        else:
            self._put(index)

    def _measure(self, count: int) -> None:
        """Make room for so many rows. A new size lays everything out and draws it anew, so it is kept where it can be."""
        height = self.size.height
        size = Size(0, max(count, height))
        if size == self.virtual_size:
            return
        if height and min(count, self.virtual_size.height) > height:
            self.set_reactive(RowList.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = count
            self.scroll_to(y=min(self.scroll_offset.y, count - height), animate=False)
        else:
            self.virtual_size = size

    def _line(self, index: int) -> str:
        return self._rows[index].line if index < len(self._rows) else ""

    def _tone(self, tone: str) -> Style:
        return self.get_component_rich_style(f"rows--{tone}", partial=True) if tone else Style.null()

    def _put(self, index: int | None) -> None:
        if index is None or index == self._cursor:
            return
        before, self._cursor = self._cursor, index
        for changed in (before, index):
            if changed is not None:
                self.refresh_line(changed)
        self._into_sight(index)
        self.post_message(self.Moved())

    def _into_sight(self, index: int) -> None:
        top, height = self.scroll_offset.y, self.size.height
        if index < top:
            # A heading above belongs to what is below it.
            above = index - 1 if index and self._rows[index - 1].place is None else index
            self.scroll_to(y=above, animate=False)
        elif height and index >= top + height:
            self.scroll_to(y=index - height + 1, animate=False)

    def _next(self, start: int | None, by: int) -> int | None:
        if start is None:
            return None
        index = start + by
        while 0 <= index < len(self._rows):
            if self._rows[index].place is not None:
                return index
            index += by
        return None

    def _near(self, index: int, by: int) -> int | None:
        """Return the row nearest to ``index`` that leads somewhere, looked for in both directions."""
        for way in (by, -by):
            at = index
            while 0 <= at < len(self._rows):
                if self._rows[at].place is not None:
                    return at
                at += 1 if way > 0 else -1
        return None

    def _cursor_for(self, before: Place | None) -> int | None:
        if not len(self._rows):
            return None
        at = min(self._cursor or 0, len(self._rows) - 1)
        if before is not None:
            if self._rows[at].place == before:
                return at
            if (found := self._rows.find(before)) is not None:
                return found
        return self._near(at, 1)
