"""A workflow as a tool's answer: how it stands, the steps that matter most, what needs the person, and what to call next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp_types import CallToolResult

from bullswarm_core.reports.handback import left_pools
from bullswarm_core.runs.state import RunState
from bullswarm_server.mcp.results import Document, answer, clipped, fence, fitted, path_text, without_empty

_WHY_LENGTH = 300
_ANSWER_BYTES = 600
# What the agent has to act on comes first, what is only waiting its turn last.
_ORDER = ("failed", "waiting", "running", "cancelled", "succeeded", "passed", "blocked", "pending")


def workflow_answer(
    document: Document, state: RunState, *, waited_sec: float | None = None, more: Mapping[str, Any] | None = None
) -> CallToolResult:
    """Answer with a workflow as it is now, as much of it as fits; `runs show` by step and the files have the rest."""
    name = document["shortId"]
    rows = [_row(step) for step in document["steps"]]
    rows.sort(key=lambda row: _ORDER.index(row["status"]))
    needs = [*_failures(name, state, rows), *_waiting(name, document)]
    following = _next(name, document, needs)

    def build(count: int) -> CallToolResult:
        shown = rows[:count]
        found = {
            "schemaVersion": document["schemaVersion"],
            "runId": document["runId"],
            "shortId": name,
            "state": document["status"],
            "ok": None if document["finishedAt"] is None else document["status"] == "completed",
            "why": clipped(document["reason"], 500),
            "goal": clipped(document["goal"], 200),
            "counts": _counts(rows),
            "steps": shown,
            "omittedSteps": len(rows) - len(shown) or None,
            "gates": [without_empty(gate) for gate in document["gates"]][:count],
            "loops": [without_empty(loop) for loop in document["loops"]][:count],
            "needsYou": needs[: max(count, 1)],
            "cwd": path_text(document["cwd"], 300),
            "effectiveWaitSec": waited_sec,
            "next": following,
            **(more or {}),
        }
        lines = [
            f"{str(document['status']).upper()} {name}: {clipped(document['reason'], 500)}",
            f"next: {following}",
            *(_line(row) for row in shown),
            *(f"needs you: {need['id']} · {json.dumps(need['options'], ensure_ascii=False)}" for need in needs[:count]),
        ]
        return answer(lines, {**without_empty(found), "ok": found["ok"]})

    return fitted(build, len(rows))


def _row(step: Mapping[str, Any]) -> Document:
    value = step.get("answer")
    text = None if value is None else json.dumps(value, ensure_ascii=False)
    row = {
        "id": step["id"],
        "status": step["status"],
        "poolLabel": step["poolLabel"],
        "attempts": step["attempts"] or None,
        "failureKind": step["failureKind"],
        "backAt": step["backAt"],
        "why": clipped(step["why"], _WHY_LENGTH) if step["why"] and step["status"] == "failed" else None,
        "accepted": step["accepted"],
        "evidence": [item.get("status") for item in step["evidenceResults"] or ()],
        # A typed answer is a worker's word all the same.
        "answer": fence(text) if text is not None and len(text.encode()) <= _ANSWER_BYTES else None,
        "outFile": path_text(step["outFile"], 300),
    }
    return without_empty(row)


def _line(row: Mapping[str, Any]) -> str:
    parts = [f"{row['id']}: {row['status']}", row.get("poolLabel") and f"[{row['poolLabel']}]", row.get("why")]
    parts += [f"answer {row['answer']}" if row.get("answer") else None, row.get("outFile")]
    return " · ".join(str(part) for part in parts if part)


def _counts(rows: list[Document]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    return counts


def _failures(name: str, state: RunState, rows: list[Document]) -> list[Document]:
    """Return what can be done about each step that came back to the caller."""
    found = []
    for row in rows:
        if row["status"] != "failed":
            continue
        # Elsewhere only where some pool was not tried; the commands for people say it by the same rule.
        tried = left_pools(state.steps[row["id"]])
        options = {"rerun": _call("rerun", name, row["id"])}
        if tried:
            options["rerunElsewhere"] = _call("rerun", name, row["id"], avoid=list(tried))
        options["accept"] = _call("accept", name, row["id"], reason="…")
        found.append(
            {"id": row["id"], "failureKind": row.get("failureKind"), "backAt": row.get("backAt"), "options": options}
        )
    return [without_empty(entry) for entry in found]


def _waiting(name: str, document: Mapping[str, Any]) -> list[Document]:
    loops = {loop["id"] for loop in document["loops"]}
    found: list[Document] = []
    for node in document.get("waitingFor") or ():
        options = {"continue": _call("continue", name, node)}
        if node in loops:
            options = {
                "moreRounds": _call("continue", name, node, rounds=1),
                "leaveUnmet": _call("continue", name, node),
            }
        found.append({"id": node, "options": options})
    return found


def _call(operation: str, name: str, node: str, **more: Any) -> str:
    arguments = json.dumps({"op": operation, "run_id": name, "node": node, **more}, ensure_ascii=False)
    return f"runs {arguments}"


def _next(name: str, document: Mapping[str, Any], needs: list[Document]) -> str:
    status = document["status"]
    if document["finishedAt"] is not None and not needs:
        return "read the outputs by their paths and check their claims"
    if status in ("running", "stopping", "kernel-gone"):
        again = " and starts its kernel again" if status == "kernel-gone" else ""
        return f'run {{"run_id":"{name}"}} waits on{again}; runs {{"op":"stop","run_id":"{name}"}} stops the work'
    if status == "paused":
        return f'runs {{"op":"resume","run_id":"{name}"}} goes on'
    return "ask the person where it is theirs to decide, then call one of needsYou's options"
