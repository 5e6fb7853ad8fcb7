"""Signs of life of running attempts: when one has fallen quiet, and when it looks stale. Pure.

Rule: docs/design/runs.md, "Signs of life". Each sign has the moment from which it holds, so that a watcher that comes back
knows whether the one before it has told it already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from bullswarm_core.routing.text import duration
from bullswarm_core.runs.needs_you import minutes_and_seconds
from bullswarm_core.runs.watch import Notice
from bullswarm_core.values import dataclass

# The numbers of the stale score.
STALE_SCORE = 2
QUIET = timedelta(minutes=10)
NO_CHANGE = timedelta(minutes=20)
COMMANDS_BEFORE_CHANGE = 5
SAME_COMMAND = 3
TIMES_EXPECTED = 3
DEFAULT_STALL_SEC = 300.0


@dataclass(frozen=True, slots=True)
class Life:
    """What is known of a running attempt. ``last_output`` is when it last wrote anything, its start before that.

    ``last_change`` is when a file of a writer's last changed, None for an analyze step; ``commands`` counts the commands it
    ran and ``same_command`` how often the last one stands in a row; ``in_flight`` that one is running, ``checking`` that the
    worker is done and its checks run. ``expected_minutes`` is None where nothing is known.
    """

    step: str
    ordinal: int
    started: datetime
    last_output: datetime
    last_change: datetime | None = None
    commands: int = 0
    same_command: int = 0
    last_command: str | None = None
    in_flight: bool = False
    checking: bool = False
    expected_minutes: float | None = None

    def quiet(self, now: datetime) -> timedelta:
        """How long it has written nothing."""
        return max(now - self.last_output, timedelta())


@dataclass(frozen=True, slots=True)
class Sign:
    """One reason for concern: its weight, the moment from which it holds, and its words."""

    weight: int
    since: datetime
    words: str


def stale_signs(life: Life, now: datetime) -> list[Sign]:
    """Return the signs that hold now; while checks run only quiet counts."""
    signs: list[Sign] = []
    if life.quiet(now) >= QUIET and not life.in_flight:
        signs.append(Sign(2, life.last_output + QUIET, f"quiet for {minutes_and_seconds(_sec(life.quiet(now)))}"))
    if life.checking:
        return signs
    if life.last_change is not None and life.commands >= COMMANDS_BEFORE_CHANGE and now - life.last_change >= NO_CHANGE:
        unchanged = duration(_sec(now - life.last_change) / 60)
        words = f"no file changed for {unchanged} while {life.commands} commands ran"
        signs.append(Sign(1, life.last_change + NO_CHANGE, words))
    if life.same_command >= SAME_COMMAND:
        signs.append(Sign(1, life.last_output, f"the same command {life.same_command} times in a row"))
    if life.expected_minutes:
        long = timedelta(minutes=life.expected_minutes * TIMES_EXPECTED)
        if now - life.started > long:
            words = f"{duration(_sec(now - life.started) / 60)} of an expected {duration(life.expected_minutes)}"
            signs.append(Sign(1, life.started + long, words))
    return signs


def stale_since(signs: Iterable[Sign]) -> datetime | None:
    """Return the moment at which the signs together came to the stale score, or None below it."""
    score = 0
    for sign in sorted(signs, key=lambda sign: sign.since):
        score += sign.weight
        if score >= STALE_SCORE:
            return sign.since
    return None


class LifeWatch:
    """Tells of stalls and staleness, each once: a stall once per silence, staleness once per attempt.

    What began before ``since`` was told by an earlier watch, which ended then.
    """

    def __init__(self, *, stall_after_sec: float = DEFAULT_STALL_SEC, since: datetime | None = None) -> None:
        self._stall_after = timedelta(seconds=stall_after_sec)
        self._since = since
        self._told: set[tuple[object, ...]] = set()

    def look(self, lives: Sequence[Life], *, now: datetime, sequence: int) -> list[Notice]:
        """Return what there is to tell now; ``sequence`` is the newest event that was read."""
        found: list[Notice] = []
        for life in lives:
            found += self._stale(life, now, sequence) or self._stall(life, now, sequence)
        return found

    def _stale(self, life: Life, now: datetime, sequence: int) -> list[Notice]:
        signs = stale_signs(life, now)
        began = stale_since(signs)
        if began is None or not self._is_new(("stale", life.step, life.ordinal), began):
            return []
        # A silence that makes it stale is told by that.
        self._told.add(("stall", life.step, life.ordinal, life.last_output))
        reasons = [sign.words for sign in signs]
        line = f"⚠ {life.step} looks stale: {', '.join(reasons)}"
        return [_notice("stale", line, life, now, sequence, reasons=reasons)]

    def _stall(self, life: Life, now: datetime, sequence: int) -> list[Notice]:
        quiet = life.quiet(now)
        if life.in_flight or quiet < self._stall_after:
            return []
        if not self._is_new(("stall", life.step, life.ordinal, life.last_output), life.last_output + self._stall_after):
            return []
        line = f"⚠ {life.step} quiet for {minutes_and_seconds(_sec(quiet))}"
        return [_notice("stall", line, life, now, sequence, quiet_sec=int(_sec(quiet)))]

    def _is_new(self, key: tuple[object, ...], began: datetime) -> bool:
        if key in self._told:
            return False
        self._told.add(key)
        return self._since is None or began > self._since


def _notice(
    kind: str,
    line: str,
    life: Life,
    now: datetime,
    sequence: int,
    *,
    reasons: Sequence[str] = (),
    quiet_sec: int | None = None,
) -> Notice:
    facts = {"attempt": f"{life.step}-{life.ordinal}", "reasons": list(reasons), "quietSec": quiet_sec}
    return Notice(sequence, now, kind, line, about=life.step, trouble=True, wakes=True, facts=facts)


def _sec(span: timedelta) -> float:
    return span.total_seconds()
