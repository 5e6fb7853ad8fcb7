"""A home's ``cache/hook-state.json`` for tests, and the hook as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.fast.moments import iso_of


def pool(name: str, **changes: Any) -> dict[str, Any]:
    """One pool as the server writes it down: ready, with room in both windows."""
    now = time.time()
    return {
        "pool": name,
        "poolLabel": name,
        "provider": name.partition(":")[0],
        "configDir": None,
        "enabled": True,
        "state": "ready",
        "metered": True,
        "lastResort": False,
        "surplus": 12.5,
        "windows": [
            {"kind": "5h", "usedPct": 20.0, "resetsAt": iso_of(now + 3600)},
            {"kind": "weekly", "usedPct": 40.0, "resetsAt": iso_of(now + 200_000)},
        ],
        **changes,
    }


def hook_state_document(*, pools: int = 2, **changes: Any) -> dict[str, Any]:
    """The state of a machine with the default Claude account, Codex, and others up to ``pools``."""
    listed = [
        pool("claude-code", poolLabel="me", configDir="~/.claude"),
        pool("codex", poolLabel="cx", surplus=23.0, configDir="~/.codex"),
        *(pool(f"other{number}") for number in range(pools - 2)),
    ]
    return {
        "schemaVersion": "bullswarm.hook-state.v1",
        "at": iso_of(time.time()),
        "delegation": False,
        "accounts": {
            "claude-code": {"variable": "CLAUDE_CONFIG_DIR", "default": "~/.claude"},
            "codex": {"variable": "CODEX_HOME", "default": "~/.codex"},
        },
        "pools": listed,
        "runs": [],
        **changes,
    }


def write_state(home: Path, document: Mapping[str, Any]) -> Path:
    """Write the state into a home; `~` in a configuration folder is the folder above it."""
    text = json.dumps(document).replace('"~/', f'"{home.parent}/')
    file = home / "cache" / "hook-state.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def hook(*words: str, given: bytes, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run ``bullswarm-hook`` as an agent does."""
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, "-c", "import sys; from bullswarm_hooks.main import main; sys.exit(main())", *words],
        input=given,
        env={**os.environ, "PYTHONPATH": paths, **(environ or {})},
        capture_output=True,
        timeout=60,
        check=False,
    )
