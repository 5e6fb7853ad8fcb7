"""What a file was, closely enough to tell later whether it changed: size, times, mode, and its bytes where it is small.

Nothing is followed and nothing is opened that could block: a symlink is its target's name, a pipe or a device only its
existence.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from bullswarm_core._dataclasses import dataclass, field, replace

EntryKind = Literal["file", "symlink", "missing", "folder", "other"]

# Outside of git at most 5,000 files and 64 MiB; git-ignored files at most 20,000.
FOLDER_FILES = 5_000
IGNORED_FILES = 20_000
HASHED_BYTES = 64 * 1024 * 1024
# A file beyond this is told by its size and times: hashing few huge files would use up the budget of all the others.
_LARGEST_HASHED = 1024 * 1024
# The kernel stamps files with a clock that ticks every 1 to 10 ms: a file written in the tick of a snapshot can change
# once more and keep its stamp.
RACY_NS = 50_000_000
# What tools leave behind whatever they are asked to do: never a deliverable.
CACHE_NAMES = frozenset({
    ".git", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".DS_Store",
    ".tox", ".nox", ".gradle", ".turbo", ".parcel-cache",
})  # fmt: skip
CACHE_SUFFIXES = (".pyc", ".pyo", ".swp", ".tsbuildinfo")
# Build output: left out only where git ignores it, since these are ordinary names for ordinary folders, too.
BUILD_NAMES = frozenset({
    ".venv", "venv", "dist", "build", "coverage", "target", "htmlcov", ".next", ".cache", ".coverage", ".eggs",
})  # fmt: skip
BUILD_SUFFIXES = (".log", ".egg-info")


@dataclass(frozen=True, slots=True)
class Entry:
    """One path. Times are in nanoseconds; ``digest`` is None where the bytes were not read."""

    kind: EntryKind
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    inode: int = 0
    executable: bool = False
    digest: str | None = None

    def same_as(self, other: Entry) -> bool:
        """Tell whether both are the same content; a mere touch is no change where the bytes are known."""
        if self.kind != other.kind or self.executable != other.executable:
            return False
        if self.kind in ("missing", "folder"):
            return self.digest == other.digest
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        return self.same_stat(other)

    def same_size(self, other: Entry) -> bool:
        """Tell whether nothing but times sets two files apart: equal size, and bytes that were not read both times."""
        both = self.kind == other.kind == "file" and self.executable == other.executable
        return both and self.size == other.size and None in (self.digest, other.digest)

    def same_stat(self, other: Entry) -> bool:
        """Tell whether size, times and inode are equal."""
        mine = (self.kind, self.size, self.mtime_ns, self.ctime_ns, self.inode, self.executable)
        return mine == (other.kind, other.size, other.mtime_ns, other.ctime_ns, other.inode, other.executable)


MISSING = Entry("missing")


@dataclass(slots=True)
class Budget:
    """How many more files may be looked at and bytes read; ``spent`` becomes True when something was left out."""

    files: int = FOLDER_FILES
    bytes: int = HASHED_BYTES
    folders: int = IGNORED_FILES
    spent: bool = False

    def take_file(self) -> bool:
        """Count one file; False when there is no room for it."""
        self.files -= 1
        self.spent = self.spent or self.files < 0
        return self.files >= 0

    def take_folder(self) -> bool:
        """Count one folder; False when there is no room for it."""
        self.folders -= 1
        self.spent = self.spent or self.folders < 0
        return self.folders >= 0


@dataclass(frozen=True, slots=True)
class Looker:
    """Takes fingerprints within one budget; ``known`` are earlier ones, whose bytes need no second reading."""

    root: str
    budget: Budget = field(default_factory=Budget)
    known: dict[str, Entry] = field(default_factory=dict)
    known_at_ns: int = 0
    left_out: tuple[str, ...] = ()

    def entry(self, path: str, *, largest: int = _LARGEST_HASHED) -> Entry:
        """Return the fingerprint of ``path`` (relative to the root); what can't be looked at is missing.

        The bytes of a file beyond ``largest`` are not read.
        """
        full = f"{self.root}/{path}"
        try:
            found = os.lstat(full)
        except (OSError, ValueError):
            return MISSING
        entry = _of_stat(found)
        if entry.kind == "symlink":
            return replace(entry, digest=_target(full))
        if entry.kind != "file":
            return entry
        earlier = self.known.get(path)
        if earlier and earlier.same_stat(entry) and entry.ctime_ns < self.known_at_ns - RACY_NS:
            return earlier
        return replace(entry, digest=self._digest(full, entry.size, largest))

    def walk(
        self, folder: str, *, names: frozenset[str], suffixes: tuple[str, ...], largest: int = _LARGEST_HASHED
    ) -> Iterator[tuple[str, Entry]]:
        """Yield every file under ``folder`` in a fixed order, but for those whose name or suffix is left out.

        A ``folder`` that is reached through a symlink is not entered: it lies elsewhere.
        """
        full = f"{self.root}/{folder}" if folder else self.root
        pending = [folder] if os.path.realpath(full) == full else []
        while pending:
            here = pending.pop()
            folders = []
            for name, is_folder in _listed(f"{self.root}/{here}"):
                path = f"{here}/{name}" if here else name
                if name in names or name.endswith(suffixes) or self.leaves_out(path):
                    continue
                if is_folder and self.budget.take_folder():
                    folders.append(path)
                elif is_folder:
                    return
                elif self.budget.take_file():
                    yield path, self.entry(path, largest=largest)
                else:
                    return
            pending.extend(reversed(folders))

    def leaves_out(self, path: str) -> bool:
        """Tell whether ``path`` is, or lies in, one of the paths that are none of the worker's."""
        full = f"{self.root}/{path}"
        return any(full == out or full.startswith(f"{out}/") for out in self.left_out)

    def _digest(self, full: str, size: int, largest: int) -> str | None:
        if size > largest or size > self.budget.bytes:
            return None
        self.budget.bytes -= size
        return _hash(full, size)


def _of_stat(found: os.stat_result) -> Entry:
    mode = found.st_mode
    kind: EntryKind = "other"
    if stat.S_ISREG(mode):
        kind = "file"
    elif stat.S_ISLNK(mode):
        kind = "symlink"
    elif stat.S_ISDIR(mode):
        return Entry("folder")
    executable = kind == "file" and bool(mode & stat.S_IXUSR)
    return Entry(kind, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, executable)


def _target(full: str) -> str | None:
    try:
        return str(Path(full).readlink())
    except OSError:
        return None


def _hash(full: str, size: int) -> str | None:
    """Return the digest of a regular file's bytes; None when it can't be read or is no regular file any more."""
    try:
        handle = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        digest, left = hashlib.blake2b(digest_size=16), size + 1
        while left > 0 and (block := os.read(handle, min(left, 1 << 18))):
            digest.update(block)
            left -= len(block)
        return digest.hexdigest()
    except OSError:
        return None
    finally:
        os.close(handle)


def _listed(folder: str) -> list[tuple[str, bool]]:
    """Return the names in ``folder`` in order, each with whether it is a folder; nothing where it can't be read."""
    try:
        with os.scandir(folder) as found:
            return sorted((item.name, item.is_dir(follow_symlinks=False)) for item in found)
    except (OSError, ValueError):
        return []
