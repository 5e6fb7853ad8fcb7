"""`bullswarm pools` on real terminals: width, colour, letters, following; and what it writes where there is none."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.server.terminals import on_terminal, plain_text

from bullswarm_core.pools import Window
from bullswarm_core.pools.settings import update_settings
from bullswarm_core.quota.reading import write_reading
from bullswarm_core.store.home import Home
from bullswarm_server.displays.terminal import cells

UTF8 = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
FRAME = "\x1b[?2026h"


@pytest.fixture
def environ(own_home: Path, tmp_path: Path) -> dict[str, str]:
    """A machine with a Codex that is a third through its week, a Grok and a key that nobody allowed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("codex", "grok", "command-code"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    (own_home / ".codex").mkdir()
    (own_home / ".codex" / "auth.json").write_text('{"tokens": {"access_token": "a-token"}}')
    use(Home(own_home / ".bullswarm"), 31)
    return {
        **UTF8, "HOME": str(own_home), "PATH": str(folder), "COMMAND_CODE_API_KEY": "k", "TZ": "UTC",
        "BULLSWARM_METERS": "off",
    }  # fmt: skip


def use(home: Home, used: float) -> None:
    now = datetime.now(UTC)
    weekly = Window("weekly", used, now + timedelta(days=7 * 0.65), captured_at=now)
    write_reading(home, "codex", [weekly, Window("5h", 20, now + timedelta(hours=2), captured_at=now)], captured_at=now)


def lines_on(environ: dict[str, str], columns: int, *words: str) -> list[str]:
    with on_terminal(["pools", *words], environ, columns=columns) as terminal:
        assert terminal.end() == 0
        return plain_text(terminal.seen).rstrip("\n").split("\n")


@pytest.mark.parametrize("columns", [32, 40, 55, 60, 78, 80, 99, 100, 125, 200])
def test_no_line_of_a_pool_is_wider_than_the_terminal(environ: dict[str, str], columns: int) -> None:
    lines = [line for line in lines_on(environ, columns) if "before you allow it" not in line]
    assert {line.split()[0] for line in lines} >= {"codex", "grok", "echo"}
    assert max(cells(line) for line in lines) <= max(columns, 32)
    (codex,) = (line for line in lines if line.startswith("codex"))
    if columns >= 55:
        assert "31%" in codex and "ready" in codex


def test_the_columns_stand_below_each_other_and_grow_with_the_terminal(environ: dict[str, str]) -> None:
    def bar_of(columns: int) -> int:
        (codex,) = (line for line in lines_on(environ, columns) if line.startswith("codex"))
        return len(re.findall("[█▏▎▍▌▋▊▉░│]", codex))

    narrow, usual, wide = bar_of(55), bar_of(80), bar_of(160)
    assert 6 <= narrow < usual < wide
    ready = [line.index("ready") for line in lines_on(environ, 80) if line.endswith("ready")]
    assert len(ready) >= 2 and len(set(ready)) == 1


def test_the_mark_on_the_bar_is_the_clock_of_the_window(environ: dict[str, str]) -> None:
    (codex,) = (line for line in lines_on(environ, 160) if line.startswith("codex"))
    bar = re.search("[█▏▎▍▌▋▊▉░│]{10,}", codex)
    assert bar is not None
    assert bar[0].index("│") == int(0.35 * len(bar[0]))
    assert bar[0].startswith("█" * int(0.31 * len(bar[0])))


@pytest.mark.parametrize(("used", "colour"), [(31, "\x1b[32m"), (38, "\x1b[33m"), (60, "\x1b[31m"), (100, "\x1b[31m")])
def test_the_bar_is_painted_by_pace(environ: dict[str, str], own_home: Path, used: float, colour: str) -> None:
    use(Home(own_home / ".bullswarm"), used)
    with on_terminal(["pools"], environ) as terminal:
        assert terminal.end() == 0
        (codex,) = (line for line in terminal.seen.splitlines() if line.startswith("codex"))
        assert f"{colour}█" in codex


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_is_left_out_where_it_is_not_wanted_and_the_bars_stay(
    environ: dict[str, str], more: dict[str, str]
) -> None:
    with on_terminal(["pools"], {**environ, **more}) as terminal:
        assert terminal.end() == 0
        assert "\x1b" not in terminal.seen
        assert "█" in terminal.seen


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "", "LANG": "C"}, {"LC_ALL": "de_DE.ISO-8859-1"}])
def test_a_locale_without_utf8_gets_ascii_alone(environ: dict[str, str], locale: dict[str, str]) -> None:
    lines = lines_on({**environ, **locale}, 80)
    assert all(line.isascii() for line in lines)
    assert any(re.search(r"#+[-#]*\|", line) for line in lines)


