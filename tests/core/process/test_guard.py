"""All that a confined worker started ends at once, at the end of its keeper too, and nothing else is hit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.core.keeper.keeping import LONG, Keeping, Kept, wait_for
from tests.core.process.test_descendants import comet

from bullswarm_core.process import confinement, identity


def _guarded() -> bool:
    if sys.platform != "linux" or confinement.problem():
        return False
    import landlockpy

    return bool(landlockpy.abi_version() >= confinement.SIGNAL_ABI)


pytestmark = pytest.mark.skipif(not _guarded(), reason="needs Landlock that keeps signals inside")
# It writes the numbers of itself and of a daemon that shares neither its session nor its environment.
DAEMON = """
import json, os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 3)
    os.execve(sys.executable, [sys.executable, '-I', '-S', '-c',
        "import os, time; open('daemon', 'w').write(str(os.getpid()) + chr(10)); time.sleep(60)"], {})
os.wait()
while not (os.path.exists('daemon') and open('daemon').read().endswith(chr(10))):
    time.sleep(0.01)
"""


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", LONG], stdin=subprocess.DEVNULL)
    yield process
    process.kill()
    process.wait()


def start(keeping: Keeping, code: str = "", **options: Any) -> Kept:
    return keeping.start(code, writable=(f"{keeping.folder}/",), **options)


def process_in(file: Path) -> identity.ProcessIdentity:
    wait_for(lambda: file.exists() and file.read_text().endswith("\n"))
    found = identity.of(int(file.read_text()))
    assert found is not None
    return found


@pytest.mark.parametrize("language", ["c", "python"])
@pytest.mark.parametrize("pause", [0, 1, 3])
def test_a_hundred_that_fork_and_exit_for_ever_are_ended(
    keeping: Keeping, tmp_path: Path, stranger: subprocess.Popen[bytes], language: str, pause: int
) -> None:
    kept = start(keeping, argv=(*comet(tmp_path, language), "100", str(pause)))
    facts = kept.end()
    assert (facts.reason, facts.exit_code, facts.survivors) == ("exited", 0, 0)
    assert facts.confinement == "bullswarm"
    assert facts.leftovers_killed >= 1
    time.sleep(0.1)
    assert kept.survivors() == set()
    assert not Path(kept.spec.cwd, "planted").exists()
    assert stranger.poll() is None


def test_what_multiplies_is_ended(keeping: Keeping, tmp_path: Path) -> None:
    """A fork bomb, as a user whom a limit of processes holds."""
    bomb = (
        "import os, resource, sys, time\n"
        "if os.getuid() == 0:\n    os.setgroups([]); os.setgid(54321); os.setuid(54321)\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (300, 300))\n"
        "if os.fork() == 0:\n"
        "    end = time.time() + 15\n"
        "    while time.time() < end:\n"
        "        try:\n"
        "            if os.fork() == 0: os.setsid()\n"
        "        except OSError: pass\n"
        "    os._exit(0)\n"
        "time.sleep(0.5)\n"
    )
    if os.getuid() != 0:
        pytest.skip("as root alone the limit counts nobody else's processes")
    facts = start(keeping, bomb).end()
    assert (facts.exit_code, facts.survivors) == (0, 0), facts.stderr_tail
    assert facts.leftovers_killed > 100


def test_a_killed_keeper_takes_all_along(keeping: Keeping, stranger: subprocess.Popen[bytes]) -> None:
    kept = start(keeping, DAEMON + LONG)
    daemon = process_in(Path(kept.spec.cwd, "daemon"))
    worker = kept.record().worker
    assert worker is not None
    os.kill(kept.keeper.pid, signal.SIGKILL)
    wait_for(lambda: not identity.is_alive(daemon) and not identity.is_alive(worker))
    wait_for(lambda: kept.survivors() == set())
    assert stranger.poll() is None


def test_a_worker_finds_no_child_that_it_did_not_make_and_cannot_kill_the_guard(keeping: Keeping) -> None:
    code = (
        "import json, os, signal\n"
        "said = {}\n"
        "try: os.waitpid(-1, os.WNOHANG); said['child'] = True\n"
        "except ChildProcessError: said['child'] = False\n"
        "beside = [int(p) for p in open(f'/proc/{os.getppid()}/task/{os.getppid()}/children').read().split()]\n"
        "said['beside'] = len(beside)\n"
        "said['killed'] = []\n"
        "for pid in set(beside) - {os.getpid()}:\n"
        "    try: os.kill(pid, signal.SIGKILL); said['killed'].append(pid)\n"
        "    except PermissionError: pass\n"
        "print(json.dumps(said))\n"
    )
    kept = start(keeping, code)
    facts = kept.end()
    assert json.loads(kept.stdout()) == {"child": False, "beside": 2, "killed": []}, facts.stderr_tail
    assert (facts.leftovers_killed, facts.survivors) == (0, 0), "the guard is none of the worker's leftovers"


def test_the_end_of_a_quiet_worker_is_as_quick(keeping: Keeping) -> None:
    facts = start(keeping, "pass").end()
    assert (facts.exit_code, facts.leftovers_killed, facts.survivors) == (0, 0, 0)


def test_without_the_guard_the_hunt_goes_on(keeping: Keeping, tmp_path: Path) -> None:
    """Somebody outside has killed the guard: its keeper still ends what is left."""
    kept = start(keeping, DAEMON + "open('ready', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.01)")
    place = Path(kept.spec.cwd)
    wait_for((place / "ready").exists)
    worker = kept.record().worker
    assert worker is not None
    children = Path(f"/proc/{kept.keeper.pid}/task/{kept.keeper.pid}/children").read_text().split()
    daemon = process_in(place / "daemon")
    [guard] = {int(pid) for pid in children} - {worker.pid, daemon.pid}
    os.kill(guard, signal.SIGKILL)
    (place / "go").touch()
    facts = kept.end()
    assert (facts.exit_code, facts.survivors) == (0, 0)
    assert not identity.is_alive(daemon)
