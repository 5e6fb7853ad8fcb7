"""The decision log: one row per attempt, from which durations, rates and incumbents are learned. Kept when a run is deleted."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime

from bullswarm_core.dispatch.quarantines import remembers
from bullswarm_core.pools.model import LANES, Lane
from bullswarm_core.pools.settings import Settings
from bullswarm_core.runs.events import AttemptFinished, AttemptPicked, RunCreated
from bullswarm_core.wire import stamp

_COLUMNS = (
    "at, run, step, attempt, kind, lane, effort, picked, model, ok, failure_kind, stalled, wall_sec, started_at, ended_at,"
    " reason, payload"
)


def record_decision(
    connection: sqlite3.Connection,
    created: RunCreated,
    picked: AttemptPicked,
    finished: AttemptFinished,
    *,
    at: datetime,
) -> None:
    """Add an attempt to the decision log; call it in the transaction that finishes the attempt."""
    meta = finished.meta
    payload = {
        "cwd": created.cwd,
        "goal": created.goal,
        "outFile": finished.output_file,
        "usage": meta.usage_document,
        "free": picked.free,
    }
    connection.execute(
        f"INSERT INTO decisions ({_COLUMNS}) VALUES ({', '.join('?' * len(_COLUMNS.split(',')))})",
        (
            stamp(at),
            created.run_id,
            picked.step,
            f"{picked.step}-{picked.ordinal}",
            created.kind,
            picked.lane,
            picked.effort,
            picked.pool,
            picked.model,
            int(finished.ok),
            finished.failure_kind,
            int(meta.stalled),
            meta.wall_sec,
            _column(meta.started_at),
            _column(meta.ended_at),
            picked.reason,
            json.dumps(payload, ensure_ascii=False),
        ),
    )


def _column(moment: datetime | None) -> str | None:
    return None if moment is None else stamp(moment)


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
