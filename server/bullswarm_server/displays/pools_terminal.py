"""``bullswarm pools`` on a terminal: one aligned line per pool, its quota as a bar against its clock.

The columns, from the left: name, pacing window, bar, used, surplus, time to the reset, the 5-hour window, state. Below 70
cells the window's name and the 5-hour column go, since the state tells when they matter; where even so a state would be cut
off, the bar shrinks and then goes, and the surplus and the reset after it. From 100 cells on come the hour
of the reset, a bar of the 5 hours, the load and the age of the reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.pools import WindowKind
from bullswarm_core.quota.windows import BURST_BLOCK_PCT, MINUTE
from bullswarm_core.routing.billing import grant_command
from bullswarm_core.routing.overview import PoolOverview
from bullswarm_server.displays.moments import local_moment
from bullswarm_server.displays.pools import (
    age_minutes,
    closed_for,
    is_spent_model,
    limit_left,
    missing_reading,
    model_of,
    trouble_text,
)
from bullswarm_server.displays.terminal import Terminal, cells
from bullswarm_server.displays.text import Style, duration, number, one_line

_NARROW, _WIDE, _WIDER, _WIDEST = 78, 100, 125, 180
_LONGEST_NAME = 24
_LEAST_BAR, _MOST_BAR = 6, 40
# `quarantined 13d23h`: no state of one reason is longer. Several stand whole as long as the bar can give way.
_WHOLE_STATE, _LONGEST_STATE = 18, 28
AHEAD_POINTS = -10.0
"""A pool that is further ahead of its clock than this is drawn in the colour of trouble: it runs dry before its reset."""
_SURPLUS, _PROJECTED, _HOUR_AND_LEFT, _EXTRAS = 6, 8, 17, 12
_CLOSED = ("disabled", "unavailable", "billing-gated")
_EIGHTHS = " ▏▎▍▌▋▊▉"

Paint = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Layout:
    """Widths in cells; 0 leaves a column out."""

    total: int
    name: int
    window: int
    bar: int
    used: int
    surplus: int
    reset: int
    five_bar: int
    five_text: int
    extras: bool

    @property
    def middle(self) -> int:
        """Cells from the window's name to the reset, for a pool that has none of it."""
        return sum(width + 1 for width in (self.window, self.bar, self.used, self.surplus, self.reset) if width) - 1


def pool_table(overviews: Sequence[PoolOverview], terminal: Terminal) -> list[str]:
    """One line per pool; none is wider than the terminal, or than 180 cells."""
    names = [one_line(item.pool.shown_name) for item in overviews]
    states = [state_of(item, terminal.style)[0] for item in overviews if item.state not in _CLOSED]
    layout = layout_for(
        terminal.width,
        longest_name=max(map(cells, names), default=0),
        longest_state=max(map(cells, states), default=0),
    )
    return [_line(name, item, layout, terminal) for name, item in zip(names, overviews, strict=True)]


def permission_notes(overviews: Sequence[PoolOverview]) -> list[str]:
    """What to type for each pool that only waits for the person's word, or that a word of theirs opens before its time."""
    return [note for item in overviews if (note := _permission_note(item)) is not None]


def _permission_note(item: PoolOverview) -> str | None:
    name = one_line(item.pool.shown_name)
    if item.quarantine is not None:
        return f"{name} is quarantined ({one_line(item.quarantine.why)}) · bullswarm pools resume {item.pool.id}"
    if item.state == "billing-gated":
        return f"{name} is paid by API key and not used before you allow it · {grant_command(item.pool.id)}"
    return None


def layout_for(width: int, *, longest_name: int, longest_state: int) -> Layout:
    """Divide ``width`` cells among the columns, the bar taking what the others leave.

    A narrow terminal does without the bar, the surplus and the reset, in this order, before a state is cut off.
    """
    total = min(width, _WIDEST)
    if total < _NARROW:
        name, window, used, reset, five_text, state = min(longest_name, 14, max(4, total - 27)), 0, 4, 6, 0, 14
    elif total < _WIDE:
        name, window, used, reset, five_text, state = min(longest_name, 16), 7, 4, 6, 7, 16
    else:
        most = _LONGEST_NAME if total >= _WIDER else 18
        name, window, used, reset, five_text, state = min(longest_name, most), 7, 8, 17, 7, 18
    extras = total >= _WIDER
    five_bar = 6 if extras else 0
    others = [name, window, used, _SURPLUS, reset, five_text, five_bar, _EXTRAS if extras else 0]
    room = total - sum(column + 1 for column in others if column)
    bar_width = min(_MOST_BAR, max(_LEAST_BAR, room - 1 - max(state, min(longest_state, _LONGEST_STATE))))
    surplus, least = _SURPLUS, min(longest_state, _WHOLE_STATE)
    if room - bar_width - 1 < least:
        bar_width = 0
        if room < least:
            surplus, room = 0, room + surplus + 1
        if room < least:
            reset = 0
    return Layout(total, name, window, bar_width, used, surplus, reset, five_bar, five_text, extras)


