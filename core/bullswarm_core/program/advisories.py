"""What could be better in a valid program: remarks that never refuse it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bullswarm_core.program.model import Program, Step
from bullswarm_core.values import dataclass

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
