"""A run on a terminal while it goes on: its steps by phase, each with its pool, its time against what was expected of it,
and when it last wrote anything; and what needs the person. Every line fits the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast.text import minutes_and_seconds
from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.handback import failure_of, proof_of
from bullswarm_core.reports.stalls import DEFAULT_STALL_SEC, Life
from bullswarm_core.reports.watch import Notice
from bullswarm_core.runs.state import RunState, StepState
from bullswarm_core.runs.status import OVER, NodeStatus
from bullswarm_server.displays.pools_terminal import bar
from bullswarm_server.displays.terminal import Terminal, cells
from bullswarm_server.displays.text import duration, one_line
from bullswarm_server.displays.workflow_graph import mark_of, phased_order, phases_of, words_of

Paint = Callable[[str], str]
Piece = tuple[str, Paint]

_WIDEST = 140
_NARROW = 70
# Shown of what needs the person, however much it is: the rest is a command away.
_MOST_TROUBLES = 3


@dataclass(frozen=True, slots=True)
class Scene:
    """What a frame is drawn from: the run, its nodes' statuses, its attempts' signs of life, and what stands open."""

    state: RunState
    known: Mapping[str, NodeStatus]
    lives: Mapping[str, Life]
    troubles: Sequence[Notice]
    labels: Labels
    now: datetime


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths in cells, the same for every step."""

    name: int
    pool: int


def _columns(scene: Scene, terminal: Terminal) -> Columns:
    narrow = terminal.width < _NARROW
    attempts = [step.running or step.current for step in scene.state.steps.values()]
    pools = {scene.labels.shown(attempt.picked.pool) for attempt in attempts if attempt is not None}
    return Columns(
        name=min(max(cells(name) for name in scene.state.steps), 14 if narrow else 28),
        pool=min(max((cells(one_line(pool)) for pool in pools), default=0), 10 if narrow else 18),
    )


def live_lines(scene: Scene, terminal: Terminal, *, foot: str) -> list[str]:
    """Return a frame of at most as many lines as the terminal has, none wider than it."""
    head = _head(scene, terminal)
    troubles = _troubles(scene, terminal)
    last = terminal.style.faint(terminal.clipped(foot, terminal.width))
    # The last row stays free: a line feed there would scroll the frame.
    rows = max(1, terminal.height - 1)
    body = _body(scene, terminal, max(1, rows - len(head) - len(troubles) - 1))
    return [*[*head, *body, *troubles][: rows - 1], last]


