"""Walk and remove folders that a worker may have made: no recursion, no link followed, bounds in place of exceptions.

A worker can make a folder of any depth with names of any kind. A walk that recurses ends there in a RecursionError, and
a path of more than 4,096 bytes can't be opened. So every folder is opened by its name in the folder that holds it.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    Kind = Literal["file", "folder", "link", "other"]

TOO_DEEP = "too deep"
TOO_MANY = "too many"
CHANGED = "changed while it was read"
# No project is near to either; 100,000 entries take a tenth of a second.
MAX_DEPTH = 10_000
MAX_ENTRIES = 1_000_000
# A process may have 256 open files on macOS. Above this many open folders the upper ones are closed, and opened again
# through ".." on the way back.
_OPEN_FOLDERS = 16
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NONBLOCK
# Somebody may add files to a folder while it is emptied; in one removal, folders are emptied again this often in all.
_EMPTYING_ROUNDS = 64
_SHOWN_PATH = 200


class Entry:
    """One file, folder, link or other thing of a walk. What asks the disk works in the loop's body only."""

    __slots__ = ("_frame", "depth", "kind", "name")

    def __init__(self, frame: _Frame, name: str, kind: Kind) -> None:
        self._frame = frame
        self.name = name
        self.kind = kind
        self.depth = frame.depth + 1
        """1 for what lies directly in the folder of the walk."""

    @property
    def path(self) -> str:
        """The path relative to the folder of the walk. It may be longer than the system can open."""
        return _path_of(self._frame, self.name)

    @property
    def folder_fd(self) -> int:
        """The open folder that holds the entry, to use as ``dir_fd`` together with ``name``."""
        if self._frame.fd < 0:
            raise ValueError("the walk has gone on: ask in the loop's body")
        return self._frame.fd

    def stat(self) -> os.stat_result | None:
        """Return what ``lstat`` says; None when the entry is gone or can't be asked for."""
        try:
            return os.stat(self.name, dir_fd=self.folder_fd, follow_symlinks=False)
        except OSError:
            return None


class Problem:
    """What a walk left out: ``path`` is relative to the folder of the walk, ``""`` for the folder itself."""

    __slots__ = ("path", "what")

    def __init__(self, path: str, what: str) -> None:
        self.path = path
        self.what = what
        """``TOO_DEEP``, ``TOO_MANY``, ``CHANGED``, or the system's message, e.g. ``Permission denied``."""

    def __repr__(self) -> str:
        return f"Problem({self.path!r}, {self.what!r})"


class Walk:
    """The entries of one walk, to iterate once; ``problems`` is complete when the loop has ended."""

    __slots__ = ("_entries", "problems")

    def __init__(self, entries: Iterator[Entry], problems: list[Problem]) -> None:
        self._entries = entries
        self.problems = problems

    def __iter__(self) -> Iterator[Entry]:
        return self._entries


def walk(
    folder: str | os.PathLike[str],
    *,
    max_depth: int = MAX_DEPTH,
    max_entries: int = MAX_ENTRIES,
    skip: Callable[[Entry], bool] | None = None,
    follow_root: bool = False,
) -> Walk:
    """Return what lies in ``folder``: the entries of a folder by name, then those of each of its folders.

    An entry that ``skip`` accepts is left out, with all that it holds. A folder at ``max_depth`` is shown and not
    entered; after ``max_entries`` entries the walk ends, and which of the last folder are shown is chance. Both are
    problems of the walk, as are folders that can't be read. Links are never followed but for ``folder`` itself with
    ``follow_root``. No error of the disk is raised.
    """
    problems: list[Problem] = []
    return Walk(_entries(folder, problems, max_depth, max_entries, skip, follow_root), problems)


def remove_tree(path: str | os.PathLike[str]) -> str | None:
    """Remove a folder with all that it holds, or a file or a link; return the first problem, or None.

    It goes on after a problem, so as much as possible is gone. A folder without permissions is given them. What is not
    there, or goes meanwhile, is no problem. No error of the disk is raised.
    """
    where = os.path.abspath(path)  # also takes the slash off the end, which would follow a link
    try:
        above = os.open(os.path.dirname(where), _OPEN_FOLDER)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{_shown(where)}: {_words(error)}"
    removal = _Removal(_Stack(above), where)
    try:
        removal.run(os.path.basename(where))
    finally:
        removal.stack.close()
    return removal.problem


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """Give a new private folder in the system's place for such, and remove it at the end.

    What can't be removed is left: that is never a reason to lose what was done in it.
    """
    import tempfile

    folder = tempfile.mkdtemp(prefix=prefix)
    try:
        yield folder
    finally:
        remove_tree(folder)


