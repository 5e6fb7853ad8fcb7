"""Every process that descends from an attempt: find it, signal it, wait until none is left.

On Linux the keeper is a subreaper, so a daemonised grandchild comes back to it as a child, and only the system's answer
that there is no child at all proves the end: a list of processes misses one that forks and exits while it is made. On
macOS there is no such proof: the worker's process group and the parent links of ``ps`` are what there is, and what was
seen once is remembered by its start time.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from bullswarm_core.process import identity
from bullswarm_core.process.guard import Guard

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# Also children that were cloned without SIGCHLD, which a plain wait passes over (Linux).
WAIT_ALL = 0x40000000 if sys.platform == "linux" else 0
CHILDREN = "/proc/self/task/{}/children"
# Some 600 children. The rest is listed in the next round, a fraction of a millisecond later.
LIST_BYTES = 4096
# Some processes end as fast as they can be waited for: a keeper must get back to its other work (1 ms of it).
REAPED_AT_ONCE = 500
# A hundred processes that fork and exit at full speed are gone within 12 s on two busy cores; later nobody hurries.
CALM_SEC = 30.0
# What a single call has killed is gone in milliseconds; a process that the call did not reach is hunted by its number.
AT_ONCE_SEC = 0.5
AT_ONCE_TICK_SEC = 0.002
CALM_TICK_SEC = 0.05


def become_subreaper() -> bool:
    """Make orphaned descendants children of this process (Linux); False where the system has no such thing."""
    return sys.platform == "linux" and _prctl(PR_SET_CHILD_SUBREAPER, 1) == 0


def die_with_parent() -> None:
    """Have the kernel kill the calling process when the thread that forked it ends (Linux)."""
    end_with_parent(signal.SIGKILL)


def end_with_parent(number: int) -> None:
    """Have the kernel send the calling process a signal when the thread that forked it ends (Linux)."""
    if sys.platform == "linux":
        _prctl(PR_SET_PDEATHSIG, number)


def _prctl(option: int, value: int) -> int:
    import ctypes

    return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))


def hurry(*, on: bool = True) -> None:
    """Run this process before all ordinary ones, or no more, where it may (Linux: root).

    A nice value is not enough: each session may count as one in the sharing of processors, and a hundred processes that all
    open their own leave the keeper a hundredth.
    """
    if sys.platform == "linux":
        policy, level = (os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, 1) if on else (os.SCHED_OTHER, 0)
        with suppress(OSError):
            os.sched_setscheduler(0, policy, os.sched_param(level))


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

    def __init__(self, worker: int, *, at_once: Callable[[], None] | None = None, guard: Guard | None = None) -> None:
        self._worker = worker
        self._guard = guard if guard is not None and guard.pid is not None else None
        self._at_once = at_once
        self._seen: dict[int, str] = {}
        self.status: int | None = None
        self.killed: set[int] = set()
        self.childless = False
        self.flooded = False

    @property
    def reaped(self) -> bool:
        """Whether the worker itself has ended and its status was taken."""
        return self.status is not None

    def reap(self) -> bool:
        """Take the status of children that have ended, and say whether all of them were.

        ``childless`` is from then on the system's word that none is left; ``flooded`` says that more ended than were taken.
        """
        for _ in range(REAPED_AT_ONCE):
            if self.childless:
                return True
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | WAIT_ALL)
            except ChildProcessError:
                self.childless = True
                return True
            if pid == 0:
                return True
            if pid == self._worker:
                self.status = status
            elif os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
                self.killed.add(pid)
        self.flooded = True
        return False

    def is_empty(self) -> bool:
        """Say whether nothing of the attempt is left: proven on Linux, elsewhere as far as can be seen."""
        if sys.platform != "linux":
            return self.reaped and not self.members()
        if self._guard is not None and self.reaped and not self.childless and _children() == [self._guard.pid]:
            # Nobody is seen but the guard: with its end comes the proof.
            self._guard.act()
        return self.childless

    def kill_at_once(self) -> set[int]:
        """KILL all of the attempt with one call, where its keeper has one, and return whom the system says was killed.

        Nobody forks in the midst of it, so all are hit but those that left the control group; `kill_children` finds these.
        """
        if self._at_once is None and self._guard is None:
            return set()
        begun = time.monotonic()
        if self._guard is not None:
            self._guard.act()
        while not self.childless and not _over(begun, AT_ONCE_SEC):
            if self._at_once is not None:
                self._at_once()
            if self.reap() and not self.childless:
                time.sleep(AT_ONCE_TICK_SEC)
        return self.killed

    def kill_children(self, seconds: float | None) -> set[int]:
        """KILL child after child, as fast as can be, until there is none or ``seconds`` are over (None: without limit).

        Return the processes that were hit. Linux alone: a process that forks and exits for ever is never in a list made
        for it, but each of its forms is our child for a moment. Whoever is killed leaves its own children to us.
        """
        begun = time.monotonic()
        hit: set[int] = set()
        # The system takes ended children away by itself: a hundred such processes end faster than they can be waited for.
        ours = signal.signal(signal.SIGCHLD, signal.SIG_IGN) if self.reaped else None
        try:
            while not self.childless:
                # Those that ended before stand at the front of the list, and would hide the ones that live.
                while not self.reap() and ours is not None and not _over(begun, seconds):
                    continue
                hit.update(pid for pid in reversed(_children()) if _kill_child(pid))
                if _over(begun, seconds):
                    break
                if _over(begun, CALM_SEC):
                    hurry(on=False)
                    # Nothing that runs gets away for so long: it hangs in the kernel, or belongs to another user.
                    time.sleep(CALM_TICK_SEC)
        finally:
            if ours is not None:
                signal.signal(signal.SIGCHLD, ours)
        return hit

    def survivors(self) -> int:
        """Return how many processes are left, at least one unless the end is proven."""
        return 0 if self.is_empty() else max(1, len(self.members()))

    def members(self) -> set[int]:
        """Return the pids of all living processes of the attempt."""
        parent_of = parents()
        if sys.platform == "linux":
            return below((os.getpid(),), parent_of) - {None if self._guard is None else self._guard.pid}
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


def _children() -> list[int]:
    """Return this process's own children, oldest first; one small file where the kernel offers it."""
    me = os.getpid()
    try:
        with open(CHILDREN.format(me), "rb", buffering=0) as file:
            text = file.read(LIST_BYTES)
    except OSError:
        return sorted(pid for pid, parent in parents().items() if parent == me)
    # The last number may be cut off.
    return [int(word) for word in (text if text.endswith(b" ") else text.rpartition(b" ")[0]).split()]


def _kill_child(pid: int) -> bool:
    """KILL a process if it is our child: its number may have gone to a stranger since it was listed."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):
        # Without such handles (before Linux 5.3) the number is all there is.
        _send(os.kill, pid, signal.SIGKILL)
        return True
    try:
        os.waitid(os.P_PIDFD, process, os.WEXITED | os.WNOHANG | os.WNOWAIT | WAIT_ALL)
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except (ChildProcessError, ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(process)
    return True


def _over(begun: float, seconds: float | None) -> bool:
    return seconds is not None and time.monotonic() - begun >= seconds


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
