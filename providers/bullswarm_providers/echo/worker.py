"""The embedded worker: it reads its task, says what it was asked, and changes nothing.

With it everything around a worker can be tried with no agent CLI installed; it never claims to have done work.
"""

import sys
from pathlib import Path

_SHOWN_LINES = 8
_SHOWN_CHARACTERS = 400


def answer(task: str, *, lane: str, cwd: str) -> str:
    """Write the reply to ``task``: who answers, what was asked (its beginning and size), and what was not done."""
    lines = task.strip().splitlines()
    beginning = "\n".join(f"> {line}" for line in lines[:_SHOWN_LINES])[:_SHOWN_CHARACTERS]
    files = "It changes no files." if lane in ("build", "chore") else "It analyzes nothing."
    return (
        "This is bullswarm's echo worker. No model read this task and no work was done.\n"
        f"{files} Sign in to an agent CLI (bullswarm doctor shows how) to get real work.\n\n"
        f"Lane: {lane}\n"
        f"Working directory: {cwd}\n"
        f"Task: {len(task.encode())} bytes, {len(lines)} lines. It begins:\n\n{beginning}\n"
    )


def main() -> int:
    """Answer the task on stdin; 2 when there is none."""
    task = sys.stdin.buffer.read().decode("utf-8", errors="replace")
    if not task.strip():
        sys.stderr.write("echo worker: the task on stdin is empty\n")
        return 2
    lane = sys.argv[1] if len(sys.argv) > 1 else "analyze"
    sys.stdout.write(answer(task, lane=lane, cwd=str(Path.cwd())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
