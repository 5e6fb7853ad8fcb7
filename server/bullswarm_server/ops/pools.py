"""Every pool at one moment, with its meters, pace, load and state; what changes is the readings, where they are old."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.dispatch.assemble import current_pools, routing_context, with_supposed_meters
from bullswarm_core.dispatch.ledger import entries, inflight_by_pool
from bullswarm_core.dispatch.quarantines import quarantines_of
from bullswarm_core.pools import Inflight
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Settings
from bullswarm_core.quota.overrides import parse_meters
from bullswarm_core.quota.rate_cache import Rates, learned_rates
from bullswarm_core.routing.overview import PoolOverview, overview
from bullswarm_core.routing.quarantine import Quarantine
from bullswarm_core.wire import iso, to_wire
from bullswarm_server.ops.context import Context
from bullswarm_server.ops.meters import renew

if TYPE_CHECKING:
    from bullswarm_core.pools.connector import PoolProfile
    from bullswarm_providers.registry import Registry

SCHEMA_VERSION = "bullswarm.pools.v1"


@dataclass(frozen=True, slots=True)
class PoolsNow:
    """Every pool at one moment, the providers behind them, and the outcome of each meter that was read on demand."""

    rows: tuple[PoolOverview, ...]
    registry: Registry
    now: datetime
    renewed: tuple[dict[str, Any], ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the machine form: ids, each with its ``poolLabel``, and the providers that could not be loaded.

        ``renewed`` is there only where meters were read on demand.
        """
        profiles = {profile.id: profile for profile in self.registry.profiles}
        return {
            "schemaVersion": SCHEMA_VERSION,
            "at": iso(self.now),
            "pools": [{**row.to_json(), **_account(profiles[row.pool.id])} for row in self.rows],
            "problems": [to_wire(problem) for problem in self.registry.problems],
            **({"renewed": list(self.renewed)} if self.renewed else {}),
        }


def load_registry(ctx: Context) -> Registry:
    """Return the pools of this machine, as the installed and local providers find them."""
    from bullswarm_providers.registry import load

    return load(ctx.home, ctx.environ)


def look_at_pools(
    ctx: Context,
    *,
    only: str | None = None,
    meters: Sequence[str] = (),
    force: bool = False,
    tell: Callable[[str], object] | None = None,
) -> PoolsNow:
    """Return every pool as it is now, or the one that ``only`` names by id or label.

    Old readings are renewed for a second at most; ``force`` has all that are shown read now, for up to 20 s, and ``tell``
    is told which. ``meters`` are supposed readings. Raises UsageError for one that can't be understood, UnknownNameError
    for a name that no pool has.
    """
    parse_meters(meters, now=ctx.now())  # what is wrong with the call comes before any reading
    registry = load_registry(ctx)
    settings, labels = Settings.load(ctx.home), Labels.load(ctx.home)
    shown = registry.profiles
    if only is not None:
        wanted = labels.resolve(only, registry.pool_ids(), why_no_pool=registry.why_no_pool)
        shown = tuple(profile for profile in shown if profile.id == wanted)
    renewed = renew(ctx.home, shown, settings, environ=ctx.environ, labels=labels, force=force, tell=tell)
    now = ctx.now()
    inflight, rates, quarantines = work_now(ctx, registry.profiles, settings, now=now)
    pools = current_pools(ctx.home, registry.profiles, settings, now=now, labels=labels, inflight=inflight, rates=rates)
    pools = with_supposed_meters(pools, parse_meters(meters, now=now), labels=labels)
    routing = routing_context(settings, quarantines=quarantines)
    ids = {profile.id for profile in shown}
    rows = tuple(overview(pool, now=now, context=routing) for pool in pools if pool.id in ids)
    return PoolsNow(rows, registry, now, renewed)


def work_now(
    ctx: Context, profiles: Sequence[PoolProfile], settings: Settings, *, now: datetime
) -> tuple[dict[str, tuple[Inflight, ...]], dict[str, Rates], dict[str, Quarantine]]:
    """Return by pool what is in flight, across every process, what a minute of work spends, and what is quarantined.

    The ledger is left as it is; rates that had to be fitted again are kept for the next time.
    """
    with ctx.reading() as connection:
        if connection is None:
            return {}, {}, {}
        inflight = inflight_by_pool(entries(connection, now=now))
        pool_ids = [profile.id for profile in profiles]
        rates = learned_rates(ctx.home, pool_ids, connection, inflight=inflight, write_cache=True)
        return inflight, rates, quarantines_of(settings, connection, now=now)


def _account(profile: PoolProfile) -> dict[str, Any]:
    return {"billing": profile.billing, "signedIn": profile.signed_in, "configDir": profile.config_dir}
