"""Finds in Codex's rollouts what its vendor last told of the account's limits: free of charge, and only of this machine.

The newest file isn't the newest reading: a resumed thread goes on in the file of the day on which it began, and a file may
be touched without a word of limits. So each reading counts from the time that its own line carries.
"""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.meters.normalize import FUTURE_SLACK, moment
from bullswarm_core.quota.observation import Observation
from bullswarm_providers.codex.rollout import names_in, newest_days
from bullswarm_providers.codex.usage import limit_id, rollout_reading

# With more threads than these at work at once, the reading is at most as old as the last word of the quietest of them.
_FILES_READ = 16
_FILES_SEEN = 4000
# Limits are told after every answer of the model; what a tool says in between is cut to 40 kB by Codex itself.
_TAIL_BYTES = 512 * 1024
# One line for each answer: enough to find the account's limit behind those of a model that is used alone for a while.
_LINES_READ = 32
# The first line holds the thread's whole instructions (about 20 kB).
_HEAD_BYTES = 1024 * 1024
# A fork copies its history within an instant and stamps it anew; its own first answer takes longer than this.
_COPYING = timedelta(seconds=2)


def rollout_readings(config_dir: str | Path, *, now: datetime) -> tuple[Observation, ...]:
    """Return the newest reading of each limit in the rollouts below ``config_dir``, the newest first; never raises."""
    found: dict[str, Observation] = {}
    for path in _last_written(Path(config_dir) / "sessions"):
        _take_newer(found, readings_of(path, now=now))
    return tuple(sorted(found.values(), key=lambda reading: reading.captured_at, reverse=True))


def readings_of(path: Path, *, now: datetime) -> dict[str, Observation]:
    """Return the last reading of each limit that one rollout tells, by the limit's id."""
    try:
        with open_ordinary(path) as file:
            first = file.readline(_HEAD_BYTES)
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
    except OSError:
        return {}
    found: dict[str, Observation] = {}
    copied_until = _copied_until(first)
    # The first piece of a tail is the end of a line, or the line of the session itself: neither tells of limits.
    for captured_at, limits in _told(tail.split(b"\n")):
        if captured_at > now + FUTURE_SLACK or (copied_until is not None and captured_at < copied_until):
            continue
        reading = rollout_reading(limits, captured_at=captured_at, now=now)
        if reading is not None:
            _take_newer(found, {limit_id(limits): reading})
    return found


def _take_newer(found: dict[str, Observation], told: Mapping[str, Observation]) -> None:
    for name, reading in told.items():
        if name not in found or _newness(reading) > _newness(found[name]):
            found[name] = reading


def _newness(reading: Observation) -> tuple[datetime, float]:
    return reading.captured_at, max((window.used_pct or 0.0 for window in reading.windows), default=0.0)


def _told(lines: list[bytes]) -> Iterator[tuple[datetime, Any]]:
    """Give the limits of the last lines that tell some, the last one first; most lines are messages and not worth parsing."""
    telling = (line for line in reversed(lines) if b'"token_count"' in line and b'"rate_limits"' in line)
    for line in islice(telling, _LINES_READ):
        record = _parsed(line)
        payload = record.get("payload")
        if not isinstance(payload, dict) or payload.get("type") != "token_count":
            continue
        captured_at = moment(record.get("timestamp"))
        if captured_at is not None and isinstance(payload.get("rate_limits"), dict):
            yield captured_at, payload["rate_limits"]


def _copied_until(first: bytes) -> datetime | None:
    """Return until when the lines of a fork are copies of another thread's; None for a thread that is no fork."""
    if b'"forked_from_id"' not in first:
        return None
    record = _parsed(first)
    payload = record.get("payload")
    began = moment(record.get("timestamp"))
    if not isinstance(payload, dict) or not payload.get("forked_from_id") or began is None:
        return None
    return began + _COPYING


def _last_written(sessions: Path) -> list[Path]:
    """Return the files that were written last, those of the last 40 days that have any."""
    written: list[tuple[float, str]] = []
    for day in newest_days(sessions):
        for name in names_in(day):
            if not name.startswith("rollout-") or not name.endswith(".jsonl"):
                continue
            # A person's last 40 days hold a thousand files; a Path for each would take as long as reading them.
            path = f"{day}/{name}"
            try:
                written.append((os.stat(path).st_mtime, path))  # noqa: PTH116
            except OSError:
                continue
        if len(written) >= _FILES_SEEN:
            break
    return [Path(path) for _, path in heapq.nlargest(_FILES_READ, written)]


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
