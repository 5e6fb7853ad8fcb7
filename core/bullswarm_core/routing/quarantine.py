"""Quarantine: a pool that just failed for a limit or a dead sign-in is left out for a known time, then tried again.

Only the ``classic`` policy remembers and honours it
(docs/design/routing.md, "Quarantine").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

from bullswarm_core._dataclasses import dataclass

QuarantineKind = Literal["quota", "auth"]
KINDS: tuple[QuarantineKind, ...] = ("quota", "auth")
UNKNOWN_RESET = timedelta(minutes=30)
"""How long a usage limit keeps a pool out when neither the notice nor its 5-hour reading tells a reset."""
AUTH_REPROBE = timedelta(minutes=10)
"""How long a sign-in that failed upstream keeps a pool and its group out, whatever the failure says."""
_LAST_SECOND = datetime.max.replace(microsecond=0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A pool kept out before ``until`` (UTC, whole seconds) because of ``why``; it ends by itself."""

    pool: str
    kind: QuarantineKind
    until: datetime
    why: str


def after_limit(
    pool: str, why: str, *, now: datetime, named_reset: datetime | None, five_hour_reset: datetime | None
) -> Quarantine | None:
    """The quarantine after a usage limit; None where the reset that the provider named has come already.

    It ends at the named reset, else at the reset of the pool's cached 5-hour reading, else after 30 minutes. It never
    spreads: the window of a sibling is its own.
    """
    if named_reset is not None:
        return Quarantine(pool, "quota", _whole(named_reset), why) if named_reset > now else None
    ahead = five_hour_reset if five_hour_reset is not None and five_hour_reset > now else None
    return Quarantine(pool, "quota", _whole(ahead or now + UNKNOWN_RESET), why)


def after_auth_failure(pool: str, why: str, *, now: datetime, siblings: Iterable[str] = ()) -> tuple[Quarantine, ...]:
    """The quarantines after a sign-in that failed upstream: of the pool, and of those that share its credential.

    All end at one moment, 10 minutes from ``now``.
    """
    until = _whole(now + AUTH_REPROBE)
    others = sorted(set(siblings) - {pool})
    return (
        Quarantine(pool, "auth", until, why),
        *(Quarantine(other, "auth", until, f"sibling of {pool}: {why}") for other in others),
    )


def merged(known: Mapping[str, Quarantine], new: Iterable[Quarantine]) -> dict[str, Quarantine]:
    """The quarantines by pool after ``new`` ones: a later deadline that stands is never shortened."""
    result = dict(known)
    for entry in new:
        standing = result.get(entry.pool)
        if standing is None or entry.until > standing.until:
            result[entry.pool] = entry
    return result


def _whole(moment: datetime) -> datetime:
    """The next whole second: a deadline is stored and shown to the second, and must not come early."""
    whole = moment.replace(microsecond=0)
    # The last second that there is (a damaged reading may name it) has no next one.
    return whole if moment.microsecond == 0 or moment >= _LAST_SECOND else whole + timedelta(seconds=1)
