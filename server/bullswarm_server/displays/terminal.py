"""What a person's terminal can show: its size, its colours, its letters; and how wide a text stands on it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

from bullswarm_core._dataclasses import dataclass
from bullswarm_server.displays.text import Style

DEFAULT_WIDTH, DEFAULT_HEIGHT = 80, 24
# Python itself sets this one, where the locale is "C", before any line of ours runs (PEP 538).
_COERCED = "C.UTF-8"
_ELLIPSIS = "…"
_IN_ASCII = str.maketrans({
    "·": "-", "…": "~", "→": ">", "←": "<", "–": "-", "’": "'", "✓": "+", "✗": "x", "▶": ">", "⧖": "?", "⚠": "!", "↺": "~",
    "↻": "~", "◐": "o", "✎": "*", "■": "#",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Terminal:
    """``width`` and ``height`` in cells, at least 1; ``unicode`` False: only ASCII may be drawn."""

    width: int
    height: int
    unicode: bool
    style: Style

    def spelled(self, text: str) -> str:
        """Return ``text`` in letters that the terminal has."""
        return text if self.unicode or text.isascii() else text.translate(_IN_ASCII).encode("ascii", "replace").decode()

    def clipped(self, text: str, width: int) -> str:
        """Return ``text``, without colours, in at most ``width`` cells; a mark at its end says that there was more."""
        text = self.spelled(text)
        if cells(text) <= width:
            return text
        mark = _ELLIPSIS if self.unicode else "~"
        # Each letter is measured once: marks without a width may stand by the thousand on the letters that fit.
        kept = used = 0
        for char in text:
            used += cells(char)
            if used > width - 1:
                break
            kept += 1
        return text[:kept] + mark if width > 0 else ""

    def padded(self, text: str, width: int) -> str:
        """Return ``text``, without colours, in exactly ``width`` cells."""
        fitted = self.clipped(text, width)
        return fitted + " " * (width - cells(fitted))


def terminal_of(stream: TextIO, environ: Mapping[str, str], *, colour: bool) -> Terminal:
    """Describe the terminal behind ``stream``; one that tells no size, or is none, counts as 80 by 24."""
    width, height = _size(stream)
    return Terminal(width, height, speaks_utf8(environ), Style(colour=colour))


def can_redraw(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether the stream is a terminal on which the cursor can be moved."""
    return stream.isatty() and environ.get("TERM", "") not in ("", "dumb")


def speaks_utf8(environ: Mapping[str, str]) -> bool:
    """Whether the locale is a UTF-8 one; a terminal without any word on it counts as one, as most are."""
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE")
    if locale == _COERCED and not environ.get("LC_ALL") and environ.get("LANG") in ("C", "POSIX"):
        return False
    locale = locale or environ.get("LANG") or _COERCED
    return locale.casefold().replace("-", "").partition("@")[0].endswith("utf8")


def cells(text: str) -> int:
    """How many cells of a terminal ``text`` takes: two for a wide letter, none for a mark on the letter before it."""
    if text.isascii():
        return len(text)
    from unicodedata import category, combining, east_asian_width

    def width(char: str) -> int:
        if combining(char) or category(char) in ("Mn", "Me", "Cf"):
            return 0
        return 2 if east_asian_width(char) in ("W", "F") else 1

    return sum(width(char) for char in text)


def _size(stream: TextIO) -> tuple[int, int]:
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return DEFAULT_WIDTH, DEFAULT_HEIGHT
    return size.columns or DEFAULT_WIDTH, size.lines or DEFAULT_HEIGHT
