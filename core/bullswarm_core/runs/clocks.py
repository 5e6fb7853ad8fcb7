"""How long a worker may be silent, idle or slow before its keeper stops it.

Rule: docs/design/runs.md, "Clocks".
"""

from __future__ import annotations

from collections.abc import Mapping

from bullswarm_core.errors import UsageError
from bullswarm_core.pools import Lane
from bullswarm_core.workers.keeper_clocks import Clocks

# A long build or test run prints and changes nothing for many minutes; an hour of that is a hang.
SILENCE_SEC = 3600.0
NO_PROGRESS_SEC = 3600.0
# A CLI that has said its last word needs a moment to save its session, not more.
TERMINAL_GRACE_SEC = 5.0
TERM_GRACE_SEC = 2.0


def worker_clocks(
    *,
    lane: Lane,
    environ: Mapping[str, str],
    wall_sec: float | None = None,
    free_silence_sec: float | None = None,
    startup_sec: float | None = None,
    silence_sec: float | None = None,
    terminal_grace_sec: float | None = None,
) -> Clocks:
    """Return the clocks of an attempt; 0 is off. The silence clock bounds the start-up too.

    ``free_silence_sec`` is what a free pool is granted by its own record (`quota.durations`), None for a metered one or too
    short a record; the other values are what the connector asks for. The environment overrides all of them:
    ``BULLSWARM_WORKER_STARTUP_SEC``, ``BULLSWARM_WORKER_SILENCE_SEC`` and ``BULLSWARM_WORKER_NO_PROGRESS_SEC``, 0 for off.
    Only a lane that writes has a no-progress clock. Raises UsageError when one of the variables is no number of seconds.
    """
    silence = free_silence_sec or silence_sec or SILENCE_SEC
    silence_clock = _override(environ, "BULLSWARM_WORKER_SILENCE_SEC", silence)
    no_progress = _override(environ, "BULLSWARM_WORKER_NO_PROGRESS_SEC", NO_PROGRESS_SEC)
    return Clocks(
        startup_sec=_override(environ, "BULLSWARM_WORKER_STARTUP_SEC", startup_sec or 0.0),
        silence_sec=silence_clock,
        no_progress_sec=0.0 if lane == "analyze" else no_progress,
        wall_sec=wall_sec,
        terminal_grace_sec=terminal_grace_sec or TERMINAL_GRACE_SEC,
        term_grace_sec=TERM_GRACE_SEC,
    )


def _override(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name)
    if text is None or text == "":
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(f'{name} is "{text}"', hint="give a number of seconds, 0 to turn the clock off")
    return seconds
