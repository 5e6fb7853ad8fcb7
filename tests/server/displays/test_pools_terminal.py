"""The table of pools: widths for any names and numbers, the bar, and what a terminal can show."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.pools.test_properties import pools
from tests.core.routing.builders import NOW, busy, ending, history, pool, window

from bullswarm_core._dataclasses import replace
from bullswarm_core.pools import Pool
from bullswarm_core.routing import RoutingContext
from bullswarm_core.routing.overview import overview
from bullswarm_core.routing.quarantine import Quarantine
from bullswarm_server.displays.moments import local_moment
from bullswarm_server.displays.plot import Canvas
from bullswarm_server.displays.pools_terminal import bar, pool_table, state_of, whole
from bullswarm_server.displays.terminal import Terminal, cells, speaks_utf8
from bullswarm_server.displays.text import Style

PLAIN = Style(colour=False)
NARROWEST = 32
WIDE = Terminal(120, 24, True, PLAIN)
names = st.text(min_size=1, max_size=40)


def line(one: Pool, terminal: Terminal = WIDE) -> str:
    return pool_table([overview(one, now=NOW)], terminal)[0]


@given(st.lists(pools("alpha"), min_size=1, max_size=3), st.lists(names, min_size=3, max_size=3), st.integers(1, 300))
def test_a_line_is_never_wider_than_the_terminal_whatever_the_pool(
    given_pools: list[Pool], labels: list[str], width: int
) -> None:
    rows = [overview(replace(item, label=label), now=NOW) for item, label in zip(given_pools, labels, strict=False)]
    for unicode in (True, False):
        for shown in pool_table(rows, Terminal(width, 24, unicode, PLAIN)):
            assert cells(shown) <= max(width, NARROWEST)
            assert "\n" not in shown and "\x1b" not in shown
            assert unicode or shown.isascii()


@given(st.lists(pools("alpha"), min_size=1, max_size=3), st.integers(55, 200))
def test_colours_change_no_letter(given_pools: list[Pool], width: int) -> None:
    rows = [overview(item, now=NOW) for item in given_pools]
    plain = pool_table(rows, Terminal(width, 24, True, PLAIN))
    painted = pool_table(rows, Terminal(width, 24, True, Style(colour=True)))
    assert [re.sub(r"\x1b\[\d+m", "", shown).rstrip() for shown in painted] == plain


@given(
    st.floats(0, 1000, allow_nan=False),
    st.none() | st.floats(0, 100, allow_nan=False),
    st.integers(6, 40),
    st.booleans(),
)
def test_a_bar_has_its_width_and_its_mark(used: float, elapsed: float | None, width: int, unicode: bool) -> None:
    drawn = bar(used, elapsed, width, Terminal(80, 24, unicode, PLAIN), paint=str)
    mark = "│" if unicode else "|"
    assert len(drawn) == width
    assert drawn.count(mark) == (elapsed is not None)
    if elapsed is not None:
        assert drawn.index(mark) == min(width - 1, int(elapsed / 100 * width))


@pytest.mark.parametrize(
    ("one", "state"),
    [
        (pool("a"), "ready"),
        (pool("a", enabled=False), "disabled"),
        (pool("a", unavailable="not signed in"), "unavailable: not signed in"),
        (pool("a", billing="api-key"), "key not allowed"),
        (pool("a", window("weekly", 100, 50)), "weekly spent"),
        (pool("a", window("5h", 100, 10), window("weekly", 10, 50)), "5h spent 4h30m"),
        (pool("a", window("5h", 100)), "5h spent"),
        (pool("a", window("5h", 80, 10)), "near 5h limit"),
        (pool("a", ending("weekly", 30, timedelta(hours=2))), "urgent"),
        (pool("a", ending("weekly", 99.5, timedelta(hours=9))), "draining"),
        (pool("a", window("weekly", 30, 50, source="stale", captured_at=NOW - timedelta(hours=3))), "3h00m old"),
        (pool("a", window("weekly", 30, 50, source="stale", captured_at=NOW + timedelta(days=9))), "stale"),
        (pool("a", window("weekly", 30, 50, unstable=True), overage=True), "unstable, overage on"),
        (pool("a", ending("weekly", 100, timedelta(days=2), scope="opus")), "opus spent 2d00h"),
        (pool("a", ending("weekly", 99, timedelta(days=2), scope="opus")), "ready"),
    ],
)
def test_the_state_in_a_few_words(one: Pool, state: str) -> None:
    assert state_of(overview(one, now=NOW), PLAIN)[0] == state
    assert line(one).endswith(state)


@pytest.mark.parametrize(
    ("percent", "shown"), [(0, 0), (0.4, 0), (8.5, 9), (9.5, 10), (99.4, 99), (99.96, 99), (100, 100), (130.5, 131)]
)
def test_whole_percents_round_halves_up_and_never_up_to_a_full_window(percent: float, shown: int) -> None:
    assert whole(percent) == shown


def test_a_reserve_that_is_reached_is_told() -> None:
    row = overview(pool("a", window("weekly", 90, 50)), now=NOW, context=RoutingContext(reserves={"a": 20}))
    assert state_of(row, PLAIN)[0] == "reserved"


@pytest.mark.parametrize("width", [40, 50, 60, 78, 80, 99, 100, 140])
@pytest.mark.parametrize("left", ["2h58m", "13d23h"])
def test_how_long_a_quarantine_lasts_is_never_cut_off(width: int, left: str) -> None:
    until = NOW + (timedelta(hours=2, minutes=58) if left == "2h58m" else timedelta(days=13, hours=23))
    held = Quarantine("claude-code:acme", "quota", until, "usage limit")
    context = RoutingContext(quarantines={held.pool: held})
    windows = window("weekly", 31, 26.3), window("5h", 27, 54)
    rows = [
        overview(pool(name, *windows), now=NOW, context=context) for name in ("claude-code:acme", "codex", "opencode")
    ]
    terminal = Terminal(width, 24, True, PLAIN)
    shown = pool_table(rows, terminal)
    assert shown[0].endswith(f" 31% quarantined {left}" if width < 50 else f"quarantined {left}")
    assert all(line.endswith(" ready") and "31%" in line for line in shown[1:])
    assert max(map(cells, shown)) <= width
    usual = pool_table(rows[1:], terminal)
    assert all(" -4.7 " in line and "│" in line for line in usual), "without a long state nothing gives way"


def test_two_reasons_stand_whole_while_the_bar_can_give_way() -> None:
    one = pool("codex", window("5h", 80, 10), ending("weekly", 30, timedelta(hours=2)))
    shown = line(one, Terminal(80, 24, True, PLAIN))
    assert shown.endswith("near 5h limit, urgent") and "│" in shown


def test_a_wide_line_has_the_projection_the_load_the_hour_of_the_reset_and_the_age() -> None:
    one = pool(
        "codex",
        window("weekly", 61, 50, captured_at=NOW - timedelta(minutes=7)),
        rates={"weekly": history(0.2)},
        inflight=busy(2, 30),
    )
    shown = line(one, Terminal(130, 24, True, PLAIN))
    assert "61→73%" in shown and "(3d12h)" in shown and "2 run" in shown and "7m" in shown
    assert "61>73%" in line(one, Terminal(130, 24, False, PLAIN))
    assert " 61% " in line(one, Terminal(80, 24, True, PLAIN))


def test_a_pool_without_a_reading_says_whether_one_was_expected() -> None:
    assert "no reading yet" in line(pool("a"))
    assert "no meter" in line(pool("a", metered=False))
    assert "429 too often" in line(pool("a", meter_error="429 too often"))


def test_a_pool_without_a_pacing_window_shows_what_protects_it() -> None:
    five, day = line(pool("a", window("5h", 27, 54))), line(pool("a", window("daily", 41, 50)))
    assert re.match("a 5h +█", five) and " 27% " in five and "(2h18m)" in five
    assert re.match(r"a daily +█.* 41% ", day)


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("", 0), ("a\u200bb", 2), ("…", 1)]
)
def test_how_wide_a_text_stands(text: str, width: int) -> None:
    assert cells(text) == width


@given(names, st.integers(0, 50), st.booleans())
def test_what_is_clipped_fits_and_what_fits_is_left_alone(text: str, width: int, unicode: bool) -> None:
    terminal = Terminal(80, 24, unicode, PLAIN)
    assert cells(terminal.clipped(text, width)) <= width
    assert cells(terminal.padded(text, width)) == width
    if unicode and cells(text) <= width:
        assert terminal.clipped(text, width) == text


@pytest.mark.parametrize(
    ("environ", "utf8"),
    [
        ({}, True),
        ({"LANG": "de_DE.UTF-8"}, True),
        ({"LANG": "de_DE.utf8@euro"}, True),
        ({"LC_CTYPE": "UTF-8"}, True),
        ({"LANG": "C"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LANG": "C.UTF-8", "LC_CTYPE": "C.UTF-8"}, True),
        ({"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, False),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, True),
        ({"LANG": "ja_JP.eucJP"}, False),
    ],
)
def test_the_locale_tells_the_letters(environ: dict[str, str], utf8: bool) -> None:
    assert speaks_utf8(environ) is utf8


def test_times_as_people_say_them(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 9, 10, 12, 0, tzinfo=UTC).astimezone()
    assert re.fullmatch(r"\d\d:\d\d", local_moment(now, now))
    assert re.fullmatch(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d\d:\d\d", local_moment(now + timedelta(days=2), now))
    assert re.fullmatch(r"(Sep|Oct) \d\d", local_moment(now + timedelta(days=20), now))


@given(st.integers(1, 40), st.integers(1, 20), st.booleans(), st.data())
def test_a_canvas_draws_inside_itself_alone(width: int, height: int, unicode: bool, data: st.DataObject) -> None:
    canvas = Canvas(width, height, unicode=unicode)
    place = st.tuples(st.integers(-50, 200), st.integers(-50, 200))
    canvas.line(data.draw(place), data.draw(place), 2)
    canvas.line((0, 0), (canvas.columns - 1, canvas.rows - 1), 1)
    letters = [canvas.cell(column, row) for row in range(height) for column in range(width)]
    assert all(len(letter) == 1 for letter, _ in letters)
    assert canvas.cell(0, height - 1)[1] > 0 and canvas.cell(width - 1, 0)[1] > 0
