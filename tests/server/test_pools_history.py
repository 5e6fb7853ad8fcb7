"""`bullswarm pools history`: the drawing on a terminal and through a pipe, the SVG, the document, and odd data."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.server.terminals import on_terminal, plain_text

from bullswarm_core.errors import UnknownNameError, UsageError
from bullswarm_core.pools import Window
from bullswarm_core.pools.labels import set_label
from bullswarm_core.quota.history import append_history
from bullswarm_core.quota.observation import Observation
from bullswarm_core.store.home import Home
from bullswarm_server.cli import pools
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.displays.terminal import cells

Ask = Callable[..., str]
HOUR = timedelta(hours=1)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def context(own_home: Path, tmp_path: Path) -> CommandContext:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "codex").write_text("#!/bin/sh\n")
    (folder / "codex").chmod(0o755)
    environ = {"HOME": str(own_home), "PATH": str(folder), "LC_ALL": "C.UTF-8", "BULLSWARM_METERS": "off"}
    return CommandContext(Home(own_home / ".bullswarm"), environ, io.StringIO(), io.StringIO())


@pytest.fixture
def ask(context: CommandContext) -> Ask:
    def call(*words: str) -> str:
        assert isinstance(context.out, io.StringIO)
        context.out.seek(0)
        context.out.truncate()
        assert pools.run(["history", *words], context) == 0
        return context.out.getvalue()

    return call


@pytest.fixture
def now() -> Iterator[datetime]:
    yield datetime.now(UTC).replace(microsecond=0)


def keep(home: Home, at: datetime, *windows: Window, read_by: str = "status line") -> None:
    # A reading from the future is refused where histories are written; a clock that was set back makes one.
    assert append_history(home, "codex", Observation(at, windows, read_by), now=max(at, datetime.now(UTC)))


def a_week(home: Home, now: datetime, *, hours: int = 60, step: int = 4) -> None:
    for ago in range(hours, -1, -step):
        at = now - ago * HOUR
        keep(home, at, Window("weekly", (hours - ago) / 2, now + 60 * HOUR, captured_at=at))


def test_a_window_is_drawn_against_its_clock(ask: Ask, context: CommandContext, now: datetime) -> None:
    a_week(context.home, now)
    heading, more, _, *drawn = ask("codex").splitlines()
    assert heading.startswith("codex · weekly used 30%, elapsed 64.3%, surplus 34.3, read ")
    assert " by status line, resets " in f"{heading} {more}" and more.endswith("(in 2d11h)")
    assert "16 readings since " in drawn[-1]
    plot = [line for line in drawn if "┤" in line]
    assert plot[0].startswith("100% ┤") and plot[-1].startswith("  0% ┤")
    dots = sum(0x2800 < ord(char) <= 0x28FF for line in plot for char in line)
    assert dots > 60
    # The clock ends in the upper right corner, where the window is over; the use stays below it.
    assert any(0x2800 < ord(char) <= 0x28FF for char in plot[0][-4:])
    assert all(cells(line) <= 80 for line in drawn)


def test_without_a_history_it_says_so(ask: Ask) -> None:
    assert ask("codex") == "codex: no reading of its weekly window is kept yet\n"
    document = json.loads(ask("codex", "--json"))
    assert (document["windows"], document["kinds"]) == ([], [])
    with pytest.raises(UsageError, match="nothing to draw"):
        ask("codex", "--svg", "use.svg")


def test_one_reading_is_a_dot_and_told(ask: Ask, context: CommandContext, now: datetime) -> None:
    keep(context.home, now, Window("weekly", 40, now + 60 * HOUR, captured_at=now))
    text = ask("codex")
    assert "one reading so far: a line needs two" in text
    assert any(0x2800 < ord(char) <= 0x28FF for char in text)


def test_a_reset_between_two_readings_breaks_the_line(ask: Ask, context: CommandContext, now: datetime) -> None:
    old, new = now - 2 * HOUR, now + 166 * HOUR
    for ago, used in ((30, 80.0), (20, 95.0)):
        at = now - ago * HOUR
        keep(context.home, at, Window("weekly", used, old, captured_at=at))
    for ago, used in ((1, 1.0), (0, 3.0)):
        at = now - ago * HOUR
        keep(context.home, at, Window("weekly", used, new, captured_at=at))
    assert "4 readings since " in (text := ask("codex")) and "1 reset between them" in text
    document = json.loads(ask("codex", "--json"))
    assert [[reading["usedPct"] for reading in window["readings"]] for window in document["windows"]] == [
        [80, 95], [1, 3],
    ]  # fmt: skip
    root = ElementTree.fromstring(ask("codex", "--svg", "-"))
    assert len(root.findall(f"{SVG}polyline")) == 2


def test_a_reset_that_came_early_and_one_that_is_made_up_anew_each_time(
    ask: Ask, context: CommandContext, now: datetime
) -> None:
    reset = now + 100 * HOUR
    for ago, used, jitter in ((9, 10.0, 0), (8, 12.0, 3), (7, 0.5, 0), (6, 2.0, 1)):
        at = now - ago * HOUR
        keep(context.home, at, Window("weekly", used, reset + timedelta(seconds=jitter), captured_at=at))
    spans = json.loads(ask("codex", "--json"))["windows"]
    assert [len(span["readings"]) for span in spans] == [2, 2]


def test_times_from_the_future_and_foreign_lines_are_left_out_and_counted(
    ask: Ask, context: CommandContext, now: datetime
) -> None:
    a_week(context.home, now, hours=8)
    later = now + timedelta(days=900)
    keep(context.home, later, Window("weekly", 99, later + HOUR, captured_at=later))
    with context.home.meter_history_file("codex").open("ab") as file:
        file.write(b'{"capturedAt": "never"}\n\xff\n')
    text = ask("codex")
    assert "weekly used 4%" in text
    assert "1 from the future left out" in text
    assert "2 lines of the history could not be understood" in text


@pytest.mark.parametrize(
    ("used", "resets_in"),
    [(0.0, 7 * 24 * HOUR), (250.0, 60 * HOUR), (50.0, None), (50.0, timedelta(days=300_000)), (50.0, -2000 * HOUR)],
)
def test_odd_readings_are_drawn_all_the_same(
    ask: Ask, context: CommandContext, now: datetime, used: float, resets_in: timedelta | None
) -> None:
    for ago in (2, 1):
        at = now - ago * HOUR
        resets_at = None if resets_in is None else at + resets_in
        keep(context.home, at, Window("weekly", used, resets_at, captured_at=at))
    assert f"weekly used {used:g}%" in (text := ask("codex"))
    assert "┤" in text
    ElementTree.fromstring(ask("codex", "--svg", "-"))


def test_another_window_is_named_and_can_be_asked_for(ask: Ask, context: CommandContext, now: datetime) -> None:
    keep(
        context.home,
        now,
        Window("weekly", 40, now + 60 * HOUR, captured_at=now),
        Window("5h", 20, now + HOUR, captured_at=now),
    )
    assert "--window shows the others: 5h" in ask("codex")
    assert "5h used 20%, elapsed 80%" in ask("codex", "--window", "5h")
    with pytest.raises(UsageError, match="no kept reading of its monthly window"):
        ask("codex", "--window", "monthly")


def test_the_svg_is_one_valid_file_of_its_own(ask: Ask, context: CommandContext, now: datetime, tmp_path: Path) -> None:
    a_week(context.home, now)
    set_label(context.home, "codex", "a<b>&\"c'", ["codex"])
    file = tmp_path / "use.svg"
    file.write_text("old")
    assert ask("codex", "--svg", str(file)) == ""
    text = file.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert root.findtext(f"{SVG}title") == "a<b>&\"c': weekly use against its pace"
    (line,) = root.findall(f"{SVG}polyline")
    places = [tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()]
    assert len(places) == 16 and places == sorted(places)
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)
    _, _, width, height = map(float, root.get("viewBox", "").split())
    assert all(0 <= x <= width and 0 <= y <= height for x, y in places)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "") and "<script" not in text and "href" not in text


def test_a_place_for_the_svg_that_is_no_file_is_refused(
    ask: Ask, context: CommandContext, now: datetime, tmp_path: Path
) -> None:
    a_week(context.home, now)
    os.mkfifo(tmp_path / "pipe")
    kept = tmp_path / "kept.svg"
    kept.write_text("old")
    for name, target in (
        ("link.svg", kept),
        ("dangling.svg", tmp_path / "new.svg"),
        ("loop.svg", tmp_path / "loop.svg"),
    ):
        (tmp_path / name).symlink_to(target)
        with pytest.raises(UsageError, match=f"{name} is a link"):
            ask("codex", "--svg", str(tmp_path / name))
    assert kept.read_text() == "old" and not (tmp_path / "new.svg").exists() and (tmp_path / "link.svg").is_symlink()
    for place in (tmp_path, tmp_path / "nowhere" / "use.svg", tmp_path / "pipe"):
        with pytest.raises(UsageError, match="is no file in a folder that exists"):
            ask("codex", "--svg", str(place))
    with pytest.raises(UsageError, match="both go to stdout"):
        ask("codex", "--svg", "-", "--json")


def test_the_document_has_every_reading(ask: Ask, context: CommandContext, now: datetime) -> None:
    a_week(context.home, now, hours=8)
    set_label(context.home, "codex", "cx", ["codex"])
    document = json.loads(ask("cx", "--json"))
    assert (document["schemaVersion"], document["pool"], document["poolLabel"], document["window"]) == (
        "bullswarm.pools-history.v1", "codex", "cx", "weekly",
    )  # fmt: skip
    (window,) = document["windows"]
    assert window["readings"][-1] == {
        "at": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "usedPct": 4, "elapsedPct": 64.3, "readBy": "status line",
    }  # fmt: skip


def test_an_unknown_pool_is_refused(ask: Ask) -> None:
    with pytest.raises(UnknownNameError):
        ask("nobody")


@pytest.mark.parametrize("columns", [30, 60, 132])
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_on_a_terminal_it_takes_the_width_and_the_letters_that_are_there(
    context: CommandContext, now: datetime, columns: int, locale: str
) -> None:
    a_week(context.home, now)
    environ = {**context.environ, "LC_ALL": locale, "TERM": "xterm", "TZ": "UTC"}
    with on_terminal(["pools", "history", "codex"], environ, columns=columns) as terminal:
        assert terminal.end() == 0
        assert "\x1b[32m" in terminal.seen
        lines = plain_text(terminal.seen).splitlines()
    drawn = [line for line in lines if "┤" in line or " |" in line]
    assert drawn and max(map(cells, drawn)) <= columns
    assert max(map(cells, drawn)) >= columns - 3
    assert locale != "C" or all(line.isascii() for line in lines)
    assert len(lines) <= 24
