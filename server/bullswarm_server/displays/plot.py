"""A trace drawn in the terminal: use as a line, each window's clock as a dotted one, in Braille dots or in ASCII.

Drawn by hand: of the plotting packages, plotext takes 0.76 s to import, and plotille (0.02 s) has no ASCII; either way
the clock's dotted line, the axis of hours and the fallback would still be ours, and the canvas itself is a screenful.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import pairwise

from bullswarm_server.displays.moments import local_day, local_moment
from bullswarm_server.displays.terminal import Terminal
from bullswarm_server.displays.traces import Span, Trace

_AXIS = 6
MIN_WIDTH, MIN_HEIGHT = 24, 4
# Of a Braille letter: the bit of each dot, by column and row (Unicode 2800).
_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_USE, _PACE = 2, 1
_TICKS = 5


class Canvas:
    """Dots in a grid of ``width`` by ``height`` cells: eight dots a cell in Braille, one in ASCII."""

    def __init__(self, width: int, height: int, *, unicode: bool) -> None:
        self.width, self.height = width, height
        self._across, self._down = (2, 4) if unicode else (1, 1)
        self._unicode = unicode
        self._dots: dict[tuple[int, int], int] = {}

    @property
    def columns(self) -> int:
        """Dots from the left to the right."""
        return self.width * self._across

    @property
    def rows(self) -> int:
        """Dots from the bottom to the top."""
        return self.height * self._down

    def dot(self, column: int, row: int, ink: int) -> None:
        """Set one dot, counted from the lower left; one outside is not drawn, and the stronger ink stays."""
        if 0 <= column < self.columns and 0 <= row < self.rows:
            place = (column, self.rows - 1 - row)
            self._dots[place] = max(ink, self._dots.get(place, 0))

    def line(self, start: tuple[int, int], end: tuple[int, int], ink: int, *, gap: int = 1) -> None:
        """Set the dots of a straight line, each ``gap``-th of them."""
        steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
        for step in range(0, steps + 1, gap):
            share = step / steps
            self.dot(round(start[0] + (end[0] - start[0]) * share), round(start[1] + (end[1] - start[1]) * share), ink)

    def cell(self, column: int, row: int) -> tuple[str, int]:
        """The letter of one cell, counted from the upper left, and its strongest ink; 0 is an empty cell."""
        bits, strongest = 0, 0
        for across in range(self._across):
            for down in range(self._down):
                ink = self._dots.get((column * self._across + across, row * self._down + down), 0)
                if ink:
                    bits |= _BITS[across][down]
                    strongest = max(strongest, ink)
        if not strongest:
            return " ", 0
        return (chr(0x2800 + bits) if self._unicode else " .*"[strongest]), strongest


def plot_lines(trace: Trace, terminal: Terminal, *, height: int) -> list[str]:
    """Draw ``trace``, which has at least one reading, in ``terminal.width`` cells and ``height`` lines and an axis below."""
    width = max(MIN_WIDTH, terminal.width) - _AXIS
    height = max(MIN_HEIGHT, height)
    top = max(100.0, *(point.used for point in trace.points))
    canvas = Canvas(width, height, unicode=terminal.unicode)
    scale = _Scale(trace.begins, trace.ends, top, canvas)
    for span in trace.spans:
        _draw(span, scale)
    edge = "┤" if terminal.unicode else "|"
    labels = {round((height - 1) * (1 - step / top)): f"{step:.0f}%" for step in _steps(top)}
    lines = [f"{labels.get(row, ''):>4} {edge}{_row(canvas, row, terminal)}".rstrip() for row in range(height)]
    return [*lines, *_axis(scale, terminal, trace.now)]


def _steps(top: float) -> list[float]:
    """The percentages beside the axis: quarters of the window, and where it was passed also the top."""
    return [0.0, 25.0, 50.0, 75.0, 100.0, *([top] if top > 120 else [])]


class _Scale:
    """Where a moment and a percentage lie on the canvas."""

    def __init__(self, begins: datetime, ends: datetime, top: float, canvas: Canvas) -> None:
        self.begins, self.top, self.canvas = begins, top, canvas
        self.length = max(ends - begins, timedelta(minutes=1))

    def place(self, moment: datetime, percent: float) -> tuple[int, int]:
        column = (moment - self.begins) / self.length * (self.canvas.columns - 1)
        return round(column), round(percent / self.top * (self.canvas.rows - 1))


def _draw(span: Span, scale: _Scale) -> None:
    if span.opens is not None and span.resets is not None:
        scale.canvas.line(scale.place(span.opens, 0.0), scale.place(span.resets, 100.0), _PACE, gap=3)
    places = [scale.place(point.at, point.used) for point in span.points]
    for start, end in pairwise(places):
        scale.canvas.line(start, end, _USE)
    for place in places:
        scale.canvas.dot(*place, _USE)
    if len(places) == 1:
        _spot(places[0], scale.canvas)


def _spot(place: tuple[int, int], canvas: Canvas) -> None:
    """One reading alone, made large enough to be seen."""
    for across, down in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)) if canvas.columns > canvas.width else ():
        canvas.dot(place[0] + across, place[1] + down, _USE)


def _row(canvas: Canvas, row: int, terminal: Terminal) -> str:
    paints: dict[int, Callable[[str], str]] = {0: str, _PACE: terminal.style.faint, _USE: terminal.style.good}
    return "".join(paints[ink](text) for text, ink in _runs(canvas.cell(column, row) for column in range(canvas.width)))


def _runs(cells: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Neighbours of one ink in one piece, so that a line holds a few colour codes and not one per cell."""
    found: list[tuple[str, int]] = []
    for text, ink in cells:
        if found and found[-1][1] == ink:
            found[-1] = (found[-1][0] + text, ink)
        else:
            found.append((text, ink))
    return found


def _axis(scale: _Scale, terminal: Terminal, now: datetime) -> list[str]:
    width = scale.canvas.width
    corner, bar = ("└", "─") if terminal.unicode else ("+", "-")
    line = [" "] * width
    ticks = max(2, min(_TICKS, width // 14 + 1))
    for tick in range(ticks):
        moment = scale.begins + scale.length * (tick / (ticks - 1))
        label = local_day(moment) if scale.length > timedelta(days=6) else local_moment(moment, now)
        start = min(max(0, round((width - 1) * tick / (ticks - 1)) - len(label) // 2), width - len(label))
        if all(char == " " for char in line[max(0, start - 1) : start + len(label) + 1]):
            line[start : start + len(label)] = label
    return [f"     {corner}{bar * width}", (" " * _AXIS + "".join(line)).rstrip()]
