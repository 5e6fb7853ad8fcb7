"""`bullswarm runs`: list, show, result, wait, stop or resume what was started.

`list`, `show` and `result` only read: they write nothing and start nothing. `wait` and `resume` start a kernel again where
it is gone.
"""

from __future__ import annotations

import argparse
import codecs
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from bullswarm_core.caller import find_caller
from bullswarm_core.database import open_database
from bullswarm_core.errors import StateError, UnknownNameError, UsageError
from bullswarm_core.labels import Labels
from bullswarm_core.runs.folder import MARKER
from bullswarm_core.runs.journal import LAST, Journal, RunRow
from bullswarm_core.runs.liveness import KernelState, kernel_state
from bullswarm_core.runs.services import utc_now
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.verdict_document import running_document
from bullswarm_core.wire import iso
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.cli.run import follow
from bullswarm_server.cli.task_arguments import seconds
from bullswarm_server.displays.text import Style, duration, one_line, plain
from bullswarm_server.displays.verdict import verdict_lines
from bullswarm_server.launch import request_stop

LIST_VERSION = "bullswarm.runs.v1"
RESULT_VERSION = "bullswarm.result.v1"
_DEFAULT_ROWS = 20
_RESULT_BYTES = 64 * 1024
_WHY_LENGTH = 80
DAMAGED = "damaged"
# What a journal that somebody else wrote in, or a disk spoiled, makes of reading it.
DAMAGE = (StateError, UnknownNameError, LookupError, TypeError, AttributeError, ValueError, StopIteration)


def run(arguments: list[str], context: CommandContext) -> int:
    """Carry out one operation on runs; ``bullswarm runs`` alone lists them."""
    lists = not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help"))
    options = _parser().parse_args(["list", *arguments] if lists else arguments)
    operation: Callable[[argparse.Namespace, CommandContext], int] = options.operation
    return operation(options, context)


def _list(options: argparse.Namespace, context: CommandContext) -> int:
    with _reading(context) as connection:
        journal = Journal(connection) if connection else None
        rows = journal.rows(limit=options.limit) if journal else []
        documents = [_row(context, journal, row) for row in rows] if journal else []
    foreign = _view_only(context)
    if options.json:
        context.print_json({"schemaVersion": LIST_VERSION, "runs": documents, "viewOnly": foreign})
        return 0
    context.print(*(_row_line(document) for document in documents))
    context.note(*(f"view-only, from another program: {name}" for name in foreign))
    if not documents:
        context.note('no runs yet · start one: bullswarm run --lane analyze "…"')
    return 0


def _show(options: argparse.Namespace, context: CommandContext) -> int:
    state = _state(options.run_id, context)
    document = _document(context, state)
    if options.json:
        context.print_json(document)
    else:
        context.print(*verdict_lines(document, style=Style(colour=context.colour)))
    return 1 if document["ok"] is False else 0


def _result(options: argparse.Namespace, context: CommandContext) -> int:
    state = _state(options.run_id, context)
    if state.finished is None:
        raise UsageError(
            f"run {state.created.short_id} has no result yet", hint=f"bullswarm runs wait {state.created.short_id}"
        )
    verdict = state.finished.verdict
    path = verdict.get("outFile")
    if not options.json:
        if not (path and _print_output(context, _lines_of(path, options.cursor))):
            nothing = f"the output has nothing from byte {options.cursor} on" if options.cursor else _no_output(verdict)
            context.note(nothing)
        return 0 if verdict["ok"] else 1
    data = _read(path, options.cursor) if path else b""
    size = Path(path).stat().st_size if path and Path(path).exists() else 0
    text, used = _whole_characters(data, last=options.cursor + len(data) >= size)
    after = options.cursor + used
    context.print_json(
        {
            "schemaVersion": RESULT_VERSION,
            "runId": state.created.run_id,
            "shortId": state.created.short_id,
            "ok": verdict["ok"],
            "outFile": path,
            "outBytes": size,
            "text": text,
            "cursor": after if after < size else None,
            "answer": verdict.get("answer"),
            "answerCheck": verdict.get("answerCheck"),
        }
    )
    return 0 if verdict["ok"] else 1


def _print_output(context: CommandContext, lines: Iterable[bytes]) -> bool:
    """Write the lines without control sequences, none of which goes on behind its line; False when there is none.

    Empty lines at the end are left out.
    """
    wrote, empty = False, 0
    for line in lines:
        wrote = True
        text = plain(line.decode("utf-8", "replace")).rstrip("\n")
        if text:
            context.out.write("\n" * empty + text + "\n")
            empty = 0
        else:
            empty += 1
    return wrote


def _no_output(verdict: Mapping[str, Any]) -> str:
    written = (verdict.get("meta") or {}).get("streamFile")
    return f"there is no answer; what the worker wrote is in {written}" if written else "there is no output"


def _wait(options: argparse.Namespace, context: CommandContext) -> int:
    state = _state(options.run_id, context)
    return follow(context, state.created.run_id, as_json=options.json, timeout_sec=options.timeout)


def _stop(options: argparse.Namespace, context: CommandContext) -> int:
    state = _state(options.run_id, context)
    if state.finished is not None:
        context.note(f"run {state.created.short_id} has ended: there is nothing to stop")
    else:
        connection = open_database(context.home)
        try:
            request_stop(connection, state, by="bullswarm runs stop", now=utc_now())
        finally:
            connection.close()
        # With the kernel gone nobody would carry the stop out: `follow` starts one that does.
    return 0 if follow(context, state.created.run_id, as_json=options.json) in (0, 1) else 1


