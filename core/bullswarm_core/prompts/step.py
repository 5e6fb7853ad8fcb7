"""The whole task of a workflow step's next attempt: the author's prompt, what the run knows, and the rules of the work. Pure.

Nothing of the caller's conversation is in it, not even the goal of the run: the author of a program writes into a prompt what
its worker needs.
"""

from __future__ import annotations

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools.model import writes
from bullswarm_core.program.model import Step
from bullswarm_core.prompts.context import blind_note, earlier_results, previous_round
from bullswarm_core.prompts.handoff import Prior, correction, handoff
from bullswarm_core.prompts.quoting import MARK, WHAT_THE_MARK_MEANS, path
from bullswarm_core.prompts.rules import task_text
from bullswarm_core.quota.durations import TimeBox
from bullswarm_core.runs.events import AttemptPicked
from bullswarm_core.runs.run_files import AttemptFiles
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.task import Task, is_apart, worktree_of_prior
from bullswarm_core.wire import parse_iso

_MOST_FILES = 100


@dataclass(frozen=True, slots=True)
class StepText:
    """A step's task. ``handoff_from`` is the attempt that it hands over, ``handoff_bytes`` the size of that block."""

    text: str
    handoff_from: str | None = None
    handoff_bytes: int = 0


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What the task of an attempt is written from. ``box`` None leaves the time box out."""

    state: RunState
    picked: AttemptPicked
    task: Task
    files: AttemptFiles
    may_commit: bool
    prior: Prior | None = None
    box: TimeBox | None = None
    answer_rules: str | None = None

    @property
    def step(self) -> Step:
        """The step as its program has it."""
        return self.state.program.step(self.picked.step)


def step_text(facts: StepFacts) -> StepText:
    """Return the task of a workflow step's attempt."""
    step, task = facts.step, facts.task
    handed = _handed_over(facts)
    blocks = [
        _territory(step, apart=is_apart(facts.state, step.id)),
        earlier_results(facts.state, step, cwd=task.cwd),
        previous_round(facts.state, step),
        handed,
        _correction(facts),
        list(blind_note(step, folder=path(str(facts.files.folder)))),
    ]
    text = "\n\n".join("\n".join(block).rstrip() for block in blocks if block)
    if f"\n{MARK}" in text:
        text = f"{WHAT_THE_MARK_MEANS}\n\n{text}"
    whole = task_text(
        task.prompt,
        lane=task.lane,
        cwd=task.cwd,
        may_commit=facts.may_commit,
        answer_rules=facts.answer_rules,
        facts=text,
        ending=box_paragraph(facts.box, sections=takes_sections(step)) if facts.box else None,
    )
    if not handed or facts.prior is None:
        return StepText(whole)
    return StepText(whole, facts.prior.id, len("\n".join(handed).encode("utf-8", "replace")))


def takes_sections(step: Step) -> bool:
    """Tell whether the final reply is free text; a typed answer, or a reply that is checked as data, has no room for them."""
    return step.answer is None and not any(check.file == "$output" for check in step.evidence)


def box_paragraph(box: TimeBox, *, sections: bool) -> str:
    """Say how long the work should take and how it ends."""
    start = f"{parse_iso(box.start_clock):%Y-%m-%d %H:%M} UTC"
    said = (
        f"Time box: {box.minutes} minutes from {start} (`date -u` tells the time). It is a guide, and nothing stops you at its"
        f" end: after about {box.wrap_up_minutes} minutes begin to wrap up, so that what is done is whole.\n"
    )
    if not sections:
        return said
    return said + (
        "End your final reply with these three sections, whatever came of the work:\n"
        "## Done\n"
        "## Not done\n"
        "(one item a line; `- none` where nothing is left. Begin an item with `outside:` when something that is no part of"
        " this task blocks it.)\n"
        "## Suggested next step\n"
    )


def _territory(step: Step, *, apart: bool) -> list[str]:
    """Name the files that are the step's own, and those that must be there when it ends."""
    lines = []
    if step.files:
        lines.append(f"Files of this task: {_named(step.files)}. Others are at work beside you: change no other file.")
    if apart:
        lines.append(
            "You work in a copy of the project. Of all that you change, only these files are taken into the project."
        )
    if step.deliverable.paths:
        lines.append(f"When you end, these files must be there: {_named(step.deliverable.paths)}.")
    return lines


def _named(files: tuple[str, ...]) -> str:
    more = len(files) - _MOST_FILES
    return ", ".join(map(path, files[:_MOST_FILES])) + (f" and {more} more" if more > 0 else "")


def _handed_over(facts: StepFacts) -> list[str]:
    if facts.prior is None:
        return []
    prior = facts.prior.attempt.picked.tree
    cwd = worktree_of_prior(facts.task.cwd, tree=facts.picked.tree, prior=prior)
    lines = handoff(facts.state, facts.step, facts.picked, facts.prior, cwd=cwd)
    if cwd != facts.task.cwd:
        lines.append(f"They are not in your folder: they stand in {path(cwd)}. Copy from there what you keep.")
    return lines


def _correction(facts: StepFacts) -> list[str]:
    if facts.prior is None:
        return []
    return correction(facts.step, facts.prior, facts.files, as_file=writes(facts.task.lane))