def test_a_pool_that_waits_for_a_word_is_told_with_the_command(environ: dict[str, str]) -> None:
    text = "\n".join(lines_on(environ, 200))
    assert re.search("^command-code +key not allowed$", text, re.MULTILINE)
    assert "bullswarm strategy set-provider command-code --allow-billing on" in text


def piped(environ: dict[str, str], *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bullswarm_server.cli.main", "pools", *words],
        env={"PYTHONPATH": ":".join(path for path in sys.path if path), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_through_a_pipe_come_the_plain_lines_with_every_number(environ: dict[str, str]) -> None:
    out, err = piped(environ).communicate(timeout=60)
    assert err == ""
    (codex,) = (line for line in out.splitlines() if line.startswith("codex"))
    assert re.search(
        r"weekly used 31% elapsed 35% \[live\] surplus=4 inflight=0 5h=20% \(60(\.\d)?% elapsed\) ready", codex
    )
    assert codex.endswith(" reset=provider")
    assert "\x1b" not in out and "█" not in out


# --- --watch


def test_watch_redraws_in_place_and_ctrl_c_ends_it_with_0(environ: dict[str, str], own_home: Path) -> None:
    with on_terminal(["pools", "--watch", "0.2"], environ) as terminal:
        terminal.until(lambda seen: "31%" in seen and seen.count(FRAME) >= 2, "two frames")
        use(Home(own_home / ".bullswarm"), 47)
        seen = terminal.until(lambda seen: "47%" in seen, "the new reading")
        first, *frames = seen.split(FRAME)
        assert first.endswith("\x1b[?1049h\x1b[?25l")
        # Nothing is wiped before it is written anew: that is what flickers.
        assert all("\x1b[2J" not in frame and frame.startswith("\x1b[H") for frame in frames)
        terminal.type("\x03")
        assert terminal.end() == 0
        assert "\x1b[?25h\x1b[?1049l" in terminal.seen
        left = terminal.seen.rpartition("\x1b[?1049l")[2]
        assert "47%" in left and "Traceback" not in left


def test_watch_fits_a_terminal_that_changes_its_size(environ: dict[str, str]) -> None:
    with on_terminal(["pools", "--watch", "3600"], environ, columns=160) as terminal:
        terminal.until(lambda seen: "\x1b[?2026l" in seen, "the first frame")
        before = len(terminal.seen)
        terminal.resize(60, 10)
        terminal.until(lambda seen: "\x1b[?2026l" in seen[before:], "a frame of the new size")
        frame = plain_text(terminal.seen[before:])
        assert all(cells(line) <= 60 for line in frame.split("\n"))
        terminal.resize(60, 3)
        terminal.until(lambda seen: "more lines below" in seen, "what does not fit is counted")
        terminal.type("\x03")
        assert terminal.end() == 0


def test_watch_gives_the_terminal_back_when_it_is_ended(environ: dict[str, str]) -> None:
    with on_terminal(["pools", "--watch", "3600"], environ) as terminal:
        terminal.until(lambda seen: "\x1b[?2026l" in seen, "the first frame")
        terminal.process.terminate()
        assert terminal.end() == 143
        assert terminal.seen.endswith("\x1b[?25h\x1b[?1049l")


@pytest.mark.parametrize("more", [{}, {"TERM": "dumb"}])
def test_watch_writes_one_line_per_change_where_nothing_can_be_redrawn(
    environ: dict[str, str], own_home: Path, more: dict[str, str]
) -> None:
    home = Home(own_home / ".bullswarm")
    process = piped({**environ, **more}, "--watch", "0.2")
    assert process.stdout is not None
    try:
        first = [process.stdout.readline() for _ in range(5)]
        assert sorted(line.split()[1] for line in first) == ["claude-code", "codex", "command-code", "echo", "grok"]
        use(home, 47)
        changed = process.stdout.readline()
        assert re.match(r"\d{4}-\d\d-\d\dT[\d:]+Z codex .*weekly used 47% ", changed)
        update_settings(home, lambda state: state.update(pools={"grok": {"enabled": False}}))
        assert " grok " in (changed := process.stdout.readline()) and "disabled" in changed
        process.send_signal(2)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--watch", "soon"], "'soon' is not a number of seconds from 0.2 to 86400"),
        (["--watch", "0"], "'0' is not a number of seconds"),
        (["--watch", "nan"], "'nan' is not a number of seconds"),
        (["--watch", "--json"], "--watch follows with lines"),
    ],
)
def test_a_watch_that_makes_no_sense_is_refused(environ: dict[str, str], words: list[str], said: str) -> None:
    process = piped(environ, *words)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert said in err
