"""A JSON text with the place of each value in it, so that an edit can leave every other byte alone.

With ``comments`` it takes JSONC, as OpenCode reads its settings: comments of both kinds and trailing commas.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_server.integrate.errors import TextError

_SPACE = re.compile(r"[ \t\r\n]*")
_SPACE_AND_COMMENTS = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.S)
# Deeper than any settings file, and far from Python's own limit.
_DEPTH_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object or one element of an array (``key`` None); its text is ``start`` to ``end``."""

    key: str | None
    start: int
    end: int
    node: Node
    comma: int | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One value; ``members`` are those of a container, in the order of the text."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = field(default_factory=tuple)

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    @property
    def is_array(self) -> bool:
        return isinstance(self.value, list)

    def child(self, key: str | int) -> Node | None:
        """Return the member of this name (the last one, as every reader takes it) or the element of this index."""
        position = self.position(key)
        return None if position is None else self.members[position].node

    def position(self, key: str | int) -> int | None:
        """Return where that member stands among ``members``."""
        if isinstance(key, int):
            return key if self.is_array and 0 <= key < len(self.members) else None
        places = [place for place, member in enumerate(self.members) if member.key == key]
        return places[-1] if places and self.is_object else None


# One command reads the same text many times over, and Claude Code's can be megabytes.
@lru_cache(maxsize=32)
def parse(text: str, *, comments: bool = False) -> Node:
    """Read the text as one value; TextError, with the line, when it is not JSON (or JSONC with ``comments``).

    The value is shared between calls: copy it before changing it.
    """
    reader = _Reader(text, comments=comments)
    start = reader.skip(0)
    node = reader.value(start, 0)
    end = reader.skip(node.end)
    if end != len(text):
        raise reader.trouble("more text after the end of the value", end)
    return node


class _Reader:
    def __init__(self, text: str, *, comments: bool) -> None:
        self.text = text
        self.comments = comments
        self.scan = json.JSONDecoder(parse_constant=_refuse_constant)

    def skip(self, at: int) -> int:
        """Go past white space, and past comments where they are allowed."""
        found = (_SPACE_AND_COMMENTS if self.comments else _SPACE).match(self.text, at)
        return found.end() if found else at

    def trouble(self, message: str, at: int) -> TextError:
        return TextError(message, line=self.text.count("\n", 0, at) + 1)

    def value(self, at: int, depth: int) -> Node:
        if depth > _DEPTH_LIMIT:
            raise self.trouble("nested too deeply", at)
        opening = self.text[at : at + 1]
        if opening == "{":
            return self._object(at, depth)
        if opening == "[":
            return self._array(at, depth)
        value, end = self._scalar(at)
        return Node(at, end, value)

    def _scalar(self, at: int) -> tuple[Any, int]:
        try:
            return self.scan.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            message = "a comment, which this file can't hold" if self.text[at : at + 1] == "/" else error.msg
            raise self.trouble(message, error.pos) from error
        except ValueError as error:
            raise self.trouble(str(error), at) from error

    def _object(self, at: int, depth: int) -> Node:
        members: list[Member] = []
        place = self.skip(at + 1)
        while self.text[place : place + 1] != "}":
            if self.text[place : place + 1] != '"':
                raise self.trouble("expected a name in double quotes", place)
            key, colon = self._scalar(place)
            colon = self.skip(colon)
            if self.text[colon : colon + 1] != ":":
                raise self.trouble('expected ":"', colon)
            node = self.value(self.skip(colon + 1), depth + 1)
            comma = self._comma(node.end, "}")
            members.append(Member(key, place, node.end, node, comma))
            place = self.skip(node.end if comma is None else comma + 1)
            self._refuse_trailing(comma, place, "}")
        return Node(at, place + 1, {m.key: m.node.value for m in members}, tuple(members))

    def _array(self, at: int, depth: int) -> Node:
        members: list[Member] = []
        place = self.skip(at + 1)
        while self.text[place : place + 1] != "]":
            node = self.value(place, depth + 1)
            comma = self._comma(node.end, "]")
            members.append(Member(None, place, node.end, node, comma))
            place = self.skip(node.end if comma is None else comma + 1)
            self._refuse_trailing(comma, place, "]")
        return Node(at, place + 1, [m.node.value for m in members], tuple(members))

    def _comma(self, end: int, closing: str) -> int | None:
        place = self.skip(end)
        found = self.text[place : place + 1]
        if found == ",":
            return place
        if found != closing:
            raise self.trouble(f'expected "," or "{closing}"', place)
        return None

    def _refuse_trailing(self, comma: int | None, place: int, closing: str) -> None:
        if comma is not None and not self.comments and self.text[place : place + 1] == closing:
            raise self.trouble(f'a comma before "{closing}"', comma)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
