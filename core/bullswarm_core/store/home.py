"""Where bullswarm keeps its state: the paths of one home, files replaced as a whole, locks that die with their holder.

Reading never writes and never fails on what is not there; a damaged file is named with its line and the way out.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from bullswarm_core.errors import LockTimeoutError, StateError, StorageError, UsageError
from bullswarm_core.fast.files import file_name_of as file_name_of
from bullswarm_core.fast.files import open_ordinary

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
_WRITTEN_BY_OTHERS = 0o022
LOCK_TIMEOUT_SEC = 10.0
# Asking 50 times a second costs nothing, and a lock that is held for a millisecond causes no pause that anybody sees.
_LOCK_POLL_SEC = 0.02


class Home:
    """The paths of one home (``$BULLSWARM_HOME``, else ``~/.bullswarm``); building one touches nothing."""

    __slots__ = ("root",)

    def __init__(self, root: str | Path | None = None) -> None:
        chosen = root or os.environ.get("BULLSWARM_HOME") or "~/.bullswarm"
        self.root = Path(os.path.abspath(os.path.expanduser(chosen)))  # noqa: PTH100, PTH111 - resolve() would follow links

    def __repr__(self) -> str:
        return f"Home({str(self.root)!r})"

    @property
    def state_file(self) -> Path:
        """What the person decided (settings.py)."""
        return self.root / "state.json"

    @property
    def labels_file(self) -> Path:
        """The display labels of pools (labels.py)."""
        return self.root / "pool-labels.json"

    @property
    def providers_file(self) -> Path:
        """Which providers the person turned on or off."""
        return self.root / "providers.json"

    @property
    def providers_dir(self) -> Path:
        """The person's own providers, one folder each."""
        return self.root / "providers"

    @property
    def database_file(self) -> Path:
        """What the program records (database.py)."""
        return self.root / "bullswarm.db"

    @property
    def cache_dir(self) -> Path:
        """What may be thrown away at any time."""
        return self.root / "cache"

    @property
    def meters_dir(self) -> Path:
        """The last usage reading of each pool."""
        return self.root / "meters"

    @property
    def workflows_dir(self) -> Path:
        """The files of each run: prompts, outputs, streams."""
        return self.root / "workflows"

    def meter_file(self, pool_id: str) -> Path:
        """The last usage reading of one pool."""
        return self.meters_dir / f"{file_name_of(pool_id)}.json"

    def meter_history_file(self, pool_id: str) -> Path:
        """Earlier usage readings of one pool, one a line."""
        return self.meters_dir / "history" / f"{file_name_of(pool_id)}.jsonl"

    def ensure(self) -> Home:
        """Create the home, readable by its owner only; raise StorageError when that cannot be done."""
        make_folder(self.root)
        return self


def refuse_foreign(home: Home) -> None:
    """Raise UsageError for a home in which somebody else may write: what it holds is started as you, as ssh's is.

    That is the home itself, and in it the files and folders that decide what is started.
    """
    for path in (home.root, home.providers_dir, home.providers_file, home.state_file):
        try:
            found = path.stat()
        except (OSError, ValueError):
            continue  # what isn't there does no harm, and what can't be read is named by who reads it
        elsewhere = "set BULLSWARM_HOME to a folder of your own"
        if found.st_uid != os.geteuid():
            hint = f"{elsewhere}; with sudo, use sudo -H" if os.geteuid() == 0 else elsewhere
            raise UsageError(f"{path} belongs to user {found.st_uid}, and you are user {os.geteuid()}", hint=hint)
        if found.st_mode & _WRITTEN_BY_OTHERS:
            mode = "700" if stat.S_ISDIR(found.st_mode) else "600"
            raise UsageError(
                f"{path} can be written by others (mode {stat.S_IMODE(found.st_mode):04o})",
                hint=f"chmod {mode} {path}; where the file system keeps no modes, {elsewhere} elsewhere",
            )


def readable_by_others(home: Home) -> str | None:
    """Return a warning for a home whose mode lets others read it; None for one that is private or not there."""
    try:
        mode = stat.S_IMODE(home.root.stat().st_mode)
    except (OSError, ValueError):
        return None
    return f"{home.root} can be read by others (mode {mode:04o})" if mode & 0o077 else None


def make_folder(path: Path) -> None:
    """Create ``path`` and its parents, each new one with mode 0700; raise StorageError when that cannot be done."""
    if path.is_dir():
        return
    try:
        if path.parent != path:
            make_folder(path.parent)
        path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    except OSError as error:
        raise _storage_error("create the folder", path, error) from error


