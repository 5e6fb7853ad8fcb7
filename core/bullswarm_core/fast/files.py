"""The small files of a home for those who must never wait and never fail: hooks and the status line."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

# The state of a hundred pools is 50 KB; what is larger is not ours, and reading it would cost the caller's time.
LARGEST_BYTES = 1 << 20
# Surplus moves by less than a point in that time.
_BEHIND_SEC = 300.0
_SAFE_IN_FILE_NAMES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def home_folder(environ: Mapping[str, str]) -> str:
    """Return the folder in which bullswarm keeps its state, as ``Home`` finds it."""
    chosen = environ.get("BULLSWARM_HOME") or "~/.bullswarm"
    return os.path.abspath(expanded(chosen, environ))


def expanded(path: str, environ: Mapping[str, str]) -> str:
    """Expand a leading ``${NAME:-default}`` and then a leading ``~/``, as connectors write paths."""
    if path.startswith("${") and "}" in path:
        name, _, default = path[2 : path.index("}")].partition(":-")
        path = (environ.get(name) or default) + path[path.index("}") + 1 :]
    if path == "~" or path.startswith("~/"):
        return (environ.get("HOME") or os.path.expanduser("~")) + path[1:]
    return path


def open_ordinary(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file that a worker may have had in its hands: a pipe in its place has no writer to wait for, a device no end.

    Raises OSError for whatever is no ordinary file, ValueError for a path with a NUL.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is no ordinary file", os.fspath(path))
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_json(path: str) -> Any:
    """Return the JSON value in a file; None when it is missing, damaged, too large, or no ordinary file."""
    import json

    try:
        with open_ordinary(path) as file:
            data = file.read(LARGEST_BYTES + 1)
        return json.loads(data) if len(data) <= LARGEST_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None


def file_name_of(pool_id: str) -> str:
    """Return ``pool_id`` as a file name: what is not a letter, digit, ``_``, ``-`` or inner dot is percent-encoded."""
    encoded = "".join(letter if letter in _SAFE_IN_FILE_NAMES else _percent(letter) for letter in pool_id)
    return f"%2E{encoded[1:]}" if encoded.startswith(".") else encoded


def _percent(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def is_behind(home: str) -> bool:
    """Tell whether ``cache/hook-state.json`` is missing, older than what the person decided, or than five minutes.

    A home that isn't there is not made for its sake.
    """
    written = _modified(f"{home}/cache/hook-state.json")
    decided = max(_modified(f"{home}/{name}") for name in ("state.json", "pool-labels.json", "providers.json"))
    if written == 0.0:
        return os.path.isdir(home)
    import time

    return written <= decided or not 0 <= time.time() - written < _BEHIND_SEC


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def write_private(path: str, value: Any) -> None:
    """Replace a file by ``value`` as JSON, readable by its owner only; readers see all of it or nothing.

    Nothing is synced to the disk: what is written here may be lost in a power cut. Raises OSError.
    """
    import json

    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    temporary = os.path.join(folder, f".{os.path.basename(path)}.{os.getpid()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(json.dumps(value, indent=1).encode("ascii") + b"\n")
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class lock_at_once:  # noqa: N801 - used as a function, and contextlib costs a millisecond
    """Hold the operating system's lock on ``path`` for a ``with`` block, if nobody holds it now; gives whether it was had.

    Raises OSError where there can be no such file.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> bool:
        import fcntl

        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)
