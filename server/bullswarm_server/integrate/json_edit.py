"""Edits of a JSON text that leave the person's own text alone, and their exact reversal.

Each edit is checked by reading its result: what was not edited must still say the same, or TextError is raised.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_server.integrate.errors import TextError
from bullswarm_server.integrate.json_text import Member, Node, parse

Steps = Sequence[str | int]
_INDENTED = re.compile(r"^([ \t]+)[^\s]", re.M)
_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*[^\n]*?\*/)*(?://[^\r\n]*)?(?=\r?\n|\Z)")


@dataclass(frozen=True, slots=True)
class Inserted:
    """The new text. ``made`` is how many containers of the path were made; ``blank`` is what stood in an empty one."""

    text: str
    made: int
    blank: str | None


def insert(text: str, path: Steps, value: Any, *, comments: bool = False) -> Inserted:
    """Put ``value`` in as the member ``path`` names, making the objects on the way; a last 'append' element is -1.

    A path that ends in -1 appends to an array. Raises TextError where something else stands in the way.
    """
    root = parse(text, comments=comments)
    holder, depth = root, 0
    while depth < len(path) - 1 and (child := holder.child(path[depth])) is not None:
        holder, depth = child, depth + 1
    made = len(path) - 1 - depth
    _check_holder(holder, path, depth, text)
    if made == 0 and path[-1] != -1 and holder.child(path[-1]) is not None:
        raise TextError(f"{_name(path)} is there already")
    key, whole = path[depth], value
    for name in reversed(path[depth + 1 :]):
        whole = [whole] if name == -1 else {name: whole}
    layout = _Layout(text)
    result, blank = _insert_member(text, holder, None if key == -1 else str(key), whole, layout)
    _verify(result, _with(root.value, path[:depth], key, whole), comments)
    return Inserted(result, made, blank)


def replace(text: str, path: Steps, value: Any, *, comments: bool = False) -> str:
    """Give the existing member ``path`` another value."""
    root = parse(text, comments=comments)
    node = _find(root, path)
    layout = _Layout(text)
    indent = layout.indent_of(node.start) if "\n" in text[node.start : node.end] else None
    result = text[: node.start] + layout.written(value, indent) + text[node.end :]
    _verify(result, _with(root.value, path[:-1], path[-1], value), comments)
    return result


def remove(text: str, path: Steps, *, made: int = 0, blank: str | None = None, comments: bool = False) -> str:
    """Take the member ``path`` out, and up to ``made`` containers around it that are empty then (see Inserted)."""
    root = parse(text, comments=comments)
    steps = list(path)
    while made > 0 and len(steps) > 1 and len(_find(root, steps[:-1]).members) == 1:
        steps.pop()
        made -= 1
    holder = _find(root, steps[:-1])
    _find(root, steps)
    place = holder.position(steps[-1])
    assert place is not None
    expected = copy.deepcopy(root.value)
    inner = expected
    for step in steps[:-1]:
        inner = inner[step]
    del inner[steps[-1]]
    for candidate in _cuts(text, holder, place, blank):
        try:
            _verify(candidate, expected, comments)
        except TextError:
            continue
        return candidate
    raise TextError(f"{_name(path)} can't be taken out without changing text around it")


def _insert_member(text: str, holder: Node, key: str | None, value: Any, layout: _Layout) -> tuple[str, str | None]:
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if not holder.members:
        return _fill_empty(text, holder, name, value, layout)
    last = holder.members[-1]
    if not layout.starts_line(last.start):
        addition = f", {name}{layout.written(value, None)}"
        end = last.end
        if last.comma is not None:
            addition, end = f" {name}{layout.written(value, None)},", last.comma + 1
        return text[:end] + addition + text[end:], None
    indent = layout.indent_of(last.start)
    line = f"{layout.newline}{indent}{name}{layout.written(value, indent)}"
    comma_at = last.end if last.comma is None else last.comma + 1
    rest = _REST_OF_LINE.match(text, comma_at)
    after = rest.end() if rest else comma_at
    if last.comma is None:
        return text[: last.end] + "," + text[last.end : after] + line + text[after:], None
    return text[:after] + line + "," + text[after:], None


def _fill_empty(text: str, holder: Node, name: str, value: Any, layout: _Layout) -> tuple[str, str | None]:
    blank = text[holder.start + 1 : holder.end - 1]
    if blank.strip():
        # Only comments: they stay in front, and the value goes on a line of its own.
        indent = layout.indent_of(holder.start) + layout.unit
        kept = blank.rstrip()
        tail = blank[len(kept) :] or layout.newline
        added = f"{layout.newline}{indent}{name}{layout.written(value, indent)}"
        return text[: holder.start + 1] + kept + added + tail + text[holder.end - 1 :], blank
    if layout.one_line:
        inside = f"{name}{layout.written(value, None)}"
    else:
        outer = layout.indent_of(holder.start)
        indent = outer + layout.unit
        inside = f"{layout.newline}{indent}{name}{layout.written(value, indent)}{layout.newline}{outer}"
    return text[: holder.start + 1] + inside + text[holder.end - 1 :], blank


def _cuts(text: str, holder: Node, place: int, blank: str | None) -> list[str]:
    """The ways to cut a member out, the tidiest first; not each of them is right where comments stand between."""
    member = holder.members[place]
    if len(holder.members) == 1:
        return _cuts_of_only(text, holder, member, blank)
    end = member.end if member.comma is None else member.comma + 1
    start = _before_space(text, member.start)
    if member.comma is not None:
        tidy = text[:start] + text[end:]
        if start == member.start:
            tidy = text[:start] + text[end:].lstrip(" ")
        return [tidy, text[: member.start] + text[end:]]
    comma = holder.members[place - 1].comma
    assert comma is not None
    return [text[:comma] + text[comma + 1 : cut] + text[end:] for cut in (start, member.start)]


def _cuts_of_only(text: str, holder: Node, member: Member, blank: str | None) -> list[str]:
    end = member.end if member.comma is None else member.comma + 1
    before, after = text[holder.start + 1 : member.start], text[end : holder.end - 1]
    if blank is not None and (before + after).split() == blank.split():
        return [text[: holder.start + 1] + blank + text[holder.end - 1 :]]
    if before.strip() or after.strip():
        start = _before_space(text, member.start)
        return [text[:start] + text[end:], text[: member.start] + text[end:]]
    return [text[: holder.start + 1] + text[holder.end - 1 :]]


def _before_space(text: str, at: int) -> int:
    # One line end at most: what stands before it, white space too, is the person's.
    while at > 0 and text[at - 1] in " \t":
        at -= 1
    if text[at - 1 : at] == "\n":
        at -= 1
        if text[at - 1 : at] == "\r":
            at -= 1
    return at


class _Layout:
    """How this text is laid out: its line ends, its indentation, and whether it has lines at all."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.one_line = "\n" not in text.strip() and text.strip() not in ("{}", "[]", "")
        indented = _INDENTED.search(text)
        self.unit = indented[1] if indented else "  "

    def starts_line(self, at: int) -> bool:
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return not line.strip() and "\n" in self.text[:at]

    def indent_of(self, at: int) -> str:
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def written(self, value: Any, indent: str | None) -> str:
        """Write ``value`` on lines indented by ``indent``, or on one line with None."""
        if indent is None:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, ensure_ascii=False, indent=self.unit).split("\n")
        return (self.newline + indent).join(lines)


