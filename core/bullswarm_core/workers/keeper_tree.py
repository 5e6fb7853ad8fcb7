"""Every process that descends from an attempt: find it, signal it, wait until none is left.

On Linux the keeper is a subreaper, so a daemonised grandchild comes back to it as a child and the parent links in
``/proc`` lead to everything. On macOS there is none: the worker's process group and the parent links of ``ps`` are what
there is, and what was seen once is remembered by its start time.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping

from bullswarm_core.workers import identity

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Make orphaned descendants children of this process (Linux); False where the system has no such thing."""
    return sys.platform == "linux" and _prctl(PR_SET_CHILD_SUBREAPER, 1) == 0


def die_with_parent() -> None:
    """Have the kernel kill the calling process when the thread that forked it ends (Linux)."""
    if sys.platform == "linux":
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> int:
    import ctypes

    return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))


def parents() -> dict[int, int]:
    """Return the parent of every living process (zombies have ended and are left out)."""
    if sys.platform != "linux":
        return parse_ps(identity.run_command("/bin/ps", "-axo", "pid=,ppid=,stat="))
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        fields = identity.linux_stat(int(name)) if name.isdigit() else None
        if fields is not None and fields[0] not in "ZXx":
            found[int(name)] = int(fields[1])
    return found


def parse_ps(text: str) -> dict[int, int]:
    """Read ``ps -axo pid=,ppid=,stat=``."""
    found: dict[int, int] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and not words[2].startswith("Z"):
            found[int(words[0])] = int(words[1])
    return found


def below(roots: Iterable[int], parent_of: Mapping[int, int]) -> set[int]:
    """Return the processes that descend from the roots, without the roots."""
    children: dict[int, list[int]] = {}
    for pid, parent in parent_of.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        fresh = [child for child in children.get(todo.pop(), ()) if child not in found]
        found.update(fresh)
        todo.extend(fresh)
    return found


class Tree:
    """The processes of one attempt, as its keeper sees them."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._seen: dict[int, str] = {}
        self.reaped = False

    def members(self) -> set[int]:
        """Return the pids of all living processes of the attempt."""
        parent_of = parents()
        if sys.platform == "linux":
            return below((os.getpid(),), parent_of)
        roots = {pid for pid, started in self._seen.items() if _started(pid) == started} | {self._worker}
        found = below(roots, parent_of) | (roots & parent_of.keys())
        if self.reaped:
            found.discard(self._worker)
        for pid in found - self._seen.keys():
            started = _started(pid)
            if started is not None:
                self._seen[pid] = started
        return found

    def signal(self, number: int) -> set[int]:
        """Signal the worker's process group and every member; return the members that were there."""
        members = self.members()
        # The group's number stays taken while the worker is not reaped or a member is in it: never somebody else's.
        if not self.reaped or any(_group(pid) == self._worker for pid in members):
            _send(os.killpg, self._worker, number)
        for pid in members:
            _send(os.kill, pid, number)
            if number == signal.SIGTERM:
                _send(os.kill, pid, signal.SIGCONT)
        return members


def _started(pid: int) -> str | None:
    found = identity.of(pid)
    return None if found is None else found.started


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _send(how: Callable[[int, int], None], pid: int, number: int) -> None:
    try:
        how(pid, number)
    except (ProcessLookupError, PermissionError):
        return
