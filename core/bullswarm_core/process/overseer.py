"""Runs one command and outlives it until nothing is left of what it started (Linux).

``python -I -S overseer.py PARENT COMMAND…``, with the command's environment, folder and pipes as its own. As a
subreaper it takes in what leaves the command's session and clears its environment, and it ends when the system says that no
child is left. On TERM, and when the process PARENT ends that started it, it ends all at once.

It ends as the command did: with its exit code, or by its signal; 127 for a command that can't be started.
"""

from __future__ import annotations

import os
import sys

# -I leaves this file's folder and all of site-packages out of the path. At its end, so that the standard library wins.
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if _ROOT not in sys.path:
    sys.path.append(_ROOT)

import signal  # noqa: E402
import time  # noqa: E402
from collections.abc import Sequence  # noqa: E402

from bullswarm_core.process import descendants  # noqa: E402
from bullswarm_core.process.control_group import Group  # noqa: E402

# Nothing survives KILL but a process stuck in the kernel; it must not hold a check for ever.
END_SEC = 10.0
# Hunted in turns, so that the end of the command itself is noticed in between and its other children needn't be waited for.
_TURN_SEC = 0.2
_AWAITED = (signal.SIGCHLD, signal.SIGTERM)
_NOT_STARTED = 127


def overseen(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command line that runs ``argv`` under an overseer; ``argv`` itself where there is no proof of an end."""
    if sys.platform != "linux":
        return tuple(argv)
    return (sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *argv)


def main(parent: int, argv: Sequence[str]) -> int:
    """Run the command to its end and end what it left; return its exit code (or end by its signal)."""
    descendants.become_subreaper()
    descendants.end_with_parent(signal.SIGTERM)
    if os.getppid() != parent:
        return _NOT_STARTED
    group = Group.make()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    me = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(argv, me, group, before)
    # Who reads the command's output waits for the last holder of the pipe, which this process must not be.
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    tree = descendants.Tree(pid, at_once=None if group is None else group.kill)
    while not tree.reaped and signal.sigwait(_AWAITED) != signal.SIGTERM:
        tree.reap()
    _end(tree)
    if group is not None:
        group.remove()
    return _NOT_STARTED if tree.status is None else _same_end(os.waitstatus_to_exitcode(tree.status))


def _become(argv: Sequence[str], overseer: int, group: Group | None, mask: set[int | signal.Signals]) -> None:
    """Become the command, in a session of its own. Never returns."""
    try:
        os.setsid()
        descendants.die_with_parent()
        if os.getppid() != overseer:
            os._exit(_NOT_STARTED)
        if group is not None:
            group.join()
        # Python ignores these two, and what is ignored stays so through the exec.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execve(argv[0], list(argv), _environment())
    except BaseException as problem:  # nothing of the overseer may run on in the child
        os.write(2, f"cannot run {argv[0]}: {problem}\n".encode("utf-8", "backslashreplace"))
    finally:
        os._exit(_NOT_STARTED)


def _environment() -> dict[bytes, bytes]:
    # Python adds a variable of its own where the locale is plain C.
    with open("/proc/self/environ", "rb") as file:
        pairs = [item.partition(b"=") for item in file.read().split(b"\0") if b"=" in item]
    return {name: value for name, _, value in pairs}


def _end(tree: descendants.Tree) -> None:
    tree.reap()
    if tree.is_empty():
        return
    descendants.hurry()
    begun = time.monotonic()
    while not tree.is_empty() and time.monotonic() - begun < END_SEC:
        tree.kill_at_once()
        if not tree.is_empty():
            tree.signal(signal.SIGKILL)
            tree.kill_children(_TURN_SEC)


def _same_end(code: int) -> int:
    if code >= 0:
        return code
    import resource

    # One memory image is enough, the command's own.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.kill(os.getpid(), -code)
    return 128 - code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
