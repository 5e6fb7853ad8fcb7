"""The result of a workflow in one line of at most 4,096 bytes: ``bullswarm.workflow.result-summary.v1``.

A caller that pays for every byte reads this first. What does not fit goes in a fixed order: concerns, then the details of
steps, then the steps that went well, and last the length of the reason and the goal. The outcome, the ids, the counts and
the ways on always stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from bullswarm_core.reports import commands
from bullswarm_core.runs.run_files import RunFolder

SCHEMA_VERSION = "bullswarm.workflow.result-summary.v1"
MOST_BYTES = 4096
_MOST_CONCERNS = 12
_WHY_LENGTHS = (300, 160, 80)
_TEXT_LENGTHS = (400, 120, 40)
_DETAILS = ("answer", "output", "changedFiles", "model", "proof")
_KEPT_NODES = 20

Document = dict[str, Any]


def summary_of(result: Mapping[str, Any], *, folder: RunFolder) -> Document:
    """Return the summary of a result document; its ``summary_line`` has at most 4,096 bytes."""
    smallest: Document = {}
    for smallest in _ever_smaller(result, folder):
        if _fits(smallest):
            break
    return smallest


def summary_line(summary: Mapping[str, Any]) -> str:
    """Return the summary as its one line, without the end of the line."""
    return json.dumps(summary, ensure_ascii=False, separators=(",", ":"))


def _fits(summary: Document) -> bool:
    return len(summary_line(summary).encode("utf-8", "surrogatepass")) < MOST_BYTES


def _ever_smaller(result: Mapping[str, Any], folder: RunFolder) -> Iterator[Document]:
    """Give the summary with less and less in it."""
    steps = [_step(step, _WHY_LENGTHS[0]) for step in result["steps"]]
    concerns = list(_concerns(result))[:_MOST_CONCERNS]
    for count in range(len(concerns), -1, -1):
        yield _document(result, folder, steps, concerns[:count], omitted=0)
    for upto in range(1, len(_DETAILS) + 1):
        yield _document(result, folder, [_without(step, _DETAILS[:upto]) for step in steps], [], omitted=0)
    unwell = [step for step in steps if step["status"] != "succeeded"]
    for length in _WHY_LENGTHS:
        rest = [_without(_clipped(step, length), _DETAILS) for step in unwell]
        yield _document(result, folder, rest, [], omitted=len(steps) - len(rest))
    for length in _TEXT_LENGTHS:
        for count in (10, 3, 0):
            rest = [_without(_clipped(step, _WHY_LENGTHS[-1]), _DETAILS) for step in unwell[:count]]
            yield _document(result, folder, rest, [], omitted=len(steps) - len(rest), text=length)
    # An option names a path or an id, both of which a person chose: as a last resort without them.
    last = _document(result, folder, [], [], omitted=len(steps), text=_TEXT_LENGTHS[-1])
    yield {**last, "gates": [], "loops": [], "handback": {**last["handback"], "options": {}}}
    yield {key: last[key] for key in ("schemaVersion", "runId", "shortId", "status", "counts")}


def _document(
    result: Mapping[str, Any],
    folder: RunFolder,
    steps: list[Document],
    concerns: list[str],
    *,
    omitted: int,
    text: int = _TEXT_LENGTHS[0],
) -> Document:
    name, back = str(result["shortId"]), result.get("handback") or {}
    found = {
        "schemaVersion": SCHEMA_VERSION,
        "runId": result["runId"],
        "shortId": name,
        "status": result["status"],
        "reason": _short(result.get("reason"), text),
        "goal": _short(result.get("goal"), text),
        "finishedAt": result.get("finishedAt"),
        "counts": _counts(result),
        "steps": steps,
        "omittedSteps": omitted or None,
        "gates": [_node(gate) for gate in result.get("gates") or ()][:_KEPT_NODES],
        "loops": [_node(loop) for loop in result.get("loops") or ()][:_KEPT_NODES],
        "concerns": concerns,
        "totals": {key: (result.get("totals") or {}).get(key) for key in ("attempts", "minutes")},
        "handback": {
            "options": _short_options(back.get("options") or {}),
            "unreadSteering": len(back.get("unreadSteering") or ()),
        },
        "next": {"result": f"{commands.result(name)} --json", "runDir": str(folder.path)},
    }
    return {key: value for key, value in found.items() if value not in (None, [])}


def _counts(result: Mapping[str, Any]) -> Document:
    found: Document = {}
    for step in result["steps"]:
        found[step["status"]] = found.get(step["status"], 0) + 1
    return found


def _step(step: Mapping[str, Any], length: int) -> Document:
    """Keep of a step what tells how it went; outputs by their name in the run's folder."""
    answer, output = step.get("answer"), step.get("outFile")
    found = {
        "id": step["id"],
        "status": step["status"],
        "pool": step.get("pool"),
        "poolLabel": step.get("poolLabel") if step.get("poolLabel") != step.get("pool") else None,
        "model": _short(step.get("model"), _WHY_LENGTHS[-1]),
        "failureKind": step.get("failureKind"),
        "why": _short(step.get("why"), length) if step["status"] != "succeeded" else None,
        "backAt": step.get("backAt"),
        "proof": step.get("proof"),
        "answer": answer if answer is not None and len(json.dumps(answer)) <= length else None,
        "output": PurePath(output).name if output else None,
        "changedFiles": len(step.get("changedFiles") or ()) or None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _concerns(result: Mapping[str, Any]) -> Iterator[str]:
    """Name what a reader should know although the run may have gone well."""
    for step in result["steps"]:
        name = step["id"]
        for item in step.get("outsideBlockers") or ():
            yield f"{name}: blocked outside this step: {_short(item, 160)}"
        early = step.get("returnedEarly")
        if isinstance(early, Mapping) and early.get("items"):
            yield f"{name} returned early: {_short('; '.join(map(str, early['items'])), 160)}"
        if step.get("accepted"):
            yield f"{name} was accepted by choice: {_short(step['accepted'], 160)}"
        elif step["status"] == "succeeded" and (failed := _failed_checks(step)):
            yield f"{name}: checked, not passed: {_short('; '.join(failed), 160)}"
    for loop in result.get("loops") or ():
        if loop.get("outcome") == "continued-unmet":
            yield f"loop {loop['id']} was continued although its condition was not met"


def _failed_checks(step: Mapping[str, Any]) -> list[str]:
    """Name what a step was checked by in vain: a loop that reads its checks lets it succeed all the same."""
    results = step.get("evidenceResults") or ()
    return [
        str(item.get("cmd") or item.get("file"))
        for item in results
        if isinstance(item, Mapping) and item.get("status") != "passed"
    ]


def _node(node: Mapping[str, Any]) -> Document:
    outcome = node.get("outcome")
    kept = {"outcome": outcome if outcome != node["status"] else None, "round": node.get("round")}
    return {"id": node["id"], "status": node["status"]} | {key: value for key, value in kept.items() if value}


def _short_options(options: Mapping[str, Any]) -> Document:
    """Keep the ways on; an output stands with its name in the run's folder, as those of the steps do."""
    return {key: PurePath(value).name if key == "takeOver" else value for key, value in options.items()}


def _short(text: object, length: int) -> str | None:
    if not isinstance(text, str):
        return None
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def _clipped(step: Document, length: int) -> Document:
    return {**step, "why": _short(step["why"], length)} if step.get("why") else step


def _without(step: Document, keys: tuple[str, ...]) -> Document:
    return {key: value for key, value in step.items() if key not in keys}
