"""Lines of the displays as pieces of one tone each, so that a theme chooses the colours; nothing else gets through.

The displays paint with a handful of colour codes. These become tones; every other control sequence, and every letter that
hides or turns the direction of writing, is left out. No markup is ever read: what a worker wrote is text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from bullswarm_server.displays.terminal import Terminal, speaks_utf8
from bullswarm_server.displays.text import Style, plain

Tone = Literal["", "strong", "faint", "good", "bad", "warn"]
Piece = tuple[str, Tone]

_TONES: Mapping[str, Tone] = {"0": "", "1": "strong", "2": "faint", "31": "bad", "32": "good", "33": "warn"}
_CODE = re.compile(r"\x1b\[(0|1|2|31|32|33)m")
_NO_UNICODE_TERMS = frozenset({"dumb", "linux"})


class Ink(Style):
    """The displays' colours, and a strong one for headings."""

    def strong(self, text: str) -> str:
        """Something that heads what is below it."""
        return self._paint("1", text)


INK = Ink(colour=True)


def pieces(line: str) -> list[Piece]:
    """Return a painted line as pieces of one tone each, on one line and without anything that a terminal would obey."""
    found: list[Piece] = []
    tone: Tone = ""
    for place, part in enumerate(_CODE.split(line)):
        if place % 2:
            tone = _TONES[part]
        elif text := safe(part):
            found.append((text, tone))
    return found


def safe(text: str) -> str:
    """Return ``text`` as ``plain`` leaves it, on one line; its spaces stay."""
    return plain(text).expandtabs(4).replace("\n", " ")


def bare(line: str) -> str:
    """Return what a painted line says."""
    return "".join(text for text, _ in pieces(line))


def wants_ascii(environ: Mapping[str, str]) -> bool:
    """Tell whether only ASCII may be drawn: asked for, or a terminal that has little else."""
    if environ.get("BULLSWARM_UNICODE"):
        return False
    if environ.get("BULLSWARM_ASCII") or environ.get("TERM") in _NO_UNICODE_TERMS:
        return True
    return environ.get("TERM_PROGRAM") == "Apple_Terminal" or not speaks_utf8(environ)


def wants_light(environ: Mapping[str, str]) -> bool:
    """Tell whether the terminal says that its background is light (``COLORFGBG``, set by many; 7 and 9 to 15 are light)."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return background in ("7", *(str(number) for number in range(9, 16)))


def sheet(width: int, *, height: int = 24, unicode: bool = True) -> Terminal:
    """Return the terminal that the displays draw on: a part of the screen, with our ink."""
    return Terminal(max(1, width), max(1, height), unicode, INK)