def _entries(
    folder: str | os.PathLike[str],
    problems: list[Problem],
    max_depth: int,
    max_entries: int,
    skip: Callable[[Entry], bool] | None,
    follow_root: bool,
) -> Iterator[Entry]:
    try:
        stack = _Stack(os.open(folder, _OPEN_FOLDER | (0 if follow_root else os.O_NOFOLLOW)))
    except OSError as error:
        problems.append(Problem("", _words(error)))
        return
    left = max_entries
    try:
        while stack.frames:
            frame = stack.frames[-1]
            if frame.pending is None:
                frame.pending = []
                found, problem = _listing(frame.fd, left + 1)
                if problem:
                    problems.append(Problem(_path_of(frame), problem))
                # The bound is of the walk, not of what is shown: skipping a million entries costs as much.
                if len(found) > left:
                    problems.append(Problem(_path_of(frame), TOO_MANY))
                for name, kind in found[:left]:
                    entry = Entry(frame, name, kind)
                    if skip is not None and skip(entry):
                        continue
                    if kind == "folder":
                        frame.pending.append(name)
                    yield entry
                if len(found) > left:
                    return
                left -= len(found)
                frame.pending.reverse()
            elif not frame.pending:
                _note_moved(stack, problems)
            else:
                _go_down(stack, frame.pending.pop(), problems, max_depth)
    finally:
        stack.close()


def _note_moved(stack: _Stack, problems: list[Problem]) -> None:
    lost = stack.leave()
    if lost is not None:
        problems.append(Problem(_path_of(lost), CHANGED))


def _go_down(stack: _Stack, name: str, problems: list[Problem], max_depth: int) -> None:
    above = stack.frames[-1]
    if above.depth + 1 >= max_depth:
        problems.append(Problem(_path_of(above, name), TOO_DEEP))
        return
    try:
        stack.enter(name)
    except FileNotFoundError:
        pass  # it was removed after its name had been read
    except OSError as error:
        replaced = error.errno in (errno.ELOOP, errno.ENOTDIR)
        problems.append(Problem(_path_of(above, name), CHANGED if replaced else _words(error)))


class _Removal:
    """One removal: ``stack`` starts with the folder that holds what is removed."""

    __slots__ = ("problem", "rounds", "stack", "where")

    def __init__(self, stack: _Stack, where: str) -> None:
        self.stack = stack
        self.where = where
        self.problem: str | None = None
        self.rounds = 0

    def run(self, name: str) -> None:
        root = self.stack.frames[0]
        root.pending = self._without_files(root, [(name, "folder" if _is_folder(root.fd, name) else "file")])
        while root.pending or len(self.stack.frames) > 1:
            frame = self.stack.frames[-1]
            if frame.pending is None:
                found, problem = _listing(frame.fd, None)
                if problem:
                    self._note(frame, None, problem)
                frame.pending = self._without_files(frame, found)
            elif frame.pending:
                self._enter(frame, frame.pending.pop())
            else:
                self._leave(frame)

    def _without_files(self, frame: _Frame, found: list[tuple[str, Kind]]) -> list[str]:
        """Remove all that isn't a folder; return the folders."""
        return [name for name, kind in found if kind == "folder" or not self._unlink(frame, name)]

    def _unlink(self, frame: _Frame, name: str) -> bool:
        """Remove what isn't a folder; False when it became one meanwhile."""
        try:
            os.unlink(name, dir_fd=frame.fd)
        except FileNotFoundError:
            pass
        except OSError as error:
            if _is_folder(frame.fd, name):
                return False
            self._note(frame, name, _words(error))
        return True

    def _enter(self, frame: _Frame, name: str) -> None:
        try:
            try:
                self.stack.enter(name)
            except PermissionError:
                _grant(frame.fd, name)
                self.stack.enter(name)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):  # no folder any more
                if not self._unlink(frame, name):
                    self._note(frame, name, CHANGED)
            else:
                self._note(frame, name, _words(error))
            return
        entered = self.stack.frames[-1]
        if entered.mode & stat.S_IRWXU != stat.S_IRWXU:
            with suppress(OSError):  # then what it holds is refused, and that is noted
                os.fchmod(entered.fd, stat.S_IMODE(entered.mode) | stat.S_IRWXU)

    def _leave(self, frame: _Frame) -> None:
        lost = self.stack.leave()
        if lost is not None:
            self._note(lost, None, CHANGED)
            self.stack.frames[-1].stuck = True
            return
        above = self.stack.frames[-1]
        if frame.stuck:
            above.stuck = True
            return
        try:
            os.rmdir(frame.name, dir_fd=above.fd)
        except FileNotFoundError:
            pass
        except OSError as error:
            added = error.errno in (errno.ENOTEMPTY, errno.EEXIST)
            if added and self.rounds < _EMPTYING_ROUNDS:
                self.rounds += 1
                self._enter(above, frame.name)
            else:
                self._note(above, frame.name, _words(error))

    def _note(self, frame: _Frame, name: str | None, what: str) -> None:
        frame.stuck = True
        if self.problem is None:
            # The first folder of the stack holds what is removed, so paths start with its own name.
            self.problem = f"{_shown(os.path.join(os.path.dirname(self.where), _path_of(frame, name)))}: {what}"


