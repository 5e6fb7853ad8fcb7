"""The keeper's clocks as rules over numbers: how long an attempt may be quiet, idle or at work.

Every time here is in awake seconds since the worker started.
"""

from __future__ import annotations

from collections.abc import Mapping

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.streams.facts import EndReason

# A tick is a quarter of a second. One that took this long means that the keeper itself was not running (a laptop that
# slept, a paused virtual machine, a debugger): it saw nothing, so nothing is held against the worker.
LONGEST_TICK_SEC = 5.0


# A CLI that goes on printing after its last word may be at work again (Claude Code after a background task), and says
# another last word then. One that chatters longer than this without one is only lingering.
CHATTER_SEC = 600.0


@dataclass(frozen=True, slots=True)
class Clocks:
    """Limits in awake seconds; None or 0 switches a clock off. The graces are what TERM and KILL wait for."""

    startup_sec: float | None = None
    silence_sec: float | None = None
    no_progress_sec: float | None = None
    wall_sec: float | None = None
    terminal_grace_sec: float = 5.0
    term_grace_sec: float = 2.0

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Clocks:
        """Read the ``clocks`` of a keeper's spec; raises ValueError for what is no number of seconds."""

        def seconds(name: str) -> float | None:
            number = value.get(name)
            if number is None:
                return None
            if isinstance(number, bool) or not isinstance(number, int | float) or not number >= 0:
                raise ValueError(f"clocks.{name} must be a number of seconds, 0 or more, or null, not {number!r}")
            return float(number)

        terminal_grace, term_grace = seconds("terminalGraceSec"), seconds("termGraceSec")
        return cls(
            startup_sec=seconds("startupSec"),
            silence_sec=seconds("silenceSec"),
            no_progress_sec=seconds("noProgressSec"),
            wall_sec=seconds("wallSec"),
            terminal_grace_sec=cls().terminal_grace_sec if terminal_grace is None else terminal_grace,
            term_grace_sec=cls().term_grace_sec if term_grace is None else term_grace,
        )


@dataclass(slots=True)
class Progress:
    """What has been seen of a worker so far, in awake seconds since its start."""

    last_byte: float | None = None
    last_stdout: float = 0.0
    last_change: float = 0.0
    terminal_at: float | None = None


def due(clocks: Clocks, progress: Progress, now: float) -> EndReason | None:
    """Return the reason for which the worker must be stopped now, or None.

    The caller's time limit comes first. After the terminal event only the grace counts: the work is done. The silence
    clock bounds the start-up too, so it runs from the start until the first byte.
    """
    if clocks.wall_sec and now >= clocks.wall_sec:
        return "wall"
    if progress.terminal_at is not None:
        return "after-terminal" if _lingers(clocks, progress, progress.terminal_at, now) else None
    if clocks.startup_sec and progress.last_byte is None and now >= clocks.startup_sec:
        return "startup"
    if clocks.silence_sec and now - (progress.last_byte or 0.0) >= clocks.silence_sec:
        return "silence"
    if clocks.no_progress_sec and now - progress.last_change >= clocks.no_progress_sec:
        return "no-progress"
    return None


def _lingers(clocks: Clocks, progress: Progress, terminal_at: float, now: float) -> bool:
    quiet_since = max(terminal_at, progress.last_stdout)
    return now - quiet_since >= clocks.terminal_grace_sec or now - terminal_at >= CHATTER_SEC


@dataclass(slots=True)
class AwakeClock:
    """Counts the seconds in which the keeper was awake to see something.

    ``monotonic`` readings exclude sleep on Linux (CLOCK_MONOTONIC) and macOS; a longer gap between two ticks than
    LONGEST_TICK_SEC counts as one such tick.
    """

    last: float
    awake: float = field(default=0.0)

    def tick(self, monotonic: float) -> float:
        """Take a reading of the monotonic clock and return the awake seconds so far."""
        self.awake += min(max(0.0, monotonic - self.last), LONGEST_TICK_SEC)
        self.last = monotonic
        return self.awake
