"""A way to end all that descends from a worker with one call of the system (Linux).

A process that forks and exits for ever is gone before anybody who read its number can signal it, and a hundred of them in
sessions of their own take nearly all of the processors from the process that hunts them. The kernel itself can hit all
that a control group holds in one step, in which nobody forks.
"""

from __future__ import annotations

import os
from contextlib import suppress

_OWN_GROUP = "/proc/self/cgroup"
_MOUNTS = "/proc/self/mountinfo"
_NAME = "bullswarm-"


class Group:
    """A control group of a worker's own below the keeper's, where the system lets this user make one."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    @classmethod
    def make(cls) -> Group | None:
        """Make a group named after this process; None where there is none to be had (or none that can be killed)."""
        try:
            above = _own_folder()
            _remove_old(above)
            folder = os.path.join(above, f"{_NAME}{os.getpid()}")
            os.mkdir(folder, 0o755)
        except (OSError, LookupError):
            return None
        group = cls(folder)
        # Since Linux 5.14.
        if os.access(os.path.join(folder, "cgroup.kill"), os.W_OK):
            return group
        group.remove()
        return None

    def join(self) -> None:
        """Move the calling process, which is to become the worker, into the group; it stays outside if it may not."""
        with suppress(OSError):
            self._write("cgroup.procs", "0")

    def kill(self) -> None:
        """KILL all that is in the group, those that fork meanwhile too."""
        with suppress(OSError):
            self._write("cgroup.kill", "1")

    def remove(self) -> None:
        """Remove the empty group."""
        with suppress(OSError):
            os.rmdir(self.folder)

    def _write(self, name: str, text: str) -> None:
        fd = os.open(os.path.join(self.folder, name), os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def _remove_old(folder: str) -> None:
    """Remove the empty groups of keepers that were killed."""
    for name in os.listdir(folder):
        pid = name.removeprefix(_NAME)
        if pid != name and pid.isdigit() and (int(pid) == os.getpid() or not os.path.exists(f"/proc/{pid}")):
            with suppress(OSError):
                os.rmdir(os.path.join(folder, name))


def _own_folder() -> str:
    """Return the folder of this process's own control group (version 2). Raises LookupError where there is none."""
    with open(_OWN_GROUP, encoding="utf-8") as file:
        path = next((line[3:].rstrip("\n") for line in file if line.startswith("0::/")), None)
    with open(_MOUNTS, encoding="utf-8") as file:
        mounts = [line.split() for line in file if " - cgroup2 " in line]
    if path is None or not mounts:
        raise LookupError("no control groups of version 2")
    root, point = mounts[0][3], mounts[0][4]
    below = os.path.relpath(path, root)
    if below.startswith(".."):
        raise LookupError(f"{path} is not below {root}")
    return os.path.normpath(os.path.join(point, below))
