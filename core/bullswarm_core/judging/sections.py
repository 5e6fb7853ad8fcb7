"""What a worker's final reply says is not done: the items below its heading ``Not done``.

Every task asks for the sections ``## Done``, ``## Not done`` and ``## Suggested next step``; workers write them at other
levels, in bold, in capitals, with a colon, or all inside one code fence. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bullswarm_core.fast.text import clipped, one_line

# So many items of so many characters are kept of an attempt.
MOST_ITEMS = 20
LONGEST_ITEM = 300
OUTSIDE = "outside:"
_SECTIONS = frozenset({"done", "not done", "suggested next step", "suggested next steps"})
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]*(?P<words>.*?)[ \t]*#*[ \t]*\Z")
_BOLD_LINE = re.compile(r" {0,3}(?:\*\*|__)(?P<words>[^*_]+)(?:\*\*|__)[ \t]*:?[ \t]*\Z")
_FENCE = re.compile(r" {0,3}(?P<marks>```+|~~~+)(?P<info>[^`]*)\Z")
_BULLET = re.compile(r"(?P<indent>[ \t]*)(?:[-*+•–]|\d{1,3}[.)])[ \t]+(?P<words>.*)\Z")
_CHECKBOX = re.compile(r"\[(?P<mark>[ xX])\][ \t]+")
_NOTHING = re.compile(r"(?:none|nothing|n/?a|nil|-|–|—)(?: left| remaining| open| outstanding)?", re.IGNORECASE)
_MARKUP = str.maketrans("", "", "*_`")


def not_done(reply: str) -> tuple[str, ...]:
    """Return every item below the last heading ``Not done`` of a reply, each on one line; ``none`` is no item.

    Headings in a code fence are quotations and count only where the reply has none outside of one.
    """
    lines = [line.rstrip("\r") for line in reply.removeprefix("\ufeff").split("\n")]
    for inside in (False, True):
        found = _section(list(_seen(lines, inside=inside)))
        if found is not None:
            return tuple(_items(found))
    return ()


def returned_early(items: tuple[str, ...]) -> dict[str, Any] | None:
    """Return what the record of a good attempt keeps of the items that it left undone; None where it left none."""
    if not items:
        return None
    return {"count": len(items), "items": [clipped(item, LONGEST_ITEM) for item in items[:MOST_ITEMS]]}


def outside_blockers(items: tuple[str, ...]) -> list[str]:
    """Return what stands in the worker's way outside of its step: the items that begin with ``outside:``, without it."""
    plain_items = [(item, item.translate(_MARKUP).lstrip()) for item in items]
    blockers = [bare[len(OUTSIDE) :].strip() or item for item, bare in plain_items if bare.lower().startswith(OUTSIDE)]
    return [clipped(blocker, LONGEST_ITEM) for blocker in blockers[:MOST_ITEMS]]


def _seen(lines: list[str], *, inside: bool) -> Iterator[tuple[str, bool]]:
    """Give each line with whether a heading may stand in it; with ``inside`` fences are looked into."""
    opened = ""
    for line in lines:
        fence = _FENCE.match(line)
        if fence and not opened:
            opened = fence["marks"]
        elif fence and fence["marks"].startswith(opened) and not fence["info"].strip():
            opened = ""
        else:
            yield line, inside or not opened
            continue
        if not inside:
            yield line, False


def _section(lines: list[tuple[str, bool]]) -> list[str] | None:
    """Return the lines below the last ``Not done``, up to the next heading; None without one."""
    found: list[str] | None = None
    taking = False
    for line, may_head in lines:
        heading = _heading(line) if may_head else None
        if heading is not None:
            taking = heading == "not done"
            found = [] if taking else found
        elif taking and found is not None:
            found.append(line)
    return found


def _heading(line: str) -> str | None:
    """Return the words of a heading in lower case, None for any other line; a bold line is one of ours or none."""
    marked = _HEADING.match(line)
    if marked:
        return _words(marked["words"])
    bold = _BOLD_LINE.match(line)
    words = _words(bold["words"]) if bold else ""
    return words if words in _SECTIONS else None


def _words(text: str) -> str:
    return one_line(text.translate(_MARKUP)).rstrip(":. ").lower()


def _items(lines: list[str]) -> Iterator[str]:
    """Join each bullet with what is indented below it; lines without bullets are items of their own."""
    item: list[str] = []
    outer: int | None = None
    for line in lines:
        bullet = _BULLET.match(line)
        indent = len(bullet["indent"].expandtabs(4)) if bullet else 0
        if bullet and (outer is None or indent <= outer):
            yield from _whole(item)
            item, outer = [bullet["words"]], indent
        elif not line.strip():
            if outer is None:
                yield from _whole(item)
                item = []
        else:
            item.append(bullet["words"] if bullet else line)
    yield from _whole(item)


def _whole(parts: list[str]) -> Iterator[str]:
    text = one_line(" ".join(parts))
    box = _CHECKBOX.match(text)
    if box:
        text = text[box.end() :]
    said = text.translate(_MARKUP).strip("()[]. !\"'")
    if said and not _NOTHING.fullmatch(said) and not (box and box["mark"] != " "):
        yield text
