"""The lines above and below a page: one line of pieces, some of which are keys that a click presses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from bullswarm_core._dataclasses import dataclass
from bullswarm_server.dashboard.ink import Tone, pieces


@dataclass(frozen=True, slots=True)
class Key:
    """A key with its meaning; ``key`` is its name as it is pressed, ``shown`` as it is read."""

    key: str
    meaning: str
    shown: str = ""

    @property
    def name(self) -> str:
        """The key as people read it."""
        return self.shown or self.key


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a line; with ``press`` a click on it presses that key, with ``action`` it does that.

    ``on`` marks the one that is chosen.
    """

    text: str
    tone: Tone = ""
    press: str = ""
    action: str = ""
    on: bool = False


class Bar(Widget):
    """One line; it is drawn anew only when it says something else."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"bar--{tone}" for tone in ("strong", "faint", "good", "bad", "warn", "on")
    }
    DEFAULT_CSS = """
    Bar { height: 1; background: $background; }
    Bar.-framed { background: $panel; }
    Bar > .bar--strong { text-style: bold; color: $text-primary; }
    Bar > .bar--faint { text-style: dim; }
    Bar > .bar--good { color: $text-success; }
    Bar > .bar--bad { color: $text-error; }
    Bar > .bar--warn { color: $text-warning; }
    Bar > .bar--on { text-style: bold; background: $primary-muted; }
    """

    def __init__(self, element: str, *, framed: bool = False) -> None:
        super().__init__(id=element, classes="-framed" if framed else "")
        self._parts: tuple[Part, ...] = ()
        self._right: tuple[Part, ...] = ()

    @property
    def said(self) -> str:
        """What the line says, without its right end."""
        return "".join(part.text for part in self._parts)

    def say(self, *parts: Part, right: Sequence[Part] = ()) -> None:
        """Show these pieces, and at the right end those of ``right`` where there is room."""
        if (parts, tuple(right)) != (self._parts, self._right):
            self._parts, self._right = parts, tuple(right)
            self.refresh()

    def say_line(self, line: str) -> None:
        """Show a painted line of a display."""
        self.say(*(Part(text, tone) for text, tone in pieces(line)))

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        width, base = self.size.width, self.rich_style
        strip = Strip([self._segment(part, base) for part in self._parts])
        for count in range(len(self._right), 0, -1):
            right = Strip([self._segment(part, base) for part in self._right[:count]])
            gap = width - strip.cell_length - right.cell_length
            if gap >= 0:
                strip = Strip([*strip, Segment(" " * gap, base), *right])
                break
        return strip.adjust_cell_length(width, base)

    def _segment(self, part: Part, base: Style) -> Segment:
        style = base
        for name in (part.tone, "on" if part.on else ""):
            style += self.get_component_rich_style(f"bar--{name}", partial=True) if name else Style.null()
        if click := part.action or (f"app.simulate_key({part.press!r})" if part.press else ""):
            style += Style.from_meta({"@click": click})
        text = "".join(piece for piece, _ in pieces(part.text))
        return Segment(text, style)


def key_parts(keys: Sequence[Key], width: int, *, kept: Sequence[Key] = ()) -> list[Part]:
    """Return the keys of a page as pieces, as many as fit, and behind them those of ``kept``.

    The last of ``keys`` are left out first; those that are kept only where they alone have no room.
    """
    ending = _fitting(kept, width)
    left = width - sum(len(part.text) for part in ending)
    return [*_fitting(keys, left), *ending]


def _fitting(keys: Sequence[Key], width: int) -> list[Part]:
    found: list[Part] = []
    left = width
    for key in keys:
        size = len(key.name) + len(key.meaning) + 3
        if size > left:
            break
        found += [Part(f" {key.name}", "strong", key.key), Part(f" {key.meaning} ", "", key.key)]
        left -= size
    return found
