"""The keeper of one attempt: a small process between the kernel and an agent CLI that outlives the kernel.

``python -I -S main.py SPEC.json [--detach]``, with the worker's environment as its own. It starts the worker, drains
its output into bounded files, watches its clocks, ends it with everything it started, and leaves one exit record. Only
the standard library is loaded: it must be cheap, and start from any environment.

Exit codes: 0 the exit record is written (whatever became of the worker); 1 it could not be written; 2 the spec is
wrong; 3 the attempt has a keeper already, or has ended.
"""

from __future__ import annotations

import os
import sys

# -I leaves this file's folder and all of site-packages out of the path. At its end, so that the standard library wins.
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if _ROOT not in sys.path:
    sys.path.append(_ROOT)

import fcntl  # noqa: E402
import resource  # noqa: E402
import signal  # noqa: E402
from collections.abc import Callable  # noqa: E402
from datetime import UTC, datetime  # noqa: E402

from bullswarm_core._dataclasses import replace  # noqa: E402
from bullswarm_core.keeper.exit_record import STDERR_TAIL_BYTES, ExitFile, ExitRecord  # noqa: E402
from bullswarm_core.keeper.spec import KeeperSpec, write_atomic  # noqa: E402
from bullswarm_core.keeper.start import Started, StartError, start_worker  # noqa: E402
from bullswarm_core.keeper.supervision import KILL_SEC, Ended, Interrupts, Supervision, stop_request  # noqa: E402
from bullswarm_core.process import confinement, control_group, descendants, identity  # noqa: E402
from bullswarm_core.process.capture import BoundedCapture  # noqa: E402
from bullswarm_core.process.guard import Guard  # noqa: E402
from bullswarm_core.streams.facts import ExitFacts  # noqa: E402
from bullswarm_core.wire import stamp  # noqa: E402

WROTE, LOST, WRONG_SPEC, REFUSED = 0, 1, 2, 3


def main(arguments: list[str]) -> int:
    """Keep the attempt that the spec describes and return the keeper's exit code."""
    detach = "--detach" in arguments
    paths = [word for word in arguments if word != "--detach"]
    if len(paths) != 1:
        return _refuse("usage: keeper/main.py SPEC.json [--detach]", WRONG_SPEC)
    try:
        spec = KeeperSpec.read(paths[0])
    except (OSError, ValueError) as problem:
        return _refuse(f"{paths[0]}: {problem}", WRONG_SPEC)
    ready = _detach() if detach else None
    if ready is None and os.getsid(0) != os.getpid() and os.getpgrp() != os.getpid():
        os.setsid()
    return Keeper(spec).run(ready)


