"""A workflow for people: how each step, gate and loop stands, why, and the commands that go on from here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports import commands
from bullswarm_server.displays.options import your_call
from bullswarm_server.displays.text import Style, duration, one_line

_PLAIN = Style(colour=False)
_MARKS = {
    "succeeded": "✓", "passed": "✓", "failed": "✗", "blocked": "✗", "cancelled": "✗", "running": "▶", "waiting": "⧖",
    "pending": "·", "continued-unmet": "→",
}  # fmt: skip
# Where waiting leads somewhere: a run at rest waits for somebody instead.
_GOING_ON = ("running", "stopping")
_WHY_LENGTH = 300
_SHOWN_FILES = 8


def result_lines(result: Mapping[str, Any], *, labels: Labels, style: Style = _PLAIN) -> list[str]:
    """Return the lines for a workflow as it stands, finished or not; pools by their labels, texts without control
    sequences.
    """
    run = str(result["shortId"])
    lines = [f"outcome: {_outcome(str(result['status']), style)}", f"reason: {_text(result.get('reason'), labels)}"]
    lines += [f"goal: {one_line(str(result['goal']))}"]
    lines += _proof(result["steps"])
    width = max(len(step["id"]) for step in result["steps"])
    lines += [line for step in result["steps"] for line in _step(step, width, labels, style)]
    lines += [_gate(gate, run, style) for gate in result.get("gates") or ()]
    lines += [_loop(loop, run, style) for loop in result.get("loops") or ()]
    lines += [_totals(result.get("totals") or {}, labels)]
    lines += [f"unread: {one_line(str(message))}" for message in result.get("unreadSteering") or ()]
    lines += your_call(result)
    lines.append(f"run: {run} ({commands.show(run)})")
    if result["status"] in _GOING_ON:
        lines.append(f"next: {commands.wait(run)}")
    elif result["status"] == "kernel-gone":
        lines.append(f"next: {commands.resume(run)}")
    return lines


def launch_lines(document: Mapping[str, Any]) -> list[str]:
    """Return the lines for a workflow that was just started."""
    run = str(document["shortId"])
    stops = document["stopsForYou"]
    lines = [f"run {run} started: {one_line(str(document['goal']))}"]
    lines += [f"stops for you at {one_line(stop)}" for stop in stops] or [
        "declares no gate and no loop: it stops for nobody"
    ]
    return [*lines, *(f"  {name + ':':<9}{command}" for name, command in document["next"].items())]


def _outcome(status: str, style: Style) -> str:
    paint = {"completed": style.good, "partial": style.bad, "cancelled": style.bad}.get(status, style.warn)
    return paint(status)


def _text(text: object, labels: Labels) -> str:
    return labels.in_text(one_line(str(text or "")))


def _proof(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    counted = Counter(str(step["proof"]) for step in steps if step.get("proof"))
    return [f"proof: {', '.join(f'{count} {label}' for label, count in counted.items())}"] if counted else []


def _step(step: Mapping[str, Any], width: int, labels: Labels, style: Style) -> Iterator[str]:
    parts = [f"  {_mark(step['status'], style)} {step['id']:<{width}} {step['status']}"]
    if step.get("failureKind"):
        parts.append(f"({step['failureKind']})")
    if step.get("pool"):
        parts.append(f"[{one_line(str(step.get('poolLabel') or step['pool']))}]")
    if isinstance(step.get("wallSec"), (int, float)):
        parts.append(_clock(step["wallSec"]))
    if step.get("attempts", 0) > 1:
        parts.append(f"{step['attempts']} tries")
    if step.get("proof"):
        parts.append(f"· {step['proof']}")
    yield " ".join(parts)
    indent = " " * (width + 5)
    if step["status"] in ("failed", "cancelled") and step.get("why"):
        yield f"{indent}why: {_cut(_text(step['why'], labels))}"
        if step.get("backAt"):
            yield f"{indent}back at: {step['backAt']}"
    for item in step.get("evidenceResults") or ():
        if isinstance(item, Mapping) and item.get("status") != "passed":
            name = item.get("cmd") or item.get("file")
            yield f"{indent}evidence: {one_line(str(name))} → {one_line(str(item.get('why') or item.get('status')))}"
    if step.get("accepted"):
        yield f"{indent}accepted: {one_line(str(step['accepted']))}"
    files = [one_line(str(name)) for name in step.get("changedFiles") or ()]
    if files:
        more = f" and {len(files) - _SHOWN_FILES} more" if len(files) > _SHOWN_FILES else ""
        yield f"{indent}changed: {', '.join(files[:_SHOWN_FILES])}{more}"
    if step.get("outFile"):
        yield f"{indent}output: {step['outFile']}"


def _cut(text: str) -> str:
    return text if len(text) <= _WHY_LENGTH else f"{text[: _WHY_LENGTH - 1].rstrip()}…"


def _clock(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else duration(seconds / 60)


def _mark(status: str, style: Style) -> str:
    mark = _MARKS.get(status, "·")
    return {"✓": style.good, "✗": style.bad}.get(mark, style.warn)(mark)


def _gate(gate: Mapping[str, Any], run: str, style: Style) -> str:
    note = f" · {one_line(str(gate['note']))}" if gate.get("note") else ""
    how = {"continued": " · continued", "when-false": " · its condition does not hold"}.get(str(gate.get("how")), "")
    go_on = f" · continue: {commands.go_on(run, gate['id'])}" if gate["status"] == "waiting" else ""
    return f"  {_mark(gate['status'], style)} gate {gate['id']} {gate['status']}{how}{note}{go_on}"


def _loop(loop: Mapping[str, Any], run: str, style: Style) -> str:
    outcome = loop.get("outcome") or loop["status"]
    where = f" · round {loop['round']} of {loop['maxRounds']}"
    go_on = f" · continue: {commands.go_on(run, loop['id'], rounds=1)}" if loop["status"] == "waiting" else ""
    return f"  {_mark(loop['status'], style)} loop {loop['id']} {outcome}{where}{go_on}"


def _totals(totals: Mapping[str, Any], labels: Labels) -> str:
    attempts = totals.get("attempts", 0)
    parts = [f"{attempts} attempt{'' if attempts == 1 else 's'}", _clock(60 * float(totals.get("minutes") or 0))]
    parts += [f"{labels.shown(pool)} {entry['attempts']}" for pool, entry in (totals.get("byPool") or {}).items()]
    return f"totals: {' · '.join(parts)}"
