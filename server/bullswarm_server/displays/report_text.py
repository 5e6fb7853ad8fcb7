"""Text for a page: whatever it holds, it stays text there, and shows in the order in which it was written."""

from __future__ import annotations

import html

from bullswarm_core.fast.text import clipped, minutes_and_seconds, one_line, plain

_MOST_INLINE = 1_000


def inline(text: object) -> str:
    """Return a text as one escaped line, fit for an element and for an attribute."""
    return html.escape(clipped(one_line(_calm(str(text))), _MOST_INLINE), quote=True)


def block(text: str, *, most: int) -> str:
    """Return a text of at most ``most`` characters as an escaped block, its lines kept."""
    return f"<pre>{html.escape(clipped(plain(_calm(text)), most), quote=True)}</pre>"


def tag(name: str, escaped: str, kind: str = "") -> str:
    """Return an element around what is escaped already."""
    return f'<{name} class="{kind}">{escaped}</{name}>' if kind else f"<{name}>{escaped}</{name}>"


def elapsed(seconds: float | None) -> str:
    """``11m00s``, ``2h02m``, or a dash where nothing is known."""
    return "–" if seconds is None else minutes_and_seconds(seconds)


def _calm(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
