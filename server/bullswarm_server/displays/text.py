"""Text for a person's terminal: control sequences out, durations short, colour only where it belongs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from bullswarm_core.fast.text import duration, number, one_line, plain

__all__ = ["Style", "duration", "number", "one_line", "plain", "style_for"]


class Style:
    """Colours for one output stream; with ``colour`` False every method returns its text unchanged."""

    def __init__(self, *, colour: bool) -> None:
        self.colour = colour

    def good(self, text: str) -> str:
        """Something that went well."""
        return self._paint("32", text)

    def bad(self, text: str) -> str:
        """Something that failed or is closed."""
        return self._paint("31", text)

    def warn(self, text: str) -> str:
        """Something to look at."""
        return self._paint("33", text)

    def faint(self, text: str) -> str:
        """Something in the background."""
        return self._paint("2", text)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


def style_for(stream: TextIO, environ: Mapping[str, str]) -> Style:
    """Colour on a terminal only; not with NO_COLOR set to anything, nor on a terminal that calls itself dumb."""
    wanted = stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return Style(colour=wanted)
