"""Run: the plan by phase with how each node stands, the attempts on a line of time, and what happened. Pure."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from bullswarm_core.fast.text import minutes_and_seconds
from bullswarm_core.reports.handback import failure_of, proof_of
from bullswarm_core.reports.stalls import DEFAULT_STALL_SEC, Life
from bullswarm_core.reports.watch import Notice
from bullswarm_core.runs.state import AttemptState, StepState
from bullswarm_core.runs.status import OVER
from bullswarm_server.dashboard.follow import RunView
from bullswarm_server.dashboard.rows import Place, Row, RowTable, heading
from bullswarm_server.displays.moments import local_moment
from bullswarm_server.displays.pools_terminal import bar
from bullswarm_server.displays.terminal import Terminal, cells
from bullswarm_server.displays.text import duration, one_line
from bullswarm_server.displays.workflow_graph import mark_of, phased_order, phases_of, words_of

_NARROW = 80
_LONGEST_NAME, _LONGEST_POOL = 28, 18
_MOST_BARS = 200
_MOST_EVENTS = 500


def head_lines(view: RunView, terminal: Terminal) -> list[str]:
    """Return two lines: which run and its goal; how far it is and for how long."""
    state, style = view.state, terminal.style
    counted: Counter[str] = Counter(view.known[step.id] for step in state.program.steps)
    done, total = sum(counted[status] for status in OVER), len(state.program.steps)
    parts = [view.status, f"{done} of {total} done"]
    parts += [f"{counted[word]} {word}" for word in ("running", "failed", "blocked", "cancelled") if counted[word]]
    until = state.finished_at or view.now
    parts += [minutes_and_seconds((until - state.created_at).total_seconds()), one_line(state.created.cwd)]
    title = f"{state.created.short_id} · {one_line(state.created.goal)}"
    paint = style.good if view.status == "completed" else style.bad if view.status in _BAD else style.warn
    second = terminal.clipped(" · ".join(parts), terminal.width)
    head, tail = second[: len(view.status)], second[len(view.status) :]
    return [heading(title, terminal).line, paint(head) + tail]


_BAD = frozenset({"partial", "cancelled", "failed", "kernel-gone"})


def run_rows(view: RunView, terminal: Terminal) -> RowTable:
    """Return the page below its head."""
    bars, events = timeline_rows(view, terminal), event_rows(view, terminal)
    return RowTable(
        [
            *plan_rows(view, terminal),
            *([Row(""), heading("Timeline", terminal), *bars] if bars else []),
            *([Row(""), heading("What happened, newest first", terminal), *events] if events else []),
        ]
    )


def plan_rows(view: RunView, terminal: Terminal) -> list[Row]:
    """Return every step, gate and loop below its phase, each behind what it waits for."""
    phases = phases_of(view.state.program, view.state.plan)
    rows: list[Row] = []
    phase: str | None = None
    longest = max(map(cells, view.state.steps), default=0)
    widths = (min(longest, _LONGEST_NAME if terminal.width >= _NARROW else 14), _pool_width(view, terminal))
    for name in phased_order(view.state.plan, phases):
        if phases[name] != phase:
            phase = phases[name]
            rows += [heading(one_line(phase), terminal)] if phase else []
        place = Place("step", view.state.created.run_id, name)
        rows.append(Row(f"{mark_of(view.known[name], terminal)} {_node(view, name, widths, terminal)}", place))
    return rows


def _node(view: RunView, name: str, widths: tuple[int, int], terminal: Terminal) -> str:
    name_width, pool_width = widths
    room, status = terminal.width - 2, view.known[name]
    step = view.state.steps.get(name)
    if step is None:
        return terminal.clipped(words_of(view.state, name, status, labels=view.labels), room)
    shown = terminal.padded(name, name_width)
    attempt = step.running or step.current
    if attempt is None:
        waits = [other for other in view.state.plan.waits[name] if view.known[other] not in OVER]
        word = f"waits for {', '.join(waits)}" if waits and status == "pending" else status
        return terminal.style.faint(terminal.clipped(f"{shown} {word}", room))
    pool = terminal.padded(one_line(view.labels.shown(attempt.picked.pool)), pool_width)
    if attempt.running:
        return _running(attempt, view.lives.get(name), f"{shown} {pool} ", room, view.now, terminal)
    ended = terminal.clipped(f"{shown} {pool} {_ended(view, step, status)}", room)
    return terminal.style.faint(ended) if status == "succeeded" else ended


def _pool_width(view: RunView, terminal: Terminal) -> int:
    names = [
        one_line(view.labels.shown(each.current.picked.pool)) for each in view.state.steps.values() if each.current
    ]
    most = _LONGEST_POOL if terminal.width >= _NARROW else 10
    return min(max(map(cells, names), default=0), most)


def _running(attempt: AttemptState, life: Life | None, head: str, room: int, now: datetime, terminal: Terminal) -> str:
    """Return a step that runs: a bar of the time against what was expected, and its worker's last sign of life."""
    spent = max(0.0, (now - (attempt.launched_at or attempt.picked_at)).total_seconds())
    expected = attempt.picked.expected_minutes
    width = 12 if terminal.width >= _NARROW else 6
    if not expected:
        return terminal.clipped(f"{head}{minutes_and_seconds(spent)} · {life_words(life, now)}", room)
    used = spent / 60 / expected * 100
    paint = terminal.style.good if used <= 100 else terminal.style.warn
    drawn = bar(used, None, width, terminal, paint=paint)
    figures = f" {minutes_and_seconds(spent)}/{duration(expected)} · {life_words(life, now)}"
    left = room - cells(head) - width
    return f"{head}{drawn}{_quiet_paint(life, now, terminal, terminal.clipped(figures, left))}"