def _line(name: str, item: PoolOverview, layout: Layout, terminal: Terminal) -> str:
    style = terminal.style
    closed = item.state in _CLOSED
    shown = terminal.padded(name, layout.name)
    columns = [style.faint(shown) if closed else shown]
    word, paint = state_of(item, style)
    if closed and gauge_of(item) is None:
        return f"{columns[0]} {paint(terminal.clipped(word, layout.total - layout.name - 1))}"
    taken = layout.name + 1 + layout.middle + 1
    gauge = gauge_of(item)
    if gauge is None:
        missing = trouble_text(item) or missing_reading(item)
        columns.append(style.faint(terminal.padded(missing, layout.middle)))
    else:
        columns += _measured(item, gauge, layout, terminal)
    for text, width in _protection(item, layout, terminal):
        columns.append(text)
        taken += width + 1
    if layout.extras:
        extras = f"{_load(item):>5} {_age(item):>6}"
        columns.append(extras)
        taken += len(extras) + 1
    rest = terminal.clipped(word, max(0, layout.total - taken))
    return " ".join([*columns, paint(rest)] if rest else columns).rstrip()


@dataclass(frozen=True, slots=True)
class Gauge:
    """The window that a line draws: the one that paces the pool, else one that protects it."""

    kind: WindowKind
    used: float
    projected: float | None
    elapsed: float | None
    resets_at: datetime | None


def gauge_of(item: PoolOverview) -> Gauge | None:
    """Return the window to draw, or None where none was read."""
    row = item.row
    paced = (row.pacing_window, row.pacing_used_pct, row.projected_pacing_pct, row.pacing_elapsed_pct)
    for kind, used, projected, elapsed, resets_at in (
        (*paced, row.pacing_resets_at),
        ("5h", row.five_hour_used_pct, row.projected_five_hour_pct, row.five_hour_elapsed_pct, row.five_hour_resets_at),
        ("daily", row.daily_used_pct, None, row.daily_elapsed_pct, None),
    ):
        if kind is not None and used is not None:
            return Gauge(kind, used, projected, elapsed, resets_at)
    return None


def _measured(item: PoolOverview, gauge: Gauge, layout: Layout, terminal: Terminal) -> list[str]:
    row, paint = item.row, pace_paint(item, terminal.style)
    surplus = "-" if row.pace is None else f"{'+' if row.pace > 0 else ''}{number(row.pace)}"
    columns = [
        (layout.window, f"{gauge.kind:<{layout.window}}"),
        (layout.bar, bar(gauge.used, gauge.elapsed, layout.bar, terminal, paint=paint)),
        (layout.used, f"{_used(gauge, layout, terminal):>{layout.used}}"),
        (layout.surplus, paint(f"{surplus:>{layout.surplus}}")),
        (layout.reset, f"{reset_text(gauge.resets_at, item.now, layout.reset):>{layout.reset}}"),
    ]
    return [text for width, text in columns if width]


