"""What the engine of a run needs from outside: the home, the pools of this machine, an environment and a clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.pools.labels import Labels
from bullswarm_core.store.home import Home


def utc_now() -> datetime:
    """Return the present time, in UTC."""
    return datetime.now(UTC)


def _nobody_listens() -> None:
    pass


def _no_meter(pool_id: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Services:
    """Injected into everything that runs work, so that core knows no provider and tests set the clock.

    ``load_changed`` is called whenever work started or ended, after the ledger says so, and always by the same thread; all
    else may be called by the threads that prepare and judge attempts, too. ``freshen_meters`` is called before a pick, has old
    readings renewed and returns within about a second; ``read_meter`` has one pool's meter read now, whatever its age, and
    returns within about ten. Neither raises.
    """

    home: Home
    environ: Mapping[str, str]
    load_profiles: Callable[[], Sequence[PoolProfile]]
    now: Callable[[], datetime] = utc_now
    missing_secrets: tuple[str, ...] = ()
    load_changed: Callable[[], object] = _nobody_listens
    freshen_meters: Callable[[], object] = _nobody_listens
    read_meter: Callable[[str], object] = _no_meter

    def profile(self, pool_id: str) -> PoolProfile | None:
        """Return the pool's profile as it is now, or None when the pool no longer exists."""
        return next((profile for profile in self.load_profiles() if profile.id == pool_id), None)

    def labels(self) -> Labels:
        """Return the display labels, as they are now."""
        return Labels.load(self.home)

    def label(self, pool_id: str) -> str:
        """Return what people call the pool: its label, else its id."""
        return self.labels().shown(pool_id)
