"""A hook reads the cache alone: it loads nothing with which it could ask anybody on a network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NETWORK = {"socket", "_socket", "ssl", "http.client", "urllib.request", "httpx", "anyio", "asyncio"}
CODE = (
    "import sys, atexit\n"
    "atexit.register(lambda: sys.stderr.write(' '.join(sys.modules)))\n"
    "from bullswarm_hooks.main import main; sys.exit(main())"
)
EVENTS: dict[str, dict[str, Any]] = {
    "SessionStart": {"session_id": "s", "cwd": "/srv/app", "source": "startup"},
    "PreToolUse": {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "bullswarm run --pool codex x"}},
    "PostToolUse": {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "bullswarm run x"},
                    "tool_response": '{"schemaVersion":"bullswarm.verdict.v1","ok":true,"why":"fine","runId":"wf-1"}'},
    "UserPromptSubmit": {"session_id": "s", "prompt": "use bullswarm"},
}  # fmt: skip


@pytest.mark.parametrize("event", sorted(EVENTS))
def test_no_event_loads_a_network_module(event: str, own_home: Path) -> None:
    environ = {"HOME": str(own_home), "PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    given = json.dumps({"hook_event_name": event, **EVENTS[event]})
    done = subprocess.run(
        [sys.executable, "-c", CODE, "claude", event], env=environ, input=given, capture_output=True, text=True, check=True
    )  # fmt: skip
    loaded = set(done.stderr.split())
    assert "bullswarm_hooks.main" in loaded
    assert not loaded & NETWORK
