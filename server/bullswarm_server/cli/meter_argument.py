"""The one argument that supposes a reading; a module of its own, since `pools` is to load nothing that it doesn't need."""

from __future__ import annotations

import argparse


def add_meter_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--meter`` on ``parser``; ``quota.supposed.parse_meters`` reads what was given."""
    parser.add_argument(
        "--meter",
        action="append",
        default=[],
        metavar="POOL:WINDOW=USED[@RESET]",
        help="suppose a reading, such as codex:weekly=33%%@+2d (repeatable)",
    )
