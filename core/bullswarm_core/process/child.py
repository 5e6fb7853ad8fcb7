"""The one way to start a child that is not a worker: git, a version probe, a CLI that is asked something.

No shell, own session, stdin closed or our own pipe, bounded output, and an end for the whole tree.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import WorkerStartError
from bullswarm_core.process import identity
from bullswarm_core.process.identity import ProcessIdentity

if TYPE_CHECKING:
    import subprocess

# What a probe or git may say; more is cut, never held.
OUTPUT_LIMIT = 4 * 1024 * 1024
# After the child's own end a grandchild may still hold its pipe.
DRAIN_SEC = 0.5
KILL_SEC = 5.0
MARKER = "BULLSWARM_ATTEMPT"


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How a child ended. ``exit_code`` is negative for a signal, None when time was up; ``cut``: it said too much."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    cut: bool = False
    wall_sec: float = 0.0

    @property
    def ok(self) -> bool:
        """True for exit code 0."""
        return self.exit_code == 0


def run_child(
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    environ: Mapping[str, str],
    timeout_sec: float,
    input: bytes | None = None,  # noqa: A002  the word of subprocess.run
    output_limit: int = OUTPUT_LIMIT,
) -> ChildResult:
    """Run a child to its end or for ``timeout_sec`` seconds, then kill it and everything in its session.

    ``environ`` is the complete environment. Raises WorkerStartError when the binary or the folder is missing or may not
    be used; a bad exit code is a result, not an error.
    """
    import subprocess

    stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
    child = start_child(argv, cwd=cwd, environ=environ, stdin=stdin, stderr=subprocess.PIPE)
    begun = time.monotonic()
    talk = _Talk(child, input, output_limit)
    try:
        timed_out = not talk.until(begun + timeout_sec)
    finally:
        end_child(child)
        talk.close()
    return ChildResult(
        exit_code=None if timed_out else child.returncode,
        stdout=bytes(talk.taken[0]),
        stderr=bytes(talk.taken[1]),
        timed_out=timed_out,
        cut=talk.cut,
        wall_sec=time.monotonic() - begun,
    )


def start_child(
    argv: Sequence[str], *, cwd: str | os.PathLike[str], environ: Mapping[str, str], stdin: int, stderr: int
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own, its stdout a pipe; who starts it ends it with ``end_child``.

    ``stdin`` and ``stderr`` are as ``subprocess.Popen`` takes them. Raises WorkerStartError like ``run_child``.
    """
    import subprocess

    folder = os.path.realpath(cwd)
    try:
        return subprocess.Popen(
            list(argv),
            cwd=folder,
            env={**environ, "PWD": folder},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
    except (OSError, ValueError) as problem:
        words = getattr(problem, "strerror", None) or str(problem)
        where = folder if getattr(problem, "filename", None) == folder else argv[0]
        raise WorkerStartError(f"cannot run {argv[0]} in {folder}: {where}: {words}") from problem


class _Talk:
    """Feeds a child and takes what it says, without ever stopping to read."""

    def __init__(self, child: subprocess.Popen[bytes], input_: bytes | None, limit: int) -> None:
        import selectors

        self._child = child
        self._left = memoryview(input_ or b"")
        self._limit = limit
        self.taken = (bytearray(), bytearray())
        self.cut = False
        self._selector = selectors.DefaultSelector()
        for index, pipe in enumerate((child.stdout, child.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe.fileno(), selectors.EVENT_READ, index)
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
            self._selector.register(child.stdin.fileno(), selectors.EVENT_WRITE, None)

    def until(self, deadline: float) -> bool:
        """Talk until the child has ended and said all, or the deadline; return whether it has ended."""
        while self._reading():
            left = deadline - time.monotonic()
            if left <= 0:
                return has_ended(self._child)
            # A child whose grandchild holds the pipe is noticed by its end, hence the short waits.
            self._turn(min(left, 0.1))
            if has_ended(self._child):
                self._drain(min(deadline, time.monotonic() + DRAIN_SEC))
                return True
        while not has_ended(self._child):
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.001)
        return True

    def close(self) -> None:
        """Close our ends."""
        self._selector.close()
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _reading(self) -> bool:
        return any(key.data is not None for key in self._selector.get_map().values())

    def _drain(self, deadline: float) -> None:
        while self._reading() and (left := deadline - time.monotonic()) > 0:
            self._turn(left)

    def _turn(self, seconds: float) -> None:
        for key, _events in self._selector.select(seconds):
            if key.data is None:
                self._give(key.fd)
            else:
                self._take(key.fd, key.data)

    def _give(self, fd: int) -> None:
        try:
            self._left = self._left[os.write(fd, self._left[:65536]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._left = memoryview(b"")
        if not self._left and self._child.stdin is not None:
            self._selector.unregister(fd)
            self._child.stdin.close()

    def _take(self, fd: int, index: int) -> None:
        try:
            chunk = os.read(fd, 65536)
        except BlockingIOError:
            return
        if not chunk:
            self._selector.unregister(fd)
            return
        room = self._limit - len(self.taken[index])
        self.cut = self.cut or len(chunk) > room
        self.taken[index].extend(chunk[:room])


def has_ended(child: subprocess.Popen[bytes]) -> bool:
    """Say whether a child has ended, without reaping it where the system can: so long its number stays its own."""
    if child.returncode is not None or not hasattr(os, "waitid"):
        return child.poll() is not None
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def end_child(child: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the child: after its own end its process group, else everything below it too."""
    if not has_ended(child):
        _kill(_descendants(child.pid))
    if child.returncode is None:
        _kill({child.pid}, group=True)
    child.wait()


def _descendants(pid: int) -> set[int]:
    from bullswarm_core.process.descendants import below, parents

    return below((pid,), parents()) | _session(pid)


def kill_orphans(record: Mapping[str, object]) -> int:
    """Kill what a dead keeper left running, and return how many processes that were.

    ``record`` is the keeper's file. Members are known by the attempt's mark in their environment, which holds for a
    grandchild in a session of its own too, and by the worker's identity. A living keeper looks after its own: then
    nothing is done.
    """
    keeper = ProcessIdentity.from_json(record.get("keeper"))
    if keeper is not None and identity.is_alive(keeper):
        return 0
    worker = ProcessIdentity.from_json(record.get("worker"))
    if (worker or keeper or identity.current()).boot != identity.boot_id():
        return 0
    attempt = record.get("attempt")
    killed: set[int] = set()
    deadline = time.monotonic() + KILL_SEC
    while time.monotonic() < deadline:
        members = _members(str(attempt), worker) if attempt else _members(None, worker)
        if not members:
            break
        killed |= members
        _kill(members)
        time.sleep(0.02)
    return len(killed)


def _members(attempt: str | None, worker: ProcessIdentity | None) -> set[int]:
    from bullswarm_core.process.descendants import below, parents

    parent_of = parents()
    roots = set() if attempt is None else marked(f"{MARKER}={attempt}", parent_of)
    if worker is not None and identity.is_alive(worker):
        roots.add(worker.pid)
    if worker is not None and identity.of(worker.pid) in (None, worker):
        # Nobody else leads a session of that number, so its members are the worker's.
        roots |= _session(worker.pid)
    return (roots | below(roots, parent_of)) - {os.getpid()}


def marked(mark: str, pids: Mapping[int, int]) -> set[int]:
    """Return the processes whose environment holds ``mark`` (``NAME=value``), as far as they may be looked at."""
    if sys.platform != "linux":
        lines = identity.run_command("/bin/ps", "-axEww", "-o", "pid=,command=").splitlines()
        return {int(line.split()[0]) for line in lines if f" {mark} " in f"{line} "}
    found: set[int] = set()
    wanted = os.fsencode(mark)
    for pid in pids:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.add(pid)
        except OSError:
            continue
    return found


def _session(leader: int) -> set[int]:
    """Return the living members of a session."""
    from bullswarm_core.process.descendants import parents

    found: set[int] = set()
    for pid in parents():
        try:
            if os.getsid(pid) == leader:
                found.add(pid)
        except OSError:
            continue
    return found


def _kill(pids: set[int], *, group: bool = False) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            (os.killpg if group else os.kill)(pid, signal.SIGKILL)
