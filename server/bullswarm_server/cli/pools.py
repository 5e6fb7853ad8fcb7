"""`bullswarm pools`: every pool with its meter, pace and load; `pools label` names one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bullswarm_core.assemble import current_pools, routing_context, with_supposed_meters
from bullswarm_core.database import open_database
from bullswarm_core.home import Home
from bullswarm_core.labels import Labels
from bullswarm_core.ledger import entries, inflight_by_pool
from bullswarm_core.pools import Inflight
from bullswarm_core.quota.learned import Rates, learned_rates
from bullswarm_core.quota.supposed import parse_meters
from bullswarm_core.routing.overview import PoolOverview, overview
from bullswarm_core.settings import Settings
from bullswarm_core.values import dataclass
from bullswarm_core.wire import iso, to_wire
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.displays.pools import pool_lines
from bullswarm_server.displays.text import Style, one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from bullswarm_core.connector import PoolProfile
    from bullswarm_providers.registry import Registry

SCHEMA_VERSION = "bullswarm.pools.v1"


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for: ``meter`` are suppositions as they were typed."""

    json: bool = False
    meter: tuple[str, ...] = ()


def run(arguments: list[str], context: CommandContext) -> int:
    """Print one line per pool, or one JSON document; changes nothing."""
    if arguments[:1] == ["label"]:
        from bullswarm_server.cli import label

        return label.run(arguments[1:], context)
    options = _options(arguments)
    now = datetime.now(UTC)
    supposed = parse_meters(options.meter, now=now)
    registry = load_registry(context)
    settings = Settings.load(context.home)
    labels = Labels.load(context.home)
    inflight, rates = work_now(context.home, registry.profiles, now=now)
    pools = current_pools(
        context.home, registry.profiles, settings, now=now, labels=labels, inflight=inflight, rates=rates
    )
    pools = with_supposed_meters(pools, supposed, labels=labels)
    rows = [overview(pool, now=now, context=routing_context(settings)) for pool in pools]
    if options.json:
        context.print_json(document(rows, registry, now=now))
        return 0
    _print_lines(rows, registry, context)
    return 0


def load_registry(context: CommandContext) -> Registry:
    """Return the pools of this machine, as the installed and local providers find them."""
    from bullswarm_providers.registry import load

    return load(context.home, context.environ)


def work_now(
    home: Home, profiles: Sequence[PoolProfile], *, now: datetime
) -> tuple[dict[str, tuple[Inflight, ...]], dict[str, Rates]]:
    """Return what is in flight on each pool, across every process, and what a minute of work spends of its windows.

    The ledger is left as it is; rates that had to be fitted anew are kept for the next time.
    """
    connection = open_database(home, readonly=True)
    if connection is None:
        return {}, {}
    try:
        inflight = inflight_by_pool(entries(connection, now=now))
        pool_ids = [profile.id for profile in profiles]
        return inflight, learned_rates(home, pool_ids, connection, inflight=inflight, write_cache=True)
    finally:
        connection.close()


def document(rows: Sequence[PoolOverview], registry: Registry, *, now: datetime) -> dict[str, Any]:
    """Return the machine form: ids with ``poolLabel`` beside them, and the providers that could not be loaded."""
    profiles = {profile.id: profile for profile in registry.profiles}
    return {
        "schemaVersion": SCHEMA_VERSION,
        "at": iso(now),
        "pools": [{**row.to_json(), **_account(profiles[row.pool.id])} for row in rows],
        "problems": [to_wire(problem) for problem in registry.problems],
    }


def _account(profile: PoolProfile) -> dict[str, Any]:
    return {"billing": profile.billing, "signedIn": profile.signed_in, "configDir": profile.config_dir}


def _print_lines(rows: Sequence[PoolOverview], registry: Registry, context: CommandContext) -> None:
    billing = {profile.id: profile.billing for profile in registry.profiles}
    lines = pool_lines(rows, style=Style(colour=context.colour))
    for row, line in zip(rows, lines, strict=True):
        # A key is paid by the token: the person must see it beside the pool that would spend it (design D9).
        context.print(f"{line} billing=api-key" if billing[row.pool.id] == "api-key" else line)
    if not rows:
        context.note("no pool: no agent CLI was found on this machine · `bullswarm doctor` says where it looked")
    for problem in registry.problems:
        context.note(one_line(f"provider {problem.name}: {problem.message} ({problem.where})"))


def _options(arguments: list[str]) -> Options:
    # Without arguments there is nothing to parse, and argparse is a tenth of the time in which `pools` answers.
    if not arguments:
        return Options()
    found = _parser().parse_args(arguments)
    return Options(found.json, tuple(found.meter))


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser

    from bullswarm_server.cli.help_format import QuickHelp

    parser = ArgumentParser(
        prog="bullswarm pools",
        allow_abbrev=False,
        formatter_class=QuickHelp,
        description="One line per pool: cost, lanes, the meter it is paced from, surplus, load, 5-hour window, state.",
        epilog="bullswarm pools label <pool> <label> | --list | <pool> --clear: what people see instead of an id.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document (bullswarm.pools.v1)")
    parser.add_argument(
        "--meter",
        action="append",
        default=[],
        metavar="POOL:WINDOW=USED[@RESET]",
        help="suppose a reading, such as codex:weekly=33%%@+2d (repeatable)",
    )
    return parser
