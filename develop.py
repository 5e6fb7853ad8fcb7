#!/usr/bin/env python3
"""Install this checkout into a virtual environment of its own and use it; needs nothing but Python 3.11 and git.

python3 develop.py run …      install if needed, then `bullswarm run …` (any other verb works the same way)
python3 develop.py test …     install if needed, then the unit tests
python3 develop.py agents …   install the pinned agent CLIs (needs Node >= 20 and npm), then the tests on them
python3 develop.py check      everything that CI runs
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
MARKER = ENVIRONMENT / "bullswarm-installed"
UNIT_TESTS = ["--ignore=tests/agents", "--ignore=tests/benchmarks", "--ignore=tests/chaos"]
MEASUREMENTS = "measurements"
# More than this and a hung test would eat CI's time without a word.
STEP_LIMIT_SEC = 25 * 60


def wanted() -> str:
    """Name the state that the environment must be in: this Python and this pyproject.toml."""
    return f"{sys.version_info[:2]} {hashlib.sha256((ROOT / 'pyproject.toml').read_bytes()).hexdigest()}"


def install() -> None:
    """Create ``.venv`` and install the project with its tests' tools, once for each state of pyproject.toml."""
    if sys.version_info < (3, 11):
        sys.exit(f"bullswarm needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    if PYTHON.exists() and MARKER.exists() and MARKER.read_text() == wanted():
        return
    print("installing into .venv …", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # Dependency groups came with pip 25.1; the pip of a fresh Python 3.11 is older.
    subprocess.run([*pip, "install", "--upgrade", "pip>=25.1"], check=True)
    subprocess.run([*pip, "install", "--editable", str(ROOT), "--group", f"{ROOT / 'pyproject.toml'}:dev"], check=True)
    MARKER.write_text(wanted())


def check() -> int:
    """Run everything that CI runs, in the order in which a fault shows soonest; return the first failing exit code.

    The measurements come last and don't count: a busy machine must not turn a ratio into a failure.
    """
    # A file's tests share machines, so files are what is spread; most of the time of these tests is waiting. Two more tries,
    # each of them named: they run real programs against clocks, and a fault fails always where a busy machine fails once.
    agents = ["tests/agents", "--require-real-clis", "-n", "3", "--dist", "loadscope", "--reruns", "2", "-rR"]
    steps: list[tuple[str, list[str]]] = [
        ("format", ["ruff", "format", "--check", "."]),
        ("lint", ["ruff", "check", "."]),
        ("types", ["mypy", "."]),
        ("import rules", [str(ENVIRONMENT / "bin" / "lint-imports")]),
        ("unit tests", ["pytest", *UNIT_TESTS, "-n", "2", "--reruns", "1", "-rR"]),
        # Alone, so that what is killed is at work and not waiting for a processor.
        ("processes killed at random", ["pytest", "tests/chaos", "-s"]),
        ("agent CLIs", [str(ROOT / "tests" / "agents" / "install.py")]),
        ("tests on the agent CLIs", ["pytest", *agents]),
        (MEASUREMENTS, ["pytest", "tests/benchmarks", "-s"]),
    ]
    for title, command in steps:
        print(f"\n== {title}", flush=True)
        started = time.monotonic()
        line = [str(PYTHON), "-m", *command] if "/" not in command[0] else [str(PYTHON), *command]
        code = subprocess.run(line, cwd=ROOT, timeout=STEP_LIMIT_SEC).returncode
        print(f"== {title}: exit {code} after {time.monotonic() - started:.0f} s", flush=True)
        if code and title != MEASUREMENTS:
            return code
    return 0


def main() -> int:
    """Install, then do what the first word says."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0
    install()
    word, rest = sys.argv[1], sys.argv[2:]
    if word == "check":
        return check()
    if word == "test":
        command = [str(PYTHON), "-m", "pytest", *UNIT_TESTS, *rest]
    elif word == "agents":
        subprocess.run([str(PYTHON), str(ROOT / "tests" / "agents" / "install.py")], check=True)
        command = [str(PYTHON), "-m", "pytest", "tests/agents", *rest]
    else:
        command = [str(PYTHON.parent / "bullswarm"), word, *rest]
    sys.stdout.flush()
    if word in ("test", "agents"):
        os.chdir(ROOT)
    # In place of this process: with Ctrl-C, subprocess.run kills what it started while that is still ending its workers.
    return os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
