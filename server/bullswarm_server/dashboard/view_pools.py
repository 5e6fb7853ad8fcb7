"""Pools: the table, and of one pool its windows, its use against its pace, its rates and its rungs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bullswarm_core.pools import EFFORTS, Rung, Window, WindowKind
from bullswarm_core.pools.labels import Labels
from bullswarm_core.quota.history import History
from bullswarm_core.quota.windows import BURST_BLOCK_PCT, elapsed_pct, readings, spent
from bullswarm_core.routing.overview import PoolOverview
from bullswarm_server.dashboard.rows import Row, RowTable, heading, text_rows
from bullswarm_server.displays.moments import local_moment
from bullswarm_server.displays.plot import plot_lines
from bullswarm_server.displays.pools import missing_reading, rate_text, trouble_text
from bullswarm_server.displays.pools_terminal import bar, gauge_of, state_of
from bullswarm_server.displays.terminal import Terminal
from bullswarm_server.displays.text import duration, one_line
from bullswarm_server.displays.traces import Trace, kinds_of, summary, trace_of

_PLOT_LINES = 8
_KIND, _USED = 8, 6


def detail_rows(
    item: PoolOverview, history: History, kind: WindowKind | None, labels: Labels, terminal: Terminal
) -> RowTable:
    """Return all about one pool; ``kind`` chooses the window that is drawn, None the one that paces it."""
    trace = trace_shown(item, history, kind)
    plot = [Row(line) for line in plot_lines(trace, terminal, height=_PLOT_LINES)] if trace.spans else []
    said = terminal.clipped(summary(trace), terminal.width)
    return RowTable(
        [
            *_head(item, terminal),
            heading("Windows", terminal),
            *_windows(item, terminal),
            Row(""),
            heading(f"Use and pace of the {trace.kind} window{_others(history, trace)}", terminal),
            Row(said),
            *plot,
            Row(""),
            heading("Rates, what a minute of work spends", terminal),
            *_rates(item, terminal),
            Row(""),
            heading("Rungs", terminal),
            *_rungs(item, terminal),
            *_load(item, labels, terminal),
        ]
    )


def trace_shown(item: PoolOverview, history: History, kind: WindowKind | None) -> Trace:
    """Return the readings that are drawn."""
    kinds = kinds_of(history.observations)
    paced = item.pacing.kind if item.pacing else None
    chosen = kind if kind in kinds else paced if paced in kinds else kinds[0] if kinds else paced or "weekly"
    return trace_of(history.observations, chosen, now=item.now)


def next_kind(item: PoolOverview, history: History, kind: WindowKind | None) -> WindowKind | None:
    """Return the window that is drawn after this one, in turn; None where there are no readings."""
    kinds = kinds_of(history.observations)
    if not kinds:
        return None
    shown = trace_shown(item, history, kind).kind
    return kinds[(kinds.index(shown) + 1) % len(kinds)]


def _others(history: History, trace: Trace) -> str:
    others = [kind for kind in kinds_of(history.observations) if kind != trace.kind]
    return f" (w: {', '.join(others)})" if others else ""


def _head(item: PoolOverview, terminal: Terminal) -> list[Row]:
    pool, (word, paint) = item.pool, state_of(item, terminal.style)
    parts = [
        f"provider {pool.provider}",
        *([f"plan {one_line(pool.plan)}"] if pool.plan else []),
        f"lanes {'/'.join(item.lanes)}",
    ]
    parts += [f"billing {pool.billing}"] if pool.billing != "subscription" else []
    parts += ["off"] if not pool.enabled else []
    name = heading(f"{one_line(pool.shown_name)}", terminal)
    rows = [Row(f"{name.line} {paint(terminal.clipped(word, max(0, terminal.width - len(pool.shown_name) - 1)))}")]
    rows += text_rows([" · ".join(parts)], terminal)
    troubles = [text for text in (_quarantine(item), trouble_text(item)) if text]
    return [
        *rows,
        *(Row(terminal.style.warn(row.line)) for row in text_rows(troubles, terminal)),
        Row(""),
    ]


def _quarantine(item: PoolOverview) -> str:
    if item.quarantine is None:
        return ""
    return f"quarantined until {local_moment(item.quarantine.until, item.now)}: {one_line(item.quarantine.why)}"


def _windows(item: PoolOverview, terminal: Terminal) -> list[Row]:
    rows = [Row(_window(window, item, terminal)) for window in readings(item.pool.windows, item.now).values()]
    if rows:
        return rows
    return [Row(terminal.style.faint(terminal.spelled(missing_reading(item))))]


def _window(window: Window, item: PoolOverview, terminal: Terminal) -> str:
    name = terminal.padded(
        window.kind + (f" {one_line(window.scope)}" if window.scope else ""), 8 if not window.scope else 18
    )
    if window.used_pct is None:
        return f"{name} {terminal.style.faint('not read')}"
    used, elapsed = window.used_pct, elapsed_pct(window, item.now)
    style = terminal.style
    ahead = elapsed is not None and used > elapsed
    paint = style.bad if used >= BURST_BLOCK_PCT else style.warn if ahead else style.good
    width = max(6, min(40, terminal.width - 46))
    drawn = bar(used, elapsed, width, terminal, paint=paint)
    parts = [f"{round(used)}%".rjust(5), *([f"clock {round(elapsed)}%"] if elapsed is not None else [])]
    parts += [_reset(window.resets_at, item.now)]
    parts += ["spent"] if spent(window, item.now, model=window.scope) else []
    parts += [window.source] if window.source in ("stale", "declared") else []
    room = terminal.width - width - len(name) - 2
    return f"{name} {drawn} {terminal.clipped(' · '.join(parts), room)}"


def _reset(resets_at: datetime | None, now: datetime) -> str:
    if resets_at is None:
        return "reset unknown"
    left = duration(max(0.0, (resets_at - now).total_seconds() / 60))
    return f"resets {local_moment(resets_at, now)} ({left})"


def _rates(item: PoolOverview, terminal: Terminal) -> list[Row]:
    lines = [f"{kind:<{_KIND}} {rate_text(rate)}" for kind, rate in item.pool.rates.items()]
    gauge = gauge_of(item)
    if gauge is not None and gauge.projected is not None and item.row.inflight:
        lines.append(f"with what runs now: {gauge.kind} {round(gauge.used)}% becomes {round(gauge.projected)}%")
    return [Row(terminal.clipped(line, terminal.width)) for line in lines] or [
        Row(terminal.style.faint("nothing learned yet: it takes readings and work between them"))
    ]


def _rungs(item: PoolOverview, terminal: Terminal) -> list[Row]:
    rows = []
    for tier in EFFORTS:
        rung = item.pool.tiers.get(tier)
        text = f"{tier:<{_KIND}} {_rung(rung)}"
        closed = rung is None or rung.refused is not None
        line = terminal.clipped(text, terminal.width)
        rows.append(Row(terminal.style.faint(line) if closed else line))
    return rows


def _rung(rung: Rung | None) -> str:
    if rung is None:
        return "not used on this tier"
    parts = [one_line(rung.model) if rung.model else "the CLI's own default"]
    parts += [f"reasoning {rung.reasoning}"] if rung.reasoning else []
    parts += ["free"] if rung.free else []
    parts += [f"refused: {one_line(rung.refused)}"] if rung.refused else []
    return " · ".join([*parts, *(["you set it"] if rung.source == "settings" else [])])


def _load(item: PoolOverview, labels: Labels, terminal: Terminal) -> list[Row]:
    if not item.pool.inflight:
        return []
    rows: list[Row] = [Row(""), heading("In flight", terminal)]
    lines: Sequence[str] = [
        f"{one.lane or '?'}/{one.effort or '?'} since {local_moment(one.started_at, item.now)}"
        + (f", expected {duration(one.expected_minutes)}" if one.expected_minutes else "")
        for one in item.pool.inflight
    ]
    return [*rows, *(Row(terminal.clipped(labels.in_text(line), terminal.width)) for line in lines)]
