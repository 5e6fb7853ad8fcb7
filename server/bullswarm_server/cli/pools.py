"""`bullswarm pools`: every pool with its meter, pace and load; `pools label|history|resume` is about one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import UsageError
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.pools_lines import shown_lines
from bullswarm_server.displays.text import one_line
from bullswarm_server.ops.pools import PoolsNow, look_at_pools

if TYPE_CHECKING:
    from argparse import ArgumentParser


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
        context.print_json(seen.document())
        return 0
    context.print(*shown_lines(seen.rows, context))
    _note_problems(seen, context)
    return 0


def module_of(verb: str) -> Any:
    """Return the module of a verb below `pools`."""
    from importlib import import_module

    return import_module(f"bullswarm_server.cli.{VERBS[verb]}")


def look(options: Options, context: CommandContext) -> PoolsNow:
    """Return every pool as it is now. Raises UsageError for a supposition that can't be understood."""
    # A screen that is drawn in place has no line for what is being read.
    tell = context.note if context.err.isatty() and options.watch is None else None
    return look_at_pools(context.ops, meters=options.meter, force=options.force, tell=tell)


def _note_problems(seen: PoolsNow, context: CommandContext) -> None:
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
