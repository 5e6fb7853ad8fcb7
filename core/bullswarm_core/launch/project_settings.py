"""The settings of agent CLIs that a repository brings along, and what the person allowed of them.

A worker's CLI is started in a folder whose content may come from anybody. A file of settings there could name another
address for the person's key, another model, or a command that runs at once; a project decides none of that by itself.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.fast.tree import walk

# A digest of what can't be read whole: no permission holds for it.
UNREADABLE = "unreadable"
# Settings are small. What is larger, or lies in a folder with more files, is never allowed, since nobody has read it.
LARGEST_BYTES = 4 * 1024 * 1024
_LARGEST_FOLDER = 500
_SHOWN = 4
# A path has at most 4096 bytes.
_LARGEST_LINK = 8192
_HEAD = re.compile(rb"ref:\s*refs/|[0-9a-f]{40}")

Digests = Mapping[str, str]


def repository_root(folder: str) -> str:
    """Return the nearest folder at or above ``folder`` that has a ``.git``, else ``folder`` itself; links resolved."""
    start = Path(os.path.realpath(folder))
    for each in (start, *start.parents):
        if os.path.lexists(each / ".git"):  # a link that leads nowhere, too
            return str(each)
    return str(start)


def found_settings(
    folder: str, patterns: Iterable[str], *, besides: Iterable[str] = (), text: str = "", everywhere: bool = False
) -> dict[str, str]:
    """Return the digest of each file in or above ``folder`` that one of ``patterns`` names, up to the repository's root.

    Without a repository that Git itself would take for one the search goes on, and with ``everywhere`` in any case: up to
    the home folder, or to the file system's root. Keys are paths relative to `repository_root`. What lies in one of the
    folders ``besides`` is the person's own. With ``text`` only files count in which that pattern is found, and those that
    can't be read. Never raises.
    """
    root = Path(repository_root(folder))
    own = tuple(os.path.realpath(each) for each in besides if each)
    found: dict[str, str] = {}
    for place in places_above(folder, everywhere=everywhere):
        for pattern in patterns:
            for path in files_named(place, pattern):
                name = os.path.relpath(path, root)
                if name in found or _is_in(path, own):
                    continue
                data = _content(path)
                if not text or data is None or re.search(text, data.decode("utf-8", "replace")):
                    found[name] = UNREADABLE if data is None else hashlib.sha256(data).hexdigest()
    return found


def is_allowed(found: Digests, granted: Digests) -> bool:
    """Tell whether the person has allowed each file as it is now."""
    return all(digest != UNREADABLE and granted.get(name) == digest for name, digest in found.items())


def unlike(found: Digests, granted: Digests) -> tuple[str, ...]:
    """Return the files that are new, or other than those that were allowed."""
    return tuple(name for name, digest in found.items() if digest == UNREADABLE or granted.get(name) != digest)


def shown_files(names: Sequence[str]) -> str:
    """List files for a message: the first few, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def places_above(folder: str, *, everywhere: bool = False) -> Iterator[Path]:
    """Give ``folder`` and the folders around it: up to the repository's root, or further as `found_settings` says.

    A home folder above is the person's own, and so is what lies around it.
    """
    start, root, home = (
        Path(os.path.realpath(folder)),
        repository_root(folder),
        Path(os.path.realpath(os.path.expanduser("~"))),  # noqa: PTH111 - never fails
    )
    for each in (start, *start.parents):
        if each == home and str(each) not in (str(start), root):
            return
        yield each
        if each == home or (not everywhere and _is_repository(each)):
            return


def _is_repository(folder: Path) -> bool:
    """Tell whether Git would take the ``.git`` in a folder for one; past any other Git and the CLIs look further up."""
    place = folder / ".git"
    try:
        if place.is_file():
            with open_ordinary(place) as file:
                line = file.read(_LARGEST_LINK).decode("utf-8", "replace")
            if not line.startswith("gitdir:"):
                return False
            place = folder / line.removeprefix("gitdir:").strip()
        common = place
        if (place / "commondir").is_file():
            with open_ordinary(place / "commondir") as file:
                common = place / file.read(_LARGEST_LINK).decode("utf-8", "replace").strip()
        with open_ordinary(place / "HEAD") as file:
            head = file.read(_LARGEST_LINK)
        return _HEAD.match(head) is not None and (common / "objects").is_dir() and (common / "refs").is_dir()
    except (OSError, ValueError):
        return False


def files_named(place: Path, pattern: str) -> Iterator[Path]:
    """Find what a pattern names; a folder that is a link is named itself, and none of its content."""
    if pattern.endswith("/"):
        folder = place / pattern.rstrip("/")
        if folder.is_symlink() or _kind(folder) not in ("folder", None):
            yield folder
        elif _kind(folder) == "folder":
            yield from files_in(folder)
        return
    head, _, last = pattern.rpartition("/")
    if "*" not in last:
        if _kind(place / pattern) is not None:
            yield place / pattern
        return
    try:
        with os.scandir(place / head) as entries:
            names = sorted(entry.name for entry in islice(entries, _LARGEST_FOLDER))
    except OSError:
        return
    yield from (place / head / name for name in names if fnmatchcase(name, last))


def files_in(folder: Path) -> Iterator[Path]:
    """Give each file of a folder; the folder itself where it can't be read whole, or has more than anybody would read."""
    found = walk(folder, max_entries=_LARGEST_FOLDER)
    files = [folder / entry.path for entry in found if entry.kind != "folder"]
    yield from [folder] if found.problems else sorted(files)


def _kind(path: Path) -> str | None:
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return None
    return "folder" if stat.S_ISDIR(mode) else "file"


def _content(path: Path) -> bytes | None:
    """Read a file once; None for what nobody can have read as it will be: a link, or what lies in a folder that is one."""
    try:
        if os.path.realpath(path) != str(path):
            return None
        with open_ordinary(path) as file:
            data = file.read(LARGEST_BYTES + 1)
    except (OSError, ValueError):
        return None
    return data if len(data) <= LARGEST_BYTES else None


def _is_in(path: Path, folders: Iterable[str]) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(folder) for folder in folders)
