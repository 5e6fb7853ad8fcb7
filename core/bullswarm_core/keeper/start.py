"""Fork and exec of the worker: own session, no shell, its two pipes, and a start error that names what was wrong."""

from __future__ import annotations

import errno
import os
import select
import signal
from collections.abc import Callable

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.process import descendants

STAGES = ("stdin", "cwd", "confine", "exec")
# A start is over in milliseconds. One that waits longer hangs on a file system that does not answer, or on a prompt "file"
# that is a pipe nobody writes to; no clock of the worker runs yet, so this one must end it.
START_SEC = 30.0


@dataclass(frozen=True, slots=True)
class Started:
    """A running worker and the reading ends of its pipes."""

    pid: int
    stdout: int
    stderr: int


class StartError(Exception):
    """The worker could not be started; the message names the file and the system's words."""


def start_worker(
    argv: tuple[str, ...],
    *,
    cwd: str,
    stdin_file: str | None,
    join: Callable[[], None] | None = None,
    confine: Callable[[], None] | None = None,
) -> Started:
    """Start the worker with this process's environment.

    In the child ``join`` runs first and ``confine`` last before the exec.

    Raises StartError for a missing or not executable binary, a working directory that is gone, an unreadable prompt,
    a confinement that the kernel refused (it never runs unconfined by accident), or a start that hangs.
    """
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    fail_read, fail_write = os.pipe()
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        _child(argv, cwd, stdin_file, join, confine, keeper, (out_write, err_write, fail_write))
    for fd in (out_write, err_write, fail_write):
        os.close(fd)
    failure = _failure(fail_read)
    if failure == b"":
        return Started(pid=pid, stdout=out_read, stderr=err_read)
    os.close(out_read)
    os.close(err_read)
    if failure is None:
        # Not waited for: a process that hangs in the kernel does not even end on KILL.
        os.kill(pid, signal.SIGKILL)
        raise StartError(
            f"cannot start {argv[0]}: still not running after {START_SEC:g} s (cwd {cwd}, prompt {stdin_file})"
        )
    os.waitpid(pid, 0)
    stage, number = STAGES[failure[0]], int.from_bytes(failure[1:5], "big")
    raise StartError(explain(stage, number, argv=argv, cwd=cwd, stdin_file=stdin_file))


def _failure(fd: int) -> bytes | None:
    """Return what the child reports: nothing once it is the worker, stage and errno if it failed, None if it hangs."""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    with os.fdopen(fd, "rb") as file:
        return file.read() if poller.poll(START_SEC * 1000) else None


def explain(stage: str, number: int, *, argv: tuple[str, ...], cwd: str, stdin_file: str | None) -> str:
    """Put a failed start into words."""
    words = f"{os.strerror(number)} (errno {number})"
    if stage == "stdin":
        return f"cannot read the prompt file {stdin_file}: {words}"
    if stage == "cwd":
        return f"cannot work in {cwd}: {words}"
    if stage == "confine":
        return f"cannot confine {argv[0]}: {words}"
    if number == errno.ENOENT and os.path.exists(argv[0]):
        return f"cannot start {argv[0]}: the program named in its first line (#!) is missing: {words}"
    if number == errno.E2BIG:
        return f"cannot start {argv[0]}: its arguments and environment are too long: {words}"
    return f"cannot start {argv[0]}: {words}"


def _child(
    argv: tuple[str, ...],
    cwd: str,
    stdin_file: str | None,
    join: Callable[[], None] | None,
    confine: Callable[[], None] | None,
    keeper: int,
    fds: tuple[int, int, int],
) -> None:
    """Become the worker; on failure tell the keeper the stage and the errno, and end. Never returns."""
    stage = 0
    try:
        os.setsid()
        descendants.die_with_parent()
        if os.getppid() != keeper:
            os._exit(127)
        if join is not None:
            join()
        _default_signals()
        stdin = os.open(stdin_file or os.devnull, os.O_RDONLY)
        os.dup2(stdin, 0)
        os.dup2(fds[0], 1)
        os.dup2(fds[1], 2)
        stage = 1
        os.chdir(cwd)
        if confine is not None:
            stage = 2
            confine()
        stage = 3
        os.execvp(argv[0], argv)
    except BaseException as problem:  # nothing of the keeper may run on in the child
        number = problem.errno if isinstance(problem, OSError) and problem.errno else errno.EIO
        os.write(fds[2], bytes((stage,)) + number.to_bytes(4, "big"))
    finally:
        os._exit(127)


def _default_signals() -> None:
    # Python ignores SIGPIPE and SIGXFSZ and the keeper more; an ignored signal would stay ignored through the exec.
    for number in signal.valid_signals():
        if number in (signal.SIGKILL, signal.SIGSTOP):
            continue
        try:
            if signal.getsignal(number) is not signal.SIG_DFL:
                signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
