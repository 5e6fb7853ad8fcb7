"""`bullswarm pools`: every pool with its meter, pace and load; `pools label|history|resume` is about one of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bullswarm_core.assemble import current_pools, routing_context, with_supposed_meters
from bullswarm_core.database import open_database
from bullswarm_core.errors import UsageError
from bullswarm_core.home import Home
from bullswarm_core.labels import Labels
from bullswarm_core.ledger import entries, inflight_by_pool
from bullswarm_core.pools import Inflight
from bullswarm_core.quarantines import quarantines_of
from bullswarm_core.quota.learned import Rates, learned_rates
from bullswarm_core.quota.supposed import parse_meters
from bullswarm_core.routing.overview import PoolOverview, overview
from bullswarm_core.routing.quarantine import Quarantine
from bullswarm_core.settings import Settings
from bullswarm_core.values import dataclass
from bullswarm_core.wire import iso, to_wire
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.displays.pools import pool_lines
from bullswarm_server.displays.text import Style, one_line
from bullswarm_server.ops.meters import renew

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from bullswarm_core.connector import PoolProfile
    from bullswarm_providers.registry import Registry

SCHEMA_VERSION = "bullswarm.pools.v1"
# The verbs below `pools`, by their modules: found without a parser, which `pools` alone doesn't need.
VERBS = {"label": "label", "history": "pools_history", "resume": "pools_resume"}
WATCH_SEC, MIN_WATCH_SEC, MAX_WATCH_SEC = 5.0, 0.2, 86400.0


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for: ``meter`` are suppositions as they were typed, ``watch`` the seconds between two looks.

    ``force`` has every meter read anew, whatever its age.
    """

    json: bool = False
    meter: tuple[str, ...] = ()
    watch: float | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """Every pool at one moment, the providers behind them, and what came of each meter that was to be read anew."""

    rows: tuple[PoolOverview, ...]
    registry: Registry
    now: datetime
    renewed: tuple[dict[str, Any], ...] = ()


def run(arguments: list[str], context: CommandContext) -> int:
    """Print one line per pool, or one JSON document; what changes is the readings, where they are old."""
    if arguments and arguments[0] in VERBS:
        code: int = module_of(arguments[0]).run(arguments[1:], context)
        return code
    options = _options(arguments)
    if options.watch is not None:
        from bullswarm_server.cli.pools_watch import follow

        return follow(lambda: look(options, context), seconds=options.watch, context=context)
    seen = look(options, context)
    if options.json:
        context.print_json(document(seen.rows, seen.registry, now=seen.now, renewed=seen.renewed))
        return 0
    context.print(*shown_lines(seen.rows, context))
    _note_problems(seen, context)
    return 0


def module_of(verb: str) -> Any:
    """Return the module of a verb below `pools`."""
    from importlib import import_module

    return import_module(f"bullswarm_server.cli.{VERBS[verb]}")


def look(options: Options, context: CommandContext) -> Look:
    """Return every pool as it is now. Raises UsageError for a supposition that can't be understood."""
    parse_meters(options.meter, now=datetime.now(UTC))  # what is wrong with the call comes before any reading
    registry = load_registry(context)
    settings = Settings.load(context.home)
    labels = Labels.load(context.home)
    renewed = renew(
        context.home,
        registry.profiles,
        settings,
        environ=context.environ,
        labels=labels,
        force=options.force,
        # A screen that is drawn in place has no line for it.
        tell=context.note if context.err.isatty() and options.watch is None else None,
    )
    now = datetime.now(UTC)
    supposed = parse_meters(options.meter, now=now)
    inflight, rates, quarantines = work_now(context.home, registry.profiles, settings, now=now)
    pools = current_pools(
        context.home, registry.profiles, settings, now=now, labels=labels, inflight=inflight, rates=rates
    )
    pools = with_supposed_meters(pools, supposed, labels=labels)
    routing = routing_context(settings, quarantines=quarantines)
    return Look(tuple(overview(pool, now=now, context=routing) for pool in pools), registry, now, renewed)


def shown_lines(rows: Sequence[PoolOverview], context: CommandContext, *, notes: bool = True) -> list[str]:
    """Return a table with bars for a terminal, and for everything else one line a pool.

    ``notes`` are the commands that would open a pool; whole, to be copied, they may be longer than a line.
    """
    if not context.out.isatty():
        return pool_lines(rows, style=Style(colour=context.colour))
    from bullswarm_server.displays.pools_terminal import permission_notes, pool_table
    from bullswarm_server.displays.terminal import terminal_of

    terminal = terminal_of(context.out, context.environ, colour=context.colour)
    return [*pool_table(rows, terminal), *(map(terminal.spelled, permission_notes(rows)) if notes else ())]


