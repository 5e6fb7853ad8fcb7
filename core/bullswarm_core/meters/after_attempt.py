"""After each attempt, what its CLI told of the account's windows in passing becomes a reading: it cost nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bullswarm_core.errors import BullswarmError
from bullswarm_core.meters.due import mode_of
from bullswarm_core.store.home import Home

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import PoolProfile
    from bullswarm_core.streams.facts import ExitFacts, StreamFacts


def keep_attempt_reading(
    home: Home,
    profile: PoolProfile,
    *,
    stream_file: Path,
    stream: StreamFacts,
    ended: ExitFacts,
    environ: Mapping[str, str],
    now: datetime,
) -> None:
    """Store what the provider's ``attempt_reading`` finds; never raises, for a verdict doesn't depend on a meter."""
    read = getattr(profile.provider, "attempt_reading", None)
    if not callable(read) or mode_of(environ) == "off":
        return
    from bullswarm_core.meters.refresh import keep
    from bullswarm_core.quota.observation import Observation

    try:
        found = read(profile, stream_file=stream_file, stream=stream, ended=ended, now=now)
    except Exception:
        # A provider's own code may be anybody's; an attempt that has ended must get its verdict.
        return
    if isinstance(found, Observation) and found.windows:
        try:
            keep(home, profile.id, (found,), now=now, billing=profile.billing)
        except (BullswarmError, OSError):
            return