class _Frame:
    """A folder on the way down. ``fd`` is -1 while it is closed; ``pending`` None until it has been listed."""

    __slots__ = ("depth", "fd", "identity", "mode", "name", "parent", "pending", "stuck")

    def __init__(self, fd: int, name: str, parent: _Frame | None) -> None:
        found = os.fstat(fd)
        self.fd = fd
        self.name = name
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.identity = (found.st_dev, found.st_ino)
        self.mode = found.st_mode
        self.pending: list[str] | None = None
        self.stuck = False


class _Stack:
    """The folders from the first to the present one; the first and the last few are open."""

    __slots__ = ("frames",)

    def __init__(self, root: int) -> None:
        self.frames = [_Frame(root, "", None)]

    def enter(self, name: str) -> None:
        """Open the folder ``name`` of the present one. Raises OSError, then nothing is changed."""
        above = self.frames[-1]
        fd = os.open(name, _OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=above.fd)
        self.frames.append(_Frame(fd, name, above))
        behind = len(self.frames) - 1 - _OPEN_FOLDERS
        if behind > 0:
            self._close(self.frames[behind])

    def leave(self) -> _Frame | None:
        """Go back to the folder above. Return the first folder that isn't where it was; the ones below are left too."""
        gone = self.frames.pop()
        lost = None
        if self.frames and self.frames[-1].fd < 0 and not self._open_above(gone, self.frames[-1]):
            lost = self._open_from_first()
        self._close(gone)
        return lost

    def close(self) -> None:
        """Close every folder."""
        for frame in self.frames:
            self._close(frame)
        self.frames.clear()

    @staticmethod
    def _close(frame: _Frame) -> None:
        if frame.fd >= 0:
            fd, frame.fd = frame.fd, -1
            os.close(fd)

    @staticmethod
    def _open_above(below: _Frame, frame: _Frame) -> bool:
        return _open_same(frame, "..", below.fd)

    def _open_from_first(self) -> _Frame | None:
        """Somebody moved the folder that was left, so ".." leads elsewhere: go down to the last frame by the names."""
        for place, frame in enumerate(self.frames):
            if frame.fd >= 0:
                continue
            above = self.frames[place - 1]
            if not _open_same(frame, frame.name, above.fd):
                for left in self.frames[place:]:
                    self._close(left)
                del self.frames[place:]
                return frame
            if place > 1:
                self._close(above)
        return None


def _open_same(frame: _Frame, name: str, dir_fd: int) -> bool:
    """Open ``frame`` again; False when another folder, or none, is there."""
    try:
        fd = os.open(name, _OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=dir_fd)
    except OSError:
        return False
    found = os.fstat(fd)
    if (found.st_dev, found.st_ino) != frame.identity:
        os.close(fd)
        return False
    frame.fd = fd
    return True


def _listing(fd: int, most: int | None) -> tuple[list[tuple[str, Kind]], str | None]:
    """Return names and kinds sorted by name, ``most`` at the most, and what went wrong."""
    found: list[tuple[str, Kind]] = []
    try:
        with os.scandir(fd) as entries:
            for entry in islice(entries, most):
                found.append((entry.name, _kind(entry)))
    except OSError as error:
        return sorted(found), _words(error)
    return sorted(found), None


def _kind(entry: os.DirEntry[str]) -> Kind:
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        return "file" if entry.is_file(follow_symlinks=False) else "other"
    except OSError:  # a file system that gives names without kinds, and the kind can't be asked for
        return "other"


def _is_folder(fd: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _grant(dir_fd: int, name: str) -> None:
    """Give the owner all permissions of a folder that can't be opened. Raises OSError; a link isn't followed."""
    path_only = getattr(os, "O_PATH", None)
    if path_only is None:
        os.chmod(name, stat.S_IRWXU, dir_fd=dir_fd, follow_symlinks=False)
        return
    # Linux has no chmod that doesn't follow a link: hold on to the folder itself, then change it through the handle.
    fd = os.open(name, path_only | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        os.chmod(f"/proc/self/fd/{fd}", stat.S_IRWXU)
    finally:
        os.close(fd)


def _path_of(frame: _Frame, name: str | None = None) -> str:
    names = [] if name is None else [name]
    at: _Frame | None = frame
    while at is not None and at.parent is not None:
        names.append(at.name)
        at = at.parent
    return "/".join(reversed(names))


def _words(error: OSError) -> str:
    return error.strerror or str(error)


def _shown(path: str) -> str:
    """Shorten a path that nobody reads to its end."""
    half = _SHOWN_PATH // 2
    return path if len(path) <= _SHOWN_PATH else f"{path[:half]}…{path[-half:]}"