def read_json(path: Path, *, default: Any = None) -> Any:
    """Return the JSON value in ``path``, or ``default`` when there is no such file.

    Raises StateError, with file and line, when the file is there and cannot be read or is not JSON.
    """
    try:
        with open_ordinary(path) as file:
            data = file.read()
    except FileNotFoundError:
        return default
    except OSError as error:
        raise StateError(
            f"cannot read {path}: {error.strerror or error}", hint="make it a file that you may read"
        ) from error
    try:
        # Editors on other systems may put a byte order mark in front; the codec that knows it is a module of its own.
        return json.loads(data.removeprefix(b"\xef\xbb\xbf").decode(), parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise _damaged(path, error.lineno, f"{error.msg} at column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise _damaged(path, data[: error.start].count(b"\n") + 1, "bytes that are not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, 1, str(error) or "nested too deeply") from error


def write_json(path: Path, value: Any) -> None:
    """Replace ``path`` by ``value`` as JSON; a reader sees the old file or the new one, never a part.

    Raises StateError when the value holds a number that JSON has no word for, StorageError when the disk refuses.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    except ValueError as error:
        raise StateError(
            f"cannot write {path}: {error}", hint="a missing number is null, never NaN or infinity"
        ) from error
    try:
        data = text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON may hold as an escape and UTF-8 may not
        data = json.dumps(value, ensure_ascii=True, indent=2).encode()
    write_bytes_atomic(path, data + b"\n")


def write_bytes_atomic(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` through a temp file and a rename; StorageError leaves the old file as it was."""
    # A person may keep the file elsewhere behind a link; the rename must replace that file, not the link.
    target = Path(os.path.realpath(path))
    make_folder(target.parent)
    temporary = target.parent / f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        _write_new_file(temporary, data)
        os.replace(temporary, target)  # noqa: PTH105 - same call, one import less to think about
        _sync_folder(target.parent)
    except OSError as error:
        raise _storage_error("write", path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _write_new_file(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    # The rename itself must survive a power cut; file systems that cannot do this keep their own promise.
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def open_log(path: Path) -> BinaryIO:
    """Open a log to append to, which only its owner can read. Raises OSError."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE), "ab")


@contextlib.contextmanager
def file_lock(path: Path, *, timeout_sec: float = LOCK_TIMEOUT_SEC) -> Iterator[None]:
    """Hold the operating system's lock on ``path`` for the block; it ends with the process that holds it.

    Raises LockTimeoutError, with the holder's pid when it is known, after ``timeout_sec`` seconds; StorageError when
    the lock file cannot be made. The file stays: only the lock on it counts, so a dead process blocks nobody.
    """
    make_folder(path.parent)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    except OSError as error:
        raise _storage_error("lock", path, error) from error
    try:
        _wait_for_lock(handle, path, timeout_sec)
        _write_holder(handle)
        yield
    finally:
        os.close(handle)


def _wait_for_lock(handle: int, path: Path, timeout_sec: float) -> None:
    deadline = time.monotonic() + timeout_sec
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                raise _storage_error("lock", path, error) from error
        if time.monotonic() >= deadline:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
            who = f"process {holder}" if holder.isdigit() else "another process"
            raise LockTimeoutError(
                f"{path} was held by {who} for {timeout_sec:g} s", hint="wait for it to end, or stop it, and try again"
            )
        time.sleep(_LOCK_POLL_SEC)


def _write_holder(handle: int) -> None:
    # Only a help for the message above: a full disk must not stop work that the lock itself allows.
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _damaged(path: Path, line: int, what: str) -> StateError:
    return StateError(
        f"{path} line {line}: {what}", hint=f"correct it, or move it aside (mv {path} {path}.broken) and start anew"
    )


def _storage_error(action: str, path: Path, error: OSError) -> StorageError:
    hints = {
        errno.ENOSPC: "free some disk space and try again",
        errno.EDQUOT: "free some of your disk quota and try again",
        errno.EFBIG: "raise the file size limit (ulimit -f) and try again",
        errno.EROFS: "the file system is read-only; point BULLSWARM_HOME at a folder that you may write",
    }
    hint = hints.get(error.errno or 0, "check who may write there, or point BULLSWARM_HOME at another folder")
    return StorageError(f"cannot {action} {path}: {error.strerror or error}; nothing was changed", hint=hint)
