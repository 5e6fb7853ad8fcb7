"""Home: what needs the person, what runs, the pools this week, and what has just ended. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast.text import minutes_and_seconds
from bullswarm_core.reports import commands
from bullswarm_core.reports.needs_you import head_line, needs_you
from bullswarm_core.routing.overview import PoolOverview
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import AttemptState
from bullswarm_core.runs.status import OVER
from bullswarm_server.dashboard.rows import Place, Row, RowTable, heading
from bullswarm_server.dashboard.source import Glance, PoolsLook, RunsLook
from bullswarm_server.dashboard.view_runs import run_line
from bullswarm_server.displays.pools_terminal import bar, pool_table
from bullswarm_server.displays.terminal import Terminal, cells
from bullswarm_server.displays.text import duration, one_line

JUST_ENDED = 5
_NARROW = 80
_RUNS = frozenset({"running", "stopping"})

FolderOf = Callable[[str], RunFolder]


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that waits for the person: where, since when, what in one line, and why in another."""

    place: Place
    since: datetime
    line: str
    why: str = ""


def needs_of(glance: Glance, folder: RunFolder) -> list[Need]:
    """Return what a run needs from the person: its gates and loops, its failed steps, a kernel that is gone."""
    state, run_id = glance.state, glance.state.created.run_id
    short = state.created.short_id
    found = list(_waiting(glance))
    if not state.is_single:
        for step in state.steps.values():
            if glance.known[step.id] != "failed":
                continue
            document = needs_you(state, step, folder=folder)
            since = step.current.finished_at if step.current and step.current.finished_at else state.created_at
            why = one_line(str(document["why"]))
            found.append(Need(Place("step", run_id, step.id), since, f"{head_line(document)} · {short}", why))
    if glance.status == "kernel-gone":
        line = f"⚠ run {short} is interrupted: its kernel is gone"
        found.append(Need(Place("run", run_id), state.created_at, line, one_line(state.created.goal)))
    return found


def _waiting(glance: Glance) -> Iterator[Need]:
    state = glance.state
    run_id, short = state.created.run_id, state.created.short_id
    for gate in state.program.gates:
        if glance.known[gate.id] == "waiting":
            since = state.gates[gate.id].waiting_since or state.created_at
            line = f"⧖ gate {gate.id} waits for you · {short}"
            yield Need(Place("step", run_id, gate.id), since, line, one_line(gate.note or state.created.goal))
    for loop in state.program.loops:
        if glance.known[loop.id] == "waiting":
            now = state.loops[loop.id]
            line = f"⧖ loop {loop.id} is out of rounds ({now.round} of {now.max_rounds}) · {short}"
            why = f"until {loop.until.shown}"
            yield Need(Place("step", run_id, loop.id), now.waiting_since or state.created_at, line, why)


def all_needs(look: RunsLook, folder_of: FolderOf) -> list[Need]:
    """Return what needs the person in every run, the longest wait first."""
    found: list[Need] = []
    for run_id, glance in look.glances.items():
        found += needs_of(glance, folder_of(run_id))
    for row in look.rows:
        if row.run_id in look.damaged:
            line = f"⚠ run {row.short_id} is damaged · {commands.show(row.short_id)} says why"
            found.append(Need(Place("run", row.run_id), row.created_at, line, one_line(row.goal)))
    return sorted(found, key=lambda need: need.since)


def under_way(look: RunsLook, *, at_rest: bool) -> list[Glance]:
    """Return the runs that are not over, newest first: those that run, or those that wait, are paused or interrupted."""
    found = [glance for glance in look.glances.values() if glance.state.finished is None]
    found = [glance for glance in found if (glance.status not in _RUNS) is at_rest]
    return sorted(found, key=lambda glance: glance.state.created_at, reverse=True)


