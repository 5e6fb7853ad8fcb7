"""Budget of a hook and of the status line: at most 30 ms of CPU and 3 x bare Python, on the event that costs most."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.test_startup import paired_median
from tests.hooks.state import hook_state_document, write_state

HOOK = "import sys; from bullswarm_hooks.main import main; sys.exit(main())"
LINE = "import sys; from bullswarm_server.cli.main import main; sys.argv[0] = 'bullswarm'; sys.exit(main())"
MOST_CPU_SEC, MOST_RATIO = 0.030, 3.0
# Other work on the machine can only make a run slower: the fastest of a side-by-side series is the measurement.
RUNS = 15
FORBIDDEN = (
    "argparse", "asyncio", "bullswarm_core.errors", "bullswarm_core.store.home", "dataclasses", "datetime",
    "importlib.metadata", "inspect",
    "logging", "pathlib", "pydantic", "psutil", "sqlite3", "subprocess", "typing",
)  # fmt: skip
COMMAND = "cd /srv/app && bullswarm run --lane build --pool claude-code 'fix the parser' > out.txt"
VERDICT = {"schemaVersion": "bullswarm.verdict.v1", "runId": "wf-1", "shortId": "abc123", "ok": True, "why": "fine"}
STATUS = {
    "session_id": "s",
    "rate_limits": {
        "five_hour": {"used_percentage": 41, "resets_at": time.time() + 3600},
        "seven_day": {"used_percentage": 62, "resets_at": time.time() + 200_000},
    },
}
EVENTS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "session start": (["claude", "SessionStart"], {"session_id": "s", "cwd": "/srv/app", "source": "startup"}),
    "other command": (["claude", "PreToolUse"], {"tool_name": "Bash", "tool_input": {"command": "ls -l"}}),
    "own pin": (["claude", "PreToolUse"], {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": COMMAND}}),
    "subagent": (
        ["claude", "PreToolUse"],
        {"session_id": "s", "tool_name": "Agent", "tool_input": {"prompt": "look", "subagent_type": "Explore"}},
    ),
    "verdict": (
        ["codex", "PostToolUse"],
        {"tool_name": "Bash", "tool_input": {"command": "bullswarm run x"}, "tool_response": json.dumps(VERDICT)},
    ),
}


@pytest.fixture
def environment(own_home: Path) -> dict[str, str]:
    write_state(own_home / ".bullswarm", hook_state_document(pools=8))
    return {
        "HOME": str(own_home),
        "BULLSWARM_HOME": str(own_home / ".bullswarm"),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path and "site-packages" not in path),
    }


def cpu_seconds(environment: dict[str, str], code: str, words: list[str], given: bytes) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, input=given, stdout=subprocess.DEVNULL, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(environment: dict[str, str], what: str, code: str, words: list[str], given: bytes) -> None:
    pairs = [
        (cpu_seconds(environment, "pass", [], b""), cpu_seconds(environment, code, words, given)) for _ in range(RUNS)
    ]
    bare, ours = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    report = f"{what}: {ours * 1000:.1f} ms CPU, {ours / bare:.2f} x bare Python ({bare * 1000:.1f} ms)"
    report += f", median of pairs {paired_median(pairs):.2f} x"
    sys.stderr.write(report + "\n")
    assert ours <= MOST_RATIO * bare, report
    # The absolute limit was set on a machine where bare Python takes 11 ms: a slower one gets as much more.
    assert ours <= MOST_CPU_SEC * max(1.0, bare / 0.011), report


@pytest.mark.parametrize("what", sorted(EVENTS))
def test_a_hook_is_cheap(environment: dict[str, str], what: str) -> None:
    words, payload = EVENTS[what]
    measure(environment, f"hook, {what}", HOOK, words, json.dumps({"hook_event_name": words[1], **payload}).encode())


def test_the_status_line_is_cheap(environment: dict[str, str]) -> None:
    given = json.dumps(STATUS).encode()
    measure(environment, "statusline", LINE, ["statusline"], given)
    measure(environment, "statusline that stores a reading", f"{FORGET}; {LINE}", ["statusline"], given)
    assert Path(environment["BULLSWARM_HOME"], "meters/claude-code.json").exists()


FORGET = "import os; p = os.environ['BULLSWARM_HOME'] + '/meters/claude-code.json'; os.path.exists(p) and os.unlink(p)"


@pytest.mark.parametrize("what", [*sorted(EVENTS), "statusline"])
def test_a_hook_imports_nothing_slow(environment: dict[str, str], what: str) -> None:
    words, payload = EVENTS.get(what, (["statusline"], STATUS))
    code = LINE if what == "statusline" else HOOK
    tell = "atexit.register(lambda: sys.stderr.write('MODULES' + json.dumps([*sys.modules])))"
    listing = f"import atexit, json, sys\n{tell}\n{code}"
    given = json.dumps({"hook_event_name": words[-1], **payload})
    done = subprocess.run(
        [sys.executable, "-c", listing, *words],
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    modules = json.loads(done.stderr.rpartition("MODULES")[2])
    assert "bullswarm_core.fast.hook_state" in modules or what == "other command"
    # The interpreter itself imports some of them where it was installed with start-up files of its own.
    own = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [name for name in FORBIDDEN if name in modules and name not in own.stdout.split()] == []
