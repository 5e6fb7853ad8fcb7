"""Notices the terminal event in a JSON-lines stream, chunk by chunk, whatever the length of a line.

A table of ``{"path": "type", "equals": ["result"]}`` entries says which line is a CLI's last word: any entry that
holds is enough. The path is a dotted path of object keys. Only lines that contain one of the texts looked for are
parsed, so other lines cost one memory search; a line too long to hold is scanned in pieces with constant memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from bullswarm_core._dataclasses import dataclass

# Longer lines are scanned, not held. The biggest terminal events seen carry a whole answer, some 100 kB.
LONGEST_HELD_LINE = 1024 * 1024
# Keys and values looked for are short words; a longer string can't be one of them.
LONGEST_WORD = 256

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Match:
    """One way to know a terminal event: the value at ``path`` is one of ``equals``."""

    path: tuple[str, ...]
    equals: tuple[Scalar, ...]


def matches_from_json(value: object) -> tuple[Match, ...]:
    """Read the ``terminal`` table of a keeper's spec; raises ValueError with the entry that is wrong."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise ValueError(f"terminal must be a list, not {value!r}")
    found: list[Match] = []
    for entry in value:
        path = entry.get("path") if isinstance(entry, Mapping) else None
        equals = entry.get("equals") if isinstance(entry, Mapping) else None
        if not isinstance(path, str) or not path or not isinstance(equals, list) or not equals:
            raise ValueError(f'terminal entries are {{"path": text, "equals": [values]}}, not {entry!r}')
        found.append(Match(path=tuple(path.split(".")), equals=tuple(equals)))
    return tuple(found)


def holds(matches: Iterable[Match], line: bytes) -> bool:
    """Say whether one complete line is a terminal event; broken JSON is not."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return any(_same(_at(document, match.path), match.equals) for match in matches)


def _at(document: object, path: tuple[str, ...]) -> object:
    for key in path:
        if not isinstance(document, dict) or key not in document:
            return _MISSING
        document = document[key]
    return document


_MISSING = object()


def _same(value: object, wanted: tuple[Scalar, ...]) -> bool:
    return any(type(value) is type(candidate) and value == candidate for candidate in wanted)


class TerminalWatch:
    """Feed it the bytes of stdout; it says when a terminal event is complete."""

    def __init__(self, matches: tuple[Match, ...]) -> None:
        self._matches = matches
        self._needles = tuple({json.dumps(value).encode() for match in matches for value in match.equals})
        self._parts: list[bytes] = []
        self._held = 0
        self._scanner: LineScanner | None = None

    def feed(self, chunk: bytes) -> bool:
        """Take in the next bytes and return whether a terminal event ended in them."""
        if not self._matches:
            return False
        end = chunk.find(b"\n")
        if end < 0:
            self._hold(chunk)
            return False
        last = chunk.rfind(b"\n")
        seen = self._end_line(chunk[:end]) or self._any_line(chunk, end + 1, last)
        self._hold(chunk[last + 1 :])
        return seen

    def _any_line(self, chunk: bytes, start: int, stop: int) -> bool:
        for needle in self._needles:
            at = chunk.find(needle, start, stop)
            while at >= 0:
                line_start = max(chunk.rfind(b"\n", start, at) + 1, start)
                line_end = chunk.find(b"\n", at)
                if holds(self._matches, chunk[line_start:line_end]):
                    return True
                at = chunk.find(needle, line_end, stop)
        return False

    def _end_line(self, rest: bytes) -> bool:
        scanner, parts = self._scanner, self._parts
        self._scanner, self._parts, self._held = None, [], 0
        if scanner is not None:
            scanner.feed(rest)
            return scanner.finish()
        line = b"".join((*parts, rest))
        return any(needle in line for needle in self._needles) and holds(self._matches, line)

    def _hold(self, piece: bytes) -> None:
        if not piece:
            return
        if self._scanner is not None:
            self._scanner.feed(piece)
            return
        self._parts.append(piece)
        self._held += len(piece)
        if len(self._parts) > 64:
            self._parts = [b"".join(self._parts)]
        if self._held > LONGEST_HELD_LINE:
            self._scanner = LineScanner(self._matches)
            for part in self._parts:
                self._scanner.feed(part)
            self._parts = []


_STRUCTURE = re.compile(rb'[\[\]{}:,"]')
# Possessive: it keeps no way back, so a string of megabytes costs no memory.
_STRING_BODY = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_BACKSLASH = 0x5C


class LineScanner:
    """Finds the values at the wanted paths of one JSON document that arrives in pieces, with constant memory."""

    def __init__(self, matches: tuple[Match, ...]) -> None:
        self._matches = matches
        self._deepest = max(len(match.path) for match in matches)
        self._depth = 0
        self._keys: list[str | None] = [None] * (self._deepest + 1)
        self._in_string = False
        self._escaped = False
        self._word = bytearray()
        self._found = False

    def feed(self, data: bytes) -> None:
        """Take in the next piece of the line."""
        at = 0
        while at < len(data):
            at = self._string(data, at) if self._in_string else self._structure(data, at)

    def finish(self) -> bool:
        """Return whether a wanted value was there and the document was complete."""
        return self._found and self._depth == 0 and not self._in_string

    def _string(self, data: bytes, at: int) -> int:
        if self._escaped:
            self._remember(data[at : at + 1])
            self._escaped = False
            return at + 1
        body = _STRING_BODY.match(data, at)
        stop = at if body is None else body.end()
        self._remember(data[at : min(stop, at + LONGEST_WORD + 1)])
        if stop == len(data):
            return stop
        self._remember(data[stop : stop + 1])
        self._escaped = data[stop] == _BACKSLASH
        self._in_string = self._escaped
        return stop + 1

    def _structure(self, data: bytes, at: int) -> int:
        hit = _STRUCTURE.search(data, at)
        stop = len(data) if hit is None else hit.start()
        self._remember(data[at:stop])
        if hit is None:
            return stop
        mark = hit.group()
        if mark == b":":
            self._name_key()
        elif mark != b'"':
            self._end_value()
            self._move(mark)
        self._word.clear()
        if mark == b'"':
            self._in_string = True
            self._word += mark
        return hit.end()

    def _remember(self, piece: bytes) -> None:
        if self._depth <= self._deepest and len(self._word) <= LONGEST_WORD:
            self._word += piece[: LONGEST_WORD + 1]

    def _name_key(self) -> None:
        if self._depth <= self._deepest:
            key = self._value()
            self._keys[self._depth] = key if isinstance(key, str) else None

    def _end_value(self) -> None:
        if not self._word.strip() or not 1 <= self._depth <= self._deepest:
            return
        path = tuple(self._keys[1 : self._depth + 1])
        for match in self._matches:
            if match.path == path and _same(self._value(), match.equals):
                self._found = True

    def _move(self, mark: bytes) -> None:
        self._depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(mark, 0)
        # A comma or an opening bracket comes before a key; inside a list there is none.
        if mark in b"{[," and 0 <= self._depth <= self._deepest:
            self._keys[self._depth] = None

    def _value(self) -> object:
        if len(self._word) > LONGEST_WORD:
            return _MISSING
        try:
            return json.loads(bytes(self._word))
        except ValueError:
            return _MISSING
