"""Finding an executable the way a shell does, and saying why one that is there can't be run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from bullswarm_core._dataclasses import dataclass

PYTHON = "{python}"


@dataclass(frozen=True, slots=True)
class Binary:
    """Where a CLI's executable is. ``path`` None: nowhere; ``problem`` says why one that is there can't be used."""

    path: str | None = None
    problem: str | None = None


def find_binary(name: str, environ: Mapping[str, str]) -> Binary:
    """Look for ``name`` on the PATH of ``environ``.

    Relative PATH entries are passed over: what they find depends on the folder that somebody happens to stand in.
    """
    if name == PYTHON:
        return Binary(sys.executable)
    if name.startswith("/"):
        return _judge(name) or Binary()
    blocked = Binary()
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        if not folder.startswith("/"):
            continue
        found = _judge(f"{folder}/{name}")
        if found is None:
            continue
        if found.problem is None:
            return found
        if blocked.path is None:
            blocked = found
    return blocked


def _judge(path: str) -> Binary | None:
    """None for what isn't there; a path with a problem for what is there and can't be executed."""
    file = Path(path)
    try:
        if file.is_symlink() and not file.exists():
            return Binary(path, f"{path} is a link to {file.resolve()}, which does not exist")
        if not file.is_file():
            return None
    except OSError:
        return None
    if not os.access(path, os.X_OK):
        return Binary(path, f"{path} is not executable · chmod +x {path}")
    return Binary(path)
