"""The state folders of a CLI, listed before a worker starts and compared after it has ended.

A worker must be able to write its CLI's folder, and what lies there may run in the person's own sessions: hooks, plug-ins,
instructions, scripts, the CLI itself. A list of dangerous files is never complete, so everything in a state folder counts but
for what the connector calls volatile: sessions, caches, logs, tokens.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.fast.tree import Entry, walk

_Matcher = Callable[[str], bool]

# Settings are small. Of a larger file, such as a program, the inode and its times are compared.
_READ_BYTES = 1024 * 1024
# Some 50 ms of reading; of the files after that the inode and its times are compared.
_READ_BYTES_IN_ALL = 32 * 1024 * 1024
# Plug-ins bring trees of modules: 20,000 files take a quarter of a second.
_LARGEST_LISTING = 20_000
# No CLI nests its settings deeper; below it a listing says "too deep" in place of names.
_DEEPEST = 32
# Settings in which commands stand are small.
_LARGEST_SETTINGS = 256 * 1024
_SETTINGS_SUFFIXES = (".json", ".jsonc", ".toml", ".yaml", ".yml")
_SCRIPT_SUFFIXES = (".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".lua", ".php")
_PATH_IN_TEXT = re.compile(r"""(?:(?<=["'\s=:({\[])|^)(?:~|\$HOME|\$\{HOME\})?/[^\s"'\\;|&<>()`$]+""", re.M)


@dataclass(frozen=True, slots=True)
class StateFolders:
    """What is compared: ``folders`` are absolute paths of folders or single files.

    ``volatile`` are absolute patterns of what the CLI keeps writing: ``*`` is any run of characters within a name, ``**`` any
    number of folders. A pattern with a slash at its end covers a folder with all in it; any other covers files and links
    only. ``first_start`` is a file that the first start of the CLI makes; None where a state folder with nothing in it says the
    same. ``written_once`` are patterns of files and folders that come and go with each session: a new one and one that is
    gone are no findings, but the other sessions run what lies in theirs, so nothing in one that was there before may change.
    """

    folders: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    first_start: str | None = None
    written_once: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Findings:
    """What is no longer as it was: paths that were changed, added or removed, and paths that were written again unchanged.

    ``first_files`` were changed or added by the first start of the CLI, which makes settings of its own. ``not_compared``
    are folders that already held more than is compared before the worker started.
    """

    changed: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    first_files: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()


def listing(state: StateFolders, *, home: str) -> dict[str, Any]:
    """Return what the state folders hold now, as a JSON object; no error of the disk is raised.

    ``home`` is the person's home folder, with which ``~`` in a command of their settings is resolved.
    """
    room = _Room()
    is_volatile = _matcher(state.volatile)
    entries = dict(_entries(state.folders, is_volatile, room))
    for path in _called(state, entries, home):
        if path not in entries and (facts := _facts(path, None, room)) is not None:
            entries[path] = facts
    return {
        "folders": list(state.folders),
        "volatile": list(state.volatile),
        "writtenOnce": list(state.written_once),
        "unused": _unused(state),
        "mark": state.first_start if state.first_start is not None and Path(state.first_start).exists() else None,
        "home": home,
        "entries": entries,
    }


def findings(before: Mapping[str, Any]) -> Findings:
    """Compare the state folders with a listing that was made earlier."""
    written_once = tuple(before.get("writtenOnce", ()))
    state = StateFolders(tuple(before["folders"]), tuple(before["volatile"]), written_once=written_once)
    then: Mapping[str, Any] = before["entries"]
    now: Mapping[str, Any] = listing(state, home=before["home"])["entries"]
    unused = tuple(_as_folder(folder) for folder in before["unused"])
    unit = _unit(written_once)
    lasting = {unit(path) for path in then} & {unit(path) for path in now}
    changed, rewritten, first = [], [], []
    for path in sorted({*then, *now}):
        old, new = then.get(path), now.get(path)
        if old == new or (unit(path) is not None and unit(path) not in lasting):
            continue
        if f"{path}/".startswith(unused):
            first.append(path)
        elif old is not None and new is not None and _same_content(old, new):
            rewritten.append(path)
        else:
            changed.append(path)
    # Without its mark the next start would pass for the first one, which may change settings.
    if before["mark"] is not None and not Path(before["mark"]).exists() and before["mark"] not in changed:
        changed.append(before["mark"])
    partly = tuple(path for path, facts in then.items() if facts == ["problem"])
    return Findings(tuple(changed), tuple(rewritten), tuple(first), partly)


class _Room:
    """How many bytes may still be read."""

    def __init__(self) -> None:
        self.left = _READ_BYTES_IN_ALL


def _entries(folders: Iterable[str], is_volatile: _Matcher, room: _Room) -> Iterator[tuple[str, list[Any]]]:
    for folder in folders:
        root = folder.rstrip("/") or "/"
        try:
            is_folder = stat.S_ISDIR(Path(root).stat().st_mode)
        except OSError:
            is_folder = False
        if not is_folder:
            if not is_volatile(root) and (facts := _facts(root, None, room)) is not None:
                yield root, facts
            continue
        if Path(root).is_symlink():
            yield root, ["link", os.fspath(Path(root).readlink())]
        skip = _skipping(root, is_volatile)
        found = walk(root, max_depth=_DEEPEST, max_entries=_LARGEST_LISTING, skip=skip, follow_root=True)
        for entry in found:
            if entry.kind != "folder" and (facts := _facts(f"{root}/{entry.path}", entry, room)) is not None:
                yield f"{root}/{entry.path}", facts
        for problem in found.problems:
            yield f"{root}/{problem.path}".rstrip("/") + f" ({problem.what})", ["problem"]


def _skipping(root: str, is_volatile: _Matcher) -> Callable[[Entry], bool]:
    return lambda entry: is_volatile(f"{root}/{entry.path}" + ("/" if entry.kind == "folder" else ""))


def _facts(path: str, entry: Entry | None, room: _Room) -> list[Any] | None:
    """Return what a file is: its kind and mode, size, number of names, inode, times, and a digest of its content."""
    try:
        facts = os.lstat(path) if entry is None else entry.stat()
    except OSError:
        return None
    if facts is None:
        return None
    times = [facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns]
    if stat.S_ISLNK(facts.st_mode):
        # What a link leads to is read through it, so that is part of what it says.
        return ["link", _target(path, entry), *times, _digest(path, facts.st_size, room)]
    size = facts.st_size
    digest = _digest(path, size, room) if stat.S_ISREG(facts.st_mode) else ""
    return [oct(facts.st_mode), size, facts.st_nlink, *times, digest]


def _target(path: str, entry: Entry | None) -> str:
    try:
        return os.readlink(path if entry is None else entry.name, dir_fd=None if entry is None else entry.folder_fd)
    except OSError:
        return ""


def _digest(path: str, size: int, room: _Room) -> str:
    """Return the digest of a small file, "" for one that is too large, no ordinary file, or can't be read."""
    if size > min(room.left, _READ_BYTES):
        return ""
    try:
        with open_ordinary(path) as file:
            data = file.read(_READ_BYTES + 1)
    except (OSError, ValueError):
        return ""
    room.left -= len(data)
    return hashlib.sha256(data).hexdigest()[:32] if len(data) <= _READ_BYTES else ""


def _same_content(old: list[Any], new: list[Any]) -> bool:
    if len(old) <= 2 or old[:2] != new[:2] or old[-1] == "" or old[-1] != new[-1]:
        return False
    # Through a second name of the same file, somebody may write it later from a place where nobody looks.
    names, inode = slice(2, 3), slice(3, 4)
    return old[0] == "link" or (old[names] == new[names] and (old[2] == 1 or old[inode] == new[inode]))


def _is_script(path: str) -> bool:
    """Whether a file can be what a command runs; a log that a hook writes to is named in its command as well."""
    try:
        facts = Path(path).stat()
        if not stat.S_ISREG(facts.st_mode):
            return False
        if facts.st_mode & 0o111 or path.endswith(_SCRIPT_SUFFIXES):
            return True
        with open_ordinary(path) as file:
            return file.read(2) == b"#!"
    except (OSError, ValueError):
        return False


def _called(state: StateFolders, entries: Collection[str], home: str) -> Iterator[str]:
    """Give the files in the state folders that the person's settings name, such as the script of a hook."""
    roots = tuple(_as_folder(folder) for folder in state.folders)
    for path in list(entries):
        if not path.endswith(_SETTINGS_SUFFIXES):
            continue
        try:
            with open_ordinary(path) as file:
                text = file.read(_LARGEST_SETTINGS).decode("utf-8", "replace")
        except (OSError, ValueError):
            continue
        for found in _PATH_IN_TEXT.findall(text):
            name = os.path.normpath(re.sub(r"^(~|\$HOME|\$\{HOME\})(?=/)", lambda _: home, found))
            if name.startswith(roots) and _is_script(name):
                yield name


def _unused(state: StateFolders) -> list[str]:
    """Return the folders in which the CLI has never worked."""
    if state.first_start is not None:
        return [] if Path(state.first_start).exists() else list(state.folders)
    return [folder for folder in state.folders if _is_empty(folder)]


def _as_folder(path: str) -> str:
    return path.rstrip("/") + "/"


def _is_empty(folder: str) -> bool:
    try:
        with os.scandir(folder) as found:
            return next(found, None) is None
    except NotADirectoryError:
        return False
    except OSError:
        return True


def _unit(patterns: Iterable[str]) -> Callable[[str], str | None]:
    """Return what gives the part of a path that fits one of the patterns: the path or a folder around it; None without one."""
    words = [path_pattern(pattern.rstrip("/")) for pattern in patterns]
    if not words:
        return lambda _path: None
    fits = re.compile(f"({'|'.join(words)})(?:/.*)?", re.S)
    return lambda path: found[1] if (found := fits.fullmatch(path)) is not None else None


def _matcher(patterns: Iterable[str]) -> _Matcher:
    """Return what says whether a path fits one of the patterns, or lies in a folder that does; folders end in a slash."""
    words = [path_pattern(pattern) + (".*" if pattern.endswith("/") else "") for pattern in patterns]
    if not words:
        return lambda _path: False
    fits = re.compile("|".join(words), re.S)
    return lambda path: fits.fullmatch(path) is not None


def path_pattern(pattern: str) -> str:
    """Return the regular expression of a path's pattern: ``*`` within a name, ``**/`` any number of folders."""
    parts = re.split(r"(\*\*/|\*)", pattern)
    return "".join({"**/": "(?:[^/]+/)*", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts)
