"""The rates of this machine's pools, fitted anew only where what they are fitted from has changed.

Fitting reads hundreds of lines, and `pools` answers in fifty milliseconds: so the result is kept in ``cache/rates.json`` with
the marks of its sources (the pool's history and meter files, its finished attempts, the work in flight before its newest
reading). It is an estimate that never fails a pick: what can't be read leaves a pool without a rate.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast.files import read_json, write_private
from bullswarm_core.pools.model import WINDOW_KINDS, Inflight, Rate, RateSource, WindowKind
from bullswarm_core.store.home import Home

SCHEMA_VERSION = "bullswarm.rates.v1"
Rates = dict[WindowKind, Rate]
_NOTHING_KNOWN = 0


@dataclass(slots=True)
class _Kept:
    """What the cache holds of one pool: its rates, the ``marks`` of the files, the newest ``decision`` that it knew of.

    ``until`` is the time of its newest reading in Unix seconds: work that began later measures nothing yet.
    """

    marks: list[int]
    decision: int
    until: float
    begun: list[float]
    rates: Rates


def learned_rates(
    home: Home,
    pool_ids: Iterable[str],
    connection: sqlite3.Connection | None,
    *,
    inflight: Mapping[str, Sequence[Inflight]],
    write_cache: bool,
) -> dict[str, Rates]:
    """Return the rates of each pool that has any; without a decision log (``connection`` None) there are none.

    ``write_cache`` False (a dry run) writes nothing and fits anew what the cache doesn't know.
    """
    if connection is None:
        return {}
    try:
        newest = _newest_decision(connection)
        if newest == _NOTHING_KNOWN and not inflight:
            return {}
        return _learned(home, sorted(pool_ids), connection, inflight, newest, write_cache=write_cache)
    except sqlite3.Error:
        return {}


def _learned(
    home: Home,
    pool_ids: Sequence[str],
    connection: sqlite3.Connection,
    inflight: Mapping[str, Sequence[Inflight]],
    newest: int,
    *,
    write_cache: bool,
) -> dict[str, Rates]:
    document = read_json(_cache_file(home))
    kept = _read(document, pool_ids)
    worked = _worked_since(connection, min((item.decision for item in kept.values()), default=newest), newest)
    found: dict[str, _Kept] = {}
    for pool_id in pool_ids:
        marks, starts = _marks(home, pool_id), _starts(inflight.get(pool_id, ()))
        old = kept.get(pool_id)
        if old and _holds(old, marks, starts, worked.get(pool_id, _NOTHING_KNOWN), newest):
            found[pool_id] = old
        else:
            found[pool_id] = _fitted(home, pool_id, connection, marks, starts, newest)
    if write_cache and any(kept.get(pool_id) is not item for pool_id, item in found.items()):
        _write(home, document, found, newest)
    return {pool_id: item.rates for pool_id, item in found.items() if item.rates}


def _holds(old: _Kept, marks: list[int], starts: list[float], worked: int, newest: int) -> bool:
    """Whether nothing that the kept rates were fitted from has changed since."""
    return (
        old.marks == marks
        and old.begun == [start for start in starts if start < old.until]
        # A log that is shorter than it was is another log.
        and worked <= old.decision <= newest
    )


def _fitted(
    home: Home, pool_id: str, connection: sqlite3.Connection, marks: list[int], starts: list[float], newest: int
) -> _Kept:
    from bullswarm_core.quota.rate_fit import fit

    rates, until = fit(home, pool_id, connection, starts) if any(marks) else ({}, 0.0)
    return _Kept(marks, newest, until, [start for start in starts if start < until], rates)


def _marks(home: Home, pool_id: str) -> list[int]:
    """Size and time of the files that hold the pool's readings; zeros for a file that isn't there."""
    marks: list[int] = []
    for path in (home.meter_history_file(pool_id), home.meter_file(pool_id)):
        try:
            status = os.stat(path)  # noqa: PTH116 - one call, made for every pool of every `pools`
        except OSError:
            marks += (0, 0)
        else:
            marks += (status.st_size, status.st_mtime_ns)
    return marks


def _starts(records: Sequence[Inflight]) -> list[float]:
    return sorted([record.started_at.timestamp() for record in records])


def _newest_decision(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM decisions").fetchone()[0])


def _worked_since(connection: sqlite3.Connection, known: int, newest: int) -> dict[str, int]:
    """The newest decision of each pool that worked after decision ``known``."""
    if known >= newest:
        return {}
    rows = connection.execute("SELECT picked, max(id) FROM decisions WHERE id > ? GROUP BY picked", (known,))
    return {str(pool_id): int(number) for pool_id, number in rows}


def _cache_file(home: Home) -> str:
    return str(home.cache_dir / "rates.json")


def _read(document: Any, pool_ids: Iterable[str]) -> dict[str, _Kept]:
    """What the cache holds of these pools; what can't be understood isn't there."""
    found: dict[str, _Kept] = {}
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, OverflowError):
        if document["schemaVersion"] != SCHEMA_VERSION:
            return {}
        for pool_id in pool_ids:
            if entry := document["pools"].get(pool_id):
                rates = {kind: _rate(kind, *told) for kind, told in entry["rates"].items()}
                marks, begun = list(entry["marks"]), list(entry["begun"])
                found[pool_id] = _Kept(marks, int(entry["decision"]), float(entry["until"]), begun, rates)
    return found


def _rate(kind: str, per_minute: float, source: RateSource, samples: int) -> Rate:
    if kind not in WINDOW_KINDS or source not in get_args(RateSource):
        raise ValueError(f"{kind} {source} is no rate of a window")
    return Rate(float(per_minute), source, int(samples))


def _write(home: Home, document: Any, found: Mapping[str, _Kept], newest: int) -> None:
    others = document["pools"] if isinstance(document, dict) and isinstance(document.get("pools"), dict) else {}
    ours = {pool_id: _entry(item, newest) for pool_id, item in found.items()}
    with contextlib.suppress(OSError):
        write_private(_cache_file(home), {"schemaVersion": SCHEMA_VERSION, "pools": {**others, **ours}})


def _entry(item: _Kept, newest: int) -> dict[str, Any]:
    rates = {kind: [rate.pct_per_minute, rate.source, rate.samples] for kind, rate in item.rates.items()}
    return {"marks": item.marks, "decision": newest, "until": item.until, "begun": item.begun, "rates": rates}
