"""`bullswarm runs show|result`: they only read; they write nothing and start nothing."""

from __future__ import annotations

import argparse
import codecs
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.errors import UnknownNameError, UsageError
from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports import commands
from bullswarm_core.reports.summary import summary_line, summary_of
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.status import statuses
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.displays.terminal import terminal_of
from bullswarm_server.displays.text import Style, plain
from bullswarm_server.displays.verdict import verdict_lines
from bullswarm_server.displays.workflow import result_lines
from bullswarm_server.ops.runs import RESULT_VERSION, document_of, find_run, is_good

_RESULT_BYTES = 64 * 1024


def show_run(options: argparse.Namespace, context: CommandContext) -> int:
    """Print one run: its verdict or result, or how far it is; exit 1 for one that failed."""
    state = state_named(options.run_id, context)
    if options.graph:
        return _show_graph(options, context, state)
    document = print_run(context, state, as_json=options.json)
    return 1 if is_good(document) is False else 0


def _show_graph(options: argparse.Namespace, context: CommandContext, state: RunState) -> int:
    """Draw the program with how each node stands; exit code as `show` without it."""
    from bullswarm_server.displays.workflow_graph import graph_lines

    if options.json:
        raise UsageError("--graph is a picture", hint="runs show --json holds every step with what it waits for")
    terminal = terminal_of(context.out, context.environ, colour=context.colour)
    context.print(*graph_lines(state, statuses(state), terminal=terminal, labels=Labels.load(context.home)))
    return 1 if is_good(document_of(context.home, state)) is False else 0


def print_run(context: CommandContext, state: RunState, *, as_json: bool) -> dict[str, Any]:
    """Print what can be said of a run now, and return it."""
    document, style = document_of(context.home, state), Style(colour=context.colour)
    if as_json:
        context.print_json(document)
    elif state.is_single:
        labels = Labels.load(context.home)
        context.print(*verdict_lines(_with_label(document, labels), style=style, labels=labels))
    else:
        context.print(*result_lines(document, style=style, labels=Labels.load(context.home)))
    return document


def _with_label(verdict: dict[str, Any], labels: Labels) -> dict[str, Any]:
    """Name the pool of a verdict as people see it now: a label may have come, or gone, since it was written."""
    pick = verdict.get("pick")
    if not isinstance(pick, Mapping) or not isinstance(pick.get("pool"), str):
        return verdict
    return {**verdict, "pick": {**pick, "poolLabel": labels.of(pick["pool"])}}


def print_result(options: argparse.Namespace, context: CommandContext) -> int:
    """Print what a run came to: a worker's output, or the result of a workflow."""
    state = state_named(options.run_id, context)
    if not state.is_single and options.step is None:
        return _workflow_result(options, context, state)
    if options.summary:
        raise UsageError("--summary is for workflows", hint=f"bullswarm runs show {state.created.short_id} --json")
    verdict = _verdict_of(state, options.step)
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
            **({} if options.step is None else {"step": options.step}),
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


def _workflow_result(options: argparse.Namespace, context: CommandContext, state: RunState) -> int:
    if options.cursor:
        raise UsageError("--cursor reads one output", hint="name the step that it is of with --step")
    if state.finished is None and state.parked is None:
        raise _no_result_yet(state)
    if options.summary:
        folder = RunFolder.of(context.home, state.created.run_id)
        document = document_of(context.home, state)
        context.print(summary_line(summary_of(document, folder=folder)))
    else:
        document = print_run(context, state, as_json=options.json)
    return 0 if is_good(document) else 1


def _verdict_of(state: RunState, step_id: str | None) -> Mapping[str, Any]:
    """Return the verdict of a single run, or what is alike of a workflow's step. Raises UsageError while there is none."""
    short = state.created.short_id
    if step_id is None:
        if state.finished is None:
            raise _no_result_yet(state)
        verdict: Mapping[str, Any] = state.finished.verdict
        return verdict
    step = state.steps.get(step_id)
    if step is None:
        raise UnknownNameError(f'"{step_id}" is no step of run {short}', hint=f"steps: {', '.join(state.steps)}")
    finished = step.attempts[-1].finished if step.attempts else None
    if finished is None:
        raise UsageError(f"step {step_id} has no output yet", hint=commands.wait(f"{short} {step_id}"))
    return {
        **finished.judgement.document,
        "ok": finished.ok,
        "outFile": finished.output_file,
        "meta": finished.meta.document,
    }


def _no_result_yet(state: RunState) -> UsageError:
    short = state.created.short_id
    return UsageError(f"run {short} has no result yet", hint=f"bullswarm runs wait {short}")


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


def state_named(name: str, context: CommandContext) -> RunState:
    """Fold the run of an id, a short id, the start of one, or ``last``. Raises UnknownNameError."""
    return find_run(context.ops, name)


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
