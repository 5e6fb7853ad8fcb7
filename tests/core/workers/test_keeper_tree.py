"""After any end nothing of an attempt runs on, however it tried to get away."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.workers.keeping import LONG, Keeping, clocks, wait_for

from bullswarm_core.workers.keeper_spec import request_stop
from bullswarm_core.workers.keeper_tree import below, parse_ps

# A shell that ignores TERM over a sleeping child, a grandchild in its own session, and a daemon (double fork).
TREE = f"""
import os, subprocess, sys, time
subprocess.Popen(['/bin/sh', '-c', 'trap "" TERM; sleep 60 & wait; sleep 60'])
subprocess.Popen([sys.executable, '-c', {LONG!r}], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, '-c', 'import signal; signal.signal(15, 1);' + {LONG!r}])
    os._exit(0)
os.wait()
time.sleep(0.2)
print('up', flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="daemons are only found by a subreaper")
def test_a_whole_tree_is_ended_on_a_stop(keeping: Keeping) -> None:
    kept = keeping.start(TREE + LONG, clocks=clocks(term_grace_sec=0.4))
    wait_for(lambda: kept.stdout() == b"up\n")
    assert len(kept.survivors()) >= 5
    request_stop(kept.spec.stop_file, "stopped", "")
    facts = kept.end()
    assert facts.reason == "stopped"
    assert facts.leftovers_killed >= 2
    assert kept.survivors() == set()


@pytest.mark.skipif(sys.platform != "linux", reason="daemons are only found by a subreaper")
def test_what_a_worker_leaves_behind_is_ended_and_counted(keeping: Keeping) -> None:
    kept = keeping.start(TREE, clocks=clocks())
    facts = kept.end()
    assert (facts.reason, facts.exit_code) == ("exited", 0)
    assert facts.leftovers_killed >= 4
    assert kept.survivors() == set()


def test_a_grandchild_that_holds_the_pipe_gets_two_seconds(keeping: Keeping) -> None:
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {LONG!r}]); print('answer', flush=True)"
    kept = keeping.start(code)
    facts = kept.end()
    assert (facts.reason, facts.exit_code, facts.leftovers_killed) == ("exited", 0, 1)
    assert facts.wall_sec < 2, "the drain is not the worker's time"
    assert (facts.ended_at - facts.started_at).total_seconds() < 5  # type: ignore[operator]
    assert kept.stdout() == b"answer\n"


def test_a_grandchild_that_ends_in_time_is_heard_and_not_counted(keeping: Keeping) -> None:
    late = "import time; time.sleep(0.6); print('late')"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {late!r}]); print('early', flush=True)"
    kept = keeping.start(code)
    assert kept.end().leftovers_killed == 0
    assert kept.stdout() == b"early\nlate\n"


def test_a_worker_that_is_killed_from_outside_leaves_no_grandchild(keeping: Keeping) -> None:
    code = (
        "import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', "
        + repr(LONG)
        + "], start_new_session=True,"
        " stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); os.kill(os.getpid(), 9)"
    )
    facts = keeping.run(code)
    assert (facts.reason, facts.signal, facts.leftovers_killed) == ("exited", "SIGKILL", 1)


def test_below_follows_every_line_of_descent() -> None:
    assert below((1,), {2: 1, 3: 2, 4: 3, 5: 9, 1: 0}) == {2, 3, 4}


@given(st.dictionaries(st.integers(1, 30), st.integers(0, 30)), st.integers(0, 30))
def test_below_ends_and_holds_no_stranger(parent_of: dict[int, int], root: int) -> None:
    found = below((root,), parent_of)
    assert all(parent_of[pid] == root or parent_of[pid] in found for pid in found)
    assert {pid for pid, parent in parent_of.items() if parent == root} <= found


def test_ps_is_read_without_zombies_and_noise() -> None:
    assert parse_ps("    1     0 Ss\n  612     1 Z\n  700     1 S+\nps: odd line here too\n") == {1: 0, 700: 1}
