"""A program as a picture in letters: every step, gate and loop below what it waits for, joined by lines.

Each node that others wait for keeps a lane to the left until the last of them is drawn. A line that crosses a lane without
meeting it leaves the lane as it is. Where there are more lanes than the terminal has room for, names stand for the lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools.labels import Labels
from bullswarm_core.program.model import Program
from bullswarm_core.program.plan import Plan
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.status import NodeStatus
from bullswarm_server.displays.terminal import Terminal, cells
from bullswarm_server.displays.text import one_line

MARKS: Mapping[str, str] = {
    "succeeded": "✓", "passed": "✓", "failed": "✗", "blocked": "✗", "cancelled": "✗", "running": "▶", "waiting": "⧖",
    "pending": "·",
}  # fmt: skip
ASCII_MARKS: Mapping[str, str] = {
    "succeeded": "+", "passed": "+", "failed": "x", "blocked": "x", "cancelled": "x", "running": ">", "waiting": "?",
    "pending": ".",
}  # fmt: skip
_ASCII_LINES = str.maketrans({"│": "|", "─": "-", "├": "+", "┤": "+", "┴": "+", "╰": "`", "╯": "'", "┼": "+"})
# Beyond this share of the terminal the lines would leave no room for what they join.
_MOST_GUTTER = 1 / 3


@dataclass(frozen=True, slots=True)
class Row:
    """One node of the picture: what stands left of it, without colours, the place of its mark, and the lanes below it."""

    name: str
    gutter: str
    mark_at: int
    below: str


def graph_lines(state: RunState, known: Mapping[str, NodeStatus], *, terminal: Terminal, labels: Labels) -> list[str]:
    """Return the picture of a run's program; no line is wider than the terminal."""
    phases = phases_of(state.program, state.plan)
    order = phased_order(state.plan, phases)
    rows = list(_rows(order, state.plan))
    widest = max(len(row.gutter) for row in rows)
    drawn = widest <= max(4, terminal.width * _MOST_GUTTER)
    lines: list[str] = []
    phase: str | None = None
    below = ""
    for row in rows:
        if phases[row.name] != phase:
            phase = phases[row.name]
            lines += [_heading(phase, below if drawn else "", terminal)] if phase else []
        lines.append(_line(state, row, known, terminal=terminal, labels=labels, drawn=drawn))
        below = row.below
    return lines


def mark_of(status: str, terminal: Terminal) -> str:
    """Return the painted mark of a status."""
    mark = (MARKS if terminal.unicode else ASCII_MARKS).get(status, "·")
    paint = {"✓": terminal.style.good, "✗": terminal.style.bad, "·": terminal.style.faint}
    return paint.get(MARKS.get(status, "·"), terminal.style.warn)(mark)


def phases_of(program: Program, plan: Plan) -> dict[str, str | None]:
    """Return the phase of every node; a gate or a loop is in that of the last step before it."""
    found: dict[str, str | None] = {step.id: step.phase for step in program.steps}
    for name in plan.order:
        if name not in found:
            found[name] = next((found[other] for other in reversed(plan.waits[name]) if found.get(other)), None)
    return found


def phased_order(plan: Plan, phases: Mapping[str, str | None]) -> list[str]:
    """Return the nodes with each behind what it waits for, and those of one phase together where that can be."""
    before = {name: set(plan.waits[name]) for name in plan.order}
    behind: dict[str, list[str]] = {name: [] for name in plan.order}
    for name in plan.order:
        for other in before[name]:
            behind[other].append(name)
    place = {name: at for at, name in enumerate(plan.order)}
    ready = [name for name in plan.order if not before[name]]
    order: list[str] = []
    while ready:
        here = phases[order[-1]] if order else None
        chosen = min(ready, key=lambda name: (phases[name] != here, place[name]))
        ready.remove(chosen)
        order.append(chosen)
        for other in behind[chosen]:
            before[other].discard(chosen)
            if not before[other]:
                ready.append(other)
    return order


