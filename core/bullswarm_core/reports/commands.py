"""The commands that texts and documents print for a run, as they are typed: each of them runs as printed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

# A file and a reason that a person has to fill in; the rest of a printed command is as it should be.
FRAGMENT = "part.json"
REASON = "why it is good enough"


def watch(run: str) -> str:
    """Follow the run, awake only when it needs somebody."""
    return f"bullswarm workflow watch {run} --until trouble"


def wait(run: str) -> str:
    """Wait for the run's end, or for where it waits for somebody."""
    return f"bullswarm workflow wait {run}"


def show(run: str) -> str:
    """Say how the run stands."""
    return f"bullswarm runs show {run}"


def result(run: str) -> str:
    """Print the run's result."""
    return f"bullswarm runs result {run}"


def stop(run: str) -> str:
    """Stop all of the run's work."""
    return f"bullswarm workflow cancel {run}"


def resume(run: str) -> str:
    """Go on after a pause, after a lost kernel, or once more with what may end otherwise."""
    return f"bullswarm workflow resume {run}"


def go_on(run: str, node: str, *, rounds: int | None = None) -> str:
    """Open a gate, or give a loop more rounds."""
    return f"bullswarm workflow continue {run} {node}{f' --rounds {rounds}' if rounds else ''}"


def rerun(run: str, step: str, *, avoid: Sequence[str] = ()) -> str:
    """Begin a step anew, perhaps kept from some pools."""
    kept_from = f" --avoid {shlex.quote(','.join(avoid))}" if avoid else ""
    return f"bullswarm workflow step rerun {run} {step}{kept_from}"


def restart(run: str, step: str) -> str:
    """Stop a step's worker and begin the step anew."""
    return f"bullswarm workflow step restart {run} {step}"


def accept(run: str, step: str) -> str:
    """Take a failed step's work as it is."""
    return f"bullswarm workflow step accept {run} {step} --reason {shlex.quote(REASON)}"


def add(run: str) -> str:
    """Let the program grow."""
    return f"bullswarm workflow add {run} --steps {FRAGMENT}"
