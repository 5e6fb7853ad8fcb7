"""What a page shows: rows, each a painted line and the place that it leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Literal, Protocol, TypeVar, overload

from bullswarm_core._dataclasses import dataclass
from bullswarm_server.dashboard.ink import INK
from bullswarm_server.displays.terminal import Terminal, cells

Kind = Literal["run", "step", "pool", "event"]


@dataclass(frozen=True, slots=True)
class Place:
    """Something with a page or with actions: a run, a node (``name``) of a run, a pool (``name``), or an event."""

    kind: Kind
    run_id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a page; without a ``place`` the cursor passes over it."""

    line: str
    place: Place | None = None


class Rows(Protocol):
    """Rows that may be drawn only when they are looked at."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Row: ...

    def find(self, place: Place) -> int | None:
        """Return where the row of a place is."""
        ...


class RowTable(Sequence[Row]):
    """Rows that are all drawn."""

    def __init__(self, rows: Sequence[Row] = ()) -> None:
        self._rows = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int, /) -> Row: ...
    @overload
    def __getitem__(self, index: slice, /) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice, /) -> Row | Sequence[Row]:
        return self._rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def find(self, place: Place) -> int | None:
        """Return where the first row of a place is."""
        return next((at for at, row in enumerate(self._rows) if row.place == place), None)


T = TypeVar("T")


class LazyRows(Generic[T]):
    """A row per value, drawn when it is looked at: thousands of them cost what fits on the screen."""

    def __init__(self, values: Sequence[T], *, draw: Callable[[T], Row], key: Callable[[T], Place]) -> None:
        self._values = values
        self._draw = draw
        self._key = key

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int, /) -> Row:
        return self._draw(self._values[index])

    def find(self, place: Place) -> int | None:
        """Return where the row of a place is; nothing is drawn for it."""
        return next((at for at, value in enumerate(self._values) if self._key(value) == place), None)


def heading(text: str, terminal: Terminal) -> Row:
    """Return a heading that no cursor stops at."""
    return Row(INK.strong(terminal.clipped(text, terminal.width)))


def text_rows(lines: Sequence[str], terminal: Terminal) -> list[Row]:
    """Return lines of a text, wrapped where they are too long, by cells and in order."""
    return [Row(piece) for line in lines for piece in wrapped(terminal.spelled(line), terminal.width)]


def wrapped(line: str, width: int) -> list[str]:
    """Break a line without colours into pieces of at most ``width`` cells, at spaces where there are any."""
    width = max(4, width)
    if cells(line) <= width:
        return [line]
    found: list[str] = []
    begin = 0
    # Each letter is measured once: a worker may write 256 KiB in one line, and this is drawn between two keys.
    while (cut := _fitting(line, begin, width)) < len(line):
        space = line.rfind(" ", begin + 1, cut + 1)
        # A space near the beginning would leave a line nearly empty.
        at = space if space - begin > width // 3 else cut
        found.append(line[begin:at].rstrip())
        begin = next((place for place in range(at, len(line)) if line[place] != " "), len(line))
    return [*found, line[begin:]] if begin < len(line) else found


def _fitting(text: str, begin: int, width: int) -> int:
    """Return where the part from ``begin`` on ends that fits into ``width`` cells; it has one character at least."""
    if text[begin : begin + width].isascii():
        return min(len(text), begin + width)
    used = 0
    for at in range(begin, len(text)):
        used += cells(text[at])
        if used > width:
            return max(begin + 1, at)
    return len(text)
