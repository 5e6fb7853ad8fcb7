"""The text that a worker is given: the caller's prompt, and below it the rules of being a worker."""

from __future__ import annotations

from bullswarm_core.pools import Lane

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


def task_text(prompt: str, *, lane: Lane, cwd: str, may_commit: bool) -> str:
    """Return the worker's whole task; the prompt comes first and verbatim, nothing in it is substituted."""
    rules = [f"Work in {cwd} and write nowhere else; for scratch files use $TMPDIR.", *_EVERY_LANE, *_BY_LANE[lane]]
    if lane != "analyze" and not may_commit:
        rules.append(_NO_COMMIT)
    lines = "\n".join(f"- {rule}" for rule in rules)
    return f"{prompt.rstrip()}\n\n{_RULE}\nRules for this task:\n{lines}\n"