def load_registry(context: CommandContext) -> Registry:
    """Return the pools of this machine, as the installed and local providers find them."""
    from bullswarm_providers.registry import load

    return load(context.home, context.environ)


def work_now(
    home: Home, profiles: Sequence[PoolProfile], settings: Settings, *, now: datetime
) -> tuple[dict[str, tuple[Inflight, ...]], dict[str, Rates], dict[str, Quarantine]]:
    """Return by pool what is in flight, across every process, what a minute of work spends, and what is quarantined.

    The ledger is left as it is; rates that had to be fitted anew are kept for the next time.
    """
    connection = open_database(home, readonly=True)
    if connection is None:
        return {}, {}, {}
    try:
        inflight = inflight_by_pool(entries(connection, now=now))
        pool_ids = [profile.id for profile in profiles]
        rates = learned_rates(home, pool_ids, connection, inflight=inflight, write_cache=True)
        return inflight, rates, quarantines_of(settings, connection, now=now)
    finally:
        connection.close()


def document(
    rows: Sequence[PoolOverview], registry: Registry, *, now: datetime, renewed: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Return the machine form: ids with ``poolLabel`` beside them, and the providers that could not be loaded.

    ``renewed`` tells what came of each meter that was read on demand; without a demand it isn't there.
    """
    profiles = {profile.id: profile for profile in registry.profiles}
    return {
        "schemaVersion": SCHEMA_VERSION,
        "at": iso(now),
        "pools": [{**row.to_json(), **_account(profiles[row.pool.id])} for row in rows],
        "problems": [to_wire(problem) for problem in registry.problems],
        **({"renewed": list(renewed)} if renewed else {}),
    }


def _account(profile: PoolProfile) -> dict[str, Any]:
    return {"billing": profile.billing, "signedIn": profile.signed_in, "configDir": profile.config_dir}


def _note_problems(seen: Look, context: CommandContext) -> None:
    if not seen.rows:
        context.note("no pool: no agent CLI was found on this machine · `bullswarm doctor` says where it looked")
    if seen.renewed:
        from bullswarm_server.ops.meters import outcome_lines

        context.note(*map(one_line, outcome_lines(seen.renewed, now=seen.now)))
    for problem in seen.registry.problems:
        context.note(one_line(f"provider {problem.name}: {problem.message} ({problem.where})"))


def _options(arguments: list[str]) -> Options:
    # Without arguments there is nothing to parse, and argparse is a tenth of the time in which `pools` answers.
    if not arguments:
        return Options()
    if not arguments[0].startswith("-"):
        from bullswarm_server.cli.help_format import meant

        raise UsageError(
            f'pools takes no word "{arguments[0]}"',
            hint=f"{meant(arguments[0], VERBS)}bullswarm pools alone shows every pool; label, history and resume take one:"
            " bullswarm pools history POOL",
        )
    found = _parser().parse_args(arguments)
    if found.json and found.watch is not None:
        raise UsageError("--watch follows with lines, and --json prints one document", hint="give one of them")
    return Options(found.json, tuple(found.meter), found.watch, found.force)


def _parser() -> ArgumentParser:
    from bullswarm_server.cli.help_format import Parser
    from bullswarm_server.cli.meter_argument import add_meter_argument

    parser = Parser(
        prog="bullswarm pools",
        description="One line per pool: the meter it is paced from, its surplus, load, 5-hour window and state. On a"
        " terminal with bars, whose mark is the window's clock; elsewhere with every number.",
        epilog="bullswarm pools label <pool> <label> | --list | <pool> --clear: what people see instead of an id."
        " bullswarm pools history <pool> [--svg FILE]: its use against its pace."
        " bullswarm pools resume <pool>: end its quarantine.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document (bullswarm.pools.v1)")
    parser.add_argument(
        "--force",
        action="store_true",
        help="read every meter now, as often as its vendor bears it, and say what failed",
    )
    parser.add_argument(
        "--watch",
        nargs="?",
        type=_seconds,
        const=WATCH_SEC,
        metavar="SECONDS",
        help=f"follow, with a look every SECONDS (default {WATCH_SEC:.0f}), to Ctrl-C",
    )
    add_meter_argument(parser)
    return parser


def _seconds(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not MIN_WATCH_SEC <= seconds <= MAX_WATCH_SEC:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds from {MIN_WATCH_SEC:g} to {MAX_WATCH_SEC:g}")
    return seconds
