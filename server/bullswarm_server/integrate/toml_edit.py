"""Edits of a TOML text that leave the person's own text and comments alone.

A table is put in as lines of its own behind everything, and taken out as these lines; where the person's layout does
not allow it (inline tables), and for values inside a table, tomlkit edits, which keeps the text around. Each result is
read again: what was not edited must still say the same, or TextError is raised.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from bullswarm_server.integrate.blocks import Appended, append, cut
from bullswarm_server.integrate.errors import TextError

Table = Mapping[str, Any]
_AT_LINE = re.compile(r"\(at line (\d+)")
# Strings and comments are passed over, so that what stands in them is never taken for a header.
_HEADER = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|\#[^\n]*|(?P<header>^[ \t]*\[[^\n]*)""",
    re.M | re.S,
)


def parse(text: str) -> dict[str, Any]:
    """Read the text; TextError, with the line, when it is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.search(str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise TextError(str(error).partition(" (at ")[0], line=line) from error
    except RecursionError as error:
        raise TextError("nested too deeply", line=1) from error


def find(document: Table, path: Sequence[str]) -> Any:
    """Return the value at ``path``, or None."""
    value: Any = document
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value


def insert(text: str, path: Sequence[str], table: Table) -> Appended:
    """Put the table ``path`` in; raise TextError where something else stands in the way."""
    document = parse(text)
    if find(document, path) is not None:
        raise TextError(f"{'.'.join(path)} is there already")
    for length in range(1, len(path)):
        holder = find(document, path[:length])
        if holder is not None and not isinstance(holder, dict):
            raise TextError(f"{'.'.join(path[:length])} is not a table")
    expected = _with(document, path, dict(table))
    appended = append(text, written(path, table))
    if _says(appended.text, expected):
        return appended
    return Appended(_by_tomlkit(text, expected, lambda root: _put(root, path, table)), "")


def update(text: str, path: Sequence[str], values: Table) -> str:
    """Set these keys of the existing table ``path`` and leave its others."""
    document = parse(text)
    expected = _with(document, path, {**find(document, path), **values})

    def change(root: Any) -> None:
        for step in path:
            root = root[step]
        for key, value in values.items():
            root[key] = value

    return _by_tomlkit(text, expected, change)


def remove(text: str, path: Sequence[str], *, glue: str | None = None) -> str:
    """Take the table ``path`` out, with the tables inside it."""
    document = parse(text)
    expected = _without(document, path)
    lines = _cut_tables(text, path, glue)
    if lines is not None and (_says(lines, expected) or _says(lines, _pruned(expected, path))):
        return lines

    def change(root: Any) -> None:
        for step in path[:-1]:
            root = root[step]
        del root[path[-1]]

    return _by_tomlkit(text, expected, change)


def written(path: Sequence[str], table: Table) -> str:
    """Write the table as lines, without a last line end."""
    header = tomlkit.document()
    inner: Any = tomlkit.table()
    for key, value in table.items():
        inner[key] = value
    for step in reversed(path[1:]):
        outer = tomlkit.table(is_super_table=True)
        outer[step] = inner
        inner = outer
    header[path[0]] = inner
    return tomlkit.dumps(header).rstrip("\n")


def _cut_tables(text: str, path: Sequence[str], glue: str | None) -> str | None:
    """Cut the lines from each header of ``path`` or below it to its last line that is not blank or a comment."""
    headers = [
        (match.start(), match.end(), steps)
        for match in _HEADER.finditer(text)
        if match["header"] and (steps := _header_path(match["header"])) is not None
    ]
    limits = [start for start, _, _ in headers[1:]] + [len(text)]
    spans = [
        (start, _end_of_table(text, end, limit))
        for (start, end, steps), limit in zip(headers, limits, strict=False)
        if steps[: len(path)] == list(path)
    ]
    if not spans:
        return None
    for start, end in reversed(spans):
        text = cut(text, start, end, glue if start == spans[0][0] else None)
    return text


def _end_of_table(text: str, start: int, limit: int) -> int:
    """Leave out the blank lines and comments at the end: they belong to what comes next."""
    lines = text[start:limit].splitlines(keepends=True)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    body = "".join(lines).rstrip("\r\n")
    return start + len(body)


def _header_path(line: str) -> list[str] | None:
    """Read a header line by asking the parser itself which table it opens; None when it opens none."""
    try:
        value: Any = tomllib.loads(line.strip())
    except tomllib.TOMLDecodeError:
        return None
    steps = []
    while isinstance(value, (dict, list)) and value:
        if isinstance(value, list):
            value = value[0]
            continue
        key = next(iter(value))
        steps.append(key)
        value = value[key]
    return steps


def _by_tomlkit(text: str, expected: Table, change: Any) -> str:
    cant_keep = TextError("its layout can't be kept in this edit; make it by hand")
    try:
        document = tomlkit.parse(text)
        if tomlkit.dumps(document) != text:
            raise cant_keep
        change(document)
        result = tomlkit.dumps(document)
    except (TOMLKitError, KeyError, TypeError, ValueError) as error:
        raise cant_keep from error
    if not _says(result, expected):
        raise cant_keep
    return result


def _put(root: Any, path: Sequence[str], table: Table) -> None:
    for step in path[:-1]:
        root = root.setdefault(step, tomlkit.inline_table())
    inner = tomlkit.inline_table()
    inner.update(table)
    root[path[-1]] = inner


def _says(text: str, expected: Table) -> bool:
    try:
        return parse(text) == expected
    except TextError:
        return False


def _with(document: Table, path: Sequence[str], value: Any) -> dict[str, Any]:
    result = copy.deepcopy(dict(document))
    inner = result
    for step in path[:-1]:
        inner = inner.setdefault(step, {})
    inner[path[-1]] = value
    return result


def _without(document: Table, path: Sequence[str]) -> dict[str, Any]:
    result = copy.deepcopy(dict(document))
    inner = find(result, path[:-1])
    if not isinstance(inner, dict) or path[-1] not in inner:
        raise TextError(f"{'.'.join(path)} is not there")
    del inner[path[-1]]
    return result


def _pruned(document: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """The tables around ``path`` that only its own header named are gone with it."""
    result = copy.deepcopy(document)
    for length in range(len(path) - 1, 0, -1):
        if find(result, path[:length]) == {}:
            holder = find(result, path[: length - 1]) if length > 1 else result
            del holder[path[length - 1]]
    return result
