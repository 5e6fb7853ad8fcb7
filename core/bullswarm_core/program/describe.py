"""A valid program in lines for people: what ``workflow plan validate`` and a launch show."""

from __future__ import annotations

from bullswarm_core.program.model import Gate, Loop, Program, Step

MOST_GOAL = 120


def summary(program: Program) -> str:
    """Return how much there is of everything."""
    parts = (("step", len(program.steps)), ("gate", len(program.gates)), ("loop", len(program.loops)))
    return ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for word, count in parts)


def lines(program: Program) -> list[str]:
    """Return one line per step, then per gate, then per loop."""
    width = max(len(step.id) for step in program.steps)
    return [
        *(_step(step, width) for step in program.steps),
        *(_gate(gate) for gate in program.gates),
        *(_loop(loop) for loop in program.loops),
    ]


def _step(step: Step, width: int) -> str:
    checks = []
    if step.answer is not None:
        checks.append("answer")
    if step.evidence:
        checks.append("evidence=" + ",".join(dict.fromkeys(item.type for item in step.evidence)))
    if step.deliverable.type not in ("none", "report"):
        checks.append(f"deliverable={step.deliverable.type}")
    text = f"  {step.id:<{width}} {step.lane}/{step.effort}"
    if checks:
        text += f" [{'|'.join(checks)}]"
    if step.depends_on:
        text += f" after {', '.join(step.depends_on)}"
    if step.blind_to:
        text += f" blind to {', '.join(step.blind_to)}"
    return text


def _gate(gate: Gate) -> str:
    waits = f"waits when {gate.when.shown}" if gate.when else "waits for you"
    note = f" · {gate.note}" if gate.note else ""
    return f"  gate {gate.id} after {', '.join(gate.depends_on)} · {waits}{note}"


def _loop(loop: Loop) -> str:
    rounds = f"{loop.max_rounds} round{'' if loop.max_rounds == 1 else 's'}"
    return f"  loop {loop.id} steps {', '.join(loop.steps)} · until {loop.until.shown} · at most {rounds}"
