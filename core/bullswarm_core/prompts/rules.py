"""The text that a worker is given: the caller's prompt, and below it the rules of being a worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bullswarm_core.pools.model import Lane
from bullswarm_core.wire import compact

_RULE = "-" * 72

# Each line answers something that workers were seen to do: ask a question nobody reads, end in a plan, wait for background
# work that dies with them, start agents of their own, or commit half-done work.
_EVERY_LANE = (
    "You are a worker: another program gave you this one task and reads your result. Nobody can answer a question.",
    "Do the task itself, now and in this turn. Don't stop at a plan, and don't hand the task to another agent.",
    "Start nothing in the background that you would have to wait for: it ends when you end.",
)
_BY_LANE: dict[Lane, tuple[str, ...]] = {
    "analyze": (
        "This is an analysis: change no file. Your last message is the result, so put the whole answer into it.",
    ),
    "build": ("The result is the changed files. End with a short message that says what you changed and why.",),
    "chore": ("The result is the changed files. End with a short message that says what you changed.",),
}
_NO_COMMIT = "Don't commit and don't push: the caller reviews your edits in the working tree first."


def task_text(
    prompt: str,
    *,
    lane: Lane,
    cwd: str,
    may_commit: bool,
    answer_rules: str | None = None,
    facts: str = "",
    ending: str | None = None,
) -> str:
    """Return the worker's whole task; the prompt comes first and verbatim, nothing in it is substituted.

    ``facts`` are what a workflow tells of its earlier work, ``ending`` how the work is to be brought to its end.
    ``answer_rules`` say how a typed answer is given; they come last, since they are about the last that a worker does.
    """
    rules = [f"Work in {cwd} and write nowhere else; for scratch files use $TMPDIR.", *_EVERY_LANE, *_BY_LANE[lane]]
    if lane != "analyze" and not may_commit:
        rules.append(_NO_COMMIT)
    lines = "\n".join(f"- {rule}" for rule in rules)
    told = f"{facts}\n\n" if facts else ""
    text = f"{prompt.rstrip()}\n\n{_RULE}\n{told}Rules for this task:\n{lines}\n"
    return "\n".join([text, *(part for part in (ending, answer_rules) if part is not None)])


def answer_rules(schema: Mapping[str, Any], *, draft: str | None) -> str:
    """Say what a typed answer is and how it is given: in the file ``draft`` where the worker may write, else as its reply.

    Workers were seen to echo the schema, and to put prose around the value.
    """
    reply = "one JSON value in one code fence, and nothing else"
    if draft is None:
        how = f"Your final reply is the answer: {reply}. It is checked by a program."
    else:
        how = (
            f"Write the answer as one JSON value, UTF-8, into the file {draft}, and nothing else into it: this file is checked"
            f" by a program. Then reply with the answer: {reply}."
        )
    return (
        "The answer of this task is a JSON value that matches the schema below. Give the value, not the schema.\n"
        f"{how} Where you have a tool for structured output, call it with the same value.\n"
        f"Schema of the answer:\n{compact(schema)}\n"
    )
