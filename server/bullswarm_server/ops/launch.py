"""Starts runs: records what was asked for, starts a detached kernel, and waits for verdicts without owning the work."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import BullswarmError, StorageError, UsageError
from bullswarm_core.fast.tree import remove_tree
from bullswarm_core.keeper.client import request_stop as ask_keeper_to_stop
from bullswarm_core.kernel.liveness import KernelState, kernel_state
from bullswarm_core.launch.trusted_programs import place_in_reach, program_places
from bullswarm_core.process.environment import is_session_variable
from bullswarm_core.process.identity import of as identity_of
from bullswarm_core.process.saved_environment import save
from bullswarm_core.program.model import program_from
from bullswarm_core.runs.events import RunCreated, StopRequested
from bullswarm_core.runs.journal import Journal, new_run_id
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.task import Task, to_options, to_program
from bullswarm_core.runs.workspace import workspace_of
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home, make_folder, open_log, write_json
from bullswarm_core.wire import to_wire
from bullswarm_server.ops.files import tail

ROOT_VARIABLE = "BULLSWARM_ROOT"
_FIRST_LOOKS_SEC = 0.05
_LATER_LOOKS_SEC = 0.2
_EARLY_SEC = 3.0
# A healthy writer holds the database's lock for about a millisecond, 16 of them at once for 0.2 s.
_LOCKED_SEC = 2.0
# A kernel that dies again and again has a fault that another start won't cure; its log says which.
_MOST_KERNEL_STARTS = 3
# One run takes some 200 kB of journal and files before its worker says a word; a full disk takes no log line either.
_LITTLE_SPACE = 1024 * 1024
# The last line of a log is what counts; a log of hours of work has megabytes.
_LOG_TAIL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asks: the calling agent, its pool, and how deep in other runs this one is."""

    caller: str | None = None
    caller_pool: str | None = None
    depth: int = 0
    root: str | None = None


def refuse_bullswarm_in_reach(home: Home, task: Task, *, isolated: bool = False) -> None:
    """Refuse a task whose worker could write to bullswarm's own state or program, and so choose its own verdict.

    Raises UsageError when a build or chore would work in a folder that holds the home, bullswarm's packages or its Python,
    or in one of these. Links are followed. ``isolated``: it works in a worktree, where no program of ours is.
    """
    if task.lane == "analyze":
        return
    state, folder = Path(os.path.realpath(home.root)), Path(os.path.realpath(task.cwd))
    if state.is_relative_to(folder) or folder.is_relative_to(state):
        raise UsageError(
            f"a {task.lane} worker in {folder} could change bullswarm's own state in {state}",
            hint="give another folder, or set BULLSWARM_HOME to one that is neither in it nor around it",
        )
    place = None if isolated else place_in_reach(program_places(), task.cwd)
    if place is not None:
        raise UsageError(
            f"a {task.lane} worker in {folder} could change bullswarm's own program in {place}",
            hint="install bullswarm elsewhere, and not editable (uv tool install or pipx install),"
            " take the folder out of PYTHONPATH if it is in there,"
            " or have the work done in a worktree: bullswarm workflow goal --isolation worktree",
        )


def create_run(
    home: Home,
    connection: sqlite3.Connection,
    task: Task,
    *,
    environ: Mapping[str, str],
    origin: Origin,
    now: datetime,
    idempotency_key: str | None = None,
) -> RunCreated:
    """Record a run of one task, with its folder; nothing is running yet. Raises StorageError when the disk refuses.

    UsageError is raised for a task whose worker could change the home.
    With an ``idempotency_key`` that was used in the last 24 hours the run of that key is returned, and UsageError raised when
    it is another task's.
    """
    refuse_bullswarm_in_reach(home, task)
    asked = _Asked("run", task.goal, task.cwd, to_program(task), to_options(task))
    return _record(home, connection, asked, environ=environ, origin=origin, now=now, idempotency_key=idempotency_key)


def create_workflow(
    home: Home,
    connection: sqlite3.Connection,
    program: Mapping[str, Any],
    *,
    goal: str,
    cwd: str,
    options: Mapping[str, Any],
    environ: Mapping[str, str],
    origin: Origin,
    now: datetime,
    idempotency_key: str | None = None,
) -> RunCreated:
    """Record a run of a valid program, with its folder; nothing is running yet. Raises as ``create_run`` does."""
    for step in program_from(program).steps:
        task = Task(prompt=step.prompt, lane=step.lane, cwd=cwd)
        refuse_bullswarm_in_reach(home, task, isolated=options.get("isolation") == "worktree")
    asked = _Asked("workflow", goal, cwd, program, options)
    return _record(home, connection, asked, environ=environ, origin=origin, now=now, idempotency_key=idempotency_key)


@dataclass(frozen=True, slots=True)
class _Asked:
    kind: str
    goal: str
    cwd: str
    program: Mapping[str, Any]
    options: Mapping[str, Any]


def _record(
    home: Home,
    connection: sqlite3.Connection,
    asked: _Asked,
    *,
    environ: Mapping[str, str],
    origin: Origin,
    now: datetime,
    idempotency_key: str | None,
) -> RunCreated:
    saved = save(environ, leave_out=[name for name in environ if is_session_variable(name)])
    created = RunCreated(
        run_id=new_run_id(now),
        short_id="",
        kind=asked.kind,
        goal=asked.goal,
        cwd=asked.cwd,
        program=asked.program,
        options=asked.options,
        caller=origin.caller,
        caller_pool=origin.caller_pool,
        root=origin.root,
        depth=origin.depth,
        environment=saved.values,
        secret_names=saved.secret_names,
        idempotency_key=idempotency_key,
        workspace=to_wire(workspace_of(asked.cwd)),
    )
    folder = RunFolder.of(home, created.run_id)
    make_folder(folder.path)
    write_json(folder.marker, {"schemaVersion": "bullswarm.run-folder.v1", "runId": created.run_id})
    recorded: RunCreated | None = None
    try:
        recorded = Journal(connection).create(created, at=now)
    finally:
        if recorded is None or recorded.run_id != created.run_id:
            remove_tree(folder.path)
    return recorded


