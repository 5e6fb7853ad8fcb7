"""The kernel's side of the keeper: start one, ask it to stop, read its file and its exit record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bullswarm_core.errors import WorkerStartError
from bullswarm_core.keeper.spec import (
    MARKER,
    READY_SEC,
    KeeperRecord,
    KeeperSpec,
    _last_line,
    _read_object,
    write_atomic,
)
from bullswarm_core.process.identity import ProcessIdentity

if TYPE_CHECKING:
    from bullswarm_core.streams.facts import ExitFacts


def start_keeper(
    spec: KeeperSpec,
    environment: Mapping[str, str],
    *,
    spec_file: str | Path | None = None,
    log_file: str | Path | None = None,
) -> ProcessIdentity:
    """Start a keeper that outlives the caller, and return once it holds the attempt's lock and has written its file.

    ``environment`` is the worker's complete environment. The spec and the keeper's log lie beside the keeper's file
    unless named. Raises WorkerStartError when the keeper refuses (the attempt has one, or has ended) or can't start.
    """
    import subprocess
    import sys
    from dataclasses import replace

    from bullswarm_core.keeper import main
    from bullswarm_core.process import confinement
    from bullswarm_core.store.home import open_log

    stem = spec.keeper_file.removesuffix(".json")
    spec_file, log_file = spec_file or f"{stem}.spec.json", log_file or f"{stem}.log"
    if spec.writable is not None and spec.library is None:
        spec = replace(spec, library=confinement.library_folder())
    argv = [sys.executable, "-I", "-S", str(main.__file__), str(spec_file), "--detach"]
    try:
        spec.write(spec_file)
        with open_log(Path(log_file)) as log:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**environment, MARKER: spec.attempt},
                cwd=Path(spec.keeper_file).parent,
                timeout=READY_SEC,
                check=False,
            )
    except (OSError, ValueError, subprocess.SubprocessError) as problem:
        raise WorkerStartError(f"the keeper of {spec.attempt} could not be started: {problem}") from problem
    record = read_keeper(spec.keeper_file)
    if done.returncode != 0 or record is None:
        raise WorkerStartError(
            f"the keeper of {spec.attempt} ended with exit code {done.returncode}: {_last_line(log_file)}",
            hint=f"see {log_file}",
        )
    return record.keeper


def request_stop(stop_file: str | Path, reason: str, detail: str = "") -> None:
    """Ask the keeper to end its worker; ``reason`` is ``stopped`` or ``limit``. Raises ValueError for another one."""
    if reason not in ("stopped", "limit"):
        raise ValueError(f"a stop's reason is stopped or limit, not {reason!r}")
    write_atomic(stop_file, {"reason": reason, "detail": detail})


def read_keeper(path: str | Path) -> KeeperRecord | None:
    """Read a keeper's file; None when it is missing or damaged."""
    value = _read_object(path)
    keeper = ProcessIdentity.from_json(value.get("keeper"))
    if keeper is None:
        return None
    return KeeperRecord(
        attempt=str(value.get("attempt", "")),
        keeper=keeper,
        worker=ProcessIdentity.from_json(value.get("worker")),
        started_at=str(value.get("startedAt", "")),
    )


def read_exit(path: str | Path) -> ExitFacts | None:
    """Read the exit record; None when there is none (yet) or it is damaged."""
    from bullswarm_core.keeper.exit_record import facts_from_json

    value = _read_object(path)
    return facts_from_json(value) if value else None
