"""The timeline of a run as one SVG: a band per pool, a bar per attempt, attempts at the same time below each other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools.labels import Labels
from bullswarm_core.runs.state import AttemptState, RunState
from bullswarm_server.displays.report_text import elapsed, inline

_WIDTH, _LEFT, _RIGHT = 1000.0, 150.0, 12.0
_ROW, _BAR, _TOP, _BAND_GAP = 22.0, 16.0, 28.0, 8.0
_TICKS = 6
# A page with more bars says nothing more to a reader, and takes long to open.
_MOST_BARS = 1_500
_LETTER = 7.0
_MOST_LABEL = 20


@dataclass(frozen=True, slots=True)
class Bar:
    """One attempt: where it ran, from when to when, and in which row of its band."""

    attempt: AttemptState
    begin: datetime
    end: datetime
    row: int


def timeline(state: RunState, *, labels: Labels) -> str:
    """Return the picture, or nothing for a run of which no worker was ever started."""
    attempts = [attempt for step in state.steps.values() for attempt in step.attempts if attempt.launched_at]
    if not attempts:
        return ""
    attempts = sorted(attempts, key=_began)[:_MOST_BARS]
    begin = min(map(_began, attempts))
    end = max(max(_ended(attempt, state) for attempt in attempts), begin + timedelta(seconds=1))
    bands = {pool: _stacked([one for one in attempts if one.picked.pool == pool], state) for pool in _pools(attempts)}
    parts: list[str] = []
    top = _TOP
    for pool, bars in bands.items():
        height = _ROW * (1 + max(bar.row for bar in bars))
        shown = labels.shown(pool)
        name = shown if len(shown) <= _MOST_LABEL else shown[: _MOST_LABEL - 1] + "…"
        parts.append(f'<text x="8" y="{top + 13:g}"><title>{inline(shown)}</title>{inline(name)}</text>')
        parts += [_bar(bar, begin, end, top) for bar in bars]
        top += height + _BAND_GAP
        parts.append(f'<line x1="0" x2="{_WIDTH:g}" y1="{top - 6:g}" y2="{top - 6:g}"/>')
    ticks = list(_ticks(begin, end, top))
    size = f'viewBox="0 0 {_WIDTH:g} {top:g}" role="img" aria-label="which pool worked on which step, and when"'
    return f"<svg {size}>{''.join([*ticks, *parts])}</svg>"


def _pools(attempts: list[AttemptState]) -> list[str]:
    return list(dict.fromkeys(attempt.picked.pool for attempt in attempts))


def _began(attempt: AttemptState) -> datetime:
    return attempt.launched_at or attempt.picked_at


def _ended(attempt: AttemptState, state: RunState) -> datetime:
    """When an attempt ended; one without an end lasts as long as the run, or as what is known of it."""
    return max(attempt.finished_at or state.finished_at or _began(attempt), _began(attempt))


def _stacked(attempts: list[AttemptState], state: RunState) -> list[Bar]:
    """Put each attempt in the first row that is free when it begins."""
    free_from: list[datetime] = []
    bars: list[Bar] = []
    for attempt in attempts:
        begin, end = _began(attempt), _ended(attempt, state)
        row = next((number for number, free in enumerate(free_from) if free <= begin), len(free_from))
        free_from[row : row + 1] = [end]
        bars.append(Bar(attempt, begin, end, row))
    return bars


def _at(moment: datetime, begin: datetime, end: datetime) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * ((moment - begin) / (end - begin))


def _bar(bar: Bar, begin: datetime, end: datetime, top: float) -> str:
    picked, finished = bar.attempt.picked, bar.attempt.finished
    x = _at(bar.begin, begin, end)
    width = max(2.0, _at(bar.end, begin, end) - x)
    y = top + bar.row * _ROW
    tone = "work" if finished is None else "good" if finished.ok else "bad"
    came_to = "running" if finished is None else "succeeded" if finished.ok else str(finished.failure_kind or "failed")
    name = f"{picked.step}-{picked.ordinal}"
    title = f"{name} · {came_to} · {elapsed((bar.end - bar.begin).total_seconds())}"
    drawn = f'<rect class="{tone}" x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="{_BAR:g}" rx="3"/>'
    label = ""
    if len(picked.step) * _LETTER + 8 <= width:
        label = f'<text class="label" x="{x + 4:.1f}" y="{y + 12:g}">{inline(picked.step)}</text>'
    return f"<g><title>{inline(title)}</title>{drawn}{label}</g>"


def _ticks(begin: datetime, end: datetime, bottom: float) -> Iterator[str]:
    for number in range(_TICKS + 1):
        moment = begin + (end - begin) * number / _TICKS
        x = _at(moment, begin, end)
        anchor = "end" if number == _TICKS else "middle" if number else "start"
        words = elapsed((moment - begin).total_seconds())
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="20" y2="{bottom:g}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="14" text-anchor="{anchor}">{inline(words)}</text>'
