"""Step: what its worker does and did, its output, its checks, and its task. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from bullswarm_core.fast.text import minutes_and_seconds
from bullswarm_core.reports.handback import failure_of, proof_of
from bullswarm_core.reports.needs_you import detail_lines, head_line, needs_you, option_lines
from bullswarm_core.runs.attempt_result import CheckResult, JudgementRecord
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import AttemptState, StepState
from bullswarm_server.dashboard.follow import RunView, StepTexts
from bullswarm_server.dashboard.ink import safe
from bullswarm_server.dashboard.rows import Row, RowTable, heading, text_rows
from bullswarm_server.dashboard.view_run import life_words
from bullswarm_server.displays.moments import local_moment
from bullswarm_server.displays.terminal import Terminal
from bullswarm_server.displays.text import duration, one_line, plain
from bullswarm_server.displays.workflow_graph import words_of

Part = Literal["activity", "output", "evidence", "task"]
PARTS: tuple[Part, ...] = ("activity", "output", "evidence", "task")
_SHOWN_ATTEMPTS = 20


def step_head(view: RunView, name: str, terminal: Terminal) -> list[str]:
    """Return two lines: what the step is and how it stands; where it ran or why it failed."""
    state, status = view.state, view.known[name]
    words = "" if state.is_single else f"{words_of(state, name, status, labels=view.labels)} · "
    first = heading(f"{words}{state.created.short_id} · {one_line(state.created.goal)}", terminal).line
    step = state.steps.get(name)
    second = f"run {state.created.short_id} is {view.status}" if step is None else _standing(view, step)
    return [first, terminal.clipped(second, terminal.width)]


def _standing(view: RunView, step: StepState) -> str:
    attempt = step.running or step.current
    if attempt is None:
        kind, why = failure_of(step)
        said = [kind or "", view.labels.in_text(one_line(why))]
        return " · ".join([f"{view.known[step.id]}, no attempt yet", *(word for word in said if word)])
    parts = [f"attempt {attempt.picked.ordinal} on {one_line(view.labels.shown(attempt.picked.pool))}"]
    parts += [f"model {one_line(attempt.picked.model)}"] if attempt.picked.model else []
    if attempt.running:
        spent = (view.now - (attempt.launched_at or attempt.picked_at)).total_seconds()
        expected = attempt.picked.expected_minutes
        parts += [minutes_and_seconds(spent) + (f" of {duration(expected)}" if expected else "")]
        return " · ".join([*parts, life_words(view.lives.get(step.id), view.now)])
    kind, why = failure_of(step)
    proof = proof_of(view.state, step)
    parts += [kind] if kind else []
    parts += [view.labels.in_text(one_line(why))] if why else []
    return " · ".join([*parts, *([proof] if proof else [])])


def _without_attempt(view: RunView, step: StepState, terminal: Terminal) -> list[Row]:
    """Say that nothing ran; the head, which is cut at the terminal's width, and a block of advice are no place for why."""
    _, why = failure_of(step)
    told = text_rows([view.labels.in_text(safe(why))], terminal) if why and view.state.is_single else []
    return [Row(terminal.style.faint("no attempt yet")), *told]


def step_rows(
    view: RunView, name: str, part: Part, texts: StepTexts, terminal: Terminal, *, folder: RunFolder
) -> RowTable:
    """Return one part of the page, below its head."""
    step = view.state.steps.get(name)
    if step is None:
        return RowTable(text_rows(_node_lines(view, name), terminal))
    if part == "activity":
        return RowTable(_activity(view, step, texts, terminal, folder))
    if part == "output":
        return RowTable(_output(view, step, texts, terminal))
    if part == "evidence":
        return RowTable(_evidence(view, step, texts, terminal))
    if texts.task is None:
        return RowTable([Row(terminal.style.faint(line)) for line in _prompt_head()] + _prompt(view, name, terminal))
    return RowTable(text_rows(_text_lines(texts.task), terminal))


def _node_lines(view: RunView, name: str) -> list[str]:
    """Say of a gate or a loop what it waits for, and how a person goes on from it."""
    status = view.known[name]
    lines = [words_of(view.state, name, status, labels=view.labels)]
    waits = view.state.plan.waits[name]
    for other in waits:
        read = (
            f" · bullswarm runs result {view.state.created.short_id} --step {other}"
            if other in view.state.steps
            else ""
        )
        lines.append(f"behind {other}, {view.known[other]}{read}")
    return [*lines, *(["c continues it"] if status == "waiting" else [])]


