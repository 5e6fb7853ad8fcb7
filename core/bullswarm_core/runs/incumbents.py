"""The incumbents of a workspace: the pool that last did such work well there, from the decision log."""

from __future__ import annotations

import sqlite3

from bullswarm_core.pools import LANES, Lane
from bullswarm_core.quarantines import remembers
from bullswarm_core.settings import Settings

# Older successes say little of who is at it now, and a log of years must not slow a pick down (500 rows: 1 ms).
_LATEST = 500
_QUERY = f"""
    SELECT picked FROM (
        SELECT id, picked, payload FROM decisions WHERE lane = ? AND ok = 1 ORDER BY id DESC LIMIT {_LATEST}
    ) WHERE json_valid(payload) AND json_extract(payload, '$.cwd') = ? ORDER BY id DESC LIMIT 1
"""


def incumbents_of(settings: Settings, connection: sqlite3.Connection | None, *, workspace: str) -> dict[Lane, str]:
    """Return the incumbent of each lane in the folder ``workspace``; none where the policy in force asks for none."""
    if connection is None or not remembers(settings):
        return {}
    found = {lane: connection.execute(_QUERY, (lane, workspace)).fetchone() for lane in LANES}
    return {lane: row["picked"] for lane, row in found.items() if row is not None}
