"""Files of a tree, read and replaced without ever following a symbolic link on the way to them.

Every path is relative to the tree. Each folder on the way is opened by itself, so that nothing that changes meanwhile can
lead out of the tree. A file is replaced by a rename: whoever reads it finds the old one or the new one.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from bullswarm_core._dataclasses import dataclass

Kind = Literal["missing", "file", "link", "folder", "other"]


_PIECE = 1024 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class BeyondLinkError(OSError):
    """A folder on the way to a path is a symbolic link."""


@dataclass(frozen=True, slots=True)
class TreeFiles:
    """The files below ``root``; ``algorithm`` is the hash by which the repository names contents, sha1 or sha256."""

    root: Path
    algorithm: str = "sha1"

    def look(self, path: str, *, copy_to: Path | None = None) -> Version:
        """Return what is at ``path``, and put its bytes (a link's target) into the new file ``copy_to``.

        Raises BeyondLinkError, and OSError for what can't be read.
        """
        try:
            with self._folder_of(path) as (folder, name):
                return self._version(folder, name, copy_to)
        except (FileNotFoundError, NotADirectoryError):
            return MISSING

    def put(self, path: str, source: Path, *, kind: str, executable: bool, temporary: str) -> None:
        """Replace ``path`` by a file, or by a link to what ``source`` names; folders on the way are made. Raises OSError.

        ``temporary`` is the name under which it is made beside ``path``: one that only this change has, so that what a killed
        process left of it is known.
        """
        with self._folder_of(path, make=True) as (folder, name):
            _unlink(folder, temporary)
            try:
                if kind == "link":
                    os.symlink(source.read_bytes(), os.fsencode(temporary), dir_fd=folder)
                else:
                    self._write(folder, temporary, name, source, executable)
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                with contextlib.suppress(OSError):
                    os.fsync(folder)
            finally:
                _unlink(folder, temporary)

    def drop(self, path: str, temporary: str) -> None:
        """Delete what a killed `put` left beside ``path``."""
        with contextlib.suppress(OSError), self._folder_of(path) as (folder, _):
            _unlink(folder, temporary)

    def remove(self, path: str, *, keep: str = "") -> None:
        """Delete a file, and the folders that it leaves empty; ``keep`` is a folder that stays in any case."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._folder_of(path) as (folder, name):
            os.unlink(name, dir_fd=folder)
        while "/" in path:
            path = path.rpartition("/")[0]
            if f"{keep}/".startswith(f"{path}/"):
                return
            try:
                with self._folder_of(path) as (folder, name):
                    os.rmdir(name, dir_fd=folder)
            except OSError:
                return

    @contextlib.contextmanager
    def _folder_of(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        *folders, name = path.split("/")
        if not name or any(part in ("", ".", "..") for part in (*folders, name)):
            raise ValueError(f"{path!r} is no path inside a tree")
        handle = os.open(self.root, _FOLDER)
        try:
            for part in folders:
                inner = self._open(handle, part, path, make)
                os.close(handle)
                handle = inner
            yield handle, name
        finally:
            os.close(handle)

    def _open(self, handle: int, part: str, path: str, make: bool) -> int:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=handle)
        try:
            return os.open(part, _FOLDER, dir_fd=handle)
        except OSError as error:
            # Linux answers ENOTDIR, other systems ELOOP.
            if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(handle, part):
                raise BeyondLinkError(errno.ELOOP, f"{part} is a symbolic link", path) from error
            raise

    def _version(self, folder: int, name: str, copy_to: Path | None) -> Version:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(os.fsencode(name), dir_fd=folder)
            if copy_to is not None:
                copy_to.write_bytes(target)
            return Version("link", digest=self._digest([target], len(target)))
        if stat.S_ISDIR(found.st_mode):
            return Version("folder")
        if not stat.S_ISREG(found.st_mode):
            return Version("other")
        with os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as file:
            return self._read(file.fileno(), copy_to)

    def _read(self, handle: int, copy_to: Path | None) -> Version:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return Version("other")
        with open(copy_to, "xb") if copy_to else contextlib.nullcontext() as copy:
            pieces: Iterator[bytes] = iter(lambda: os.read(handle, _PIECE), b"")
            written = (piece for piece in pieces if copy is None or copy.write(piece))
            digest = self._digest(written, found.st_size)
            if copy is not None:
                copy.flush()
                os.fsync(copy.fileno())
        return Version("file", bool(found.st_mode & stat.S_IXUSR), digest)

    def _digest(self, pieces: Iterator[bytes] | list[bytes], size: int) -> str:
        # A file that grows or shrinks while it is read gets a name that no content has: it is looked at again later.
        named = hashlib.new(self.algorithm, b"blob %d\0" % size, usedforsecurity=False)
        for piece in pieces:
            named.update(piece)
        return named.hexdigest()

    def _write(self, folder: int, temporary: str, name: str, source: Path, executable: bool) -> None:
        # Made with the modes that the person's umask leaves of these; a file that is replaced keeps its own.
        handle = os.open(temporary, _NEW, 0o777 if executable else 0o666, dir_fd=folder)
        with os.fdopen(handle, "wb") as file, source.open("rb") as given:
            while piece := given.read(_PIECE):
                file.write(piece)
            mode = _mode_at(folder, name)
            if mode is not None:
                os.fchmod(handle, mode | (mode & 0o444) >> 2 if executable else mode & ~0o111)
            file.flush()
            os.fsync(handle)


def _unlink(folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)


def _mode_at(folder: int, name: str) -> int | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    return stat.S_IMODE(found.st_mode) & 0o777 if stat.S_ISREG(found.st_mode) else None


def _is_link(handle: int, part: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(part, dir_fd=handle, follow_symlinks=False).st_mode)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Version:
    """A path at one moment. ``digest`` is git's name of its bytes (a link's: of its target), empty where there are none."""

    kind: Kind = "missing"
    executable: bool = False
    digest: str = ""

    @property
    def can_be_merged(self) -> bool:
        """Whether git could hold it at this path: a file, a link, or nothing."""
        return self.kind in ("missing", "file", "link")


MISSING = Version()


def as_git_sees(version: Version) -> Version:
    """Return what stands at a file's path for git: where a folder is, no file is."""
    return MISSING if version.kind == "folder" else version
