"""A watched run in lines: where a watch begins, what happens, and how the run ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.watch import WATCH_VERSION, Notice
from bullswarm_core.reports.workflow_result import OUTCOMES
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.status import OVER, NodeStatus
from bullswarm_core.wire import iso
from bullswarm_server.displays.options import your_call
from bullswarm_server.displays.text import Style, one_line

_PLAIN = Style(colour=False)
_GOOD, _BAD, _WARN = "✓", "✗", "⚠⧖◐↺"
_MOST_NAMED = 5


def attach_line(state: RunState, known: Mapping[str, NodeStatus]) -> str:
    """Say in one line which run is watched and how far it is."""
    running = [name for name in state.plan.order if known[name] == "running"]
    parts = [f"watching {state.created.short_id}", one_line(state.created.goal)[:80], progress(state, known)]
    parts += [f"running {', '.join(running[:_MOST_NAMED])}{_more(running)}"] if running else []
    return " · ".join(parts)


def progress(state: RunState, known: Mapping[str, NodeStatus]) -> str:
    """Say how many of the steps are done."""
    done = sum(known[step.id] in OVER for step in state.program.steps)
    return f"{done} of {len(state.program.steps)} steps done"


def attach_document(
    state: RunState, known: Mapping[str, NodeStatus], *, sequence: int, now: datetime
) -> dict[str, Any]:
    """Return the object with which a watch in JSON lines begins; events above ``sequence`` follow."""
    return {
        "schemaVersion": WATCH_VERSION,
        "sequence": sequence,
        "at": iso(now),
        "type": "attached",
        "runId": state.created.run_id,
        "shortId": state.created.short_id,
        "goal": state.created.goal,
        "line": attach_line(state, known),
        "statuses": dict(known),
    }


def notice_lines(
    notice: Notice, *, labels: Labels, style: Style = _PLAIN, with_options: bool = True, with_time: bool = False
) -> list[str]:
    """Return the lines of a notice for people: pools by their labels, the ways on as commands."""
    head = labels.in_text(notice.line)
    lines = [f"{iso(notice.at)} {_painted(head, style)}" if with_time else _painted(head, style)]
    lines += [labels.in_text(line) for line in notice.details]
    # A pool in a command is typed by its id or its label alike.
    return [*lines, *notice.options] if with_options else lines


def outcome_lines(result: Mapping[str, Any], *, labels: Labels, style: Style = _PLAIN) -> list[str]:
    """Return the block with which a watch ends: outcome, reason, proof, what is unfinished, and the ways on."""
    outcome = outcome_word(result)
    paint = style.good if outcome == "completed" else style.bad if outcome in OUTCOMES else style.warn
    lines = [f"outcome: {paint(outcome)}", f"reason: {labels.in_text(one_line(str(result.get('reason') or '')))}"]
    proof = Counter(str(step["proof"]) for step in result["steps"] if step.get("proof"))
    lines += [f"proof: {', '.join(f'{count} {label}' for label, count in proof.items())}"] if proof else []
    lines += [_unfinished(step, labels) for step in result["steps"] if step["status"] != "succeeded"]
    return [*lines, *your_call(result)]


def outcome_document(result: Mapping[str, Any], *, sequence: int, now: datetime) -> dict[str, Any]:
    """Return the last object of a watch in JSON lines, for a run that has ended or waits."""
    back = result.get("handback") or {}
    return {
        "schemaVersion": WATCH_VERSION,
        "sequence": sequence,
        "at": iso(now),
        "type": "outcome",
        "outcome": outcome_word(result),
        "reason": result.get("reason"),
        "unfinished": back.get("unfinished") or [],
        "options": back.get("options") or {},
    }


def outcome_word(result: Mapping[str, Any]) -> str:
    """Return completed | partial | cancelled | paused | waiting | interrupted, or running where it still runs."""
    status = str(result["status"])
    return {"kernel-gone": "interrupted", "stopping": "running"}.get(status, status)


def _unfinished(step: Mapping[str, Any], labels: Labels) -> str:
    parts = [f"step {step['id']} {step['status']}"]
    parts += [str(step["failureKind"])] if step.get("failureKind") else []
    if step["status"] in ("failed", "cancelled") and step.get("why"):
        parts.append(labels.in_text(one_line(str(step["why"])))[:160])
    return " · ".join(parts)


def _painted(line: str, style: Style) -> str:
    mark, rest = line[:1], line[1:]
    paint = style.good if mark == _GOOD else style.bad if mark == _BAD else style.warn if mark in _WARN else None
    return paint(mark) + rest if paint and mark else line


def _more(names: list[str]) -> str:
    return f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
