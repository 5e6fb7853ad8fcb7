"""`bullswarm health`: judge the saved outputs of earlier runs again by their text.

Only an answer can be judged by its text: what build and chore owe are files, and their last words say little or much.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bullswarm_core.errors import StateError, UnknownNameError
from bullswarm_core.judging.phrases import counted
from bullswarm_core.judging.prose import content_gate, only_announces
from bullswarm_core.runs.journal import Journal, RunRow
from bullswarm_core.runs.state import RunState
from bullswarm_core.store.database import open_database
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser

SCHEMA_VERSION = "bullswarm.health.v1"
# The gate reads the head and the tail; an output beyond this is judged by those, never read whole into memory.
_READ_BYTES = 256 * 1024
FILES_ARE_THE_WORK = frozenset({"build", "chore"})


@dataclass(frozen=True, slots=True)
class SavedOutput:
    """One output file of a run. ``recorded_ok`` is the verdict that its attempt got; None where it got none."""

    run_id: str
    path: Path
    recorded_ok: bool | None = None
    short_id: str | None = None
    attempt: str | None = None
    lane: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """A saved output, judged again. ``size`` is in bytes, None where the file can't be read."""

    output: SavedOutput
    ok: bool
    reason: str
    size: int | None

    @property
    def regressed(self) -> bool:
        """True when the attempt was recorded as ok and its output does not pass."""
        return self.output.recorded_ok is True and not self.ok

    def document(self) -> dict[str, Any]:
        """Return the row as machine output has it."""
        return {
            "runId": self.output.run_id,
            "shortId": self.output.short_id,
            "attempt": self.output.attempt,
            "lane": self.output.lane,
            "outFile": str(self.output.path),
            "outBytes": self.size,
            "recordedOk": self.output.recorded_ok,
            "ok": self.ok,
            "reason": self.reason,
            "regressed": self.regressed,
        }


def run(arguments: list[str], context: CommandContext) -> int:
    """Judge every saved output again; exit 1 when one that was recorded as ok does not pass."""
    options = _parser().parse_args(arguments)
    damaged: dict[str, str] = {}
    checked = [check(output) for output in saved_outputs(context, damaged)]
    regressed = sum(row.regressed for row in checked)
    if options.json:
        context.print_json(
            {
                "schemaVersion": SCHEMA_VERSION,
                "checked": len(checked),
                "failing": sum(not row.ok for row in checked),
                "regressed": regressed,
                "outputs": [row.document() for row in checked],
                "damaged": [{"runId": run_id, "reason": reason} for run_id, reason in damaged.items()],
            }
        )
    else:
        context.print(*_lines(checked, regressed))
        context.note(*(f"{reason} · its outputs count as not recorded" for reason in damaged.values()))
    return 1 if regressed else 0


def check(output: SavedOutput) -> Checked:
    """Read one saved output and judge its text; one that can't be read does not pass, and says why."""
    try:
        text, size = _read(output.path)
    except OSError as error:
        return Checked(output, False, f"cannot be read: {error.strerror or error}", None)
    if output.lane in FILES_ARE_THE_WORK:
        return Checked(output, True, "its files are the work; its words are not judged", size)
    verdict = content_gate(text)
    if verdict.intent_only and not only_announces(text):
        return Checked(output, True, "a short answer, which a text gate can't judge", size)
    return Checked(output, verdict.ok, verdict.reason, size)


def saved_outputs(context: CommandContext, damaged: dict[str, str]) -> Iterator[SavedOutput]:
    """Yield the output of every recorded attempt, newest run first, then output files that no record speaks of.

    Nothing is written; a home without runs yields nothing. ``damaged`` gets the runs whose journal can't be read, and why.
    """
    seen: set[Path] = set()
    for output in _recorded(context, damaged):
        seen.add(output.path)
        yield output
    yield from _unrecorded(context.home.workflows_dir, seen)


def _recorded(context: CommandContext, damaged: dict[str, str]) -> Iterable[SavedOutput]:
    connection = open_database(context.home, readonly=True)
    if connection is None:
        return []
    found: list[SavedOutput] = []
    try:
        journal = Journal(connection)
        for row in journal.rows():
            try:
                found += _outputs_of(row, journal.state(row.run_id))
            except (StateError, UnknownNameError) as error:
                damaged[row.run_id] = error.message
    finally:
        connection.close()
    return found


def _outputs_of(row: RunRow, state: RunState) -> list[SavedOutput]:
    return [
        SavedOutput(
            run_id=row.run_id,
            path=Path(finished.output_file),
            recorded_ok=finished.ok,
            short_id=row.short_id,
            attempt=f"{finished.step}-{finished.ordinal}",
            lane=attempt.picked.lane,
        )
        for step in state.steps.values()
        for attempt in step.attempts
        if (finished := attempt.finished) and finished.output_file
    ]


def _unrecorded(folder: Path, seen: set[Path]) -> Iterator[SavedOutput]:
    for path in sorted(folder.glob("*/out-*.md"), reverse=True):
        if path not in seen and path.is_file() and not path.is_symlink():
            yield SavedOutput(path.parent.name, path, attempt=path.stem.removeprefix("out-"))


def _read(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        head = file.read(_READ_BYTES)
        size = file.seek(0, 2)
        if size > len(head):
            file.seek(max(len(head), size - _READ_BYTES))
            head += b"\n" + file.read()
    return head.decode("utf-8", "replace"), size


def _lines(checked: list[Checked], regressed: int) -> Iterator[str]:
    for row in checked:
        if not row.ok:
            was = {True: "recorded ok", False: "recorded failed", None: "not recorded"}[row.output.recorded_ok]
            name = f"{row.output.short_id or row.output.run_id} {row.output.attempt}"
            yield f"{'✗' if row.regressed else '·'} {name} · {row.reason} · {was} · {row.output.path}"
    failing = sum(not row.ok for row in checked)
    outputs = counted(len(checked), "output", "outputs")
    fail = counted(failing, "fails", "fail")
    yield f"{outputs} checked · {fail} the gate · {regressed} of them recorded ok"


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm health",
        description="Judge the saved answers of earlier runs again by their text; of build and chore, only that they can be"
        " read. Exit 1 when one recorded as ok fails now.",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    return parser