def _quiet_paint(life: Life | None, now: datetime, terminal: Terminal, text: str) -> str:
    quiet = life is not None and not life.in_flight and life.quiet(now).total_seconds() >= DEFAULT_STALL_SEC
    return terminal.style.warn(text) if quiet else text


def life_words(life: Life | None, now: datetime) -> str:
    """Say what is known of a worker that runs."""
    if life is None:
        return "starting"
    if life.checking:
        return "checking"
    seconds = life.quiet(now).total_seconds()
    ago = f"{int(seconds)}s" if seconds < 60 else duration(seconds / 60)
    return f"wrote {ago} ago" + (f" · {one_line(life.last_command)}" if life.last_command else "")


def _ended(view: RunView, step: StepState, status: str) -> str:
    kind, why = failure_of(step)
    finished = step.current.finished if step.current else None
    seconds = finished.meta.wall_sec if finished else None
    parts = [] if seconds is None else [minutes_and_seconds(seconds)]
    if status == "succeeded":
        proof = proof_of(view.state, step)
        return " · ".join([*parts, *([proof] if proof else [])]) or "succeeded"
    word = "tried again soon" if status == "pending" else status
    said = [word, *([kind] if kind else []), *parts, *([view.labels.in_text(one_line(why))] if why else [])]
    return " · ".join(said)


def timeline_rows(view: RunView, terminal: Terminal) -> list[Row]:
    """Return a bar per attempt that was started, from the first start to the end or to now."""
    attempts = [one for step in view.state.steps.values() for one in step.attempts if one.launched_at is not None]
    if not attempts:
        return []
    attempts = sorted(attempts, key=_began)[-_MOST_BARS:]
    begin = min(map(_began, attempts))
    end = max([_until(one, view) for one in attempts] + [begin + timedelta(seconds=1)])
    names = [f"{one.picked.step}-{one.picked.ordinal}" for one in attempts]
    name_width = min(max(map(cells, names)), 22 if terminal.width >= _NARROW else 12)
    pool_width = _pool_width(view, terminal)
    room = max(4, terminal.width - name_width - pool_width - 10)
    rows = []
    for name, one in zip(names, attempts, strict=True):
        pool = terminal.padded(one_line(view.labels.shown(one.picked.pool)), pool_width)
        drawn = _span(one, view, begin=begin, end=end, width=room, terminal=terminal)
        took = duration((_until(one, view) - _began(one)).total_seconds() / 60)
        line = f"{terminal.padded(name, name_width)} {pool} {drawn} {took:>6}"
        rows.append(Row(line, Place("step", view.state.created.run_id, one.picked.step)))
    return rows


def _span(
    attempt: AttemptState, view: RunView, *, begin: datetime, end: datetime, width: int, terminal: Terminal
) -> str:
    whole = end - begin
    first = min(width - 1, int((_began(attempt) - begin) / whole * width))
    last = max(first + 1, min(width, round((_until(attempt, view) - begin) / whole * width)))
    full, free = ("━", "·") if terminal.unicode else ("=", ".")
    style, finished = terminal.style, attempt.finished
    paint = style.warn if finished is None else style.good if finished.ok else style.bad
    return style.faint(free * first) + paint(full * (last - first)) + style.faint(free * (width - last))


def _began(attempt: AttemptState) -> datetime:
    return attempt.launched_at or attempt.picked_at


def _until(attempt: AttemptState, view: RunView) -> datetime:
    return max(attempt.finished_at or view.state.finished_at or view.now, _began(attempt))


def event_rows(view: RunView, terminal: Terminal) -> list[Row]:
    """Return what happened, newest first, each in a line with its time."""
    notices = [notice for notice in view.notices if notice.notable or notice.trouble]
    return [_event(view, notice, terminal) for notice in reversed(notices[-_MOST_EVENTS:])]


def _event(view: RunView, notice: Notice, terminal: Terminal) -> Row:
    when = local_moment(notice.at, view.now)
    text = terminal.clipped(f"{when:>9} {view.labels.in_text(one_line(notice.line))}", terminal.width)
    about = notice.about if notice.about in view.known else None
    place = Place("step", view.state.created.run_id, about) if about else None
    return Row(terminal.style.warn(text) if notice.trouble else text, place)
