"""A pool's readings of one kind of window as what is drawn: use over time, against the clock of each window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools import WINDOW_KINDS, Window, WindowKind
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.windows import CLOCK_TOLERANCE, elapsed_pct, is_unanchored, starts_at
from bullswarm_core.wire import whole_second
from bullswarm_server.displays.moments import local_moment
from bullswarm_server.displays.text import duration, number, one_line

SAME_RESET = timedelta(minutes=2)
"""Some providers make the reset up anew at every reading, some seconds beside the last one."""
_LONGEST = timedelta(days=400)


@dataclass(frozen=True, slots=True)
class Point:
    """One reading: ``used`` percent, 0 or more; ``elapsed`` is where the window's clock stood then, None if unknown."""

    at: datetime
    used: float
    elapsed: float | None
    read_by: str


@dataclass(frozen=True, slots=True)
class Span:
    """The readings of one window, oldest first, at least one; its clock runs from ``opens`` to ``resets``, if known."""

    points: tuple[Point, ...]
    opens: datetime | None
    resets: datetime | None


@dataclass(frozen=True, slots=True)
class Trace:
    """What is known of one kind of window; ``ahead`` counts the readings that a wrong clock dated after ``now``."""

    kind: WindowKind
    now: datetime
    spans: tuple[Span, ...]
    ahead: int

    @property
    def points(self) -> tuple[Point, ...]:
        """Every reading, oldest first."""
        return tuple(point for span in self.spans for point in span.points)

    @property
    def begins(self) -> datetime:
        """Where the drawing begins: at the first reading, or where its window opened."""
        first = self.spans[0]
        return min(first.points[0].at, first.opens or first.points[0].at)

    @property
    def ends(self) -> datetime:
        """Where it ends: at the last reset that is known, and not before now."""
        return max(self.now, self.spans[-1].points[-1].at, self.spans[-1].resets or self.now)


def trace_of(observations: Iterable[Observation], kind: WindowKind, *, now: datetime) -> Trace:
    """Put the account's own windows of ``kind`` in order and divide them where one was reset."""
    found: list[tuple[Window, Observation]] = []
    ahead = 0
    for observation in observations:
        for window in observation.windows:
            if window.kind == kind and window.scope is None and window.used_pct is not None:
                if _taken(window, observation) > now + CLOCK_TOLERANCE:
                    ahead += 1
                else:
                    found.append((window, observation))
    found.sort(key=lambda item: _taken(*item))
    groups: list[list[tuple[Window, Observation]]] = []
    for item in found:
        if groups and _same_window(groups[-1][-1][0], item[0]):
            groups[-1].append(item)
        else:
            groups.append([item])
    return Trace(kind, now, tuple(_span(group) for group in groups), ahead)


def kinds_of(observations: Iterable[Observation]) -> tuple[WindowKind, ...]:
    """The kinds of window that were ever read, from the longest to the shortest."""
    seen = {
        window.kind
        for observation in observations
        for window in observation.windows
        if window.scope is None and window.used_pct is not None
    }
    order: Sequence[WindowKind] = ("weekly", "monthly", "daily", "5h")
    return tuple(kind for kind in order if kind in seen and kind in WINDOW_KINDS)


def summary(trace: Trace) -> str:
    """The last reading in words: used, where the clock stood, surplus, reset."""
    if not trace.spans:
        return f"no reading of its {trace.kind} window is kept yet"
    span, now = trace.spans[-1], trace.now
    last = span.points[-1]
    parts = [f"{trace.kind} used {number(last.used)}%"]
    if last.elapsed is not None:
        parts.append(f"elapsed {number(last.elapsed)}%")
        parts.append(f"surplus {number(last.elapsed - last.used)}")
    read_by = f" by {one_line(last.read_by)}" if last.read_by else ""
    parts.append(f"read {local_moment(last.at, now)}{read_by}")
    if span.resets is not None:
        left = (span.resets - now).total_seconds() / 60
        when = local_moment(span.resets, now)
        parts.append(f"resets {when} (in {duration(left)})" if left > 0 else f"was reset {when}")
    return ", ".join(parts)


def trace_document(trace: Trace) -> dict[str, Any]:
    """The machine form: every reading in camelCase, window by window."""
    return {
        "window": trace.kind,
        "windows": [
            {
                "opensAt": whole_second(span.opens),
                "resetsAt": whole_second(span.resets),
                "readings": [
                    {
                        "at": whole_second(point.at),
                        "usedPct": point.used,
                        "elapsedPct": point.elapsed,
                        "readBy": point.read_by or None,
                    }
                    for point in span.points
                ],
            }
            for span in trace.spans
        ],
        "fromTheFuture": trace.ahead,
    }


def _taken(window: Window, observation: Observation) -> datetime:
    return window.captured_at or observation.captured_at


def _same_window(earlier: Window, later: Window) -> bool:
    """Whether two readings in a row are of one window: it was not reset between them, and its use did not fall."""
    if (later.used_pct or 0.0) < (earlier.used_pct or 0.0):
        return False
    if earlier.resets_at is None or later.resets_at is None:
        return earlier.resets_at is later.resets_at
    return is_unanchored(earlier) is is_unanchored(later) and (
        is_unanchored(later) or abs(later.resets_at - earlier.resets_at) <= SAME_RESET
    )


def _span(group: Sequence[tuple[Window, Observation]]) -> Span:
    points = tuple(
        Point(at, window.used_pct or 0.0, elapsed_pct(window, at), observation.read_by)
        for window, observation in group
        for at in [_taken(window, observation)]
    )
    last = group[-1][0]
    resets = last.resets_at
    # A reset years away, or in the year 1, would press everything else into one dot.
    if resets is None or is_unanchored(last) or abs(resets - points[-1].at) > _LONGEST:
        return Span(points, None, None)
    opens = starts_at(last)
    if opens is None or points[-1].at - opens > _LONGEST:
        return Span(points, None, None)
    return Span(points, opens, resets)
