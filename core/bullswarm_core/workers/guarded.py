"""The person's own settings of a CLI, watched while a worker runs.

A worker must be able to write its CLI's folder (sessions, tokens), and Landlock can't take single files out of a folder again.
What would run later in the person's own sessions is therefore compared before and after: hooks, plug-ins, instructions.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

MISSING = "missing"
# Settings are small; of anything larger the size and the time of change tell enough.
_READ_BYTES = 1024 * 1024
_LARGEST_FOLDER = 2000


def fingerprints(paths: Iterable[str]) -> dict[str, str]:
    """Return what each path is now: a digest of its content, or of its listing for a folder; never raises."""
    return {path: _fingerprint(Path(path)) for path in paths}


def changed(before: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths that are not what they were."""
    now = fingerprints(before)
    return tuple(path for path, was in before.items() if now[path] != was)


def _fingerprint(path: Path) -> str:
    try:
        if path.is_dir():
            return _digest(repr(_listing(path)).encode("utf-8", "surrogateescape"))
        facts = path.stat()
        if facts.st_size > _READ_BYTES:
            return f"{facts.st_size} bytes at {facts.st_mtime_ns}"
        return _digest(path.read_bytes())
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        return f"unreadable ({error.errno})"


def _listing(folder: Path) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            facts = (Path(place) / name).lstat()
            found.append((str(Path(place) / name), facts.st_size, facts.st_mtime_ns))
            if len(found) >= _LARGEST_FOLDER:
                return found
    return found


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
