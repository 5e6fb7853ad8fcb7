"""A provider of the test's own: a shell script that plays an agent CLI with plain output."""

import json
import os
import sys
from pathlib import Path

from bullswarm_core.pools import LANES


def install_fake_worker(home: Path, bin_folder: Path, script: str, *, name: str = "fake") -> dict[str, str]:
    """Write a local provider whose binary runs ``script`` with the task on standard input; return an environment for it."""
    state = home / ".bullswarm"
    folder = state / "providers" / name
    folder.mkdir(parents=True, exist_ok=True)
    connector = {
        "schemaVersion": "bullswarm.connector.v1",
        "name": name,
        "binary": f"{name}-agent",
        "launch": {
            "prompt": {"way": "stdin"},
            "lanes": {lane: {"workspace": {"confinement": "bullswarm"}} for lane in LANES},
        },
        "signIn": {"required": False},
    }
    (folder / "connector.json").write_text(json.dumps(connector), encoding="utf-8")
    bin_folder.mkdir(parents=True, exist_ok=True)
    binary = bin_folder / f"{name}-agent"
    binary.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    binary.chmod(0o755)
    return {
        "PATH": f"{bin_folder}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "BULLSWARM_HOME": str(state),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
