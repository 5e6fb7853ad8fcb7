"""Which pools' meters may and should be read now: what every verb may ask without loading what reads them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from bullswarm_core.quota.holds import is_fresh, next_step
from bullswarm_core.quota.reading import Reading

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import PoolProfile

VARIABLE = "BULLSWARM_METERS"
Mode = Literal["live", "passive", "off"]


def mode_of(environ: Mapping[str, str]) -> Mode:
    """Return how meters are read: ``live``, ``passive`` (files of this machine only) or ``off``.

    A word that nobody knows is ``off``: whoever sets the variable wants less to be asked, never more.
    """
    word = environ.get(VARIABLE, "").strip().lower() or "live"
    return "live" if word == "live" else "passive" if word == "passive" else "off"


def why_not_read(profile: PoolProfile, *, enabled: bool) -> str | None:
    """Say why a pool's meter is never read, or None: only an account in use, with a proven sign-in, is worth a question."""
    if profile.connector.meter.type != "reader" or not has_reader(profile):
        return "its usage can't be read"
    if not enabled:
        return "you turned the pool off"
    if profile.signed_in is not True:
        return "it is not known to be signed in"
    return None


def has_reader(profile: PoolProfile) -> bool:
    """Tell whether the provider knows a way to read usage."""
    return any(callable(getattr(profile.provider, name, None)) for name in ("live_reading", "passive_readings"))


def fresh(reading: Reading, profile: PoolProfile, *, now: datetime) -> bool:
    """Tell whether the pool's reading needs no new one."""
    return is_fresh(reading.windows, checked_at=reading.checked_at, declared=profile.connector.meter.windows, now=now)


def is_due(reading: Reading, profile: PoolProfile, *, now: datetime) -> bool:
    """Tell whether a pool whose meter may be read should be."""
    return next_step(fresh=fresh(reading, profile, now=now), hold=reading.hold, now=now) == "live"
