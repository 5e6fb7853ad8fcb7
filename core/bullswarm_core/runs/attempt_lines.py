"""What the task of another attempt says of an ended one: its outcome, output, answer, files and checks, line by line. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bullswarm_core.judging.answer_json import compact
from bullswarm_core.runs.quoting import last_lines, marked, path, quoted, short
from bullswarm_core.runs.state import AttemptState, StepState

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
    size = finished.meta.get("outBytes")
    return f"- {word}: {path(finished.output_file)}" + (f" ({size} bytes)" if isinstance(size, int) else "")


def answer_lines(judgement: Mapping[str, Any], *, most: int) -> list[str]:
    """Show a valid typed answer, at most ``most`` characters of it; nothing where there is none."""
    value, check = judgement.get("answer"), _mapping(judgement.get("answerCheck"))
    if value is None and not check.get("ok"):
        return []
    file = check.get("file")
    place = f" (the whole of it: {path(file)})" if isinstance(file, str) else ""
    return [f"- Answer{place}:", *quoted(compact(value), most=max(0, min(most, MOST_ANSWER_CHARS)))]


def file_lines(
    judgement: Mapping[str, Any], *, cwd: str, word: str = "Files changed", within: Iterable[str] | None = None
) -> list[str]:
    """List changed files by absolute path, 20 at most; ``within`` are the only ones to be named, the rest are counted."""
    named = [name for name in _list(judgement.get("changedFiles")) if isinstance(name, str)]
    total = judgement.get("changedFileCount")
    total = max(total, len(named)) if isinstance(total, int) else len(named)
    if not total:
        return []
    inside = named if within is None else [name for name in named if name in set(within)]
    shown = [f"  - {path(os.path.join(cwd, name))}" for name in inside[:MOST_FILES]]  # noqa: PTH118 - a name, not a file
    more = (total if within is None else len(inside)) - len(shown)
    lines = [f"- {word} ({more + len(shown)}):", *shown, *([f"  - and {more} more"] if more else [])]
    elsewhere = total - len(inside) if within is not None else 0
    return [*lines, f"  - and {elsewhere} outside of the files that this step declares"] if elsewhere else lines


def evidence_lines(results: object, *, tail: int) -> list[str]:
    """Show what came of each check, with up to ``tail`` lines of its output or of its errors, 200 characters each."""
    lines: list[str] = []
    for result in _list(results):
        item = _mapping(result)
        what = short(str(item.get("cmd") or f"schema of {item.get('file')}"), _MOST_NAME)
        why = item.get("why")
        lines.append(f"- Evidence: {what} → {item.get('status')}" + (f": {short(str(why), MOST_WHY)}" if why else ""))
        if item.get("status") != "passed":
            lines += _output_of(item, tail)
    return lines


def problem_lines(problems: object, *, most: int) -> list[str]:
    """Show what is wrong with an answer, or with data that was checked against a schema; each problem in one line."""
    return marked(_problem(problem) for problem in _list(problems)[:most])


def why_line(attempt: AttemptState) -> str:
    """Say in one line why an attempt failed."""
    return short(attempt.finished.why, MOST_WHY) if attempt.finished else ""


def _output_of(item: Mapping[str, Any], tail: int) -> list[str]:
    errors = problem_lines(item.get("errors"), most=tail)
    said = item.get("tail")
    text = "\n".join(map(str, said)) if isinstance(said, (list, tuple)) else str(said or "")
    return errors or last_lines(text, lines=tail)


def _problem(problem: object) -> str:
    if isinstance(problem, Mapping):
        words = problem.get("problem") or problem.get("message") or ""
        return f"{problem.get('path') or '#'}: {words}"
    return str(problem)


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
