#!/usr/bin/env python3
"""Install this checkout into a virtual environment outside of it and use it; needs nothing but Python 3.11 and git.

python3 develop.py run …      install if needed, then `bullswarm run …` (any other verb works the same way)
python3 develop.py test …     install if needed, then the unit tests
python3 develop.py agents …   install the pinned agent CLIs (needs Node >= 20 and npm), then the tests on them
python3 develop.py check      everything that CI runs
python3 develop.py ruff …     install if needed, then that tool in the checkout (also mypy, lint-imports, python)
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
# Outside of the checkout: a worker that may write the checkout must not be able to write the program that judges it.
ENVIRONMENT = CACHE / "bullswarm-develop" / f"{ROOT.name}-{hashlib.sha256(os.fsencode(ROOT)).hexdigest()[:12]}"
PYTHON = ENVIRONMENT / "bin" / "python"
MARKER = ENVIRONMENT / "bullswarm-installed"
INSTALL_CLIS = ROOT / "tests" / "agents" / "install.py"
UNIT_TESTS = ["--ignore=tests/agents", "--ignore=tests/benchmarks", "--ignore=tests/chaos"]
MEASUREMENTS = "measurements"
TOOLS = ("ruff", "mypy", "lint-imports", "python")
# More than this and a hung test would eat CI's time without a word.
STEP_LIMIT_SEC = 25 * 60

Step = Callable[[], int]
"""Does its work and returns an exit code."""


def wanted() -> str:
    """Name the state that the environment must be in: this Python and this pyproject.toml."""
    return f"{sys.version_info[:2]} {hashlib.sha256((ROOT / 'pyproject.toml').read_bytes()).hexdigest()}"


def install() -> None:
    """Create the environment and install the project with its tests' tools, once for each state of pyproject.toml."""
    if sys.version_info < (3, 11):
        sys.exit(f"bullswarm needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    if PYTHON.exists() and MARKER.exists() and MARKER.read_text() == wanted():
        return
    print(f"installing into {ENVIRONMENT} …", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # Dependency groups came with pip 25.1; the pip of a fresh Python 3.11 is older.
    subprocess.run([*pip, "install", "--upgrade", "pip>=25.1"], check=True)
    subprocess.run([*pip, "install", "--editable", str(ROOT), "--group", f"{ROOT / 'pyproject.toml'}:dev"], check=True)
    MARKER.write_text(wanted())


def running(*words: str) -> Step:
    """The step that runs this module of Python, or the script at this path, with these arguments."""
    line = [str(PYTHON), *(() if "/" in words[0] else ("-m",)), *words]
    return lambda: subprocess.run(line, cwd=ROOT, timeout=STEP_LIMIT_SEC).returncode


@contextmanager
def beside(*line: str) -> Iterator[Step]:
    """Run this command line beside the steps; yields the step that waits for its end and shows what it said."""
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(line, cwd=ROOT, stdout=told, stderr=told, start_new_session=True)

        def wait() -> int:
            code = process.wait(STEP_LIMIT_SEC)
            told.seek(0)
            print(told.read().decode(errors="replace"), flush=True)
            return code

        try:
            yield wait
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # npm, too, which is a child of it
                process.wait()


def check() -> int:
    """Install, and run everything that CI runs; return the first failing exit code.

    What keeps one processor busy runs beside what leaves another idle: the install of the agent CLIs, which needs only this
    Python, beside that of the project, and the types beside the unit tests. The measurements come last and don't count: a
    busy machine must not turn a ratio into a failure.
    """
    with beside(sys.executable, str(INSTALL_CLIS)) as installed:
        install()
        with beside(str(PYTHON), "-m", "mypy", ".") as typed:
            return first_fault(steps(installed, typed))


def steps(installed: Step, typed: Step) -> Iterator[tuple[str, Step]]:
    """Give the steps by title, in the order in which a fault shows soonest."""
    # A file's tests share machines, so files are what is spread; most of the time of these tests is waiting. Two more tries,
    # each of them named: they run real programs against clocks, and a fault fails always where a busy machine fails once.
    agents = ["tests/agents", "--require-real-clis", "-n", "4", "--dist", "loadscope", "--reruns", "2", "-rR"]
    # Half of the unit tests' time is waiting for processes (measured on two cores with two at once): four are at work there.
    unit = [*UNIT_TESTS, "-n", "4", "--reruns", "1", "-rR"]
    yield "format", running("ruff", "format", "--check", ".")
    yield "lint", running("ruff", "check", ".")
    yield "import rules", running(str(ENVIRONMENT / "bin" / "lint-imports"))
    yield "unit tests", running("pytest", *unit)
    yield "types", typed
    # Alone, so that what is killed is at work and not waiting for a processor.
    yield "processes killed at random", running("pytest", "tests/chaos", "-s")
    yield "agent CLIs", installed
    yield "tests on the agent CLIs", running("pytest", *agents)
    yield MEASUREMENTS, running("pytest", "tests/benchmarks", "-s")


def first_fault(steps: Iterable[tuple[str, Step]]) -> int:
    """Take the steps one after the other until one fails, and return its exit code; 0 if none does."""
    for title, step in steps:
        print(f"\n== {title}", flush=True)
        started = time.monotonic()
        code = step()
        print(f"== {title}: exit {code} after {time.monotonic() - started:.0f} s", flush=True)
        if code and title != MEASUREMENTS:
            return code
    return 0


def main() -> int:
    """Install, then do what the first word says."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0
    word, rest = sys.argv[1], sys.argv[2:]
    if word == "check":
        return check()
    install()
    if word in TOOLS:
        command = [str(PYTHON.parent / word), *rest]
    elif word == "test":
        command = [str(PYTHON), "-m", "pytest", *UNIT_TESTS, *rest]
    elif word == "agents":
        subprocess.run([str(PYTHON), str(INSTALL_CLIS)], check=True)
        command = [str(PYTHON), "-m", "pytest", "tests/agents", *rest]
    else:
        command = [str(PYTHON.parent / "bullswarm"), word, *rest]
    sys.stdout.flush()
    if word in ("test", "agents", *TOOLS):
        os.chdir(ROOT)
    # In place of this process: with Ctrl-C, subprocess.run kills what it started while that is still ending its workers.
    return os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
