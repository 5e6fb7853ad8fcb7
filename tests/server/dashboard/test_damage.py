"""One run that can't be understood, or a text that nobody expects, takes the dashboard from nobody."""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.server.dashboard.conftest import Open
from tests.server.dashboard.world import ALPHA, BETA, Runs, World

from bullswarm_core.pools.labels import Labels
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.status import statuses
from bullswarm_core.store.database import open_database
from bullswarm_server.dashboard.actions import Action, actions_at
from bullswarm_server.dashboard.follow import TEXT_BYTES
from bullswarm_server.dashboard.ink import sheet
from bullswarm_server.dashboard.rows import Place, wrapped
from bullswarm_server.displays.terminal import cells

# Read in one pass each these take tenths of a second; measured over again for each piece they took minutes.
MOST_SEC = 5.0


@pytest.mark.parametrize("text", ["a b" * (TEXT_BYTES // 3) + "é", "x" * TEXT_BYTES + "é", "漢" * (TEXT_BYTES // 3)])
def test_a_long_line_of_a_worker_is_wrapped_in_one_pass(text: str) -> None:
    started = time.process_time()
    found = wrapped(text, 54)
    assert time.process_time() - started < MOST_SEC
    assert "".join(found).replace(" ", "") == text.replace(" ", "")


def test_marks_without_a_width_are_clipped_in_one_pass() -> None:
    text = "x" * 20 + "\u0301" * 10_000 + "x" * 100
    started = time.process_time()
    assert cells(sheet(54).clipped(text, 54)) == 54
    assert time.process_time() - started < MOST_SEC


def spoil(world: World, run_id: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what the ends of a run's attempts say, as nobody writes it."""
    with contextlib.closing(open_database(world.home)) as connection:
        found = connection.execute(
            "SELECT seq, payload FROM events WHERE run = ? AND type = 'attempt.finished'", (run_id,)
        ).fetchall()
        for sequence, text in found:
            payload = json.loads(text)
            change(payload)
            connection.execute(
                "UPDATE events SET payload = ? WHERE run = ? AND seq = ?", (json.dumps(payload), run_id, sequence)
            )
        connection.commit()


@pytest.mark.parametrize(
    "change",
    [
        lambda end: end["judgement"].update(evidenceResults=5),
        lambda end: end["judgement"].update(changedFiles=5, outsideBlockers=5),
        lambda end: end.update(judgement=None),
        lambda end: end.update(meta=5),
        lambda end: end.update(why=5, failureKind=7),
        lambda end: end.update(outputFile=5),
    ],
)
async def test_a_damaged_run_hides_no_other(
    opened: Open, world: World, runs: Runs, change: Callable[[dict[str, Any]], None]
) -> None:
    spoil(world, runs.broken, change)
    async with opened() as screens:
        assert "gate look waits for you" in screens.text and "night-shift" in screens.text
        assert any(need.place.run_id == runs.broken for need in screens.app.needs), "it is named, damaged or not"
        await screens.open(Place("run", runs.broken))
        await screens.open(Place("step", runs.broken, "mend"))
        for key in ("tab", "tab", "tab", "r", "escape", "2", "1"):
            await screens.press(key)
        assert "gate look waits for you" in screens.text
        # What is well is said to be so again.
        assert not screens.app.said[0].startswith("cannot")


@pytest.mark.parametrize(("column", "value"), [("goal", b"\xff"), ("created_at", "never")])
async def test_a_damaged_row_ends_nothing(opened: Open, world: World, runs: Runs, column: str, value: object) -> None:
    with contextlib.closing(open_database(world.home)) as connection:
        connection.execute(f"UPDATE runs SET {column} = ? WHERE id = ?", (value, runs.single))
        connection.commit()
    async with opened() as screens:
        for _ in range(2):
            # A goal that is no text is told; a time that is none hides neither its own run nor another.
            assert ("damaged" in screens.text) == (column == "goal"), screens.text
            assert "cannot read" not in screens.text, screens.text
            await screens.press("2")


def failed(world: World, labels: dict[str, str]) -> dict[str, Action]:
    """What may be done about a step that failed on one pool, with others untried."""
    run = world.create("Mend it", document({"id": "a", "retry": 0}))
    world.start(run.run_id, "a", pool=ALPHA)
    state = world.end(run.run_id, "a", "failed-evidence")
    folder = RunFolder.of(world.home, run.run_id)
    found = actions_at(state, "a", statuses(state), folder=folder, labels=Labels(labels))
    return {action.name: action for action in found}


def test_a_reason_that_begins_like_an_option_is_shown_as_it_is_typed(world: World) -> None:
    accept = failed(world, {})["accept"]
    assert shlex.split(accept.command_with("-x"))[-1] == "--reason=-x"
    assert shlex.split(accept.command_with("it's $(id)"))[-2:] == ["--reason", "it's $(id)"]


@pytest.mark.parametrize(
    ("label", "named"), [("work", "work"), ("a$(id)'", "a$(id)'"), (f"work,{BETA}", ALPHA), ("-x", ALPHA)]
)
def test_a_label_that_a_command_would_read_as_something_else_is_not_shown_in_it(
    world: World, label: str, named: str
) -> None:
    """A comma parts the names of a list: typed like this, the step would have been kept from a pool that was never tried."""
    assert shlex.split(failed(world, {ALPHA: label})["rerun"].command)[-2:] == ["--avoid", named]
