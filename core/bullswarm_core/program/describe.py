"""A valid program in lines for people: what ``workflow plan validate`` and a launch show, and what could be better in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bullswarm_core._dataclasses import dataclass
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


# From three writers on the price of the high tier is worth a thought.
_MANY_WRITERS = 3
# Test runners whose bare call runs everything there is.
_SUITE = re.compile(r"\b(pytest|npm (run )?test|yarn test|pnpm test|cargo test|go test|make (test|check)|tox|nox)\b")


@dataclass(frozen=True, slots=True)
class Advisory:
    """One remark; ``step`` is None where it is about the whole program."""

    code: str
    step: str | None
    message: str

    @property
    def line(self) -> str:
        """The remark as people read it."""
        return f"advisory: {self.code}{f' [{self.step}]' if self.step else ''} — {self.message}"


def advisories(program: Program) -> list[Advisory]:
    """Return the remarks on a program, in the order of its steps."""
    return [*_all_writers_high(program), *(remark for step in program.steps for remark in _about(step))]


def _all_writers_high(program: Program) -> Iterator[Advisory]:
    writers = [step for step in program.steps if step.lane != "analyze"]
    if len(writers) >= _MANY_WRITERS and all(step.effort == "high" for step in writers):
        yield Advisory(
            "all-writers-high",
            None,
            f"all {len(writers)} writing steps are high effort; keep it for those that need judgement",
        )


def _about(step: Step) -> Iterator[Advisory]:
    if step.effort == "high" and step.files and all(file.endswith(".md") for file in step.files):
        yield Advisory("docs-at-high", step.id, "it writes only .md files; medium effort is customary for documents")
    commands = [item.cmd for item in step.evidence if item.type == "command"]
    if step.files and commands and not any(_names_one(cmd, step.files) for cmd in commands):
        suites = [cmd for cmd in commands if _SUITE.search(cmd)]
        if suites:
            yield Advisory(
                "suite-wider-than-files",
                step.id,
                f"`{suites[0]}` runs more than the files that the step owns; a failure elsewhere would fail this step",
            )


def _names_one(cmd: str, files: tuple[str, ...]) -> bool:
    return any(file in cmd or file.rsplit("/", 1)[-1] in cmd for file in files)
