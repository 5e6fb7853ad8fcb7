"""What the task of another attempt says of an ended one: its outcome, output, answer, files and checks, line by line. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from bullswarm_core.prompts.quoting import last_lines, marked, path, quoted, short
from bullswarm_core.runs.attempt_result import CheckResult, JudgementRecord, Problem
from bullswarm_core.runs.state import AttemptState, StepState
from bullswarm_core.wire import compact

# A task stays readable with this much of each earlier answer, and its file is named.
MOST_ANSWER_CHARS = 4_000
MOST_FILES = 20
MOST_WHY = 500
_MOST_NAME = 200


def outcome_line(step: StepState, attempt: AttemptState) -> str:
    """Say what came of an attempt of a step."""
    finished = attempt.finished
    if finished is None:
        return "- Status: it has no end on record"
    if finished.ok:
        return "- Status: succeeded"
    failure = f"failed ({finished.failure_kind or 'failed'})"
    accepted = step.accepted is not None and attempt is step.standing
    return f"- Status: {failure}, and accepted as it is by the caller's choice" if accepted else f"- Status: {failure}"


def output_line(attempt: AttemptState, *, word: str = "Output") -> str:
    """Name the file of an attempt's final reply."""
    finished = attempt.finished
    if finished is None or not finished.output_file:
        return f"- {word}: none"
    size = finished.meta.out_bytes
    return f"- {word}: {path(finished.output_file)}" + (f" ({size} bytes)" if size is not None else "")


def answer_lines(judgement: JudgementRecord, *, most: int) -> list[str]:
    """Show a valid typed answer, at most ``most`` characters of it; nothing where there is none."""
    value, check = judgement.answer, judgement.answer_check
    if value is None and not (check and check.ok):
        return []
    place = f" (the whole of it: {path(check.file)})" if check and check.file is not None else ""
    return [f"- Answer{place}:", *quoted(compact(value), most=max(0, min(most, MOST_ANSWER_CHARS)))]


def file_lines(
    judgement: JudgementRecord, *, cwd: str, word: str = "Files changed", within: Iterable[str] | None = None
) -> list[str]:
    """List changed files by absolute path, 20 at most; ``within`` are the only ones to be named, the rest are counted."""
    named = judgement.changed_files
    total = max(judgement.changed_file_count or 0, len(named))
    if not total:
        return []
    inside = named if within is None else [name for name in named if name in set(within)]
    shown = [f"  - {path(os.path.join(cwd, name))}" for name in inside[:MOST_FILES]]  # noqa: PTH118 - a name, not a file
    more = (total if within is None else len(inside)) - len(shown)
    lines = [f"- {word} ({more + len(shown)}):", *shown, *([f"  - and {more} more"] if more else [])]
    elsewhere = total - len(inside) if within is not None else 0
    return [*lines, f"  - and {elsewhere} outside of the files that this step declares"] if elsewhere else lines


def evidence_lines(results: Iterable[CheckResult] | None, *, tail: int) -> list[str]:
    """Show what came of each check, with up to ``tail`` lines of its output or of its errors, 200 characters each."""
    lines: list[str] = []
    for item in results or ():
        why = f": {short(item.why, MOST_WHY)}" if item.why else ""
        lines.append(f"- Evidence: {short(item.name, _MOST_NAME)} → {item.status}{why}")
        if item.status != "passed":
            lines += _output_of(item, tail)
    return lines


def problem_lines(problems: Sequence[Problem], *, most: int) -> list[str]:
    """Show what is wrong with an answer, or with data that was checked against a schema; each problem in one line."""
    return marked(problem.line for problem in problems[:most])


def why_line(attempt: AttemptState) -> str:
    """Say in one line why an attempt failed."""
    return short(attempt.finished.why, MOST_WHY) if attempt.finished else ""


def _output_of(item: CheckResult, tail: int) -> list[str]:
    return problem_lines(item.errors, most=tail) or last_lines(item.tail, lines=tail)