def _resume(options: argparse.Namespace, context: CommandContext) -> int:
    state = _state(options.run_id, context)
    if state.finished is not None:
        context.note(f"run {state.created.short_id} has ended: there is nothing to resume")
    elif kernel_state(context.home, state, now=utc_now()) is not KernelState.GONE:
        context.note(f"run {state.created.short_id} is driven by a living kernel: waiting for it")
    # `follow` starts a kernel where none is.
    return follow(context, state.created.run_id, as_json=options.json)


def _state(name: str, context: CommandContext) -> RunState:
    with _reading(context) as connection:
        if connection is None:
            raise UnknownNameError(f'unknown run "{name}": nothing has been run in {context.home.root}')
        journal = Journal(connection)
        caller = find_caller(context.environ).provider if name == LAST else None
        return journal.state(journal.find(name, caller=caller))


@contextmanager
def _reading(context: CommandContext) -> Iterator[sqlite3.Connection | None]:
    connection = open_database(context.home, readonly=True)
    try:
        yield connection
    finally:
        if connection is not None:
            connection.close()


def _document(context: CommandContext, state: RunState) -> dict[str, Any]:
    if state.finished is not None:
        return dict(state.finished.verdict)
    step = next(iter(state.steps.values()))
    label = Labels.load(context.home).shown(step.current.picked.pool) if step.current else None
    alive = kernel_state(context.home, state, now=utc_now()) is not KernelState.GONE
    return running_document(state, kernel_alive=alive, label=label)


def _row(context: CommandContext, journal: Journal, row: RunRow) -> dict[str, Any]:
    try:
        document = _document(context, journal.state(row.run_id))
        state = row.outcome or document["state"]
    except DAMAGE as error:
        document, state = damaged_document(row.run_id, error, folder=context.home.workflows_dir), DAMAGED
    pick = document.get("pick") or {}
    return {
        "runId": row.run_id,
        "shortId": row.short_id,
        "createdAt": iso(row.created_at),
        "finishedAt": iso(row.finished_at) if row.finished_at else None,
        "state": state,
        "ok": document.get("ok"),
        "why": document.get("why"),
        "failureKind": document.get("failureKind"),
        "pool": pick.get("pool"),
        "poolLabel": pick.get("poolLabel"),
        "lane": pick.get("lane"),
        "cwd": row.cwd,
        "goal": row.goal,
        "caller": row.caller,
    }


def damaged_document(run_id: str, error: Exception, *, folder: Path) -> dict[str, Any]:
    """Return what can be said of a run whose journal can't be read: why, and where its files are."""
    reason = (
        error.message if isinstance(error, StateError) else f"its journal is damaged: {type(error).__name__}: {error}"
    )
    return {"ok": None, "why": f"{reason} · what it wrote is in {folder / run_id}"}


def _row_line(row: dict[str, Any]) -> str:
    age = duration((utc_now() - datetime.fromisoformat(row["createdAt"])).total_seconds() / 60)
    pool = row["poolLabel"] or "-"
    most = None if row["state"] == DAMAGED else _WHY_LENGTH
    why = "" if row["ok"] else f" · {one_line(str(row['why']))[:most]}"
    return f"{row['shortId']}  {row['state']:<11} {age:>6} ago  [{one_line(pool)}] {one_line(row['goal'])[:60]}{why}"


def _view_only(context: CommandContext) -> list[str]:
    """Name the entries of the workflows folder that are not ours (another program keeps its runs there, too)."""
    folder = context.home.workflows_dir
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not (entry / MARKER).exists())


def _lines_of(path: str, start: int) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            file.seek(start)
            yield from file
    except OSError as error:
        raise _unreadable(path, error) from error


def _read(path: str, start: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(_RESULT_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: OSError) -> UsageError:
    return UsageError(f"cannot read the output {path}: {error.strerror}", hint="it may have been moved or deleted")


def _whole_characters(data: bytes, *, last: bool) -> tuple[str, int]:
    """Decode a page and say how many bytes it took; a character that goes on behind the page is left to the next."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, final=last)
    return text, len(data) - (0 if last else len(decoder.getstate()[0]))


def _whole_number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of 0 or more')
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="bullswarm runs", description="What was started.")
    verbs = parser.add_subparsers(required=True, metavar="OPERATION")
    operations = (
        ("list", _list, "the newest runs, a line each"),
        ("show", _show, "one run: its verdict, or how far it is"),
        ("result", _result, "the output of a finished run"),
        ("wait", _wait, "wait for a run's verdict"),
        ("stop", _stop, "stop the work of a run and everything that it started"),
        ("resume", _resume, "go on with a run whose kernel is gone"),
    )
    for name, operation, text in operations:
        verb = verbs.add_parser(name, help=text, description=text)
        verb.set_defaults(operation=operation)
        verb.add_argument("--json", action="store_true", help="print one JSON document")
        if name == "list":
            verb.add_argument("--limit", type=_whole_number, default=_DEFAULT_ROWS, metavar="N", help="at most N runs")
            continue
        verb.add_argument("run_id", metavar="RUN", help="a run id, its short id, the start of one, or `last`")
        if name == "result":
            verb.add_argument("--cursor", type=_whole_number, default=0, metavar="BYTE", help="where to read on from")
        if name == "wait":
            verb.add_argument(
                "--timeout", type=seconds, metavar="SEC", help="wait no longer than this; exit 2 when it still runs"
            )
    return parser