def _head(scene: Scene, terminal: Terminal) -> list[str]:
    state = scene.state
    counted: Counter[str] = Counter(scene.known[step.id] for step in state.program.steps)
    title = f"{state.created.short_id} · {one_line(state.created.goal)}"
    done = sum(counted[status] for status in OVER)
    parts = [f"{done} of {len(state.program.steps)} done"]
    parts += [
        f"{counted[status]} {status}" for status in ("running", "failed", "blocked", "cancelled") if counted[status]
    ]
    waiting = sum(scene.known[name] == "waiting" for name in (*state.gates, *state.loops))
    parts += [f"{waiting} waiting for you"] if waiting else []
    parts += ["pausing"] if state.paused else []
    parts += ["stopping"] if state.stop_requested else []
    parts.append(minutes_and_seconds((scene.now - state.created_at).total_seconds()))
    return [terminal.clipped(title, terminal.width), terminal.clipped(" · ".join(parts), terminal.width), ""]


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes of one phase that stand together; ``title`` is their heading, or empty for none.

    One of which nothing is to be seen but that it is done, or still to come, can be a line of its own.
    """

    title: str
    names: Sequence[str]
    quiet_status: str | None

    def height(self, *, folded: bool) -> int:
        """How many lines the group takes."""
        return 1 if folded and self.quiet_status else len(self.names) + bool(self.title)


def _body(scene: Scene, terminal: Terminal, room: int) -> list[str]:
    """Draw everything, or, where that is too much, quiet phases in a line each; or at last what matters most."""
    groups, columns = _groups(scene), _columns(scene, terminal)
    for folded in (False, True):
        if sum(group.height(folded=folded) for group in groups) <= room:
            return [line for group in groups for line in _group(scene, terminal, columns, group, folded=folded)]
    loud = [name for group in groups for name in group.names if not _is_quiet(scene.known[name])]
    # What is only blocked comes last: nobody can do anything about it but about what blocks it.
    loud.sort(key=lambda name: scene.known[name] == "blocked")
    kept = [_node(scene, terminal, columns, name) for name in loud[: max(0, room - 1)]]
    left = len(scene.state.plan.order) - len(kept)
    return [*kept, terminal.style.faint(terminal.clipped(f"  and {left} more", terminal.width))]


def _groups(scene: Scene) -> list[Group]:
    phases = phases_of(scene.state.program, scene.state.plan)
    found: list[tuple[str | None, list[str]]] = []
    for name in phased_order(scene.state.plan, phases):
        if not found or found[-1][0] != phases[name]:
            found.append((phases[name], []))
        found[-1][1].append(name)
    unnamed = "no phase" if len(found) > 1 else ""
    return [Group(one_line(phase) if phase else unnamed, names, _quiet_status(scene, names)) for phase, names in found]


def _quiet_status(scene: Scene, names: Sequence[str]) -> str | None:
    """Return the one status of several nodes of which there is nothing to tell, or None."""
    statuses = {scene.known[name] for name in names}
    only = next(iter(statuses))
    return only if len(names) > 1 and len(statuses) == 1 and _is_quiet(only) else None


def _is_quiet(status: str) -> bool:
    return status in OVER or status == "pending"


def _group(scene: Scene, terminal: Terminal, columns: Columns, group: Group, *, folded: bool) -> list[str]:
    if folded and group.quiet_status:
        words = f" {group.title or 'steps'} · {len(group.names)} {group.quiet_status}"
        return [
            mark_of(group.quiet_status, terminal)
            + _fitted([(words, terminal.style.faint)], terminal, terminal.width - 1)
        ]
    heading = [terminal.style.faint(terminal.clipped(group.title, terminal.width))] if group.title else []
    return [*heading, *(_node(scene, terminal, columns, name) for name in group.names)]


def _node(scene: Scene, terminal: Terminal, columns: Columns, name: str) -> str:
    status = scene.known[name]
    width = min(terminal.width, _WIDEST) - 2
    if name in scene.state.steps:
        pieces = _step(scene, terminal, columns, scene.state.steps[name], status)
    else:
        pieces = [(words_of(scene.state, name, status, labels=scene.labels), str)]
    return f"{mark_of(status, terminal)} {_fitted(pieces, terminal, width)}".rstrip()


def _step(scene: Scene, terminal: Terminal, columns: Columns, step: StepState, status: NodeStatus) -> list[Piece]:
    faint = terminal.style.faint
    name = terminal.padded(step.id, columns.name)
    attempt = step.running or step.current
    if attempt is None:
        waits = [other for other in scene.state.plan.waits[step.id] if scene.known[other] not in OVER]
        word = status if status != "pending" else f"waits for {', '.join(waits)}" if waits else "next"
        return [(name, faint), (f" {word}", faint)]
    pool = terminal.padded(one_line(scene.labels.shown(attempt.picked.pool)), columns.pool)
    if attempt.running:
        life = scene.lives.get(step.id)
        return [(f"{name} {pool} ", str), *_clock(scene, terminal, step), *_activity(scene, terminal, life)]
    return [(f"{name} {pool} ", str), (_ended(scene.state, step, status), faint if status == "succeeded" else str)]


def _clock(scene: Scene, terminal: Terminal, step: StepState) -> list[Piece]:
    """The time that a step has taken against what was expected: a bar, and both in figures."""
    attempt = step.running
    assert attempt is not None, "only a running step has a clock"
    spent = (scene.now - (attempt.launched_at or attempt.picked_at)).total_seconds()
    expected = attempt.picked.expected_minutes
    width = 6 if terminal.width < _NARROW else 12
    if not expected:
        return [(f"{minutes_and_seconds(spent)} ", str)]
    used = spent / 60 / expected * 100
    paint = terminal.style.good if used <= 100 else terminal.style.warn
    figures = f" {_minutes(spent / 60)}/{duration(expected)} "
    return [(bar(used, None, width, terminal, paint=paint), _painted_already), (figures, str)]


def _painted_already(text: str) -> str:
    return text


def _minutes(minutes: float) -> str:
    return duration(minutes) if minutes >= 1 else f"{int(minutes * 60)}s"


def _activity(scene: Scene, terminal: Terminal, life: Life | None) -> list[Piece]:
    if life is None:
        return [("starting", terminal.style.faint)]
    if life.checking:
        return [("checking", terminal.style.warn)]
    quiet = life.quiet(scene.now).total_seconds()
    paint = terminal.style.warn if quiet >= DEFAULT_STALL_SEC and not life.in_flight else terminal.style.faint
    words = f"{_minutes(quiet / 60)} ago"
    if life.last_command:
        words += f" {life.last_command}" if terminal.width >= _NARROW else ""
    return [(words, paint)]


def _ended(state: RunState, step: StepState, status: NodeStatus) -> str:
    kind, why = failure_of(step)
    finished = step.current.finished if step.current else None
    seconds = finished.meta.wall_sec if finished else None
    parts = [] if seconds is None else [minutes_and_seconds(seconds)]
    if status == "succeeded":
        return " · ".join([*parts, *([proof] if (proof := proof_of(state, step)) else [])])
    word = "tried again soon" if status == "pending" else status
    return " · ".join([word, *([kind] if kind else []), *parts, *([one_line(why)] if why else [])])


def _troubles(scene: Scene, terminal: Terminal) -> list[str]:
    if not scene.troubles:
        return []
    lines = [""]
    for notice in scene.troubles[:_MOST_TROUBLES]:
        head = terminal.clipped(scene.labels.in_text(notice.line), terminal.width)
        lines.append(terminal.style.warn(head))
        lines += [terminal.clipped(f"  {command}", terminal.width) for command in _first_command(notice)]
    more = len(scene.troubles) - _MOST_TROUBLES
    words = terminal.clipped(f"and {more} more that need you", terminal.width)
    return [*lines, *([terminal.style.warn(words)] if more > 0 else [])]


def _first_command(notice: Notice) -> list[str]:
    """The first way on, without its name: on a narrow terminal the command alone has room."""
    options = notice.facts.get("options") or {}
    return [value for value in options.values() if isinstance(value, str)][:1]


def _fitted(pieces: Iterable[Piece], terminal: Terminal, width: int) -> str:
    """Join pieces that are painted one by one, in at most ``width`` cells."""
    shown, left = "", width
    for text, paint in pieces:
        if left <= 0:
            break
        if paint is _painted_already:
            size = _bare(text)
            if size > left:
                break
            shown += text
        else:
            fitted = terminal.clipped(text, left)
            size = cells(fitted)
            shown += paint(fitted)
        left -= size
    return shown


def _bare(text: str) -> int:
    """How many cells a painted text takes."""
    from re import sub

    return cells(sub(r"\x1b\[[0-9;]*m", "", text))
