"""The person's own settings of a CLI, watched while a worker runs.

A worker must be able to write its CLI's folder (sessions, tokens), and Landlock can't take single files out of a folder again.
What would run later in the person's own sessions is therefore compared before and after: hooks, plug-ins, instructions.

A guarded thing is named by a path: a file, a folder with all in it, a pattern (``plugins/**/hooks.json``), or for a file that
the CLI itself keeps writing, only a part of its JSON or TOML (``.claude.json#projects.*.mcpServers``). These are compared even
where the rest of a state folder is not: in a volatile file, and at the first start of a CLI.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.fast.tree import walk
from bullswarm_core.launch.state_folders import path_pattern

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
_PARTS = (".json#", ".toml#")
# No skill and no plug-in lies so deep; what a worker puts below it is named as too deep.
_DEEPEST = 40


def fingerprints(paths: Iterable[str]) -> dict[str, str]:
    """Return what each path is now: a digest of its content, of all files' for a folder or pattern; never raises."""
    return {path: _fingerprint(path) for path in paths}


def changed(before: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths that are not what they were."""
    now = fingerprints(before)
    return tuple(path for path, was in before.items() if now[path] != was)


def _of_entry(path: Path, *, room: int) -> tuple[str, int]:
    try:
        return _of_file(path, room=room)
    except OSError as error:  # one that can't be read must not hide the others
        return f"{_link(path)}unreadable ({error.errno})", 0


def _fingerprint(text: str) -> str:
    path = Path(text)
    try:
        if any(part in text for part in _PARTS):
            file, _, keys = text.rpartition("#")
            return _digest_of_part(Path(file), keys.split("."))
        if "*" in text and not path.exists():
            base = Path(text[: text.index("*")].rpartition("/")[0])
            return _digest_of_all(base, fits=re.compile(path_pattern(text), re.DOTALL))
        if path.is_dir():
            return _digest_of_all(path)
        return _of_file(path, room=_READ_BYTES)[0]
    except FileNotFoundError:
        # A link to what isn't there yet is a promise that it will be.
        return _link(path) or MISSING
    except OSError as error:
        return f"unreadable ({error.errno})"


def _of_file(path: Path, *, room: int) -> tuple[str, int]:
    """Return what a file is, and how many bytes of it were read; the same content behind a new link is a change."""
    facts = path.stat()
    link = _link(path) + _names(facts, with_inode=True)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > min(room, _READ_BYTES):
        # The time of the last change of the inode, too: that of the content can be set to anything.
        return f"{link}{facts.st_size} bytes at {facts.st_mtime_ns} {facts.st_ctime_ns}", 0
    with open_ordinary(path) as file:
        data = file.read(_READ_BYTES)
    return link + _digest(data), len(data)


def _names(facts: os.stat_result, *, with_inode: bool = False) -> str:
    """Return "" for a file with one name. Through a second one it may be written from a place where nobody looks."""
    if facts.st_nlink == 1 or not stat.S_ISREG(facts.st_mode):
        return ""
    return f"{facts.st_nlink} names" + (f" of {facts.st_ino}: " if with_inode else ": ")


def _link(path: Path) -> str:
    return f"link to {os.fspath(path.readlink())}: " if path.is_symlink() else ""


def _digest_of_all(folder: Path, *, fits: re.Pattern[str] | None = None) -> str:
    """Digest the files below a folder, or those that fit, and the links to folders, which CLIs follow."""
    found: list[tuple[str, str]] = []
    room, number = _READ_BYTES_OF_FOLDER, 0
    entries = walk(folder, max_depth=_DEEPEST, max_entries=_LARGEST_FOLDER, follow_root=True)
    for entry in entries:
        path = folder / entry.path
        if fits is not None and not fits.fullmatch(str(path)):
            continue
        if entry.kind == "folder":
            continue
        what, read = _of_entry(path, room=room if number < _READ_FILES else 0)
        room, number = room - read, number + 1
        found.append((str(path), what))
    found += [(str(folder / problem.path), problem.what) for problem in entries.problems if problem.path]
    return _digest(repr(sorted(found)).encode("utf-8", "surrogateescape"))


def _digest_of_part(file: Path, keys: list[str]) -> str:
    names = ""
    try:
        with open_ordinary(file) as opened:
            data = opened.read(_LARGEST_JSON)
            # Not the inode: the CLI itself puts a new file in the place of the old one.
            names = _names(os.fstat(opened.fileno()))
    except FileNotFoundError:
        data = b"{}"  # the CLI's first start makes the file, and a file without that part is no change of it
    try:
        document = _document(file, data)
    except (ValueError, RecursionError):
        # Some CLIs read more than strict JSON, such as comments, so the part may be there all the same.
        return names + _digest(data)
    return names + _digest(json.dumps(_part(document, keys), sort_keys=True, default=str).encode())


def _document(file: Path, data: bytes) -> Any:
    if file.suffix == ".json":
        return json.loads(data)
    import tomllib

    return tomllib.loads(data.decode() if data != b"{}" else "")


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
