"""Whole blocks of lines that are put behind a person's text and taken out again, to the byte."""

from __future__ import annotations

import re

from bullswarm_core._dataclasses import dataclass
from bullswarm_server.integrate.errors import TextError

BEGIN = "<!-- bullswarm:begin v1 -->"
END = "<!-- bullswarm:end -->"
# Any version of the first mark: a later bullswarm must find what an earlier one wrote.
_BEGIN = re.compile(r"^[ \t]*<!-- bullswarm:begin\b[^>\n]*-->", re.M)
_END = re.compile(r"^[ \t]*<!-- bullswarm:end -->", re.M)


@dataclass(frozen=True, slots=True)
class Appended:
    """The new text, and the ``glue`` that was put between the person's text and the block."""

    text: str
    glue: str


def newline_of(text: str) -> str:
    """Return the line end that this text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def append(text: str, block: str) -> Appended:
    """Put a block of lines (without its last line end) behind the text, an empty line between."""
    newline = newline_of(text)
    lines = newline.join(block.split("\n"))
    glue = "" if not text else newline if text.endswith("\n") else newline * 2
    return Appended(f"{text}{glue}{lines}{newline}", glue)


def cut(text: str, start: int, end: int, glue: str | None) -> str:
    """Take the lines from ``start`` to ``end`` (before their line end) out, with the glue that came with them.

    Without a record of the glue (None) an empty line in front goes too.
    """
    newline = newline_of(text)
    before, after = text[:start], text[end:]
    after = after.removeprefix(newline)
    if glue is None:
        glue = newline if before.endswith(newline * 2) else ""
    before = before.removesuffix(glue)
    if before and after and not before.endswith("\n"):
        # The person wrote on below the block: two lines of theirs must not become one.
        before += newline
    return before + after


def find(text: str) -> tuple[int, int] | None:
    """Return where the marked block starts and ends; TextError when its marks are not one pair."""
    begins, ends = list(_BEGIN.finditer(text)), list(_END.finditer(text))
    if not begins and not ends:
        return None
    if len(begins) == 1 and len(ends) == 1 and begins[0].end() <= ends[0].start():
        return begins[0].start(), ends[0].end()
    first = min(mark.start() for mark in (*begins, *ends))
    line = text.count("\n", 0, first) + 1
    raise TextError("the bullswarm:begin and bullswarm:end marks are not one pair; correct or delete them", line=line)


def put(text: str, inside: str) -> Appended:
    """Put the marked block with this text inside, in its place where there is one, else at the end."""
    block = f"{BEGIN}\n{inside}\n{END}"
    place = find(text)
    if place is None:
        return append(text, block)
    lines = newline_of(text).join(block.split("\n"))
    return Appended(text[: place[0]] + lines + text[place[1] :], "")


def inside_of(text: str) -> str | None:
    """Return what stands in the marked block, with plain line ends; None without a block."""
    place = find(text)
    if place is None:
        return None
    lines = text[place[0] : place[1]].replace("\r\n", "\n").split("\n")
    return "\n".join(lines[1:-1])
