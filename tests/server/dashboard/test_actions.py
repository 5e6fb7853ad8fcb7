"""One key for each action: the command is shown first, and what then happens is what that command does."""

from __future__ import annotations

import io
import shlex
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from tests.server.dashboard.conftest import Open
from tests.server.dashboard.screens import Screens
from tests.server.dashboard.world import ALPHA, BETA, NASTY, SHOWN_NASTY, Runs, World, broken, gated, running
from tests.server.workflow_site import assert_taken
from textual.widgets import Input, Static

from bullswarm_core.dispatch.quarantines import in_force, record
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Settings
from bullswarm_core.routing.quarantine import Quarantine
from bullswarm_core.runs.events import GatePassed, RunReopened, StepAccepted, StepReset
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import write_json
from bullswarm_server.cli.main import dispatch
from bullswarm_server.dashboard.dialogs import Ask
from bullswarm_server.dashboard.page_run import StepPage
from bullswarm_server.dashboard.rows import Place


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Start no kernel; tell for which runs one was wanted."""
    wanted: list[str] = []

    def start(home: Any, run_id: str, **more: Any) -> None:
        wanted.append(run_id)

    for module in ("bullswarm_server.ops.runs", "bullswarm_server.ops.launch"):
        monkeypatch.setattr(f"{module}.start_kernel", start)
    return wanted


def command_shown(screens: Screens) -> str:
    assert isinstance(screens.app.screen, Ask), screens.text
    return str(screens.app.screen.query_one("#command", Static).content)


def payloads(world: World, run_id: str, *, after: int = 0) -> list[Any]:
    with world.journal() as journal:
        return [event.payload for event in journal.read(run_id, after=after)]


def last(world: World, run_id: str) -> int:
    with world.journal() as journal:
        return journal.last_seq(run_id)


def typed(world: World, command: str) -> int:
    """Type a command into a shell of the same home."""
    words = shlex.split(command)
    assert words[0] == "bullswarm"
    return dispatch(words[1:], environ=world.environ, out=io.StringIO(), err=io.StringIO())


def short_of(world: World, run_id: str) -> str:
    with world.journal() as journal:
        return journal.state(run_id).created.short_id


def twin_does_the_same(world: World, command: str, run_id: str, twin: str, *, after: int) -> None:
    """Check that the command, typed for a run of the same kind, writes the events that the key wrote."""
    assert_taken(command.removeprefix("bullswarm "))
    before = last(world, twin)
    assert typed(world, command.replace(short_of(world, run_id), short_of(world, twin))) == 0
    assert payloads(world, twin, after=before) == payloads(world, run_id, after=after)


async def test_rerun_shows_its_command_and_keeps_the_step_from_the_pools_that_failed(
    opened: Open, world: World, runs: Runs, kernels: list[str]
) -> None:
    seq = last(world, runs.broken)
    async with opened() as screens:
        await screens.open(Place("step", runs.broken, "mend"))
        await screens.press("r")
        command = command_shown(screens)
        short = short_of(world, runs.broken)
        assert command == f"bullswarm workflow step rerun {short} mend --avoid work,night-shift"
        await screens.press("escape")
        assert last(world, runs.broken) == seq and not kernels
        await screens.press("r", "enter")
        assert f"done: {command}" in screens.text
    found = payloads(world, runs.broken, after=seq)
    assert [type(one) for one in found] == [RunReopened, StepReset]
    assert found[1].avoid == (ALPHA, BETA) and kernels == [runs.broken]
    twin_does_the_same(world, command, runs.broken, broken(world), after=seq)


async def test_accept_asks_for_the_reason(opened: Open, world: World, runs: Runs) -> None:
    seq = last(world, runs.broken)
    async with opened() as screens:
        await screens.open(Place("step", runs.broken, "mend"))
        await screens.press("a", "enter")
        assert "say in one line" in screens.text and last(world, runs.broken) == seq
        screens.app.screen.query_one(Input).value = "it's fine; rm -rf"
        await screens.press()
        command = command_shown(screens)
        assert shlex.split(command)[-1] == "it's fine; rm -rf"
        await screens.press("enter")
        assert "accepted" not in screens.text or "done:" in screens.text
    found = payloads(world, runs.broken, after=seq)
    assert [type(one) for one in found] == [RunReopened, StepAccepted] and found[1].reason == "it's fine; rm -rf"
    twin_does_the_same(world, command, runs.broken, broken(world), after=seq)


async def test_a_gate_is_continued_from_home(opened: Open, world: World, runs: Runs, kernels: list[str]) -> None:
    seq = last(world, runs.gated)
    async with opened() as screens:
        assert screens.page.listing.place == Place("step", runs.gated, "look")
        assert " c continue" in screens.lines[-1]
        await screens.press("c")
        command = command_shown(screens)
        await screens.press("enter")
    found = payloads(world, runs.gated, after=seq)
    assert isinstance(found[0], GatePassed) and found[0].how == "continued" and kernels == [runs.gated]
    twin_does_the_same(world, command, runs.gated, gated(world), after=seq)


async def test_take_over_shows_what_to_go_on_from_and_changes_nothing(
    opened: Open, world: World, runs: Runs, kernels: list[str]
) -> None:
    seq = last(world, runs.broken)
    async with opened(160) as screens:
        await screens.press("down", "o")
        assert "out-mend-attempt-3.md" in screens.text
        assert_taken(command_shown(screens).removeprefix("bullswarm "))
        await screens.press("enter")
        assert isinstance(screens.page, StepPage) and screens.page.part == "output"
        assert "The parser splits at commas." in screens.text and "yours: " in screens.text
    assert last(world, runs.broken) == seq and not kernels


async def test_an_interrupted_run_is_resumed(opened: Open, world: World, runs: Runs, kernels: list[str]) -> None:
    lost = running(world)
    world.close()
    world.locks.clear()
    async with opened() as screens:
        assert "is interrupted: its kernel is gone" in screens.text
        await screens.open(Place("run", lost))
        await screens.press("u")
        assert command_shown(screens) == f"bullswarm workflow resume {short_of(world, lost)}"
        await screens.press("enter")
    assert kernels == [lost]


async def test_what_came_in_between_is_said_and_nothing_happens(opened: Open, world: World, runs: Runs) -> None:
    async with opened(120) as screens:
        await screens.press("c")
        command = command_shown(screens)
        assert typed(world, command) == 0
        seq = last(world, runs.gated)
        await screens.press("enter")
        assert "gate look is passed, not waiting" in screens.text
        assert last(world, runs.gated) == seq


async def test_a_key_without_anything_to_do_says_so(opened: Open, world: World, runs: Runs) -> None:
    async with opened() as screens:
        await screens.open(Place("step", runs.running, "survey"))
        await screens.press("a")
        assert isinstance(screens.page, StepPage) and "nothing to accept here" in screens.text


async def test_a_pool_is_named_and_switched_by_the_verbs_that_are_shown(opened: Open, world: World, runs: Runs) -> None:
    async with opened() as screens:
        await screens.press("3", "l")
        screens.app.screen.query_one(Input).value = "day-shift"
        await screens.press()
        assert command_shown(screens) == "bullswarm label work day-shift"
        await screens.press("enter")
        assert "day-shift" in screens.text and Labels.load(world.home).of(ALPHA) == "day-shift"
        await screens.press("l")
        screens.app.screen.query_one(Input).value = "night-shift"
        await screens.press("enter")
        assert "already used by" in screens.text and Labels.load(world.home).of(ALPHA) == "day-shift"
        await screens.press("l")
        screens.app.screen.query_one(Input).value = ""
        await screens.press()
        assert command_shown(screens) == "bullswarm label day-shift --clear"
        await screens.press("enter")
        assert Labels.load(world.home).of(ALPHA) is None
        await screens.press("e")
        assert command_shown(screens) == "bullswarm strategy set-provider alpha off --yes"
        await screens.press("enter")
        assert not Settings.load(world.home).enabled(ALPHA) and "disabled" in screens.text
        await screens.press("e", "enter")
        assert Settings.load(world.home).enabled(ALPHA)


async def test_a_quarantine_says_why_and_is_ended_by_the_verb_that_is_shown(
    opened: Open, world: World, runs: Runs
) -> None:
    write_json(world.home.state_file, {"version": 1, "config": {"routingPolicy": "classic"}})
    why = f"limit reached {NASTY}"
    with closing(open_database(world.home)) as connection:
        record(connection, [Quarantine(ALPHA, "quota", world.now + timedelta(hours=3), why)], at=world.now)
    async with opened(130) as screens:
        await screens.press("3")
        assert "quarantined 2h" in screens.cursor_line()
        assert "quarantined until " in screens.text and f"limit reached {SHOWN_NASTY}" in screens.text
        assert "resume" in screens.lines[-1]
        await screens.press("u")
        assert command_shown(screens) == "bullswarm pools resume work"
        assert in_force_of(world) == {ALPHA}
        await screens.press("escape")
        assert in_force_of(world) == {ALPHA}
        await screens.press("u", "enter")
        assert in_force_of(world) == set() and "work is quarantined no longer" in screens.text
        assert "resume" not in screens.lines[-1]
        await screens.press("u")
        assert "work is not quarantined" in screens.text and not isinstance(screens.app.screen, Ask)


def in_force_of(world: World) -> set[str]:
    with closing(open_database(world.home)) as connection:
        return set(in_force(connection, now=world.now))
