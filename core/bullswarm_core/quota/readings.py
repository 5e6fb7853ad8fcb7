"""Usage readings: a pool's meter file, what a refused task taught, and what a caller supposes with ``--meter``.

A meter file is ``meters/<pool>.json`` (design D5): ``{schemaVersion, pool, capturedAt, windows: [{kind, usedPct,
resetsAt, lengthSec, scope, source, resetSource}], refusal}``. Reading one never fails: what cannot be understood is no
reading.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast, get_args

from bullswarm_core.errors import StateError, UsageError
from bullswarm_core.home import Home, read_json, write_json
from bullswarm_core.pools import WINDOW_KINDS, ResetSource, Window, WindowKind, WindowSource
from bullswarm_core.values import dataclass
from bullswarm_core.wire import iso, parse_iso

SCHEMA_VERSION = "bullswarm.meter.v1"
FRESH = timedelta(minutes=5)
STALE = timedelta(minutes=60)
REFUSED_PCT = 100.0
# Reference: a window this full is the one that a usage limit speaks of, when the notice names none.
QUOTA_METER_SPENT_PCT = 95.0
_LENGTHS: tuple[tuple[WindowKind, timedelta], ...] = (
    ("5h", timedelta(hours=5)),
    ("daily", timedelta(hours=24)),
    ("weekly", timedelta(days=7)),
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A provider refused work for want of quota: the window counts as full until its reset, if that is really known."""

    kind: WindowKind
    captured_at: datetime
    resets_at: datetime | None = None
    reset_source: ResetSource | None = None
    scope: str | None = None

    def window(self) -> Window:
        """Return the refusal as the reading that it stands for."""
        return Window(
            self.kind,
            REFUSED_PCT,
            self.resets_at,
            source="refusal",
            captured_at=self.captured_at,
            reset_source=self.reset_source,
            scope=self.scope,
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of a pool's quota. ``problem`` says why something in the meter file could not be used."""

    captured_at: datetime | None = None
    windows: tuple[Window, ...] = ()
    problem: str | None = None


def load_reading(home: Home, pool_id: str, *, now: datetime) -> Reading:
    """Return a pool's last reading; a window's source tells its age: ``live`` to 5 min, ``cache`` to 60, ``stale``."""
    try:
        document = read_json(home.meter_file(pool_id))
    except StateError as error:
        return Reading(problem=error.message)
    return Reading() if document is None else reading_from(document, now=now)


def reading_from(document: Any, *, now: datetime) -> Reading:
    """Read the content of a meter file; windows that cannot be understood are left out and named in ``problem``."""
    if not isinstance(document, dict):
        return Reading(problem="the meter file is not a JSON object")
    if document.get("schemaVersion", SCHEMA_VERSION) != SCHEMA_VERSION:
        return Reading(problem=f"the meter file has schema {document['schemaVersion']!r}, not {SCHEMA_VERSION}")
    problems: list[str] = []
    captured_at = _moment(document.get("capturedAt"), "capturedAt", problems)
    windows: list[Window] = []
    listed = document.get("windows")
    for number, entry in enumerate(listed if isinstance(listed, list) else []):
        window = _window(entry, f"windows[{number}]", captured_at, now, problems)
        if window is not None:
            windows.append(window)
    refusal = document.get("refusal")
    if refusal is not None:
        window = _refusal_window(refusal, captured_at, problems)
        if window is not None:
            windows.append(window)
    return Reading(captured_at, tuple(windows), "; ".join(problems) or None)


def write_reading(
    home: Home, pool_id: str, windows: Iterable[Window], *, captured_at: datetime, refusal: Refusal | None = None
) -> None:
    """Store a reading as the pool's last one; a reading without a refusal replaces an earlier refusal, too."""
    write_json(
        home.meter_file(pool_id),
        {
            "schemaVersion": SCHEMA_VERSION,
            "pool": pool_id,
            "capturedAt": iso(captured_at),
            "windows": [window_document(window) for window in windows if window.source != "refusal"],
            "refusal": None if refusal is None else _refusal_document(refusal),
        },
    )


def record_refusal(home: Home, pool_id: str, refusal: Refusal, *, now: datetime) -> None:
    """Note that a provider refused work, beside the reading that is there."""
    reading = load_reading(home, pool_id, now=now)
    write_reading(home, pool_id, reading.windows, captured_at=reading.captured_at or now, refusal=refusal)


def refusal_after_limit(
    windows: Sequence[Window], *, kind: WindowKind | None, named_reset: datetime | None, now: datetime
) -> Refusal | None:
    """Return the marker to keep after a usage limit, or None when no reset is really known (a guess gates nothing).

    The reset is the one that the notice named, else the one an earlier reading measured for that window; without a
    window in the notice, for the window that reads 95 % or more and resets last.
    """
    if named_reset is not None:
        return Refusal(kind or _kind_for(named_reset - now), now, named_reset, "named") if named_reset > now else None
    known = [window for window in windows if window.source != "refusal" and window.scope is None]
    measured = [
        window
        for window in known
        if window.resets_at is not None
        and window.resets_at > now
        and (window.kind == kind if kind else (window.used_pct or 0.0) >= QUOTA_METER_SPENT_PCT)
    ]
    if not measured:
        return None
    last = max(measured, key=lambda window: cast(datetime, window.resets_at))
    return Refusal(last.kind, now, last.resets_at, "measured")


def window_document(window: Window) -> dict[str, Any]:
    """Return a window as a meter file holds it."""
    return {
        "kind": window.kind,
        "usedPct": window.used_pct,
        "resetsAt": None if window.resets_at is None else iso(window.resets_at),
        "lengthSec": None if window.length is None else window.length.total_seconds(),
        "scope": window.scope,
        "source": window.source,
        "resetSource": window.reset_source,
    }


def number_or_none(value: Any) -> float | None:
    """Return a finite number of 0 or more, else None: a missing number stays missing and never becomes 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _kind_for(left: timedelta) -> WindowKind:
    return next((kind for kind, length in _LENGTHS if left <= length), "monthly")


def _aged(captured_at: datetime | None, now: datetime) -> WindowSource:
    # A capture time from the future comes from a clock that was wrong: nobody knows how old that reading is.
    if captured_at is None or captured_at - now > FRESH or now - captured_at > STALE:
        return "stale"
    return "live" if now - captured_at <= FRESH else "cache"


def _window(entry: Any, place: str, captured_at: datetime | None, now: datetime, problems: list[str]) -> Window | None:
    if not isinstance(entry, dict) or entry.get("kind") not in WINDOW_KINDS:
        problems.append(f"{place} is not a window of kind {', '.join(WINDOW_KINDS)}")
        return None
    used = number_or_none(entry.get("usedPct"))
    if used is None and entry.get("usedPct") is not None:
        problems.append(f"{place}.usedPct {entry['usedPct']!r} is not a number of 0 or more")
    length = number_or_none(entry.get("lengthSec"))
    scope = entry.get("scope")
    resets_at = _moment(entry.get("resetsAt"), f"{place}.resetsAt", problems)
    if resets_at is None and entry.get("resetsAt") is not None:
        return None  # without its reset the reading would count for ever
    return Window(
        kind=entry["kind"],
        used_pct=used,
        resets_at=resets_at,
        source=entry["source"] if entry.get("source") in ("declared", "refusal") else _aged(captured_at, now),
        captured_at=captured_at,
        length=_length(length),
        reset_source=_reset_source(entry.get("resetSource"), resets_at),
        scope=scope if isinstance(scope, str) and scope else None,
    )


def _length(seconds: float | None) -> timedelta | None:
    # A century is longer than any window and still far from what a timedelta can hold.
    return timedelta(seconds=seconds) if seconds and seconds < 100 * 366 * 86400 else None


def _reset_source(value: Any, resets_at: datetime | None) -> ResetSource | None:
    if resets_at is None:
        return None
    return cast(ResetSource, value) if value in get_args(ResetSource) else "provider"


def _refusal_window(entry: Any, captured_at: datetime | None, problems: list[str]) -> Window | None:
    if not isinstance(entry, dict) or entry.get("kind") not in WINDOW_KINDS:
        problems.append("refusal is not an object with the kind of a window")
        return None
    resets_at = _moment(entry.get("resetsAt"), "refusal.resetsAt", problems)
    scope = entry.get("scope")
    return Window(
        kind=entry["kind"],
        used_pct=REFUSED_PCT,
        resets_at=resets_at,
        source="refusal",
        captured_at=_moment(entry.get("capturedAt"), "refusal.capturedAt", problems) or captured_at,
        # Without a word on where the reset comes from it is a guess, and a guess keeps nothing out.
        reset_source=entry["resetSource"] if entry.get("resetSource") in get_args(ResetSource) else "guessed",
        scope=scope if isinstance(scope, str) and scope else None,
    )


def _refusal_document(refusal: Refusal) -> dict[str, Any]:
    return {
        "kind": refusal.kind,
        "capturedAt": iso(refusal.captured_at),
        "resetsAt": None if refusal.resets_at is None else iso(refusal.resets_at),
        "resetSource": refusal.reset_source,
        "scope": refusal.scope,
    }


def _moment(value: Any, place: str, problems: list[str]) -> datetime | None:
    if value is None:
        return None
    try:
        return parse_iso(value)
    except (TypeError, ValueError):
        problems.append(f"{place} {value!r} is not an ISO-8601 time")
        return None


@dataclass(frozen=True, slots=True)
class SupposedMeter:
    """What a caller supposes about one window with ``--meter``; ``pool`` is an id or a label, as it was typed."""

    pool: str
    window: Window


def parse_meters(texts: Iterable[str], *, now: datetime) -> tuple[SupposedMeter, ...]:
    """Read the values of repeated ``--meter`` options; raise UsageError for a bad one, or two for the same window."""
    found: dict[tuple[str, str], SupposedMeter] = {}
    for text in texts:
        meter = parse_meter(text, now=now)
        if found.setdefault((meter.pool, meter.window.kind), meter) is not meter:
            raise UsageError(f'--meter "{text}": {meter.pool}:{meter.window.kind} is given twice', hint="give it once")
    return tuple(found.values())


def parse_meter(text: str, *, now: datetime) -> SupposedMeter:
    """Read ``POOL:WINDOW=USED[@RESET]``: ``codex:5h=81@+23m``, ``claude-code:acme:weekly=30%@2026-03-01T00:00:00Z``.

    USED is a percentage of 0 or more. RESET is an ISO-8601 time (UTC without an offset) or a distance such as
    ``+2h30m`` from ``now``; without it the reset is unknown. Raises UsageError.
    """
    left, equals, right = text.rpartition("=")
    pool, colon, kind = left.rpartition(":")
    if not equals or not colon or not pool:
        raise _bad_meter(text, "it is not POOL:WINDOW=USED[@RESET]")
    if kind not in WINDOW_KINDS:
        raise _bad_meter(text, f'unknown window "{kind}"; it is one of {", ".join(WINDOW_KINDS)}')
    used_text, at, reset_text = right.partition("@")
    used = _percentage(used_text)
    if used is None:
        raise _bad_meter(text, f'"{used_text}" is not a percentage of 0 or more')
    reset = _reset(reset_text, now) if at else None
    if at and reset is None:
        raise _bad_meter(text, f'"{reset_text}" is neither an ISO-8601 time nor a distance such as +2h30m')
    window = Window(kind, used, reset, source="live", captured_at=now, reset_source="provider" if reset else None)
    return SupposedMeter(pool, window)


def with_supposed(windows: Iterable[Window], supposed: Mapping[WindowKind, Window]) -> tuple[Window, ...]:
    """Put the supposed windows in the place of all read windows of their kind."""
    return (*(window for window in windows if window.kind not in supposed), *supposed.values())


def _bad_meter(text: str, what: str) -> UsageError:
    return UsageError(f'--meter "{text}": {what}', hint="for example --meter codex:weekly=33%@+2d")


def _percentage(text: str) -> float | None:
    import re

    return float(text.removesuffix("%")) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?%?", text) else None


def _reset(text: str, now: datetime) -> datetime | None:
    import re

    if not text.startswith("+"):
        try:
            return parse_iso(text)
        except ValueError:
            return None
    parts = re.fullmatch(r"\+(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?", text, re.ASCII)
    if parts is None or not any(parts.groups()):
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return now + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