def start_kernel(home: Home, run_id: str, *, environ: Mapping[str, str]) -> int:
    """Start a kernel for the run, in a session of its own, and return its pid; the caller may end at any time."""
    import subprocess

    folder = RunFolder.of(home, run_id)
    make_folder(folder.path)
    environment = {**environ, "BULLSWARM_HOME": str(home.root)}
    try:
        with open_log(folder.kernel_log) as log:
            process = subprocess.Popen(
                # -P keeps a file in the working folder from standing in for one of our modules.
                [sys.executable, "-P", "-m", "bullswarm_server.kernel", run_id],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder.path,
                env=environment,
                start_new_session=True,
            )
    except OSError as error:
        raise StorageError(
            f"the kernel of run {run_id} could not be started: {error}", hint="free some resources and resume"
        ) from error
    # Nobody waits for it: it outlives us, and its verdict is in the journal.
    process.returncode = 0
    identity = identity_of(process.pid)
    if identity is not None:
        # Only tells sooner that a kernel died while it started; a full disk must not stop the start itself.
        with contextlib.suppress(BullswarmError):
            write_json(folder.kernel_start, identity.to_json())
    return process.pid


def request_stop(home: Home, connection: sqlite3.Connection, state: RunState, *, by: str, now: datetime) -> None:
    """Ask the kernel to stop the work of an unfinished run; a second request changes nothing.

    Where the database stays locked, the keepers are asked first: it may be the worker itself that holds the lock.
    """
    from threading import Timer

    journal = Journal(connection)
    fallback = Timer(_LOCKED_SEC, _stop_workers, (home, state, by))
    fallback.daemon = True
    fallback.start()
    try:
        # A run whose worker was ended in this way may have its verdict before the request is written.
        while state.finished is None and state.stop_requested is None:
            if journal.append_after(state.created.run_id, [StopRequested(by=by)], seq=state.seq, at=now):
                return
            state = journal.read_on(state)
    finally:
        fallback.cancel()


def _stop_workers(home: Home, state: RunState, by: str) -> None:
    """Have the keepers of all workers of a run end them, without its kernel."""
    folder = RunFolder.of(home, state.created.run_id)
    for step in state.steps.values():
        attempt = step.current
        if attempt is not None and attempt.finished is None:
            ask_keeper_to_stop(folder.attempt(attempt.picked.step, attempt.picked.ordinal).stop, "stopped", by)


def wait_for(
    home: Home,
    run_id: str,
    *,
    environ: Mapping[str, str],
    timeout_sec: float | None = None,
    restart_kernel: bool = True,
    tick: Callable[[RunState, float], None] | None = None,
    enough: Callable[[RunState], bool] | None = None,
) -> RunState:
    """Wait until the run has its verdict, or waits for somebody; return its state, after ``timeout_sec`` as it is then.

    The wait is also over as soon as ``enough`` says so. A kernel that is gone is started again, at most three times.
    ``tick`` is called about five times a second with the state and the seconds waited. Raises BullswarmError when kernels
    keep dying.
    """
    started, starts = time.monotonic(), 0
    connection = open_database(home)
    try:
        journal = Journal(connection)
        state = journal.state(run_id)
        while state.finished is None:
            waited = time.monotonic() - started
            if enough is not None and enough(state):
                return state
            if timeout_sec is not None and waited >= timeout_sec:
                return state
            if tick is not None:
                tick(state, waited)
            kernel = kernel_state(home, state, now=utc_now())
            if kernel is KernelState.PARKED:
                return state
            if restart_kernel and kernel is KernelState.GONE:
                starts += 1
                _start_again(home, state, starts, environ)
            time.sleep(_FIRST_LOOKS_SEC if waited < _EARLY_SEC else _LATER_LOOKS_SEC)
            state = journal.read_on(state)
        return state
    finally:
        connection.close()


def _start_again(home: Home, state: RunState, starts: int, environ: Mapping[str, str]) -> None:
    run_id = state.created.run_id
    if starts > _MOST_KERNEL_STARTS:
        log = RunFolder.of(home, run_id).kernel_log
        raise BullswarmError(
            f"the kernel of run {state.created.short_id} ended {_MOST_KERNEL_STARTS} times without a verdict:"
            f" {_last_line(log)}",
            hint=f"see {log}, then: bullswarm runs resume {state.created.short_id}",
        )
    pid = start_kernel(home, run_id, environ=environ)
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline and kernel_state(home, state, now=utc_now()) is KernelState.GONE:
        if not _exists(pid):
            return
        time.sleep(_FIRST_LOOKS_SEC)


def _last_line(log: Path) -> str:
    try:
        lines = tail(log, _LOG_TAIL_BYTES)[0].decode("utf-8", "replace").splitlines()
    except OSError:
        return "it left no log"
    return next((line.strip()[:500] for line in reversed(lines) if line.strip()), _why_silent(log))


def _why_silent(log: Path) -> str:
    disk = os.statvfs(log.parent)
    free = disk.f_bavail * disk.f_frsize
    return f"the disk is full ({free // 1024} kB are free)" if free < _LITTLE_SPACE else "it said nothing"


def _exists(pid: int) -> bool:
    try:
        ended, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return False
    return ended == 0
