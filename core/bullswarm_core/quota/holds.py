"""When a meter may be asked: hold, fresh cache, live, stale; the holds on disk, and the locks around meters.

The rules are pure, over a clock that is passed in. A stamp from the future was made by a clock that was wrong; it never keeps
a meter silent. ``meters/<pool>.hold.json`` keeps a failed meter silent for a while, also after a restart; a file that can't
be understood holds nothing. The locks are the operating system's and die with their holder: one process at a time asks an
account's vendor, and one at a time rewrites a pool's meter file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import LockTimeoutError, StateError
from bullswarm_core.fast.files import file_name_of
from bullswarm_core.store.home import Home, file_lock, read_json, write_json
from bullswarm_core.wire import iso, parse_iso

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import PoolProfile
    from bullswarm_core.pools.model import Window


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


SCHEMA_VERSION = "bullswarm.meter-hold.v1"


def hold_file(home: Home, pool_id: str) -> Path:
    """Return where the hold of a pool's meter is kept."""
    return home.meters_dir / f"{file_name_of(pool_id)}.hold.json"


def load_hold(home: Home, pool_id: str) -> tuple[Hold | None, str | None]:
    """Return the pool's last failed attempt, and what is wrong with the file that should tell it; never fails."""
    path = hold_file(home, pool_id)
    try:
        document = read_json(path)
    except StateError as error:
        return None, error.message
    if document is None:
        return None, None
    hold = hold_from(document)
    return hold, None if hold else f"{path} is no hold of a meter and was ignored"


def hold_from(document: Any) -> Hold | None:
    """Build a hold from the content of its file; None when that makes no sense. A pause beyond a day counts as a day."""
    try:
        if document["schemaVersion"] != SCHEMA_VERSION:
            return None
        seconds, failures, hint = document["pauseSec"], document["failures"], document.get("hint")
        if isinstance(seconds, bool) or isinstance(failures, bool) or not isinstance(failures, int):
            return None
        # A comparison with what is no number fails, and one with NaN is false.
        if not (seconds >= 0 and failures >= 1):
            return None
        hold = Hold(
            parse_iso(document["failedAt"]),
            timedelta(seconds=min(float(seconds), LONGEST_HOLD.total_seconds())),
            kind=str(document["kind"]),
            reason=str(document["reason"]),
            hint=hint if isinstance(hint, str) else None,
            failures=failures,
        )
        return hold if hold.until else None  # a time that no clock can show raises here
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None


def write_hold(home: Home, pool_id: str, hold: Hold) -> None:
    """Keep a hold. Raises StorageError when the disk refuses."""
    write_json(
        hold_file(home, pool_id),
        {
            "schemaVersion": SCHEMA_VERSION,
            "pool": pool_id,
            "failedAt": iso(hold.failed_at),
            "pauseSec": hold.pause.total_seconds(),
            "kind": hold.kind,
            "reason": hold.reason,
            "hint": hold.hint,
            "failures": hold.failures,
        },
    )


def clear_hold(home: Home, pool_id: str) -> None:
    """Forget the pool's failed attempts; where the disk refuses, the hold ends by itself."""
    with contextlib.suppress(OSError):
        hold_file(home, pool_id).unlink(missing_ok=True)


# Whoever holds it reads and writes one small file.
_METER_PATIENCE_SEC = 5.0


def meter_lock(home: Home, pool_id: str) -> AbstractContextManager[None]:
    """Hold the right to rewrite the pool's meter file. Raises LockTimeoutError or StorageError."""
    return file_lock(home.meters_dir / "locks" / f"{file_name_of(pool_id)}.lock", timeout_sec=_METER_PATIENCE_SEC)


def started_file(home: Home, pool_id: str) -> Path:
    """The mark of whoever started to read a pool's meter: when that was is its time of change."""
    return home.meters_dir / "locks" / f"{file_name_of(pool_id)}.started"


def identity_of(profile: PoolProfile) -> str:
    """Name the account behind a pool, for a file: pools with one account share one lease.

    The account is known by its id, else by the folder that holds its sign-in, else it is the provider's only one.
    """
    import hashlib

    connector = profile.connector
    group = connector.credential_group or connector.name
    who = profile.account or (os.path.realpath(profile.config_dir) if profile.config_dir else profile.id)
    digest = hashlib.sha256(f"{group}|{who}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{file_name_of(group)}-{digest[:16]}"


@contextlib.contextmanager
def lease(home: Home, identity: str, *, wait_sec: float = 0.0) -> Iterator[bool]:
    """Hold the right to ask this account's vendor for the block, if it can be had within ``wait_sec``; yield whether it was.

    Raises StorageError where no lock file can be made: without one nobody can be sure to be alone.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(file_lock(_file(home, identity, "lease"), timeout_sec=wait_sec))
        except LockTimeoutError:
            yield False
            return
        yield True


def polled_at(home: Home, identity: str) -> datetime | None:
    """Return when this account's vendor was asked last, as far as that is known."""
    try:
        return parse_iso(read_json(_file(home, identity, "asked.json"))["polledAt"])
    except (StateError, TypeError, KeyError, ValueError):
        return None


def note_poll(home: Home, identity: str, *, now: datetime | None) -> None:
    """Write down that the vendor is asked now, before it is: what can't be written down isn't asked. None is never.

    Raises StorageError when the disk refuses; else a full disk would have every process ask anew.
    """
    write_json(_file(home, identity, "asked.json"), {"polledAt": None if now is None else iso(now)})


def _file(home: Home, identity: str, kind: str) -> Path:
    return home.meters_dir / "locks" / f"{identity}.{kind}"
