"""Holds on disk: ``meters/<pool>.hold.json`` keeps a failed meter silent for a while, also after a restart.

A file that can't be understood holds nothing: it is told, and the next attempt replaces or removes it.
"""

from __future__ import annotations

import contextlib
from datetime import timedelta
from pathlib import Path
from typing import Any

from bullswarm_core.errors import StateError
from bullswarm_core.fast.files import file_name_of
from bullswarm_core.home import Home, read_json, write_json
from bullswarm_core.quota.ladder import LONGEST_HOLD, Hold
from bullswarm_core.wire import iso, parse_iso

SCHEMA_VERSION = "bullswarm.meter-hold.v1"


def hold_file(home: Home, pool_id: str) -> Path:
    """Return where the hold of a pool's meter is kept."""
    return home.meters_dir / f"{file_name_of(pool_id)}.hold.json"


def load_hold(home: Home, pool_id: str) -> tuple[Hold | None, str | None]:
    """Return the pool's last failed attempt, and what is wrong with the file that should tell it; never fails."""
    path = hold_file(home, pool_id)
    try:
        document = read_json(path)
    except StateError as error:
        return None, error.message
    if document is None:
        return None, None
    hold = hold_from(document)
    return hold, None if hold else f"{path} is no hold of a meter and was ignored"


def hold_from(document: Any) -> Hold | None:
    """Build a hold from the content of its file; None when that makes no sense. A pause beyond a day counts as a day."""
    try:
        if document["schemaVersion"] != SCHEMA_VERSION:
            return None
        seconds, failures, hint = document["pauseSec"], document["failures"], document.get("hint")
        if isinstance(seconds, bool) or isinstance(failures, bool) or not isinstance(failures, int):
            return None
        # A comparison with what is no number fails, and one with NaN is false.
        if not (seconds >= 0 and failures >= 1):
            return None
        hold = Hold(
            parse_iso(document["failedAt"]),
            timedelta(seconds=min(float(seconds), LONGEST_HOLD.total_seconds())),
            kind=str(document["kind"]),
            reason=str(document["reason"]),
            hint=hint if isinstance(hint, str) else None,
            failures=failures,
        )
        return hold if hold.until else None  # a time that no clock can show raises here
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None


def write_hold(home: Home, pool_id: str, hold: Hold) -> None:
    """Keep a hold. Raises StorageError when the disk refuses."""
    write_json(
        hold_file(home, pool_id),
        {
            "schemaVersion": SCHEMA_VERSION,
            "pool": pool_id,
            "failedAt": iso(hold.failed_at),
            "pauseSec": hold.pause.total_seconds(),
            "kind": hold.kind,
            "reason": hold.reason,
            "hint": hold.hint,
            "failures": hold.failures,
        },
    )


def clear_hold(home: Home, pool_id: str) -> None:
    """Forget the pool's failed attempts; where the disk refuses, the hold ends by itself."""
    with contextlib.suppress(OSError):
        hold_file(home, pool_id).unlink(missing_ok=True)
