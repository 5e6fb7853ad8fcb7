"""When a meter may be asked: hold, fresh cache, live, stale.

Rule: docs/design/quota.md, "When a vendor is asked".

Pure rules over a clock that is passed in. A stamp from the future was made by a clock that was wrong; it never keeps a meter
silent.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from bullswarm_core.values import dataclass

if TYPE_CHECKING:
    from bullswarm_core.pools import Window

FRESH = timedelta(minutes=5)
"""A reading this young is not asked for again."""
STALE = timedelta(minutes=60)
"""A reading older than this is shown as stale whatever came of the last attempt."""
CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far ahead of us another clock may be before its stamp is no use."""
FIRST_BACKOFF = timedelta(minutes=5)
"""Least pause after a failure, and after a vendor's 429 whatever its Retry-After says (``retry-after: 0`` was seen)."""
LONGEST_BACKOFF = timedelta(minutes=30)
"""A pause that doubles with each 429 in a row grows no further."""
LONGEST_HOLD = timedelta(hours=24)
"""A Retry-After beyond a day is a mistake of somebody; a meter that is silent for longer would be forgotten."""

Step = Literal["fresh", "held", "waits", "live"]


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a meter isn't asked for a while: the attempt of ``failed_at`` failed.

    ``kind`` is that of the MeterError, ``reason`` its short text, ``hint`` the way out, ``failures`` how often in a row
    the vendor said that it is asked too often.
    """

    failed_at: datetime
    pause: timedelta
    kind: str = "unreadable"
    reason: str = ""
    hint: str | None = None
    failures: int = 1

    @property
    def until(self) -> datetime:
        """When the meter may be asked again."""
        return self.failed_at + self.pause


def hold_after(
    *,
    kind: str,
    reason: str,
    now: datetime,
    retry_after_sec: float | None = None,
    hint: str | None = None,
    previous: Hold | None = None,
) -> Hold:
    """Return the hold that a failed attempt leaves.

    After a 429 (``limited``) 5 minutes, doubled with each further one up to 30, or the vendor's Retry-After if that is longer;
    after anything else the vendor's Retry-After if it named a positive one, else 5 minutes. Never more than a day.
    """
    asked = _span(retry_after_sec)
    if kind != "limited":
        return Hold(now, asked or FIRST_BACKOFF, kind, reason, hint)
    failures = previous.failures + 1 if previous is not None and previous.kind == "limited" else 1
    # Three doublings exceed the longest backoff; the exponent must not grow with a year of failures.
    own = min(FIRST_BACKOFF * 2 ** min(failures - 1, 3), LONGEST_BACKOFF)
    return Hold(now, max(own, asked), kind, reason, hint, failures)


def _span(seconds: float | None) -> timedelta:
    # The comparison is false for NaN, too.
    return timedelta(seconds=min(seconds, LONGEST_HOLD.total_seconds())) if seconds and seconds > 0 else timedelta(0)


def is_held(hold: Hold | None, now: datetime) -> bool:
    """Tell whether the hold is in force: not when it is over, nor when it begins in the future."""
    return hold is not None and hold.failed_at - now <= CLOCK_TOLERANCE and now < hold.until


def is_young(moment: datetime | None, now: datetime, limit: timedelta = FRESH) -> bool:
    """Tell whether ``moment`` is at most ``limit`` ago; never for a moment that lies in the future."""
    return moment is not None and moment - now <= CLOCK_TOLERANCE and now - moment <= limit


def is_fresh(
    windows: Collection[Window], *, checked_at: datetime | None, declared: Collection[str] = (), now: datetime
) -> bool:
    """Tell whether a pool's reading needs no new one.

    It is fresh when everything was told at once in the last 5 minutes (``checked_at``), or each window was: those that stand
    in the reading, and those that the connector declares as long as nobody ever told all. A window that has ended since it was
    read asks for a new reading at once: what comes after a reset is unknown.
    """
    told = [window for window in windows if window.scope is None and window.source not in ("refusal", "declared")]
    if any(_ended_since(window, now) for window in told):
        return False
    if is_young(checked_at, now):
        return True
    wanted = {window.kind for window in told} | (set() if checked_at else set(declared))
    return bool(wanted) and wanted <= {window.kind for window in told if is_young(window.captured_at, now)}


def _ended_since(window: Window, now: datetime) -> bool:
    if window.resets_at is None or window.captured_at is None:
        return False
    return window.captured_at < window.resets_at <= now


def may_ask_at(polled_at: datetime | None, min_interval_sec: float, now: datetime) -> datetime:
    """Return when the vendor may be asked next, which may be ``now``: ``min_interval_sec`` after the last time."""
    if polled_at is None or polled_at - now > CLOCK_TOLERANCE:
        return now
    return max(now, polled_at + timedelta(seconds=min_interval_sec))


def next_step(
    *,
    fresh: bool,
    hold: Hold | None,
    now: datetime,
    polled_at: datetime | None = None,
    min_interval_sec: float = 0.0,
    force: bool = False,
) -> Step:
    """Say what is to be done for a meter now: nothing (``fresh``, ``held``, ``waits``), or one live reading.

    ``force`` goes past freshness and hold, and never below the vendor's least interval between two readings: asking more often
    gets an account refused for half an hour and tells nothing that was not told a moment ago.
    """
    if fresh and not force:
        return "fresh"
    if is_held(hold, now) and not force:
        return "held"
    return "waits" if may_ask_at(polled_at, min_interval_sec, now) > now else "live"
