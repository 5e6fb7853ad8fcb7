"""This machine as the engine needs it: the home, the pools of the installed CLIs, an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from bullswarm_core._dataclasses import replace
from bullswarm_core.dispatch.services import Services, utc_now
from bullswarm_core.errors import BullswarmError
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.store.home import Home


def services_for(
    home: Home,
    environ: Mapping[str, str],
    *,
    missing_secrets: tuple[str, ...] = (),
    write_cache: bool = True,
    now: Callable[[], datetime] = utc_now,
) -> Services:
    """Return the engine's services; with ``write_cache`` False nothing at all is written (a dry run), and no meter
    is read."""
    from bullswarm_providers.registry import load

    def load_profiles() -> Sequence[PoolProfile]:
        return load(home, environ, write_cache=write_cache).profiles

    services = Services(
        home=home, environ=environ, load_profiles=load_profiles, now=now, missing_secrets=missing_secrets
    )
    if not write_cache:
        return services

    def freshen_meters() -> None:
        from bullswarm_core.pools.settings import Settings
        from bullswarm_server.ops.meters import bring_up_to_date

        # Settings that can't be read stop the pick itself, with their own words.
        with suppress(BullswarmError):
            bring_up_to_date(home, load_profiles(), Settings.load(home), environ=environ)

    def read_meter(pool_id: str) -> None:
        from bullswarm_core.pools.settings import Settings
        from bullswarm_server.ops.meters import AFTER_LIMIT_SEC, read_now, readable_pools

        with suppress(BullswarmError):
            readable = readable_pools(load_profiles(), Settings.load(home), environ=environ)
            wanted = [profile.id for profile in readable if profile.id == pool_id]
            read_now(home, wanted, environ=environ, patience_sec=AFTER_LIMIT_SEC)

    return replace(services, freshen_meters=freshen_meters, read_meter=read_meter)


def why_no_pool(home: Home, environ: Mapping[str, str]) -> Callable[[str], str | None]:
    """Return what says why a provider's name is no pool; the providers are looked at only when it is asked."""

    def why(name: str) -> str | None:
        from bullswarm_providers.registry import load

        return load(home, environ, write_cache=False).why_no_pool(name)

    return why
