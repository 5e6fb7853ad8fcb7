"""Lists of models that a CLI prints for people: one name a line, bullets, or two columns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bullswarm_core.pools.model_catalog import ModelEntry

_NAME = r"[A-Za-z0-9][\w.:@/-]*"
_LINE = re.compile(rf"({_NAME}/{_NAME})")
_BULLET = re.compile(rf"\s*[*-] ({_NAME})( \(default\))?\s*")
_COLUMNS = re.compile(rf"({_NAME})\s{{2,}}(\S.*)")
_DEFAULT = " (default)"
# A terminal's colours may stand in what a CLI prints.
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def from_lines(output: str) -> tuple[ModelEntry, ...]:
    """Read ``provider/model`` names, one a line; other lines are no models."""
    return tuple(ModelEntry(found[1]) for line in _lines(output) if (found := _LINE.fullmatch(line.strip())))


def from_bullets(output: str) -> tuple[ModelEntry, ...]:
    """Read names after ``*`` or ``-``, one of them marked ``(default)``."""
    found = (_BULLET.fullmatch(line) for line in _lines(output))
    return tuple(ModelEntry(each[1], default=each[2] is not None) for each in found if each)


def from_columns(output: str, *, until: str) -> tuple[ModelEntry, ...]:
    """Read a name and what is said of it, up to the line that begins with ``until``."""
    models = []
    for line in _lines(output):
        if line.startswith(until):
            break
        if found := _COLUMNS.fullmatch(line.rstrip()):
            note = found[2]
            models.append(ModelEntry(found[1], note=note.removesuffix(_DEFAULT), default=note.endswith(_DEFAULT)))
    return tuple(models)


def _lines(output: str) -> Iterator[str]:
    return (_CONTROL.sub("", line) for line in output.splitlines())
