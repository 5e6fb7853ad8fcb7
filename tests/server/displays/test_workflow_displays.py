"""A workflow in letters: its graph and its view on a terminal, for any program and any size."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.runs.journals import Written, document

from bullswarm_core._dataclasses import replace
from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.stalls import Life
from bullswarm_core.reports.watch import Notice
from bullswarm_core.runs.events import AttemptPicked
from bullswarm_core.runs.fold import fold
from bullswarm_core.runs.status import statuses
from bullswarm_server.displays.terminal import Terminal, cells
from bullswarm_server.displays.text import Style
from bullswarm_server.displays.workflow_graph import graph_lines, phased_order, phases_of
from bullswarm_server.displays.workflow_live import Scene, live_lines

WIDE = Terminal(200, 60, True, Style(colour=False))
_DOWN, _RIGHT, _LEFT, _UP = set("│├┤┼"), set("─├┴╰┼"), set("─┤┴╯┼"), set("│├┤┼┴╰╯")


@st.composite
def programs(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(1, 12))
    steps = []
    for number in range(count):
        earlier = [f"s{other}" for other in range(number)]
        before = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else []
        phase = draw(st.sampled_from([None, "find", "build"]))
        steps.append({"id": f"s{number}", "dependsOn": before, **({"phase": phase} if phase else {})})
    gates = [{"id": "g", "dependsOn": ["s0"], "note": "look"}] if draw(st.booleans()) else []
    return document(*steps, gates=gates)


def drawn(written: Written, terminal: Terminal = WIDE) -> list[str]:
    return graph_lines(written.state, statuses(written.state), terminal=terminal, labels=Labels())


def edges(lines: list[str]) -> set[tuple[str, str]]:
    """Read the picture back: follow each line upwards from every node to the nodes it comes from."""
    names, marks, gutters = {}, {}, []
    for at, line in enumerate(lines):
        found = re.match(r"^([│├┤┼┴╰╯─ ]*)([·✓▶✗⧖])([│├┤┼┴╰╯─ ]*) (?:gate )?(\w+) ", line)
        gutters.append((found[1] + "●" + found[3]) if found else re.match(r"^[│ ]*", line)[0])  # type: ignore[index]
        if found:
            names[at], marks[at] = found[4], len(found[1])
    found_edges: set[tuple[str, str]] = set()
    for at, name in names.items():
        # Every place in this row that the horizontal line reaches, from the mark to both sides.
        row, reached = gutters[at], {marks[at]}
        for step in (-1, 1):
            column = marks[at] + step
            joins = _RIGHT if step < 0 else _LEFT
            while 0 <= column < len(row) and row[column] in ("─", "│", *joins):
                if row[column] == "│":
                    # A lane that only passes: the line goes on behind it if it goes on at all.
                    if not (0 <= column + step < len(row) and row[column + step] == "─"):
                        break
                elif row[column] != "─":
                    reached.add(column)
                column += step
        for column in reached:
            above = at - 1
            while above >= 0 and column < len(gutters[above]) and gutters[above][column] in _DOWN:
                above -= 1
            if above >= 0 and column < len(gutters[above]) and gutters[above][column] == "●":
                is_own = column == marks[at]
                if not is_own or above in names:
                    found_edges.add((names[above], name))
    return found_edges


@given(programs())
def test_the_picture_of_a_program_holds_exactly_its_dependencies(program: dict[str, Any]) -> None:
    written = Written(program)
    plan = written.state.plan
    lines = drawn(written)
    assert edges(lines) == {(before, name) for name in plan.order for before in plan.waits[name]}, "\n".join(lines)


@given(programs(), st.integers(12, 120), st.booleans())
def test_no_line_of_a_picture_is_wider_than_the_terminal_and_none_lacks_a_node(
    program: dict[str, Any], width: int, unicode: bool
) -> None:
    written = Written(program)
    lines = drawn(written, Terminal(width, 24, unicode, Style(colour=False)))
    assert max(map(cells, lines)) <= width
    assert unicode or all(line.isascii() for line in lines)
    headings = [line for line in lines if line.rstrip().endswith(":")]
    assert len(lines) - len(headings) == len(written.state.plan.order)


@given(programs())
def test_each_node_stands_behind_all_that_it_waits_for(program: dict[str, Any]) -> None:
    state = Written(program).state
    order = phased_order(state.plan, phases_of(state.program, state.plan))
    place = {name: at for at, name in enumerate(order)}
    assert sorted(order) == sorted(state.plan.order)
    assert all(place[before] < place[name] for name in order for before in state.plan.waits[name])


@given(programs(), st.integers(20, 160), st.integers(3, 60), st.booleans(), st.data())
def test_a_frame_fits_any_terminal(
    program: dict[str, Any], width: int, height: int, unicode: bool, data: st.DataObject
) -> None:
    written = Written(program, retryAttempts=0)
    firsts = [step.id for step in written.state.program.steps if not step.depends_on]
    for name in firsts:
        written.pick(name)
        if data.draw(st.booleans()):
            written.end(name, data.draw(st.sampled_from([None, "process"])), meta={"wallSec": 60.0})
    state = written.state
    now = written.now + timedelta(minutes=data.draw(st.integers(0, 500)))
    lives = {
        step.id: Life(step=step.id, ordinal=1, started=written.now, last_output=written.now, last_command="run 日本語")
        for step in state.steps.values()
        if step.running
    }
    troubles = [
        Notice(1, now, "needs-you", "✗ a needs you · " + "x" * 200, facts={"options": {"rerun": "y" * 200}})
    ] * 5
    scene = Scene(state, statuses(state), lives, troubles, Labels({"codex": "日本の口座"}), now)
    terminal = Terminal(width, height, unicode, Style(colour=False))
    lines = live_lines(scene, terminal, foot="Ctrl-C leaves the run alone")
    assert len(lines) <= height - 1 and all(cells(line) <= width for line in lines)
    assert lines[-1].startswith("Ctrl-C")
    assert unicode or all(line.isascii() for line in lines)


def test_colour_marks_how_a_node_stands_and_takes_no_room() -> None:
    written = Written(document({"id": "a"}, {"id": "b", "dependsOn": ["a"]}))
    written.run("a")
    coloured = drawn(written, Terminal(60, 24, True, Style(colour=True)))
    assert "\x1b[32m✓\x1b[0m" in coloured[0]
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in coloured] == drawn(
        written, Terminal(60, 24, True, Style(colour=False))
    )


@pytest.mark.parametrize("width", [55, 100])
def test_a_step_shows_its_pool_its_time_against_what_was_expected_and_its_last_word(width: int) -> None:
    written = Written(document({"id": "a"}))
    written.pick("a")
    event = written.events[1]
    assert isinstance(event.payload, AttemptPicked)
    written.events[1] = replace(event, payload=replace(event.payload, expected_minutes=12.0))
    state = fold(written.events)
    assert state is not None
    now = written.now + timedelta(minutes=6)
    lives = {"a": Life(step="a", ordinal=1, started=written.now, last_output=now - timedelta(seconds=20))}
    scene = Scene(state, statuses(state), lives, [], Labels({"codex": "work"}), now)
    lines = live_lines(scene, Terminal(width, 24, True, Style(colour=False)), foot="-")
    (row,) = (line for line in lines if line.startswith("▶ a"))
    assert "work" in row and "6m/12m" in row and "20s ago" in row
    bar = re.search("[█▏▎▍▌▋▊▉░]+", row)
    assert bar is not None and bar[0].count("█") == len(bar[0]) // 2
