"""What came of the checks that bullswarm runs itself on a step's work: their results, in words and as the journal keeps them.

Rule: docs/design/judging.md, "Evidence". Pure; `runs.checks` runs them.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast.text import clipped, one_line, plain
from bullswarm_core.judging.phrases import counted
from bullswarm_core.program.model import Evidence

Status = Literal["passed", "failed", "not-run"]

# A next round is shown up to 20 lines of up to 200 characters.
TAIL_LINES = 20
LONGEST_LINE = 200
# The journal keeps the first of them and counts the rest.
MOST_ERRORS = 20
MOST_TOUCHED = 50
_LONGEST_WHY = 400
_NAMED_PATHS = 5
_NOT_FOUND = 127
# Only the shell that bullswarm itself starts says its full path; a shell inside of somebody's script does not.
_NO_COMMAND = re.compile(r"/bin/sh: (?:line )?(?:\d+: )?(?P<name>[^/\s:]+): (?:command )?not found")


@dataclass(frozen=True, slots=True)
class Ran:
    """How the process of a check ended. ``exit_code`` is negative for a signal, None when it was ended by us."""

    exit_code: int | None
    timed_out: bool = False
    stopped: bool = False
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class DataProblem:
    """One thing that is wrong with checked data: where in it (``#``, or ``line 3 #/name``), and what."""

    path: str
    problem: str


@dataclass(frozen=True, slots=True)
class DataCheck:
    """What came of a schema check: ``unreadable`` is the data's fault, ``unchecked`` the check's own.

    ``errors`` are the first of ``error_count``; ``records`` is how many values were looked at.
    """

    unreadable: str | None = None
    unchecked: str | None = None
    errors: tuple[DataProblem, ...] = ()
    error_count: int = 0
    records: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check comes to by itself; ``by_check`` says that the check is at fault, not the work."""

    status: Status
    why: str | None = None
    by_check: bool = False


def of_command(item: Evidence, ran: Ran, tail: str) -> Finding:
    """Judge a command by how it ended; exit code 0 alone passes."""
    if ran.stopped:
        return STOPPED
    if ran.timed_out:
        return Finding("failed", f"timed out after {item.timeout_sec:g}s")
    code = ran.exit_code or 0
    if code == 0:
        return Finding("passed")
    if code < 0:
        return Finding("failed", f"killed by {_signal_name(-code)}")
    missing = _NO_COMMAND.fullmatch(tail.rpartition("\n")[2]) if code == _NOT_FOUND else None
    if missing:
        return Finding("failed", f"could not start: {missing['name']}: command not found", by_check=True)
    return Finding("failed", f"exit {code}")


def of_data(item: Evidence, check: DataCheck) -> Finding:
    """Judge data by what its check found."""
    if check.unchecked:
        return Finding("failed", f"check could not run: {check.unchecked}", by_check=True)
    if check.unreadable:
        return Finding("failed", check.unreadable)
    if check.error_count:
        return Finding("failed", f"not valid: {counted(check.error_count, 'error', 'errors')}")
    if item.format == "jsonl" and not check.records:
        return Finding("failed", "no records")
    return Finding("passed")


def changed_deliverable(paths: Sequence[str]) -> Finding:
    """Judge a check that changed what it was to check."""
    more = len(paths) - _NAMED_PATHS
    named = ", ".join(paths[:_NAMED_PATHS]) + (f" and {more} more" if more > 0 else "")
    return Finding("failed", f"changed the deliverable: {named}")


def not_startable(words: str) -> Finding:
    """Judge a check whose process could not be started."""
    return Finding("failed", f"could not start: {words}", by_check=True)


STOPPED = Finding("not-run", "stopped")
AFTER_A_CHANGE = Finding("not-run", "not run: an earlier item changed the deliverable")


def result(
    item: Evidence,
    finding: Finding,
    *,
    ran: Ran | None = None,
    tail: str = "",
    log: str | None = None,
    check: DataCheck | None = None,
    touched: Sequence[str] = (),
    head_moved: bool = False,
) -> dict[str, Any]:
    """Return a check's result as the journal keeps it; ``fault`` is there only where the check itself is at fault."""
    errors = check.errors if check else ()
    document: dict[str, Any] = {
        "type": item.type,
        **({"cmd": item.cmd} if item.type == "command" else {"file": item.file}),
        "status": finding.status,
        "exit": ran.exit_code if ran else None,
        "durationMs": ran.duration_ms if ran else 0,
        "tail": tail,
        "log": log,
        "why": clipped(finding.why, _LONGEST_WHY) if finding.why else None,
        "errorCount": check.error_count if check else 0,
        "errors": [{"path": error.path, "problem": error.problem} for error in errors[:MOST_ERRORS]],
        "touched": list(touched[:MOST_TOUCHED]),
        "headMoved": head_moved,
    }
    return document | ({"fault": "check"} if finding.by_check else {})


def tail_of(output: bytes) -> str:
    """Return the last lines of an output: no control sequences, no blank lines at the end, each line bounded.

    Of a line that was written over (a progress bar) only what it showed last is kept.
    """
    text = output.decode("utf-8", "replace").replace("\r\n", "\n")
    lines = [_last_shown(line) for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(clipped(line, LONGEST_LINE) for line in lines[-TAIL_LINES:])


def error_lines(check: DataCheck) -> str:
    """Return the errors of checked data, one a line."""
    return "\n".join(clipped(f"{error.path}: {one_line(error.problem)}", LONGEST_LINE) for error in check.errors)


def outcome(results: Sequence[Mapping[str, Any]]) -> Literal["passed", "failed", "check-failed", "stopped"]:
    """Return what a whole series of checks comes to; ``check-failed`` is a failure that is the check's own fault."""
    failed = [item for item in results if item["status"] == "failed"]
    if any(item.get("fault") == "check" for item in failed):
        return "check-failed"
    if any(item["status"] == "not-run" and item["why"] == STOPPED.why for item in results):
        return "stopped"
    return "failed" if failed else "passed"


def failure_words(results: Sequence[Mapping[str, Any]]) -> str:
    """Return one line on the checks that failed: the first with its reason (``pytest -q → exit 1``), and how many more."""
    failed = [item for item in results if item["status"] == "failed"]
    if not failed:
        return ""
    first = failed[0]
    what = first["cmd"] if first["type"] == "command" else f"schema of {first['file']}"
    words = f"{clipped(one_line(what), LONGEST_LINE)} → {first['why']}"
    if first["errors"]:
        error = first["errors"][0]
        words += f" ({clipped(one_line(error['path'] + ': ' + error['problem']), LONGEST_LINE)})"
    more = len(failed) - 1
    return words + (f" · {counted(more, 'more check', 'more checks')} failed" if more else "")


def proof_label(
    *,
    accepted: bool = False,
    results: Sequence[Mapping[str, Any]] | None = None,
    reviewed: bool = False,
    answer_checked: bool = False,
) -> str:
    """Return how far a finished step is proven; derived, never stored.

    A person's word is no proof, and an answer that fits its schema is only a claim. ``reviewed``: another step's condition
    on it held.
    """
    if accepted:
        return "accepted by choice"
    if results and all(item.get("status") == "passed" for item in results):
        kinds = dict.fromkeys(str(item.get("type")) for item in results)
        return f"proven by {' and '.join(sorted(kinds))}"
    if reviewed:
        return "proven by review"
    return "answer checked" if answer_checked else "finished · unproven"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_shown(line: str) -> str:
    parts = [part for part in line.split("\r") if part.strip()]
    return plain(parts[-1]).expandtabs(4).rstrip() if parts else ""
