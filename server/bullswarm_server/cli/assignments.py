"""`bullswarm assignments`: what is in flight now, across every bullswarm process of this home."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

from bullswarm_core.dispatch.ledger import Booking, entries
from bullswarm_core.pools.labels import Labels
from bullswarm_core.routing.measure import remaining_minutes
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home
from bullswarm_core.wire import iso
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.displays.text import one_line

SCHEMA_VERSION = "bullswarm.assignments.v1"


def run(arguments: list[str], context: CommandContext) -> int:
    """Print one line per attempt in flight, oldest first, or one JSON document; changes nothing."""
    options = _parser().parse_args(arguments)
    now = datetime.now(UTC)
    bookings = _in_flight(context.home, now=now)
    labels = Labels.load(context.home)
    if options.json:
        rows = [_row(booking, labels, now=now) for booking in bookings]
        context.print_json({"schemaVersion": SCHEMA_VERSION, "at": iso(now), "assignments": rows})
        return 0
    context.print(*(_line(booking, labels, now=now) for booking in bookings))
    if not bookings:
        context.note("nothing is in flight")
    return 0


def _in_flight(home: Home, *, now: datetime) -> list[Booking]:
    connection = open_database(home, readonly=True)
    if connection is None:
        return []
    try:
        return entries(connection, now=now)
    finally:
        connection.close()


def _elapsed_minutes(booking: Booking, now: datetime) -> float:
    return round(max(0.0, (now - booking.started_at) / timedelta(minutes=1)), 1)


def _row(booking: Booking, labels: Labels, *, now: datetime) -> dict[str, Any]:
    return {
        "pool": booking.pool,
        "poolLabel": labels.of(booking.pool),
        "model": booking.model,
        "lane": booking.lane,
        "effort": booking.effort,
        "run": booking.run,
        "step": booking.step,
        "attempt": booking.attempt,
        "startedAt": iso(booking.started_at),
        "elapsedMinutes": _elapsed_minutes(booking, now),
        "expectedMinutes": booking.expected_minutes,
        "expectedSource": booking.expected_source,
        "remainingMinutes": remaining_minutes(booking.inflight(), now),
        "kernelPid": booking.kernel.pid,
        "workerPid": booking.worker.pid if booking.worker else None,
        "host": booking.host,
        "cwd": booking.cwd,
        "taskFile": booking.task_file,
        "outFile": booking.out_file,
    }


def _line(booking: Booking, labels: Labels, *, now: datetime) -> str:
    expected = "?" if booking.expected_minutes is None else f"{booking.expected_minutes:.0f}m"
    words = [
        labels.shown(booking.pool),
        f"{booking.lane}/{booking.effort}",
        f"model={booking.model or 'default'}",
        f"{_elapsed_minutes(booking, now):.0f}m of {expected}",
        f"run={booking.run} attempt={booking.attempt}",
        booking.cwd or "",
    ]
    return one_line(" ".join(words).rstrip())


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm assignments",
        description="Every attempt in flight, oldest first, across all bullswarm processes of this home.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document (bullswarm.assignments.v1)")
    return parser
