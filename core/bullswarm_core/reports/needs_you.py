"""What a step that came back needs from the person: why, what was tried, who waits for it, and the ways on. Pure.

The document is what JSON readers get; the lines are what people read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bullswarm_core.fast.text import clipped, minutes_and_seconds, one_line
from bullswarm_core.reports import commands
from bullswarm_core.reports.handback import failure_of, left_pools
from bullswarm_core.runs.attempt_result import CheckResult, JudgementRecord
from bullswarm_core.runs.retry import GATE_KINDS, may_have_acted
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import AttemptState, RunState, StepState
from bullswarm_core.runs.status import STUCK, statuses
from bullswarm_core.wire import iso

Document = dict[str, Any]

MOST_NAMES = 5
_MOST_EVIDENCE = 2
_MOST_WHY = 160
# As wide as the longest name of an option, with two cells of air.
_OPTION_WIDTH = 17
_HEAD_WIDTH = 10
_LABELS = {
    "quota": "usage limit",
    "throttle": "rate limited",
    "auth": "not signed in",
    "failed-evidence": "evidence failed",
    "not-produced": "deliverable missing",
    "schema": "answer does not match its schema",
    "semantic": "not done",
    "model-not-in-plan": "model not in plan",
    "ownership-conflict": "another writer in the tree",
}
_OPTION_NAMES = {
    "rerun": "rerun elsewhere",
    "retry": "retry here",
    "wait": "wait for it",
    "add": "add steps",
    "takeOver": "take over",
    "accept": "accept anyway",
}


def needs_you(state: RunState, step: StepState, *, folder: RunFolder) -> Document:
    """Return all that a person needs to decide what becomes of a step that failed for good; pools by id."""
    kind, why = failure_of(step)
    # Once for all names: the walk goes through the whole program.
    behind = _behind(state, step.id, statuses(state))
    finished = step.current.finished if step.current else None
    judgement = finished.judgement if finished is not None else JudgementRecord()
    back_at = _back_at(step, judgement)
    return {
        "step": step.id,
        "label": _LABELS.get(kind or "", kind or "failed"),
        "failureKind": kind,
        "retries": sum(attempt.picked.retry_how in ("same-pool", "another-pool") for attempt in step.counted),
        "notRetried": _not_retried(state, step),
        "backOffs": sum(attempt.picked.retry_how == "back-off" for attempt in step.counted),
        "evidence": [_evidence(item) for item in judgement.evidence_results or () if item.status == "failed"],
        "evidenceNotRun": _evidence_not_run(state, step, judgement),
        "why": why,
        "attempts": [_attempt(attempt) for attempt in step.counted],
        "stillRunning": [other.id for other in state.steps.values() if other.running is not None],
        "waitingOnThis": [name for name in state.plan.order if name in behind],
        "backAt": back_at,
        "options": _options(state, step, folder=folder, back_at=back_at),
    }


def head_line(document: Mapping[str, Any]) -> str:
    """Return the first line of the block: which step, what failed, and what was tried by itself."""
    return f"✗ {document['step']} needs you · {document['label']}{_tried(document)}"


def detail_lines(document: Mapping[str, Any]) -> list[str]:
    """Return what stands below the first line; the ways on come after it (``option_lines``). Pools by id."""
    evidence = document["evidence"][:_MOST_EVIDENCE]
    lines: list[str] = []
    for item in evidence:
        lines.append(f"  {'evidence':<{_HEAD_WIDTH}}{item['check']} → {item['why']}")
        lines += [f"  {'':<{_HEAD_WIDTH}}{item['tail']}"] if item["tail"] else []
    if not evidence:
        not_run = " · evidence not run" if document["evidenceNotRun"] else ""
        lines.append(f"  {'why':<{_HEAD_WIDTH}}{clipped(one_line(str(document['why'])), _MOST_WHY)}{not_run}")
    if document["backAt"]:
        lines.append(f"  {'back at':<{_HEAD_WIDTH}}{document['backAt']}")
    lines += [_try_line(number, attempt) for number, attempt in enumerate(document["attempts"], 1)]
    others = [
        f"{word}: {_names(document[key])}"
        for word, key in (("still running", "stillRunning"), ("waiting on this", "waitingOnThis"))
        if document[key]
    ]
    return [*lines, f"  {' · '.join(others)}"] if others else lines


def option_lines(document: Mapping[str, Any]) -> list[str]:
    """Return the ways on, each as a command that runs as printed."""
    shown = []
    for name, value in document["options"].items():
        if name == "wait":
            value = f"after {value['at']}: {value['command']}"
        elif name == "takeOver":
            value = f"output: {value['output']}" + (f" · diff: {value['diff']}" if value["diff"] else "")
        shown.append(f"    {_OPTION_NAMES[name]:<{_OPTION_WIDTH}}{value}")
    return ["  your call:", *shown]


def _tried(document: Mapping[str, Any]) -> str:
    if document["backOffs"]:
        return f" · backed off {'once' if document['backOffs'] == 1 else 'twice'}"
    retries = document["retries"]
    if retries:
        return f" after {retries} {'retry' if retries == 1 else 'retries'}"
    return f" · not retried{document['notRetried']}"


def _not_retried(state: RunState, step: StepState) -> str:
    acted = step.current is not None and may_have_acted(state.program.step(step.id), step.current)
    return ": act step (it may have acted)" if acted else ""


def _evidence(item: CheckResult) -> Document:
    last = next((line for line in reversed(item.tail.splitlines()) if line.strip()), "")
    return {
        "check": clipped(one_line(item.name), _MOST_WHY),
        "why": clipped(one_line(str(item.why or item.status)), _MOST_WHY),
        "exit": item.exit,
        "tail": clipped(one_line(last), _MOST_WHY),
        "log": item.log,
    }


def _evidence_not_run(state: RunState, step: StepState, judgement: JudgementRecord) -> bool:
    return bool(state.program.step(step.id).evidence) and not judgement.evidence_results


def _back_at(step: StepState, judgement: JudgementRecord) -> str | None:
    back_at = step.unplaced.back_at if step.unplaced is not None else judgement.back_at
    return iso(back_at) if back_at else None


def _attempt(attempt: AttemptState) -> Document:
    picked, finished = attempt.picked, attempt.finished
    judgement = finished.judgement if finished else JudgementRecord()
    count = judgement.changed_file_count
    gate = finished is not None and finished.failure_kind in GATE_KINDS
    return {
        "id": f"{picked.step}-{picked.ordinal}",
        "pool": picked.pool,
        "model": picked.model,
        "durationSec": _seconds(attempt),
        "files": len(judgement.changed_files) if count is None else count,
        "why": finished.why if finished else None,
        "failureKind": finished.failure_kind if finished else None,
        "gate": gate,
        "retryOf": {"how": picked.retry_how} if picked.retry_how else None,
        "handoff": picked.retry_how in ("same-pool", "another-pool"),
    }


def _seconds(attempt: AttemptState) -> float | None:
    if attempt.finished is not None and attempt.finished.meta.wall_sec is not None:
        return float(attempt.finished.meta.wall_sec)
    if attempt.launched_at is None or attempt.finished_at is None:
        return None
    return (attempt.finished_at - attempt.launched_at).total_seconds()


def _try_line(number: int, attempt: Mapping[str, Any]) -> str:
    how = str((attempt["retryOf"] or {}).get("how"))
    model = clipped(one_line(attempt["model"]), 40) if attempt["model"] else None
    parts = {
        "same-pool": ["same pool, failure attached", model],
        "back-off": ["same pool", model, "after a rate-limit backoff"],
        "another-pool": [attempt["pool"], model, "handoff attached"],
    }.get(how, [attempt["pool"], model])
    spent = minutes_and_seconds(attempt["durationSec"]) if attempt["durationSec"] is not None else None
    files = attempt["files"]
    parts += [spent, f"{files} file{'' if files == 1 else 's'}"]
    return f"  {f'try {number}':<{_HEAD_WIDTH}}{' · '.join(part for part in parts if part)}"


def _names(names: list[str]) -> str:
    shown = ", ".join(names[:MOST_NAMES])
    return f"{shown} and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else shown


def _behind(state: RunState, name: str, known: Mapping[str, str]) -> set[str]:
    return {other for other in state.plan.behind([name]) if known[other] in STUCK or known[other] == "pending"}


def _options(state: RunState, step: StepState, *, folder: RunFolder, back_at: str | None) -> Document:
    run, left = state.created.short_id, left_pools(step)
    found: Document = {}
    if left:
        found["rerun"] = commands.rerun(run, step.id, avoid=left)
    else:
        found["retry"] = commands.rerun(run, step.id)
    if back_at:
        found["wait"] = {"at": back_at, "command": commands.rerun(run, step.id)}
    found["add"] = commands.add(run)
    output = step.current.finished.output_file if step.current and step.current.finished else None
    if output and step.current:
        diff = folder.attempt(step.id, step.current.picked.ordinal).diff
        has_diff = bool(step.current.finished and step.current.finished.judgement.diff_file)
        found["takeOver"] = {"output": output, "diff": str(diff) if has_diff else None}
    found["accept"] = commands.accept(run, step.id)
    return found
