"""The dashboard on a real terminal: bare `bullswarm` opens it after set-up, and it gives the terminal back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.server.dashboard.world import Runs, World
from tests.server.terminals import on_terminal

COMMAND = [sys.executable, "-m", "bullswarm_server.cli.main"]


def test_bare_bullswarm_opens_it_after_set_up_and_q_gives_the_terminal_back(world: World, runs: Runs) -> None:
    with on_terminal([], world.environ, columns=100, lines=40) as terminal:
        terminal.until(lambda seen: "Needs you (2)" in seen, "what needs somebody")
        terminal.until(lambda seen: "night-shift" in seen, "the pools")
        assert "\x1b[?1049h" in terminal.seen
        terminal.type("q")
        assert terminal.end() == 0
        assert "\x1b[?1049l" in terminal.seen


def test_one_that_is_ended_gives_the_terminal_back(world: World) -> None:
    with on_terminal(["dashboard"], world.environ) as terminal:
        terminal.until(lambda seen: "Pools this week" in seen, "the page")
        terminal.process.terminate()
        assert terminal.end() == 128 + signal.SIGTERM
        assert "\x1b[?1049l" in terminal.seen


def test_bare_bullswarm_before_set_up_prints_help(world: World) -> None:
    with on_terminal([], world.environ) as terminal:
        assert terminal.end() == 0
        assert "usage: bullswarm <verb>" in terminal.seen and "\x1b[?1049h" not in terminal.seen


def test_without_a_terminal_bare_bullswarm_prints_help_and_the_verb_says_what_it_needs(
    world: World, runs: Runs
) -> None:
    environ = {**world.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    bare = subprocess.run(COMMAND, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert bare.returncode == 0 and bare.stdout.startswith("bullswarm hands a bounded task")
    verb = subprocess.run(
        [*COMMAND, "dashboard"], env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (verb.returncode, verb.stdout) == (2, "")
    assert verb.stderr.startswith("bullswarm: the dashboard needs a terminal to draw on")


@pytest.mark.parametrize("words", [["--version"], ["pools"], ["runs"], ["label", "--list"], ["dashboard", "--help"]])
def test_no_other_verb_pays_for_the_screen_library(world: World, words: list[str]) -> None:
    code = (
        "import json, sys; from bullswarm_server.cli.main import main; "
        f"sys.argv[1:] = {words!r}; code = main(); "
        "print(json.dumps([name for name in sys.modules if name.partition('.')[0] in ('textual', 'rich')]))"
    )
    environ = {**world.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout.splitlines()[-1]) == [], done.stderr