def _activity(view: RunView, step: StepState, texts: StepTexts, terminal: Terminal, folder: RunFolder) -> list[Row]:
    rows: list[Row] = []
    if view.known[step.id] == "failed" and not view.state.is_single:
        document = needs_you(view.state, step, folder=folder)
        block = [head_line(document), *detail_lines(document), *option_lines(document)]
        said = [view.labels.in_text(safe(line)) for line in block]
        rows += [Row(terminal.style.warn(row.line)) for row in text_rows(said[:1], terminal)]
        rows += [*text_rows(said[1:], terminal), Row("")]
    rows += [heading("Attempts, newest first", terminal)] if step.attempts else _without_attempt(view, step, terminal)
    for attempt in list(reversed(step.attempts))[:_SHOWN_ATTEMPTS]:
        rows += text_rows(_attempt_lines(view, step, attempt), terminal)
    if texts.calls:
        rows += [Row(""), heading("What its worker called, newest first", terminal)]
        rows += [Row(terminal.clipped(f"  {safe(call)}", terminal.width)) for call in reversed(texts.calls)]
    return rows


def _attempt_lines(view: RunView, step: StepState, attempt: AttemptState) -> list[str]:
    picked, finished = attempt.picked, attempt.finished
    superseded = "" if picked.generation == step.generation else " (superseded)"
    began = local_moment(attempt.launched_at or attempt.picked_at, view.now)
    rung = [one_line(part) for part in (picked.model, picked.reasoning) if part]
    head = [f"{picked.ordinal}. {one_line(view.labels.shown(picked.pool))}{superseded}", *rung]
    lines = [" · ".join([*head, f"{picked.lane}/{picked.effort}", f"began {began}", _came_to(attempt)])]
    lines.append(f"   picked: {view.labels.in_text(one_line(picked.reason))}")
    if finished is not None and finished.why:
        lines.append(f"   {view.labels.in_text(one_line(finished.why))}")
    return lines


def _came_to(attempt: AttemptState) -> str:
    finished = attempt.finished
    if finished is None:
        return "running"
    seconds = finished.meta.wall_sec
    took = "" if seconds is None else f" after {minutes_and_seconds(seconds)}"
    return ("succeeded" if finished.ok else str(finished.failure_kind or "failed")) + took


def _output(view: RunView, step: StepState, texts: StepTexts, terminal: Terminal) -> list[Row]:
    if texts.output is None:
        said = "no output yet" if step.running or not step.attempts else "there is no output"
        return [Row(terminal.style.faint(said))]
    run = view.state.created.short_id
    whole = f"bullswarm runs result {run}" + ("" if view.state.is_single else f" --step {step.id}")
    head = [f"{texts.cut} bytes before this: {whole}"] if texts.cut else []
    rows = [Row(terminal.style.faint(row.line)) for row in text_rows([safe(texts.output_from), *head], terminal)]
    return [*rows, Row(""), *text_rows(_text_lines(texts.output), terminal)]


def _text_lines(text: str) -> list[str]:
    """Return a worker's text line by line, with nothing in it that a terminal would obey."""
    return [safe(line) for line in plain(text).split("\n")]


def _evidence(view: RunView, step: StepState, texts: StepTexts, terminal: Terminal) -> list[Row]:
    finished = step.current.finished if step.current else None
    judgement = finished.judgement if finished else JudgementRecord()
    lines: list[str] = []
    if step.accepted is not None:
        lines += [f"accepted by {one_line(step.accepted.by or 'somebody')}: {one_line(step.accepted.reason)}", ""]
    proof = proof_of(view.state, step)
    lines += [f"proof: {proof}", ""] if proof else []
    for item in judgement.evidence_results or ():
        lines += _check(item, texts)
    lines += _answer(judgement)
    lines += _named("changed files", judgement.changed_files)
    lines += _named("blockers outside the task", judgement.outside_blockers)
    planned = view.state.program.step(step.id)
    if not judgement.evidence_results:
        checks = len(planned.evidence)
        lines += [f"{checks} checks of its program have not run"] if checks else ["its program names no check"]
    lines += [f"deliverable: {planned.deliverable.type}"]
    return text_rows([view.labels.in_text(safe(line)) for line in lines], terminal)


def _check(item: CheckResult, texts: StepTexts) -> list[str]:
    lines = [f"{item.status}: {one_line(item.name)}"]
    lines += [f"  {one_line(item.why)}"] if item.why else []
    log = item.log
    lines += [f"  last line: {texts.logs[log]}"] if log and texts.logs.get(log) else []
    return [*lines, *([f"  log: {log}"] if log else []), ""]


def _answer(judgement: JudgementRecord) -> list[str]:
    check = judgement.answer_check
    if check is None:
        return []
    word = "matches its schema" if check.ok else f"does not match: {one_line(check.why or '')}"
    shown = json.dumps(judgement.answer, ensure_ascii=False, indent=2).splitlines()
    return [f"typed answer {word}", *(f"  {line}" for line in shown), ""]


def _named(title: str, names: Sequence[Any]) -> list[str]:
    return [f"{title}:", *(f"  {one_line(str(name))}" for name in names), ""] if names else []


def _prompt_head() -> list[str]:
    return ["not started yet; its program says:", ""]


def _prompt(view: RunView, name: str, terminal: Terminal) -> list[Row]:
    return text_rows(_text_lines(view.state.program.step(name).prompt), terminal)
