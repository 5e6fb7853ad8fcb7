"""After any end nothing of an attempt runs on, however it tried to get away."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.keeper.keeping import LONG, Keeping, Kept, clocks, wait_for

from bullswarm_core.keeper.client import read_exit, request_stop
from bullswarm_core.keeper.spec import MARKER
from bullswarm_core.process import descendants
from bullswarm_core.process.child import marked
from bullswarm_core.process.descendants import below, parents, parse_ps
from bullswarm_core.streams.facts import ExitFacts

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
    # A shell, since another interpreter may need the two seconds for its own start on a busy machine.
    late = ["/bin/sh", "-c", "sleep 0.6; echo late"]
    code = f"import subprocess; subprocess.Popen({late!r}); print('early', flush=True)"
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


# It forks and exits for ever, each time into a new session, so that no list of processes holds it for long; it writes a
# file when its time is up. The first argument says how many of them there are, the second for how long one lives (ms).
COMET = """
import os, sys, time
number, pause, end = int(sys.argv[1]), float(sys.argv[2]) / 1000, time.time() + 15
for _ in range(number):
    if os.fork() == 0:
        os.closerange(0, 3)
        while time.time() < end:
            if os.fork():
                os._exit(0)
            os.setsid()
            time.sleep(pause)
        open('planted', 'w').close()
        os._exit(0)
print('up', flush=True)
"""
COMET_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
    time_t end = time(NULL) + 15;
    int number = atoi(words[1]), pause = atoi(words[2]) * 1000;
    for (int i = 0; i < number; i++)
        if (fork() == 0) {
            close(0), close(1), close(2);
            while (time(NULL) < end) {
                if (fork() > 0) _exit(0);
                setsid();
                if (pause) usleep(pause);
            }
            fclose(fopen("planted", "w"));
            _exit(0);
        }
    puts("up");
    return 0;
}
"""


def comet(folder: Path, language: str) -> tuple[str, ...]:
    """Return the command of a comet; in C where there is a compiler, which is ten times as fast."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if language == "python" or compiler is None:
        return (sys.executable, "-I", "-S", "-c", COMET)
    (folder / "comet.c").write_text(COMET_C)
    subprocess.run([compiler, "-O2", "-w", "-o", folder / "comet", folder / "comet.c"], check=True)
    return (str(folder / "comet"),)


@pytest.mark.skipif(sys.platform != "linux", reason="only a subreaper can prove that nothing is left")
@pytest.mark.parametrize("language", ["c", "python"])
@pytest.mark.parametrize(("number", "pause"), [(1, 0), (1, 1), (1, 3), (8, 0), (8, 1), (40, 1)])
def test_what_forks_and_exits_for_ever_is_ended(
    keeping: Keeping, tmp_path: Path, language: str, number: int, pause: int
) -> None:
    for _ in range(3 if number == 1 else 1):
        kept = keeping.start(argv=(*comet(tmp_path, language), str(number), str(pause)))
        facts = kept.end()
        assert (facts.reason, facts.exit_code, facts.survivors) == ("exited", 0, 0)
        assert facts.leftovers_killed >= 1
        wait_for_no_fork(kept)
        assert not Path(kept.spec.cwd, "planted").exists()


def _says_up(file: Path) -> bool:
    return file.exists() and file.read_bytes() == b"up\n"


def wait_for_no_fork(kept: Kept) -> None:
    """See that nothing with the mark turns up in many looks: one look would miss what the keeper once missed."""
    for _ in range(20):
        assert kept.survivors() == set()
        time.sleep(0.005)


@pytest.mark.skipif(sys.platform != "linux", reason="only a subreaper can prove that nothing is left")
def test_it_is_ended_after_a_stop_and_a_time_limit_too(keeping: Keeping, tmp_path: Path) -> None:
    code = COMET + LONG
    for spec in (clocks(wall_sec=0.5, term_grace_sec=0.1), clocks(term_grace_sec=0.1)):
        kept = keeping.start(argv=(sys.executable, "-I", "-S", "-c", code, "4", "1"), clocks=spec)
        said = Path(kept.spec.stdout_file)
        wait_for(partial(_says_up, said))
        if spec.wall_sec is None:
            request_stop(kept.spec.stop_file, "stopped", "")
        assert (kept.end().survivors, kept.survivors()) == (0, set())
        wait_for_no_fork(kept)


@pytest.mark.skipif(sys.platform != "linux", reason="only a subreaper can prove that nothing is left")
def test_what_cannot_be_ended_is_said_and_the_keeper_goes_on(keeping: Keeping, tmp_path: Path) -> None:
    """A keeper whose KILL reaches nothing, until a file appears: as with a process that hangs in the kernel."""
    marker = tmp_path / "now"
    driver = tmp_path / "driver.py"
    spec = keeping.spec(COMET, argv=(sys.executable, "-I", "-S", "-c", COMET, "1", "3"))
    spec.write(tmp_path / "spec.json")
    root = Path(descendants.__file__).parents[2]
    driver.write_text(
        f"import os, sys; sys.path.append({str(root)!r})\n"
        "from bullswarm_core.keeper import main as keeper, supervision as keeper_loop\n"
        "from bullswarm_core.process import control_group as keeper_scope, descendants as keeper_tree\n"
        "keeper_scope.Group.make = lambda: None\n"
        "real = keeper_tree._kill_child\n"
        f"keeper_tree._kill_child = lambda pid: os.path.exists({str(marker)!r}) and real(pid)\n"
        "keeper_tree._send = lambda how, pid, number: None\n"
        "keeper_loop.KILL_SEC = 0.5\n"
        f"sys.exit(keeper.main([{str(tmp_path / 'spec.json')!r}]))\n"
    )
    environment = {**os.environ, MARKER: spec.attempt}
    process = subprocess.Popen([sys.executable, "-I", "-S", str(driver)], env=environment, stderr=subprocess.DEVNULL)
    try:
        facts: ExitFacts = wait_for(lambda: read_exit(spec.exit_file))
        assert facts.survivors >= 1
        assert process.poll() is None, "the keeper goes on"
        marker.touch()
        assert process.wait(10) == 0
        assert marked(f"{MARKER}={spec.attempt}", parents()) == set()
        assert not Path(spec.cwd, "planted").exists()
    finally:
        marker.touch()
        process.wait(20)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's list of children")
def test_children_are_found_without_the_small_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", LONG])
    try:
        assert process.pid in descendants._children()
        monkeypatch.setattr(descendants, "CHILDREN", "/nowhere/{}")
        assert process.pid in descendants._children()
        assert not descendants._kill_child(os.getppid()), "no child of ours is left alone"
        assert descendants._kill_child(process.pid)
        assert process.wait() == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()
