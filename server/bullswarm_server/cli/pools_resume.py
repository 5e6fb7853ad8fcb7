"""`bullswarm pools resume <pool>`: end the quarantine of a pool before its time, so that the next pick may try it again."""

from __future__ import annotations

import argparse
import contextlib
from datetime import UTC, datetime

from bullswarm_core.dispatch.quarantines import in_force, lift
from bullswarm_core.pools.labels import Labels
from bullswarm_core.quota.reading import load_reading
from bullswarm_core.quota.windows import readings, spent_window
from bullswarm_core.routing.eligibility import LIMIT_NAMES
from bullswarm_core.routing.quarantine import Quarantine
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home
from bullswarm_core.wire import iso
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.displays.text import one_line
from bullswarm_server.ops.pools import load_registry

SCHEMA_VERSION = "bullswarm.pools-resume.v1"


def run(arguments: list[str], context: CommandContext) -> int:
    """End one quarantine, or say that there is none. Raises UnknownNameError for no pool."""
    options = _parser().parse_args(arguments)
    registry, labels = load_registry(context.ops), Labels.load(context.home)
    pool_id = labels.resolve(options.pool, registry.pool_ids(), why_no_pool=registry.why_no_pool)
    ended = _lifted(context.home, pool_id, now=datetime.now(UTC))
    if options.json:
        context.print_json(
            {
                "schemaVersion": SCHEMA_VERSION,
                "pool": pool_id,
                "poolLabel": labels.of(pool_id),
                "ended": None if ended is None else {"kind": ended.kind, "until": iso(ended.until), "why": ended.why},
            }
        )
        return 0
    shown = one_line(labels.shown(pool_id))
    if ended is None:
        context.print(f"nothing to do: {shown} is not quarantined")
    else:
        was = f"until {iso(ended.until)}, {one_line(ended.why)}"
        context.print(f"{shown} is quarantined no longer (it was {was})")
        _note_spent(context.home, pool_id, shown, context)
    return 0


def _note_spent(home: Home, pool_id: str, shown: str, context: CommandContext) -> None:
    """Say it when the pool stays out all the same: the notice that quarantined it may have marked a window, too."""
    now = datetime.now(UTC)
    window = spent_window(readings(load_reading(home, pool_id, now=now).windows, now).values(), now)
    if window is not None:
        until = f" until {iso(window.resets_at)}" if window.resets_at else ""
        context.note(
            f"{shown} stays out: its {LIMIT_NAMES[window.kind]} window counts as used up{until}"
            " · bullswarm pools --force reads its meter now"
        )


def _lifted(home: Home, pool_id: str, *, now: datetime) -> Quarantine | None:
    """Take the quarantine back; a home that has none is left untouched."""
    reading = open_database(home, readonly=True)
    if reading is None:
        return None
    with contextlib.closing(reading):
        if pool_id not in in_force(reading, now=now):
            return None
    with contextlib.closing(open_database(home)) as connection:
        return lift(connection, pool_id, now=now)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm pools resume",
        description="End the quarantine that a usage limit or a refused sign-in left under the classic policy. A spent window"
        " is no quarantine: it keeps the pool out until its reset.",
    )
    parser.add_argument("pool", metavar="POOL", help="its label or id")
    parser.add_argument("--json", action="store_true", help="print one JSON document (bullswarm.pools-resume.v1)")
    return parser