def _check_holder(holder: Node, path: Steps, depth: int, text: str) -> None:
    wanted = "an array" if path[depth] == -1 else "an object"
    if holder.is_array if path[depth] == -1 else holder.is_object:
        return
    line = text.count("\n", 0, holder.start) + 1
    raise TextError(f"{_name(path[:depth]) or 'the file'} is not {wanted}", line=line)


def _find(root: Node, path: Steps) -> Node:
    node: Node | None = root
    for step in path:
        node = None if node is None else node.child(step)
    if node is None:
        raise TextError(f"{_name(path)} is not there")
    return node


def _with(value: Any, path: Steps, key: str | int, added: Any) -> Any:
    result = copy.deepcopy(value)
    inner = result
    for step in path:
        inner = inner[step]
    if key == -1:
        inner.append(added)
    else:
        inner[key] = added
    return result


def _verify(text: str, expected: Any, comments: bool) -> None:
    # Plain JSON is read by the standard library, which is another reader than the one that made the edit, and faster.
    try:
        value = parse(text, comments=True).value if comments else json.loads(text)
    except json.JSONDecodeError as error:
        raise TextError(error.msg, line=error.lineno) from error
    if value != expected:
        raise TextError("the edit would change more than it should")


def _name(path: Steps) -> str:
    return ".".join(str(step) for step in path)
