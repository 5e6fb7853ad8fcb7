"""Usage readings: a pool's meter file, and what a refused task taught.

A meter file is ``meters/<pool>.json``: ``{schemaVersion, pool, capturedAt, windows: [{kind, usedPct, resetsAt,
lengthSec, scope, source, resetSource, capturedAt, unstable}], refusal}``, and where it is known ``checkedAt`` (when a source
last told all of it), ``readBy``, ``plan``, ``overage`` and ``billing``. Reading one never fails: what cannot be understood is
no reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_args

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.errors import StateError
from bullswarm_core.pools.model import WINDOW_KINDS, ResetSource, Window, WindowKind, WindowSource
from bullswarm_core.quota.holds import CLOCK_TOLERANCE, FRESH, STALE, Hold, is_held, is_young, load_hold, started_file
from bullswarm_core.quota.windows import number_or_none
from bullswarm_core.store.home import Home, read_json, write_json
from bullswarm_core.wire import iso, parse_iso

SCHEMA_VERSION = "bullswarm.meter.v1"
REFUSED_PCT = 100.0
# A window this full is the one that a usage limit speaks of, when the notice names none.
QUOTA_METER_SPENT_PCT = 95.0
LONGEST_READING = timedelta(seconds=60)
"""A process that reads meters ends itself after so long (``bullswarm_server.meters``)."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_LENGTHS: tuple[tuple[WindowKind, timedelta], ...] = (
    ("5h", timedelta(hours=5)),
    ("daily", timedelta(hours=24)),
    ("weekly", timedelta(days=7)),
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A provider refused work for want of quota: the window counts as full until its reset, if that is really known.

    ``scope`` is the model whose own limit it was. Where the work ran by another name, which need not tell that model
    (``default``, ``opusplan``), ``model`` is that name, and counts as refused as well.
    """

    kind: WindowKind
    captured_at: datetime
    resets_at: datetime | None = None
    reset_source: ResetSource | None = None
    scope: str | None = None
    model: str | None = None

    def windows(self) -> tuple[Window, ...]:
        """Return the readings that the refusal stands for: of what it names, and of the name that was run."""
        window = self.window()
        return (window,) if self.model is None else (window, replace(window, scope=self.model))

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
    """What is known of a pool's quota. ``problem`` says why something in the meter file could not be used.

    ``checked_at`` is when a source last told all windows at once, ``read_by`` which one told the newest; ``overage`` True says
    that work beyond the included quota would be billed, ``billing`` how the sign-in was paid whose windows these are
    (``subscription`` or ``api-key``). ``hold`` is the last attempt to read the meter, if it failed. A
    ``refusal`` stands among the windows, too, as newer than all of them: who stores a reading that refutes it takes it out.
    ``under_way`` says that there is no reading yet and the first one was started a short while ago.
    """

    captured_at: datetime | None = None
    windows: tuple[Window, ...] = ()
    problem: str | None = None
    checked_at: datetime | None = None
    read_by: str | None = None
    plan: str | None = None
    overage: bool | None = None
    billing: str | None = None
    hold: Hold | None = None
    refusal: Refusal | None = None
    under_way: bool = False

    @property
    def trouble(self) -> str | None:
        """Why the reading is not what it could be: the last attempt to renew it failed, or a file is damaged."""
        told = [self.hold.reason if self.hold else None, self.problem]
        return "; ".join(text for text in told if text) or None

    @property
    def told_trouble(self) -> str | None:
        """The trouble as a list of pools tells it: what the person alone can mend, a sign-in, with the way to do it."""
        hold = self.hold
        if hold is None or hold.kind != "sign-in" or not hold.hint:
            return self.trouble
        return "; ".join(text for text in (f"{hold.reason}: {hold.hint}", self.problem) if text)

    def of(self, billing: str) -> Reading:
        """Return what of it counts for a sign-in that is paid by ``billing``.

        Nothing where it is known to be of one that is paid otherwise: a plan's windows hold no API key back.
        """
        kinds = {self.billing, billing}
        return Reading(problem=self.problem, hold=self.hold) if kinds == {"subscription", "api-key"} else self

    def held_until(self, now: datetime) -> datetime | None:
        """When the meter may be asked again after a failure; None when it may be now."""
        return self.hold.until if self.hold is not None and is_held(self.hold, now) else None


def load_reading(home: Home, pool_id: str, *, now: datetime) -> Reading:
    """Return a pool's last reading; a window's source tells its age: ``live`` to 5 min, ``cache`` to 60, ``stale``.

    One that could not be read again since is ``stale`` after 5 minutes, and at once where the vendor took the sign-in for none.
    """
    try:
        document = read_json(home.meter_file(pool_id))
        reading = Reading() if document is None else reading_from(document, now=now)
    except StateError as error:
        reading = Reading(problem=error.message)
    hold, trouble = load_hold(home, pool_id)
    if hold is None and reading == Reading():
        return Reading(problem=trouble, under_way=_was_started(home, pool_id, now))
    if hold is not None:
        windows = tuple(_after_failure(window, hold, now) for window in reading.windows)
        reading = replace(reading, windows=windows, hold=hold)
    return (
        replace(reading, problem=f"{reading.problem}; {trouble}" if reading.problem else trouble)
        if trouble
        else reading
    )


def _was_started(home: Home, pool_id: str, now: datetime) -> bool:
    try:
        at = started_file(home, pool_id).stat().st_mtime
    except OSError:
        return False
    return timedelta() <= now - datetime.fromtimestamp(at, UTC) < LONGEST_READING


def _after_failure(window: Window, hold: Hold, now: datetime) -> Window:
    if window.source not in ("live", "cache") or window.captured_at is None or window.captured_at > hold.failed_at:
        return window
    young = is_young(window.captured_at, now) and hold.kind != "sign-in"
    return window if young else replace(window, source="stale")


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
    refusal = _refusal(document.get("refusal"), captured_at, problems)
    if refusal is not None:
        windows += _in_force(refusal, windows, now)
    overage = document.get("overage")
    return Reading(
        captured_at,
        tuple(windows),
        "; ".join(problems) or None,
        checked_at=_moment(document.get("checkedAt"), "checkedAt", []),
        read_by=_text(document.get("readBy")),
        plan=_text(document.get("plan")),
        overage=overage if isinstance(overage, bool) else None,
        billing=_text(document.get("billing")),
        refusal=refusal,
    )


def _in_force(refusal: Refusal, windows: Iterable[Window], now: datetime) -> list[Window]:
    taken = (window.captured_at for window in windows)
    times = [moment for moment in taken if moment is not None and moment - now <= CLOCK_TOLERANCE]
    captured_at = max(times, default=refusal.captured_at)
    return [replace(window, captured_at=captured_at) for window in refusal.windows()]


def write_reading(
    home: Home,
    pool_id: str,
    windows: Iterable[Window],
    *,
    captured_at: datetime,
    refusal: Refusal | None = None,
    checked_at: datetime | None = None,
    read_by: str | None = None,
    plan: str | None = None,
    overage: bool | None = None,
    billing: str | None = None,
) -> None:
    """Store a reading as the pool's last one; a reading without a refusal replaces an earlier refusal, too.

    No window is newer than ``captured_at``, and one without a capture time of its own was read then. Whoever puts a reading
    together from an earlier one holds the pool's ``meter_lock``. Raises StorageError when the disk refuses.
    """
    told = {
        "checkedAt": None if checked_at is None else iso(checked_at), "readBy": read_by, "plan": plan, "overage": overage,
        "billing": billing,
    }  # fmt: skip
    write_json(
        home.meter_file(pool_id),
        {
            "schemaVersion": SCHEMA_VERSION,
            "pool": pool_id,
            "capturedAt": iso(captured_at),
            **{name: value for name, value in told.items() if value is not None},
            "windows": [_kept(window, captured_at) for window in windows if window.source != "refusal"],
            "refusal": None if refusal is None else _refusal_document(refusal),
        },
    )


def record_refusal(home: Home, pool_id: str, refusal: Refusal, *, now: datetime) -> None:
    """Note that a provider refused work, beside the reading that is there."""
    from bullswarm_core.quota.holds import meter_lock

    with meter_lock(home, pool_id):
        known = load_reading(home, pool_id, now=now)
        write_reading(
            home,
            pool_id,
            known.windows,
            captured_at=known.captured_at or now,
            refusal=refusal,
            checked_at=known.checked_at,
            read_by=known.read_by,
            plan=known.plan,
            overage=known.overage,
            billing=known.billing,
        )


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
    document = {
        "kind": window.kind,
        "usedPct": window.used_pct,
        "resetsAt": None if window.resets_at is None else iso(window.resets_at),
        "lengthSec": None if window.length is None else window.length.total_seconds(),
        "scope": window.scope,
        "source": window.source,
        "resetSource": window.reset_source,
    }
    return {**document, "unstable": True} if window.unstable else document


def _kept(window: Window, captured_at: datetime) -> dict[str, Any]:
    document = window_document(window)
    if window.captured_at is not None and window.captured_at < captured_at:
        document["capturedAt"] = iso(window.captured_at)
    return document


def _kind_for(left: timedelta) -> WindowKind:
    return next((kind for kind, length in _LENGTHS if left <= length), "monthly")


def _aged(captured_at: datetime | None, now: datetime) -> WindowSource:
    # A capture time from the future comes from a clock that was wrong: nobody knows how old that reading is.
    if not is_young(captured_at, now, STALE):
        return "stale"
    return "live" if is_young(captured_at, now, FRESH) else "cache"


def _window(entry: Any, place: str, captured_at: datetime | None, now: datetime, problems: list[str]) -> Window | None:
    if not isinstance(entry, dict) or entry.get("kind") not in WINDOW_KINDS:
        problems.append(f"{place} is not a window of kind {', '.join(WINDOW_KINDS)}")
        return None
    used = number_or_none(entry.get("usedPct"))
    if used is None and entry.get("usedPct") is not None:
        problems.append(f"{place}.usedPct {entry['usedPct']!r} is not a number of 0 or more")
    length = number_or_none(entry.get("lengthSec"))
    resets_at = _moment(entry.get("resetsAt"), f"{place}.resetsAt", problems)
    if resets_at is None and entry.get("resetsAt") is not None:
        return None  # without its reset the reading would count for ever
    captured_at = _moment(entry.get("capturedAt"), f"{place}.capturedAt", problems) or captured_at
    return Window(
        kind=entry["kind"],
        used_pct=used,
        resets_at=resets_at,
        source=entry["source"] if entry.get("source") in ("declared", "refusal") else _aged(captured_at, now),
        captured_at=captured_at,
        length=_length(length),
        reset_source=_reset_source(entry.get("resetSource"), resets_at),
        scope=_text(entry.get("scope")),
        unstable=entry.get("unstable") is True,
    )


def _length(seconds: float | None) -> timedelta | None:
    # A century is longer than any window and still far from what a timedelta can hold.
    return timedelta(seconds=seconds) if seconds and seconds < 100 * 366 * 86400 else None


def _reset_source(value: Any, resets_at: datetime | None) -> ResetSource | None:
    if resets_at is None:
        return None
    return cast(ResetSource, value) if value in get_args(ResetSource) else "provider"


def _refusal(entry: Any, captured_at: datetime | None, problems: list[str]) -> Refusal | None:
    if entry is None:
        return None
    if not isinstance(entry, dict) or entry.get("kind") not in WINDOW_KINDS:
        problems.append("refusal is not an object with the kind of a window")
        return None
    return Refusal(
        entry["kind"],
        _moment(entry.get("capturedAt"), "refusal.capturedAt", problems) or captured_at or _LONG_AGO,
        _moment(entry.get("resetsAt"), "refusal.resetsAt", problems),
        # Without a word on where the reset comes from it is a guess, and a guess keeps nothing out.
        entry["resetSource"] if entry.get("resetSource") in get_args(ResetSource) else "guessed",
        _text(entry.get("scope")),
        _text(entry.get("model")),
    )


def _refusal_document(refusal: Refusal) -> dict[str, Any]:
    document = {
        "kind": refusal.kind,
        "capturedAt": iso(refusal.captured_at),
        "resetsAt": None if refusal.resets_at is None else iso(refusal.resets_at),
        "resetSource": refusal.reset_source,
        "scope": refusal.scope,
    }
    return document if refusal.model is None else {**document, "model": refusal.model}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _moment(value: Any, place: str, problems: list[str]) -> datetime | None:
    if value is None:
        return None
    try:
        return parse_iso(value)
    except (TypeError, ValueError):
        problems.append(f"{place} {value!r} is not an ISO-8601 time")
        return None
