"""What a step's task says of other steps: the results that it builds on, and the round before of its loop. Pure.

Steps of ``blindTo`` are left out altogether: their status is no less telling than their answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from bullswarm_core.program.model import Program, Step
from bullswarm_core.prompts.attempt_summary import (
    MOST_WHY,
    answer_lines,
    evidence_lines,
    file_lines,
    outcome_line,
    output_line,
    why_line,
)
from bullswarm_core.prompts.quoting import marked, short
from bullswarm_core.runs.attempt_result import JudgementRecord
from bullswarm_core.runs.state import AttemptState, RunState

# Many steps may stand before one: beyond this, answers are named by their file alone.
MOST_CHARS_OF_ANSWERS = 60_000
# Each of them takes a few lines; what is beyond stands in files all the same.
MOST_STEPS = 100
_EVIDENCE_LINES = 20
_MOST_LABEL = 200


def steps_before(program: Program, step: Step) -> tuple[str, ...]:
    """Return the steps whose results the step is handed: those of dependsOn, a gate or loop standing for what it waits for.

    In the order of the program, without those of ``blindTo``.
    """
    gates = {gate.id: gate.depends_on for gate in program.gates}
    inner = gates | {loop.id: loop.steps for loop in program.loops}
    found: set[str] = set()
    waiting = list(step.depends_on)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += inner.get(name, ())
    return tuple(other.id for other in program.steps if other.id in found and other.id not in step.blind_to)


def earlier_results(state: RunState, step: Step, *, cwd: str) -> list[str]:
    """Return the block with the results of the steps before; nothing without any."""
    names = steps_before(state.program, step)
    lines, left = _loop_notes(state, step), MOST_CHARS_OF_ANSWERS
    for name in names[:MOST_STEPS]:
        attempt = state.steps[name].standing
        if attempt is None:
            continue
        shown = _result(state, name, attempt, cwd=cwd, left=left)
        left -= sum(len(line) for line in shown if line.startswith(">"))
        lines += shown
    if len(names) > MOST_STEPS:
        lines.append(f"({len(names) - MOST_STEPS} more steps before this one are left out here)")
    return ["## Results of earlier steps", "", *lines] if lines else []


def previous_round(state: RunState, step: Step) -> list[str]:
    """Return the block on the round before, from round 2 of the step's loop on."""
    if step.loop is None or state.loops[step.loop].round < 2:
        return []
    loop, left = state.loops[step.loop], MOST_CHARS_OF_ANSWERS
    lines = [f"## Previous round (loop {loop.id}, now round {loop.round} of {loop.max_rounds})", ""]
    for name in state.program.loop(loop.id).steps:
        attempt = state.steps[name].before_this_round
        if attempt is None or name in step.blind_to:
            continue
        shown = _previous(state, name, attempt, left=left)
        left -= sum(len(line) for line in shown if line.startswith(">"))
        lines += shown
    return lines


def _result(state: RunState, name: str, attempt: AttemptState, *, cwd: str, left: int) -> list[str]:
    judgement = attempt.finished.judgement if attempt.finished else JudgementRecord()
    return [
        _title(state, name),
        outcome_line(state.steps[name], attempt),
        output_line(attempt),
        *answer_lines(judgement, most=left),
        *file_lines(judgement, cwd=cwd),
        "",
    ]


def _previous(state: RunState, name: str, attempt: AttemptState, *, left: int) -> list[str]:
    finished = attempt.finished
    judgement = finished.judgement if finished else JudgementRecord()
    failed = finished is not None and not finished.ok
    return [
        _title(state, name),
        outcome_line(state.steps[name], attempt),
        *(["- Why:", *marked([why_line(attempt)], longest=MOST_WHY)] if failed else []),
        *answer_lines(judgement, most=left),
        *evidence_lines(judgement.evidence_results, tail=_EVIDENCE_LINES),
        output_line(attempt),
        "",
    ]


def _title(state: RunState, name: str) -> str:
    label = state.program.step(name).label
    return f"### {name}" if label == name else f"### {name} · {short(label, _MOST_LABEL)}"


def _loop_notes(state: RunState, step: Step) -> list[str]:
    """Say which loops before the step were left with their condition unmet; nothing where that tells of a blind step."""
    unmet = [
        loop
        for loop in state.program.loops
        if loop.id in step.depends_on
        and state.loops[loop.id].outcome == "continued-unmet"
        and loop.until.step not in step.blind_to
    ]
    return [*(_unmet(loop.id, state.loops[loop.id].round) for loop in unmet), *([""] if unmet else [])]


def _unmet(name: str, rounds: int) -> str:
    return f"Loop {name} ended after {rounds} round{'s' * (rounds > 1)} with its condition not met; the run went on by choice."


def blind_note(step: Step, *, folder: str) -> Sequence[str]:
    """Keep a worker that is blind to some steps from finding their results by itself: they lie in the same folder."""
    if not step.blind_to:
        return []
    return [
        f"Some results are withheld from you on purpose, so that you judge for yourself. Read no other file in {folder} than"
        " those that this task names."
    ]