def _rows(order: list[str], plan: Plan) -> Iterator[Row]:
    """Draw the lanes: ``lanes[column]`` is the node whose lane it is, ``owed`` who is still to be drawn below it."""
    owed = {name: [other for other in order if name in plan.waits[other]] for name in order}
    lanes: list[str | None] = []
    newest: int | None = None
    for name in order:
        sources = [column for column, lane in enumerate(lanes) if lane in plan.waits[name]]
        for column in sources:
            owed[str(lanes[column])].remove(name)
        ending = [column for column in sources if not owed[str(lanes[column])]]
        column = _column(lanes, ending, newest)
        newest = column
        gutter = _gutter(lanes, column, sources, ending)
        for ended in ending:
            lanes[ended] = None
        lanes[column] = name if owed[name] else None
        while lanes and lanes[-1] is None:
            lanes.pop()
        yield Row(name, gutter, 2 * column, "".join("│ " if lane else "  " for lane in lanes))


def _column(lanes: list[str | None], ending: list[int], newest: int | None) -> int:
    """A node goes on where a lane ends, else in the first free column.

    Never right below the newest mark without coming from it: two marks below each other are joined.
    """
    if ending:
        return ending[0]
    column = next(
        (at for at, lane in enumerate(lanes) if lane is None and at != newest),
        len(lanes) if len(lanes) != newest else len(lanes) + 1,
    )
    lanes += [None] * (column + 1 - len(lanes))
    return column


def _gutter(lanes: list[str | None], column: int, sources: list[int], ending: list[int]) -> str:
    """Draw one row: a lane that joins, one that ends, one that passes, and the line between them; a space for the mark."""
    joined = [*sources, column]
    left, right = min(joined), max(joined)
    letters: list[str] = []
    for at, lane in enumerate(lanes):
        if at == column:
            letter = " "
        elif at in ending:
            letter = "╰" if at == left else "╯" if at == right else "┴"
        elif at in sources:
            letter = "├" if at == left else "┤" if at == right else "┼"
        elif lane is not None:
            letter = "│"
        else:
            letter = "─" if left < at < right else " "
        letters += [letter, "─" if left <= at < right else " "]
    return "".join(letters)


def _heading(phase: str, gutter: str, terminal: Terminal) -> str:
    room = terminal.width - len(gutter)
    text = terminal.clipped(f"{one_line(phase)}:", room)
    lanes = gutter if terminal.unicode else gutter.translate(_ASCII_LINES)
    return f"{terminal.style.faint(lanes)}{terminal.style.faint(text)}".rstrip()


def _line(
    state: RunState, row: Row, known: Mapping[str, NodeStatus], *, terminal: Terminal, labels: Labels, drawn: bool
) -> str:
    status = known[row.name]
    text = words_of(state, row.name, status, labels=labels)
    if not drawn and state.plan.waits[row.name]:
        text += f" ← {', '.join(state.plan.waits[row.name])}"
    gutter = row.gutter if drawn else "  "
    place = row.mark_at if drawn else 0
    lines = gutter if terminal.unicode else gutter.translate(_ASCII_LINES)
    faint = terminal.style.faint
    left, right = lines[:place], lines[place + 1 :].rstrip(" ")
    fitted = terminal.clipped(text, terminal.width - cells(left) - 1 - len(right) - 1)
    return f"{faint(left) if left else ''}{mark_of(status, terminal)}{faint(right) if right else ''} {fitted}".rstrip()


def words_of(state: RunState, name: str, status: NodeStatus, *, labels: Labels) -> str:
    """Say of a node what it is and how it stands."""
    if name in state.steps:
        step, attempt = state.program.step(name), state.steps[name].current
        parts = [f"{name} {status}", f"{step.lane}/{step.effort}"]
        parts += [f"[{one_line(labels.shown(attempt.picked.pool))}]"] if attempt else []
        parts += [f"loop {step.loop}"] if step.loop else []
        return " · ".join(parts)
    if name in state.gates:
        gate = next(gate for gate in state.program.gates if gate.id == name)
        when = [f"when {gate.when.shown}"] if gate.when else []
        note = [one_line(gate.note)] if gate.note else []
        return " · ".join([f"gate {name} {status}", *when, *note])
    loop, now = state.program.loop(name), state.loops[name]
    parts = [f"loop {name} {status}", f"round {now.round} of {now.max_rounds}", f"until {loop.until.shown}"]
    return " · ".join([*parts, *(["continued unmet"] if now.outcome == "continued-unmet" else [])])
