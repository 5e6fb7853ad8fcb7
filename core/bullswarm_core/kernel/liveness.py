"""Is anybody driving a run? Read from the kernel's lock, which dies with the kernel; nothing is written."""

from __future__ import annotations

import contextlib
import enum
import errno
import fcntl
import os
from collections.abc import Iterator
from datetime import datetime, timedelta

from bullswarm_core.errors import LockTimeoutError, RunConflictError, StateError
from bullswarm_core.process.identity import ProcessIdentity, is_alive
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.store.home import Home, file_lock, read_json

# Somebody who looks whether a kernel is alive holds a shared lock for an instant; that must not look like a second kernel.
_LEASE_WAIT_SEC = 2.0


# A kernel needs some tenths of a second to start; on a machine that is swamped with starting agents much more.
STARTING = timedelta(seconds=20)


class KernelState(enum.Enum):
    """What is known of a run's kernel; a parked run needs none until somebody acts."""

    ALIVE = "alive"
    STARTING = "starting"
    PARKED = "parked"
    GONE = "gone"
    DONE = "done"


def kernel_state(home: Home, state: RunState, *, now: datetime) -> KernelState:
    """Tell whether a kernel drives the run; a run with a verdict needs none."""
    if state.finished is not None:
        return KernelState.DONE
    if lock_is_held(RunFolder.of(home, state.created.run_id)):
        return KernelState.ALIVE
    if state.parked is not None:
        return KernelState.PARKED
    return KernelState.STARTING if _may_be_starting(home, state, now) else KernelState.GONE


def _may_be_starting(home: Home, state: RunState, now: datetime) -> bool:
    """Whether the process that was started as the kernel is there and has not taken the lock yet.

    Until it is known which process that is, a run that is only some seconds old is given the time to start.
    """
    young = state.kernel is None and now - state.created_at < STARTING
    try:
        started = ProcessIdentity.from_json(read_json(RunFolder.of(home, state.created.run_id).kernel_start))
    except StateError:
        return young
    return young if started is None else is_alive(started) and (young or state.kernel is not None)


def lock_is_held(folder: RunFolder) -> bool:
    """Tell whether some process holds the kernel's lock of a run."""
    try:
        handle = os.open(folder.kernel_lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # A shared lock goes well together with other readers, so that two that look at once don't see each other.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    else:
        return False
    finally:
        os.close(handle)


@contextlib.contextmanager
def kernel_lease(folder: RunFolder) -> Iterator[None]:
    """Be the one kernel of a run; the lock dies with the process. Raises RunConflictError when another one drives it."""
    try:
        with file_lock(folder.kernel_lock, timeout_sec=_LEASE_WAIT_SEC):
            yield
    except LockTimeoutError as error:
        raise RunConflictError(f"run {folder.path.name} is driven by another kernel", hint="wait for it") from error