def home_rows(runs: RunsLook, pools: PoolsLook, needs: Sequence[Need], terminal: Terminal) -> RowTable:
    """Return the page."""
    running, resting = under_way(runs, at_rest=False), under_way(runs, at_rest=True)
    rows = [heading(_title("Needs you", len(needs)), terminal)]
    for need in needs:
        rows += _need(need, runs, terminal)
    rows += [] if needs else [Row(terminal.style.faint("  nothing"))]
    rows += [Row(""), heading(_title("Running", len(running)), terminal)]
    rows += [running_row(glance, runs, terminal) for glance in running]
    rows += [] if running else [_idle(runs, terminal)]
    if resting:
        rows += [Row(""), heading(_title("At rest", len(resting)), terminal)]
        rows += [running_row(glance, runs, terminal) for glance in resting]
    rows += [Row(""), heading("Pools this week", terminal), *pool_rows(pools.rows, terminal)]
    rows += [] if pools.rows else [Row(terminal.style.faint(terminal.clipped("  no pool · bullswarm doctor", 60)))]
    ended = [row for row in runs.rows if row.outcome is not None][:JUST_ENDED]
    if ended:
        rows += [Row(""), heading("Just ended", terminal)]
        rows += [Row(run_line(row, runs, terminal), Place("run", row.run_id)) for row in ended]
    return RowTable(rows)


def pool_rows(pools: Sequence[PoolOverview], terminal: Terminal) -> list[Row]:
    """Return the pools as `bullswarm pools` shows them on a terminal."""
    lines = pool_table(pools, terminal)
    return [Row(line, Place("pool", name=item.pool.id)) for line, item in zip(lines, pools, strict=True)]


def running_row(glance: Glance, runs: RunsLook, terminal: Terminal) -> Row:
    """Return a run that is not over in one line: how far it is, its step, the pool by label, elapsed of expected."""
    state, style = glance.state, terminal.style
    done = sum(glance.known[step.id] in OVER for step in state.program.steps)
    total = len(state.program.steps)
    attempts = [step.running for step in state.steps.values() if step.running is not None]
    width = 6 if terminal.width < _NARROW else 12
    head = f"{state.created.short_id} "
    drawn = bar(100 * done / max(1, total), None, width, terminal, paint=style.good)
    rest = [f"{done}/{total}", *_at(attempts, glance, runs), one_line(state.created.goal)]
    room = terminal.width - cells(head) - width - 1
    return Row(f"{head}{drawn} {terminal.clipped(' · '.join(rest), room)}", Place("run", state.created.run_id))


def _at(attempts: Sequence[AttemptState], glance: Glance, runs: RunsLook) -> list[str]:
    if not attempts:
        return [glance.status]
    first = attempts[0]
    spent = (runs.now - (first.launched_at or first.picked_at)).total_seconds()
    expected = f"/{duration(first.picked.expected_minutes)}" if first.picked.expected_minutes else ""
    more = f" +{len(attempts) - 1}" if len(attempts) > 1 else ""
    name = one_line(runs.labels.shown(first.picked.pool))
    at = "" if glance.state.is_single else f"{first.picked.step} "
    word = [] if glance.status == "running" else [glance.status]
    return [*word, f"{at}[{name}]{more}", f"{minutes_and_seconds(spent)}{expected}"]


def _need(need: Need, runs: RunsLook, terminal: Terminal) -> list[Row]:
    said = f" · {duration(max(0.0, (runs.now - need.since).total_seconds() / 60))}"
    line = terminal.clipped(runs.labels.in_text(one_line(need.line)), terminal.width - cells(said))
    rows = [Row(f"{terminal.style.warn(line)}{terminal.style.faint(terminal.spelled(said))}", need.place)]
    if need.why:
        why = terminal.clipped(f"    {runs.labels.in_text(need.why)}", terminal.width)
        rows.append(Row(terminal.style.faint(why)))
    return rows


def _idle(runs: RunsLook, terminal: Terminal) -> Row:
    start = '  nothing · bullswarm run --lane analyze "…"'
    return Row(terminal.style.faint(terminal.clipped("  nothing" if runs.rows else start, terminal.width)))


def _title(text: str, count: int) -> str:
    return f"{text} ({count})" if count else text
