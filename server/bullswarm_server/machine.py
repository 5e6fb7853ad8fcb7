"""This machine as the engine needs it: the home, the pools of the installed CLIs, an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from bullswarm_core.connector import PoolProfile
from bullswarm_core.home import Home
from bullswarm_core.runs.services import Services, utc_now


def services_for(
    home: Home,
    environ: Mapping[str, str],
    *,
    missing_secrets: tuple[str, ...] = (),
    write_cache: bool = True,
    now: Callable[[], datetime] = utc_now,
) -> Services:
    """Return the engine's services; with ``write_cache`` False nothing at all is written (a dry run)."""
    from bullswarm_providers.registry import load

    def load_profiles() -> Sequence[PoolProfile]:
        return load(home, environ, write_cache=write_cache).profiles

    return Services(home=home, environ=environ, load_profiles=load_profiles, now=now, missing_secrets=missing_secrets)


def why_no_pool(home: Home, environ: Mapping[str, str]) -> Callable[[str], str | None]:
    """Return what says why a provider's name is no pool; the providers are looked at only when it is asked."""

    def why(name: str) -> str | None:
        from bullswarm_providers.registry import load

        return load(home, environ, write_cache=False).why_no_pool(name)

    return why
