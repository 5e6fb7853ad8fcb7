"""Everything that a key does on a page, a click or the wheel does, too."""

from __future__ import annotations

from tests.server.dashboard.conftest import Open, opener
from tests.server.dashboard.screens import Screens
from tests.server.dashboard.world import Runs, World
from textual.events import MouseScrollDown

from bullswarm_server.dashboard.dialogs import Ask
from bullswarm_server.dashboard.page_pools import PoolsPage
from bullswarm_server.dashboard.page_run import StepPage
from bullswarm_server.dashboard.pages import HomePage, RunsPage
from bullswarm_server.dashboard.rows import Place
from bullswarm_server.dashboard.view_help import KEYS


async def click_word(screens: Screens, word: str) -> None:
    """Click on the first place on the screen where a word stands."""
    row = next(at for at, line in enumerate(screens.lines) if word in line)
    await screens.pilot.click(offset=(screens.lines[row].index(word) + 1, row))
    await screens.app.workers.wait_for_complete()
    await screens.read()


async def test_tabs_keys_and_rows_are_clicked(shared: tuple[World, Runs]) -> None:
    world, runs = shared
    async with opener(world)() as screens:
        await click_word(screens, "2 Runs")
        assert isinstance(screens.page, RunsPage)
        await click_word(screens, "f all")
        assert "2 of 7 runs" in screens.text
        await click_word(screens, "3 Pools")
        assert isinstance(screens.page, PoolsPage)
        await click_word(screens, "night-shift")
        assert "night-shift ready" in screens.text
        await click_word(screens, "1 Home")
        assert isinstance(screens.page, HomePage)
        await click_word(screens, "mend needs you")
        assert screens.page.listing.place == Place("step", runs.broken, "mend")
        await click_word(screens, "mend needs you")
        assert isinstance(screens.page, StepPage)
        await click_word(screens, " evidence ")
        assert screens.page.part == "evidence"
        await click_word(screens, "r rerun")
        assert isinstance(screens.app.screen, Ask)
        await screens.press("escape")
        await click_word(screens, "esc back")
        assert isinstance(screens.page, HomePage)
        await click_word(screens, "? help")
        assert KEYS[0][0] in screens.text


async def test_the_wheel_scrolls(shared: tuple[World, Runs], opened: Open) -> None:
    async with opener(shared[0])(100, 12) as screens:
        await screens.press("question_mark")
        before = screens.text
        listing = screens.page.listing
        listing.post_message(_wheel(screens))
        await screens.pilot.pause()
        await screens.pilot.pause(0.1)
        assert screens.text != before


def _wheel(screens: Screens) -> MouseScrollDown:
    return MouseScrollDown(screens.page.listing, 5, 5, 0, 1, 0, False, False, False, screen_x=5, screen_y=5)