def bar(used: float, elapsed: float | None, width: int, terminal: Terminal, *, paint: Paint) -> str:
    """``used`` percent of ``width`` cells, and a mark where the window's clock stands; clamped, since it is drawn."""
    full, part, free, mark = ("█", _EIGHTHS, "░", "│") if terminal.unicode else ("#", " ", "-", "|")
    eighths = round(min(100.0, max(0.0, used)) / 100 * width * 8)
    drawn = full * (eighths // 8)
    if part != " " and eighths % 8:
        drawn += part[eighths % 8]
    elif eighths % 8 >= 4:
        drawn += full
    line = drawn + free * (width - len(drawn))
    if elapsed is None:
        return paint(drawn) + terminal.style.faint(line[len(drawn) :])
    place = min(width - 1, int(min(100.0, max(0.0, elapsed)) / 100 * width))
    before, after = line[:place], line[place + 1 :]
    in_drawn = len(drawn)
    return (
        paint(before[:in_drawn])
        + terminal.style.faint(before[in_drawn:])
        + mark
        + paint(after[: max(0, in_drawn - place - 1)])
        + terminal.style.faint(after[max(0, in_drawn - place - 1) :])
    )


def pace_paint(item: PoolOverview, style: Style) -> Paint:
    """The colour of a pool's pace: green behind its clock, yellow a little ahead, red far ahead or used up."""
    row = item.row
    if item.spent is not None or (row.pacing_used_pct or 0.0) >= BURST_BLOCK_PCT or row.urgency_state == "draining":
        return style.bad
    if row.pace is None:
        return str
    if row.pace >= 0:
        return style.good
    return style.warn if row.pace >= AHEAD_POINTS else style.bad


def reset_text(resets_at: datetime | None, now: datetime, width: int) -> str:
    """When a window resets: ``5d22h``, and with room the local day and hour before it."""
    if resets_at is None:
        return "?"
    left = duration((resets_at - now) / MINUTE)
    return left if width < _HOUR_AND_LEFT else f"{local_moment(resets_at, now)} ({left})"


def _used(gauge: Gauge, layout: Layout, terminal: Terminal) -> str:
    used, projected = gauge.used, gauge.projected
    if layout.used < _PROJECTED or projected is None or whole(projected) == whole(used):
        return f"{whole(used)}%"
    return f"{whole(used)}{'→' if terminal.unicode else '>'}{whole(projected)}%"


def whole(percent: float) -> int:
    """Round to whole percents, halves up; what is not used up never becomes 100."""
    return min(99, int(percent + 0.5)) if percent < BURST_BLOCK_PCT else int(percent + 0.5)


def _protection(item: PoolOverview, layout: Layout, terminal: Terminal) -> list[tuple[str, int]]:
    if not layout.five_text:
        return []
    used, elapsed = item.row.five_hour_used_pct, item.row.five_hour_elapsed_pct
    style = terminal.style
    paint = style.bad if (used or 0.0) >= BURST_BLOCK_PCT else style.warn if item.row.near_five_hour_limit else str
    text = "" if used is None else f"5h {whole(used):>3}%"
    found = [(paint(f"{text:<{layout.five_text}}"), layout.five_text)]
    if layout.five_bar:
        drawn = " " * layout.five_bar
        if used is not None:
            drawn = bar(used, elapsed, layout.five_bar, terminal, paint=paint)
        found.append((drawn, layout.five_bar))
    return found


def _load(item: PoolOverview) -> str:
    return f"{item.row.inflight} run" if item.row.inflight else ""


def _age(item: PoolOverview) -> str:
    age = age_minutes(item)
    return "" if age is None else duration(age)


def state_of(item: PoolOverview, style: Style) -> tuple[str, Paint]:
    """The pool's state in a few words, and its colour."""
    if item.state == "disabled":
        return "disabled", style.faint
    if item.state == "unavailable":
        return f"unavailable: {one_line(item.pool.unavailable or '')}", style.bad
    if item.state == "billing-gated":
        return "key not allowed", style.warn
    if item.quarantine is not None:
        return f"quarantined {duration((item.quarantine.until - item.now) / MINUTE)}", style.bad
    if item.spent is not None:
        # The pacing window's reset has a column of its own.
        left = "" if item.spent is item.pacing else limit_left(item)
        return f"{item.spent.kind} spent{left}", style.bad
    words = _words(item)
    return (", ".join(words), style.warn) if words else ("ready", style.good)


def _words(item: PoolOverview) -> list[str]:
    row = item.row
    words = [f"near {row.near_window} limit"] if row.near_window else []
    if row.urgency_state in ("urgent", "draining"):
        words.append(row.urgency_state)
    if item.pacing is not None and item.pacing.source == "stale":
        age = age_minutes(item)
        words.append("stale" if age is None else f"{duration(age)} old")
    words += [
        f"{model_of(window)} spent{closed_for(window, item.now)}"
        for window in item.model_limits
        if is_spent_model(window, item.now)
    ]
    words += ["unstable"] if item.pacing is not None and item.pacing.unstable else []
    words += ["reserved"] if row.reserved else []
    words += ["overage on"] if item.pool.overage else []
    return words
