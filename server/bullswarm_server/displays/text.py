"""Text for a person's terminal: control sequences out, durations short, colour only where it belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TextIO

from bullswarm_core.routing.text import duration, number

__all__ = ["Style", "duration", "number", "one_line", "plain", "style_for"]

# Terminal control, by its code points after decoding. Never by byte value: 0x90-0x9F are ordinary continuation bytes in
# UTF-8, so that stripping bytes would break letters (bug report B34). A string sequence that is never closed (OSC, DCS,
# APC, PM, SOS) ends at the end of its line, so that one stray introducer can't swallow the rest of an answer.
_STRING_BODY = r"[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
_CONTROL = re.compile(
    rf"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]){_STRING_BODY}"  # OSC, DCS, SOS, PM, APC, in both forms
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[ -/]*[0-~]?"  # every other escape
    r"|[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]"  # C0 but tab and newline, DEL, C1
)


def plain(text: str) -> str:
    """``text`` without a single control sequence (CSI, OSC, DCS, APC, PM, SOS, C0, C1); tabs and newlines stay."""
    return _CONTROL.sub("", text)


def one_line(text: str) -> str:
    """``text`` without control sequences, on one line, with single spaces."""
    return " ".join(plain(text).split())


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