def _detach() -> int:
    """Go on in a child with its own session and without a parent who must reap it; return the pipe that says ready.

    The first process waits until the child holds the attempt, or passes on the exit code with which it refused.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.setsid()
        return write
    os.close(write)
    held = os.read(read, 1)
    if held:
        os._exit(WROTE)
    _, status = os.waitpid(child, 0)
    os._exit(max(LOST, os.waitstatus_to_exitcode(status)))


def _refuse(message: str, code: int) -> int:
    sys.stderr.write(f"keeper: {message}\n")
    return code


class Keeper:
    """One attempt from lock to exit record."""

    def __init__(self, spec: KeeperSpec) -> None:
        self._spec = spec
        self._identity = identity.current()
        self._worker: identity.ProcessIdentity | None = None
        self._started_at = datetime.now(UTC)
        self._supervision: Supervision | None = None
        self._group: control_group.Group | None = None
        self._guard: Guard | None = None
        self._at_once: Callable[[], None] | None = None

    def run(self, ready: int | None) -> int:
        """Take the attempt's lock, keep the worker to its end, write the exit record."""
        spec = self._spec
        interrupts = Interrupts.install()
        lock = os.open(spec.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return _refuse(f"{spec.attempt} has a keeper already ({spec.lock_file} is locked)", REFUSED)
        if os.path.exists(spec.exit_file):
            return _refuse(f"{spec.attempt} has ended already ({spec.exit_file} is there)", REFUSED)
        descendants.become_subreaper()
        self._write_keeper_file()
        if ready is not None:
            os.write(ready, b"!")
            os.close(ready)
        exit_file = ExitFile(spec.exit_file)
        record = self._keep(interrupts)
        try:
            exit_file.write(record.to_json())
        except OSError as problem:
            return _refuse(f"the exit record of {spec.attempt} is lost: {problem}", LOST)
        finally:
            if record.facts.survivors and self._supervision is not None:
                self._supervision.kill_survivors()
            if self._group is not None:
                self._group.remove()
        return WROTE

    def _write_keeper_file(self) -> None:
        worker = None if self._worker is None else self._worker.to_json()
        write_atomic(
            self._spec.keeper_file,
            {
                "attempt": self._spec.attempt,
                "keeper": self._identity.to_json(),
                "worker": worker,
                "startedAt": stamp(self._started_at),
            },
        )

    def _keep(self, interrupts: Interrupts) -> ExitRecord:
        spec = self._spec
        stop = stop_request(interrupts, spec.stop_file)
        if stop is not None:
            return self._record(ExitFacts(reason=stop.reason), stop.detail)
        try:
            started, confined = self._start()
        except (StartError, OSError) as problem:
            return self._record(ExitFacts(reason="never-started", start_error=str(problem)))
        self._worker = identity.of(started.pid)
        try:
            self._write_keeper_file()
        except OSError as problem:
            sys.stderr.write(f"keeper: the worker's identity is not in {spec.keeper_file}: {problem}\n")
        limits = spec.capture
        stdout = BoundedCapture(
            spec.stdout_file,
            head_bytes=limits.head_bytes,
            segment_bytes=limits.segment_bytes,
            segments=limits.segments,
        )
        quarter = max(1, limits.stderr_bytes // 4)
        stderr = BoundedCapture(spec.stderr_file, head_bytes=2 * quarter, segment_bytes=quarter, segments=2)
        try:
            self._supervision = Supervision(
                spec, started, interrupts, stdout, stderr, at_once=self._at_once, guard=self._guard
            )
            ended = self._supervision.run()
        except BaseException:
            tree = descendants.Tree(started.pid, at_once=self._at_once, guard=self._guard)
            tree.kill_at_once()
            tree.signal(signal.SIGKILL)
            if sys.platform == "linux":
                tree.kill_children(KILL_SEC)
            raise
        stdout.close()
        stderr.close()
        return self._ended(ended, stdout, stderr, confined)

    def _start(self) -> tuple[Started, confinement.Prepared]:
        spec = self._spec
        confined = confinement.Prepared(kind="none")
        if spec.writable is not None:
            guard = Guard() if sys.platform == "linux" else None
            start_guard = None if guard is None else guard.start
            confined = confinement.prepare(spec.writable, library=spec.library, guard=start_guard)
            self._guard = guard
            for path in confined.left_out:
                sys.stderr.write(f"keeper: not writable, since it does not exist: {path}\n")
        self._group = control_group.Group.make()
        self._at_once = None if self._group is None else self._group.kill
        started = start_worker(
            (*confined.prefix, *spec.argv),
            cwd=os.path.realpath(spec.cwd),
            stdin_file=spec.stdin_file,
            join=None if self._group is None else self._group.join,
            confine=confined.restrict,
        )
        if self._guard is not None:
            self._guard.started()
        return started, confined

    def _ended(
        self, ended: Ended, stdout: BoundedCapture, stderr: BoundedCapture, confined: confinement.Prepared
    ) -> ExitRecord:
        code = None if ended.status is None else os.waitstatus_to_exitcode(ended.status)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        facts = ExitFacts(
            reason=ended.reason,
            exit_code=code if code is not None and code >= 0 else None,
            signal=signal_name(-code) if code is not None and code < 0 else None,
            wall_sec=round(ended.wall, 3),
            silent_sec=round(ended.silent, 3),
            cpu_sec=round(used.ru_utime + used.ru_stime, 3),
            output_bytes=stdout.total,
            dropped_bytes=stdout.dropped,
            stderr_tail=stderr.tail(STDERR_TAIL_BYTES).decode("utf-8", "replace"),
            leftovers_killed=len(ended.leftovers),
            survivors=ended.survivors,
            confinement=confined.kind,
            confinement_why=confined.why,
            capture_error=stdout.error or stderr.error or "",
        )
        return self._record(facts, ended.detail)

    def _record(self, facts: ExitFacts, detail: str = "") -> ExitRecord:
        facts = replace(facts, started_at=self._started_at, ended_at=datetime.now(UTC))
        return ExitRecord(
            attempt=self._spec.attempt, facts=facts, keeper=self._identity, worker=self._worker, stop_detail=detail
        )


def signal_name(number: int) -> str:
    """Return ``SIGKILL`` for 9; a number without a name is written as ``SIG<number>``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
