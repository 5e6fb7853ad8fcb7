"""The person's own settings of a CLI, watched while a worker runs.

A worker must be able to write its CLI's folder (sessions, tokens), and Landlock can't take single files out of a folder again.
What would run later in the person's own sessions is therefore compared before and after: hooks, plug-ins, instructions.

A guarded thing is named by a path: a file, a folder with all in it, a pattern (``plugins/**/hooks.json``), or for a file that
the CLI itself keeps writing, only a part of its JSON (``.claude.json#projects.*.mcpServers``).
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from bullswarm_core.fast.files import open_ordinary

MISSING = "missing"
# Settings are small; of anything larger the size and the time of change tell enough.
_READ_BYTES = 1024 * 1024
# What is read of one folder at most, some 50 ms; of the files beyond it the size and the times of change tell.
_READ_BYTES_OF_FOLDER = 32 * 1024 * 1024
_READ_FILES = 2000
# Plug-ins bring whole trees of modules; looking at so many files takes a tenth of a second.
_LARGEST_FOLDER = 20_000
# The CLI's whole history may be in the file of which a part is guarded.
_LARGEST_JSON = 64 * 1024 * 1024
_PART = ".json#"


def fingerprints(paths: Iterable[str]) -> dict[str, str]:
    """Return what each path is now: a digest of its content, of all files' for a folder or pattern; never raises."""
    return {path: _fingerprint(path) for path in paths}


def changed(before: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths that are not what they were."""
    now = fingerprints(before)
    return tuple(path for path, was in before.items() if now[path] != was)


def _fingerprint(text: str) -> str:
    path = Path(text)
    try:
        if _PART in text:
            file, _, keys = text.rpartition("#")
            return _digest_of_part(Path(file), keys.split("."))
        if "*" in text and not path.exists():
            found = glob.iglob(text, recursive=True, include_hidden=True)  # noqa: PTH207 - Path.glob needs a folder
            return _digest_of_all(map(Path, found))
        if path.is_dir():
            return _digest_of_all(_files(path))
        return _of_file(path, room=_READ_BYTES)[0]
    except FileNotFoundError:
        # A link to what isn't there yet is a promise that it will be.
        return _link(path) or MISSING
    except OSError as error:
        return f"unreadable ({error.errno})"


def _of_file(path: Path, *, room: int) -> tuple[str, int]:
    """Return what a file is, and how many bytes of it were read; the same content behind a new link is a change."""
    facts = path.stat()
    link = _link(path)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > min(room, _READ_BYTES):
        # The time of the last change of the inode, too: that of the content can be set to anything.
        return f"{link}{facts.st_size} bytes at {facts.st_mtime_ns} {facts.st_ctime_ns}", 0
    with open_ordinary(path) as file:
        data = file.read(_READ_BYTES)
    return link + _digest(data), len(data)


def _link(path: Path) -> str:
    return f"link to {os.fspath(path.readlink())}: " if path.is_symlink() else ""


def _digest_of_all(files: Iterable[Path]) -> str:
    found: list[tuple[str, str]] = []
    room = _READ_BYTES_OF_FOLDER
    for number, path in enumerate(sorted(islice(files, _LARGEST_FOLDER))):
        try:
            what, read = _of_file(path, room=room if number < _READ_FILES else 0)
            room -= read
        except OSError as error:  # one that can't be read must not hide the others
            what = f"{_link(path)}unreadable ({error.errno})"
        found.append((str(path), what))
    return _digest(repr(found).encode("utf-8", "surrogateescape"))


def _files(folder: Path) -> Iterator[Path]:
    """Give the files below a folder, and the links to folders, which CLIs follow: what is in those is not looked at."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        yield from (Path(place) / name for name in sorted([*names, *links]))


def _digest_of_part(file: Path, keys: list[str]) -> str:
    try:
        with open_ordinary(file) as opened:
            data = opened.read(_LARGEST_JSON)
    except FileNotFoundError:
        data = b"{}"  # the CLI's first start makes the file, and a file without that part is no change of it
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return "no JSON"
    return _digest(json.dumps(_part(document, keys), sort_keys=True).encode())


def _part(value: Any, keys: list[str]) -> Any:
    """Return what is at ``keys``, of which ``*`` is any; None for nothing there, also where an empty table is."""
    if not keys:
        return value or None
    if not isinstance(value, dict):
        return None
    key, *rest = keys
    if key != "*":
        return _part(value.get(key), rest)
    return {name: part for name, item in value.items() if (part := _part(item, rest)) is not None} or None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
