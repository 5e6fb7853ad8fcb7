"""Budget: a journal of 500 steps and 5,000 events is told and drawn while its reader waits.

A watch that begins anew folds the whole journal once, in at most 3 seconds; from then on each look at a few new events takes
at most 50 ms, and a frame of the view at most 150 ms.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.core.runs.journals import Written, document

from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.notices import tell
from bullswarm_core.reports.watch import Teller
from bullswarm_core.runs.events import SteeringAdded
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.status import statuses
from bullswarm_server.displays.terminal import Terminal
from bullswarm_server.displays.text import Style
from bullswarm_server.displays.workflow_graph import graph_lines
from bullswarm_server.displays.workflow_live import Scene, live_lines

STEPS, EVENTS = 500, 5_000
WHOLE_SEC, LOOK_SEC, FRAME_SEC = 3.0, 0.05, 0.15
ROUNDS = 4


def long_story() -> Written:
    """Steps in layers of 20, each behind three of the layer before, all of them done; and messages up to the 5,000th event."""
    steps = [
        {"id": f"s{number}", "phase": f"layer {number // 20}", "dependsOn": _before(number)} for number in range(STEPS)
    ]
    written = Written(document(*steps))
    for number in range(STEPS):
        written.run(f"s{number}", excerpt="x" * 200)
    while len(written.events) < EVENTS:
        written.write(SteeringAdded("go on", by="me"))
    return written


def _before(number: int) -> list[str]:
    layer = number // 20 * 20
    return [f"s{layer - 1 - (number + offset) % 20}" for offset in (0, 3, 7)] if layer else []


def best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def test_a_long_journal_is_told_and_drawn_in_time() -> None:
    written = long_story()
    folder = RunFolder(Path("/nowhere"))

    def whole() -> None:
        assert len(Teller(folder=folder, telling=tell).take(written.events)) >= EVENTS

    teller = Teller(folder=folder, telling=tell)
    teller.take(written.events[:-ROUNDS])
    left = iter(written.events[-ROUNDS:])
    state, known = written.state, statuses(written.state)
    terminal = Terminal(120, 50, True, Style(colour=True))
    scene = Scene(state, known, {}, [], Labels(), written.now)
    measured = {
        "whole": best(whole),
        "look": best(lambda: teller.take([next(left)])),
        "frame": best(lambda: live_lines(scene, terminal, foot="-")),
        "graph": best(lambda: graph_lines(state, known, terminal=terminal, labels=Labels())),
    }
    assert measured["whole"] <= WHOLE_SEC, measured
    assert measured["look"] <= LOOK_SEC, measured
    assert measured["frame"] <= FRAME_SEC, measured
    assert measured["graph"] <= WHOLE_SEC, measured
