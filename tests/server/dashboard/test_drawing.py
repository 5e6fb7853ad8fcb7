"""The list draws what is in sight and what changed: 5,000 runs without lag, 20 running steps without flicker."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.core.runs.journals import document
from tests.server.dashboard.conftest import Open, opener
from tests.server.dashboard.world import World, many_runs

from bullswarm_server.cli.main import dispatch
from bullswarm_server.dashboard.app import Dashboard
from bullswarm_server.dashboard.page_run import RunPage
from bullswarm_server.dashboard.rows import Place
from bullswarm_server.dashboard.source import Source

MANY = 5_000
STEPS = 20


@pytest.fixture
def history(world: World) -> World:
    many_runs(world, MANY)
    return world


async def test_five_thousand_runs_are_gone_through_without_lag(opened: Open, history: World) -> None:
    async with opened(160, 50) as screens:
        await screens.press("2")
        assert "5000 runs" in screens.text and "Task number 0" in screens.text
        listing = screens.page.listing
        drawn = listing.lines_drawn
        started = time.process_time()
        for key in ("end", "home", *["pagedown"] * 6, *["down"] * 6):
            await screens.pilot.press(key)
        spent = time.process_time() - started
        # 14 keys, each a screen of 46 lines at most: what isn't in sight is never drawn.
        assert listing.lines_drawn - drawn <= 14 * 60
        assert spent / 14 < 0.1, f"{spent / 14:.3f} s of CPU a key"
        await screens.press("end")
        assert f"Task number {MANY - 1}" in screens.text
        started = time.process_time()
        await screens.press("slash", *"4999", "enter")
        assert "1 of 5000 runs" in screens.text
        assert time.process_time() - started < 2.0


async def test_the_cursor_stays_at_its_run_when_newer_ones_come(opened: Open, history: World) -> None:
    async with opened() as screens:
        await screens.press("2", "down", "down")
        place = screens.page.listing.place
        assert place == Place("run", "old-000002")
        history.create("a new one", document({"id": "a"}), ago=0)
        await screens.read()
        assert screens.page.listing.place == place and "a new one" in screens.text


def twenty(world: World) -> str:
    """Start a run of which twenty steps run at once."""
    steps = [{"id": f"step-{number:02}", "lane": "analyze", "phase": "All"} for number in range(STEPS)]
    run = world.create("Twenty at once", document(*steps, {"id": "last", "dependsOn": ["step-00"], "phase": "Then"}))
    world.alive(run.run_id)
    for step in steps:
        world.start(run.run_id, str(step["id"]), ago=3)
    return run.run_id


async def test_twenty_running_steps_redraw_only_what_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = twenty(world)
    clock = [world.now]
    monkeypatch.setattr("bullswarm_server.dashboard.follow.utc_now", lambda: clock[0])
    monkeypatch.setattr("bullswarm_server.dashboard.source.utc_now", lambda: clock[0])
    async with opener(world)(100, 80) as screens:
        await screens.open(Place("run", run_id))
        page = screens.page
        assert isinstance(page, RunPage) and screens.text.count("▶ step-") == 2 * STEPS, screens.text
        before = page.listing.lines_drawn
        await screens.read()
        assert page.listing.lines_drawn == before, "nothing changed, and something was drawn"
        world.end(run_id, "step-07", ago=0)
        await screens.read()
        # Its line, its bar on the line of time, and what happened, which moves down by one.
        assert 1 <= page.listing.lines_drawn - before <= 2 + STEPS + 2
        assert "✓ step-07" in screens.text
        await screens.pilot.resize_terminal(100, 30)
        await screens.read()
        before = page.listing.lines_drawn
        world.end(run_id, "step-03", ago=0)
        await screens.read()
        assert page.listing.lines_drawn - before == 1, "of what is in sight one line changed"


async def test_it_starts_within_a_second(history: World) -> None:
    """The first frame stands before anything was read, and everything within a second of CPU."""
    started = time.process_time()
    app = Dashboard(Source(history.home, history.environ), call=dispatch, read_sec=None)
    async with app.run_test(size=(120, 40)) as pilot:
        assert "Home" in "".join(segment.text for line in app.screen._compositor.render_strips() for segment in line)
        await app.read_now()
        await pilot.pause()
        assert time.process_time() - started < 1.0


async def test_reading_goes_on_by_itself_and_a_damaged_home_is_said(world: World) -> None:
    app = Dashboard(Source(world.home, world.environ), call=dispatch, read_sec=0.02)
    async with app.run_test(size=(120, 40)) as pilot:
        while app.runs is None:
            await pilot.pause(0.02)
        world.create("came later", document({"id": "a"}), ago=0)
        while not app.runs.rows:
            await pilot.pause(0.02)
        broken: Path = world.home.labels_file
        broken.write_text("{")
        while not app.said[0].startswith("cannot read"):
            await pilot.pause(0.02)
        assert "pool-labels.json" in app.said[0]
        broken.unlink()
        while app.said[0].startswith("cannot read"):
            await pilot.pause(0.02)
