"""The checks of a step, run one after the other beside the kernel: commands as the person, and data against schemas.

A command is one shell line, run by ``/bin/sh -c`` in the working folder, unconfined, with all that the person may do. What
it leaves running is ended with it; what a killed kernel left running is ended by the next one, which runs all checks again
from the first.
Rule: docs/design/judging.md, "Evidence".
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.answers.schema import asserted, schema_issues
from bullswarm_core.errors import StateError, WorkerStartError
from bullswarm_core.judging.evidence import (
    AFTER_A_CHANGE,
    STOPPED,
    DataCheck,
    DataProblem,
    Finding,
    Ran,
    changed_deliverable,
    error_lines,
    not_startable,
    of_command,
    of_data,
    result,
    tail_of,
)
from bullswarm_core.process.child import MARKER, kill_orphans, start_child
from bullswarm_core.process.environment import DEPTH_VARIABLE, GIT_LOCATORS, is_session_variable, read_depth
from bullswarm_core.process.identity import current, of
from bullswarm_core.process.overseer import overseen
from bullswarm_core.process.watched import BoundedLog, watch
from bullswarm_core.program.model import Evidence
from bullswarm_core.program.step_checks import OUTPUT_FILE
from bullswarm_core.runs.run_files import AttemptFiles
from bullswarm_core.store.home import read_json, write_bytes_atomic, write_json
from bullswarm_core.trees.touched import CheckedTree

# A child that checks data answers with at most 100 errors of some hundred characters.
_MOST_ANSWER = 4 * 1024 * 1024
_TAIL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Place:
    """Where checks run, for what, and what they find in their environment; ``mark`` tells their processes from others."""

    cwd: str
    environ: Mapping[str, str]
    files: AttemptFiles
    run_folder: Path
    mark: str


def start_checks(
    evidence: Sequence[Evidence],
    *,
    cwd: str,
    environ: Mapping[str, str],
    files: AttemptFiles,
    run_folder: Path,
    step_id: str,
    deliverable_paths: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> Checks:
    """Start the checks of an attempt and return at once.

    ``deliverable_paths`` are files relative to ``cwd`` that no check may change; ``left_out`` are absolute paths in which a
    change is none of a check's doing. Raises UsageError when the recursion depth in ``environ`` can't be read.
    """
    # By its whole path: a run of the same name in another home must not be taken for this one.
    mark = f"{run_folder.resolve()}/{files.id}/evidence"
    place = _Place(cwd, _environment(environ, files, run_folder, step_id, mark), files, run_folder, mark)
    return Checks(tuple(evidence), place, CheckedTree(cwd, environ, tuple(deliverable_paths), tuple(left_out)))


def end_leftovers(files: AttemptFiles, *, mark: str) -> int:
    """End what the checks of a dead kernel left running, and return how many processes that were."""
    try:
        record = read_json(files.checking, default={})
    except StateError:
        # Spoiled by whatever happened to the disk; the mark alone tells the processes, too.
        record = {"attempt": mark}
    killed = kill_orphans(record) if record else 0
    files.checking.unlink(missing_ok=True)
    return killed


def _environment(
    environ: Mapping[str, str], files: AttemptFiles, run_folder: Path, step_id: str, mark: str
) -> dict[str, str]:
    """Return what a check finds: the person's environment, without what a calling agent's session or git left in it."""
    kept = {
        name: value for name, value in environ.items() if name not in GIT_LOCATORS and not is_session_variable(name)
    }
    return kept | {
        "BULLSWARM_EVIDENCE": "1",
        "BULLSWARM_STEP_ID": step_id,
        "BULLSWARM_STEP_OUTPUT": str(files.output),
        "BULLSWARM_RUN_DIR": str(run_folder),
        # A check that starts bullswarm itself counts as one level of workers.
        DEPTH_VARIABLE: str(read_depth(environ) + 1),
        MARKER: mark,
    }


class Checks:
    """A running series of checks. Nothing here waits but `wait`."""

    def __init__(self, evidence: tuple[Evidence, ...], place: _Place, tree: CheckedTree) -> None:
        self._evidence = evidence
        self._place = place
        self._tree = tree
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._results: list[dict[str, Any]] = []
        self._error: Exception | None = None
        # A kernel that ends doesn't wait for it: its successor ends what is left, and begins again.
        threading.Thread(target=self._run, name=f"checks of {place.files.id}", daemon=True).start()

    @property
    def done(self) -> bool:
        """Whether all checks are over and nothing of them runs any more."""
        return self._ended.is_set()

    def stop(self) -> None:
        """End the check that runs and begin no other; `done` follows in a moment."""
        self._stop.set()

    def wait(self, timeout_sec: float) -> bool:
        """Wait for the end, at most so long; True when it came."""
        return self._ended.wait(timeout_sec)

    def results(self) -> list[dict[str, Any]]:
        """Return a result for each check, in order. Raises what kept bullswarm itself from running them."""
        assert self.done, "results come with the end"
        if self._error is not None:
            raise self._error
        return list(self._results)

    def _run(self) -> None:
        try:
            self._results = self._all()
        except Exception as error:
            self._error = error
        finally:
            self._ended.set()

    def _all(self) -> list[dict[str, Any]]:
        end_leftovers(self._place.files, mark=self._place.mark)
        results: list[dict[str, Any]] = []
        spoiled = False
        for number, item in enumerate(self._evidence, 1):
            if self._stop.is_set():
                results.append(result(item, STOPPED))
            elif spoiled:
                results.append(result(item, AFTER_A_CHANGE))
            elif item.type == "schema":
                results.append(self._data(number, item))
            else:
                found, spoiled = self._command(number, item)
                results.append(found)
        return results

    def _command(self, number: int, item: Evidence) -> tuple[dict[str, Any], bool]:
        """Run a command; return its result and whether it changed the deliverable."""
        log = BoundedLog(self._place.files.evidence_log(number))
        self._tree.remember()
        try:
            ran = self._watched(("/bin/sh", "-c", item.cmd), self._place.cwd, item.timeout_sec, log)
        except WorkerStartError as error:
            return result(item, not_startable(str(error))), False
        finally:
            log.close()
        tail = tail_of(log.last[-_TAIL_BYTES:])
        finding = of_command(item, ran, tail)
        moved = self._tree.moved()
        if moved.deliverable and not ran.stopped:
            finding = changed_deliverable(moved.deliverable)
        document = result(
            item,
            finding,
            ran=ran,
            tail=tail,
            log=str(self._place.files.evidence_log(number)),
            touched=moved.others,
            head_moved=moved.head,
        )
        return document, bool(moved.deliverable)

    def _watched(
        self, argv: Sequence[str], cwd: str, timeout_sec: float, log: BoundedLog, stdin: int = subprocess.DEVNULL
    ) -> Ran:
        """Run one process of a check to its end, known to a later kernel from before its start."""
        files, kernel = self._place.files, current().to_json()
        write_json(files.checking, {"keeper": kernel, "attempt": self._place.mark})
        command = stdin == subprocess.DEVNULL
        own_words = subprocess.STDOUT if command else subprocess.DEVNULL
        try:
            line = overseen(argv) if command else argv
            child = start_child(line, cwd=cwd, environ=self._place.environ, stdin=stdin, stderr=own_words)
            worker = of(child.pid)
            if worker is not None:
                write_json(files.checking, {"keeper": kernel, "attempt": self._place.mark, "worker": worker.to_json()})
            watched = watch(
                child,
                timeout_sec=timeout_sec,
                stopped=self._stop.is_set,
                take=log.take,
                overseen=command and line != argv,
            )
        finally:
            # Where no overseer is to be had, or it was killed, what went into a session of its own is known by its mark alone.
            kill_orphans({"attempt": self._place.mark})
            files.checking.unlink(missing_ok=True)
        return Ran(watched.exit_code, watched.timed_out, watched.stopped, round(watched.wall_sec * 1000))

    def _data(self, number: int, item: Evidence) -> dict[str, Any]:
        issues = schema_issues(item.schema)
        if issues:
            check, ran = DataCheck(unchecked=f"its schema: {issues[0]}"), Ran(None)
        else:
            try:
                check, ran = self._checked_data(item)
            except WorkerStartError as error:
                check, ran = DataCheck(unchecked=str(error)), Ran(None)
        finding: Finding = STOPPED if ran.stopped else of_data(item, check)
        lines = error_lines(check)
        log = self._place.files.evidence_log(number)
        write_bytes_atomic(log, f"{finding.why or 'valid'}\n{lines}\n".encode("utf-8", "backslashreplace"))
        tail = "\n".join(lines.split("\n")[:20])
        return result(item, finding, ran=ran, tail=tail, log=str(log), check=check)

    def _checked_data(self, item: Evidence) -> tuple[DataCheck, Ran]:
        place = self._place
        own = item.file == OUTPUT_FILE
        request = {
            "schema": asserted(item.schema),
            "file": str(place.files.output if own else Path(place.cwd) / item.file),
            "within": str(place.run_folder if own else place.cwd),
            "shown": "the final reply" if own else item.file,
            "format": item.format,
            "fenced": own,
        }
        said = BoundedLog(Path("/dev/null"), head=0, tail=_MOST_ANSWER)
        # -P: a file beside the program is no module of the check's.
        argv = [sys.executable, "-P", "-m", "bullswarm_core.answers.data_child"]
        with tempfile.TemporaryFile() as given:
            given.write(json.dumps(request).encode())
            given.seek(0)
            ran = self._watched(argv, "/", item.timeout_sec, said, stdin=given.fileno())
        said.close()
        if ran.timed_out:
            return DataCheck(unchecked=f"it took more than {item.timeout_sec:g} s"), ran
        return _read_answer(ran, said.last), ran


def _read_answer(ran: Ran, said: bytes) -> DataCheck:
    try:
        found = json.loads(said) if ran.exit_code == 0 else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return DataCheck(unchecked=f"the check itself failed (exit {ran.exit_code})")
    return DataCheck(
        unreadable=found["unreadable"],
        unchecked=found["unchecked"],
        errors=tuple(DataProblem(path, problem) for path, problem in found["errors"]),
        error_count=found["errorCount"],
        records=found["records"],
    )
