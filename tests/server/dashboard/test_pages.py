"""Each page on a screen of 55, 100 and 160 columns: what stands there, by labels, within the screen, and as a picture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.server.dashboard.conftest import Open, opener
from tests.server.dashboard.pictures import draw
from tests.server.dashboard.screens import Screens
from tests.server.dashboard.world import GAMMA, LABELS, SHOWN_NASTY, Runs, World

from bullswarm_server.dashboard.page_run import RunPage, StepPage
from bullswarm_server.dashboard.rows import Place

WIDTHS = [55, 100, 160]


@dataclass(frozen=True, slots=True)
class Look:
    """A home that the tests of this file only look at."""

    open: Open
    runs: Runs


@pytest.fixture
def look(shared: tuple[World, Runs]) -> Look:
    return Look(opener(shared[0]), shared[1])


def assert_good(screens: Screens, tmp_path: Path) -> None:
    """Nothing is wider than the screen, no pool with a label stands by its id, and the picture is a whole SVG."""
    assert all(len(line) <= screens.app.size.width for line in screens.lines)
    shown = re.sub(r"provider \w+|\w+-large", "", screens.text)
    assert not [pool for pool in LABELS if re.search(rf"\b{pool}\b", shown)], screens.text
    picture = tmp_path / "page.svg"
    picture.write_text(screens.app.export_screenshot(), encoding="utf-8")
    assert picture.read_text(encoding="utf-8").rstrip().endswith("</svg>") and "\x1b" not in picture.read_text()


@pytest.mark.parametrize("width", WIDTHS)
async def test_home_says_what_needs_you_what_runs_and_the_pools(look: Look, width: int, tmp_path: Path) -> None:
    async with look.open(width) as screens:
        text = screens.text
        assert "Needs you (2)" in text and "gate look waits for you" in text and "mend needs you" in text
        assert "Running (1)" in text and "At rest (1)" in text and "1/4" in text and "parser [night-shift] +1" in text
        assert "Pools this week" in text and "work" in text and "night-shift" in text and "31%" in text
        assert "Just ended" in text and "Mend the te" in text
        assert ("2 need you" in text) and ("1 running" in text) is (width > 55)
        assert_good(screens, tmp_path)


@pytest.mark.parametrize("width", WIDTHS)
async def test_runs_are_listed_and_filtered(look: Look, width: int, tmp_path: Path) -> None:
    async with look.open(width) as screens:
        await screens.press("2")
        assert "7 runs" in screens.text and "Rewrite the pars" in screens.text and "waiting" in screens.text
        assert_good(screens, tmp_path)
        await screens.press("f")
        assert "2 of 7 runs · open" in screens.text and "Mend" not in screens.text
        await screens.press("f", "f", "f", "slash", *"lexer", "enter")
        assert '3 of 7 runs · "lexer"' in screens.text and "Mend" not in screens.text
        await screens.press("escape")
        assert "7 runs" in screens.text


@pytest.mark.parametrize("width", WIDTHS)
async def test_a_run_shows_its_plan_by_phase_live_steps_and_its_time(look: Look, width: int, tmp_path: Path) -> None:
    async with look.open(width) as screens:
        await screens.open(Place("run", look.runs.running))
        text = screens.text
        assert isinstance(screens.page, RunPage)
        assert [text.index(word) for word in ("Look", "Build", "Check", "Timeline")] == sorted(
            text.index(word) for word in ("Look", "Build", "Check", "Timeline")
        )
        assert "1 of 4 done · 2 running" in text and "review waits for parser, lexer" in text
        assert re.search(r"▶ parser\s+night-shi.*14m\d\ds", text) and GAMMA in text
        assert "parser-1" in text and "━" in text and "▶ parser · night-shift" in text
        assert_good(screens, tmp_path)


@pytest.mark.parametrize("width", WIDTHS)
async def test_a_step_shows_activity_output_evidence_and_task(look: Look, width: int, tmp_path: Path) -> None:
    async with look.open(width) as screens:
        await screens.press("down", "enter")
        assert isinstance(screens.page, StepPage) and screens.page.step == "mend"
        assert "evidence failed after 2 retries" in screens.text and "try 2" in screens.text
        assert_good(screens, tmp_path)
        await screens.press("tab")
        assert "The parser splits at commas." in screens.text and SHOWN_NASTY in screens.text
        assert_good(screens, tmp_path)
        await screens.press("tab")
        assert "failed: pytest -q" in screens.text and "FAILED tests/test_parser.py::test_commas" in screens.text
        await screens.press("tab")
        assert "# Task of mend" in screens.text and "Explain the parser." in screens.text
        await screens.press("shift+tab", "p")
        assert isinstance(screens.page, RunPage) and "Timeline" in screens.text


@pytest.mark.parametrize("width", WIDTHS)
async def test_pools_show_windows_pace_rates_and_rungs(look: Look, width: int, tmp_path: Path) -> None:
    async with look.open(width, 44) as screens:
        await screens.press("3")
        text = screens.text
        for word in ("Windows", "Use and pace of the weekly window", "Rates", "Rungs", "reasoning high", "clock 6"):
            assert word in text
        assert "work ready" in text and "weekly used 31%" in text and "┤" in text
        assert_good(screens, tmp_path)
        await screens.press("w")
        assert "Use and pace of the 5h window" in screens.text
        await screens.press("down")
        assert "night-shift ready" in screens.text and "weekly used 83%" in screens.text


@pytest.mark.parametrize("width", WIDTHS)
async def test_help_names_every_key(look: Look, width: int, tmp_path: Path) -> None:
    async with look.open(width, 60) as screens:
        await screens.press("question_mark")
        for word in ("Home, Runs, Pools", "light or dark", "rerun the step", "take over", "surplus"):
            assert word in screens.text
        assert_good(screens, tmp_path)
        await screens.press("escape")
        assert "Needs you" in screens.text


async def test_a_terminal_without_unicode_gets_ascii_alone(look: Look) -> None:
    async with look.open(100, 40, BULLSWARM_ASCII="1") as screens:
        for keys in ((), ("2",), ("slash",), ("escape", "escape", "3"), ("l",), ("escape", "question_mark")):
            await screens.press(*keys)
            assert screens.text.isascii(), [line for line in screens.lines if not line.isascii()]
        await screens.open(Place("run", look.runs.running))
        assert "Timeline" in screens.text and screens.text.isascii()
        await screens.open(Place("step", look.runs.broken, "mend"))
        for keys in ((), ("tab",), ("tab",), ("tab",), ("a",)):
            await screens.press(*keys)
            assert screens.text.isascii(), [line for line in screens.lines if not line.isascii()]


@pytest.mark.parametrize("width", [55, 60, 80, 100])
async def test_help_and_quit_are_told_on_every_page(look: Look, width: int) -> None:
    async with look.open(width, 30) as screens:
        places = (Place("run", look.runs.running), Place("step", look.runs.broken, "mend"))
        for key in ("1", "2", "3", "question_mark"):
            await screens.press(key)
            assert "? help" in screens.lines[-1] and "q quit" in screens.lines[-1], screens.text
        for place in places:
            await screens.open(place)
            assert "? help" in screens.lines[-1] and "q quit" in screens.lines[-1], screens.text


async def test_an_empty_home_says_how_to_begin(opened: Open) -> None:
    async with opened() as screens:
        assert "nothing" in screens.text and 'bullswarm run --lane analyze "' in screens.text
        await screens.press("2")
        assert "0 runs" in screens.text
        await screens.press("3")
        assert "q quit" in screens.text


@pytest.mark.parametrize(
    ("ground", "theme"), [("15;0", "textual-dark"), ("0;15", "textual-light"), ("", "textual-dark")]
)
async def test_light_and_dark(look: Look, ground: str, theme: str) -> None:
    async with look.open(COLORFGBG=ground) as screens:
        assert screens.app.theme == theme
        before = screens.app.export_screenshot()
        await screens.press("t")
        assert screens.app.theme != theme and screens.app.export_screenshot() != before


async def test_the_pictures_fetch_nothing_and_are_small(shared: tuple[World, Runs], tmp_path: Path) -> None:
    for picture in await draw(tmp_path, *shared):
        svg = picture.read_text(encoding="utf-8")
        assert not re.findall(r"url\((?!#)[^)]*\)|(?:href|src)=", svg) and len(svg) < 150_000
        assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
        assert "night-shift" in svg


async def test_another_size_is_drawn_anew(look: Look) -> None:
    async with look.open(160) as screens:
        await screens.pilot.resize_terminal(55, 20)
        await screens.read()
        assert all(len(line) <= 55 for line in screens.lines) and len(screens.lines) == 20
        assert "Needs you (2)" in screens.text
        await screens.pilot.resize_terminal(200, 50)
        await screens.read()
        assert "(2d0" in screens.text
