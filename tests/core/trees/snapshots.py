"""Real working trees to change and to look at."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bullswarm_core.process.child import run_child
from bullswarm_core.trees.snapshot import DeliverableFacts, TreeSnapshot, compare, take_snapshot

IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    environ = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME") or k.startswith("GIT_CONFIG")}
    done = subprocess.run(
        ["git", *IDENTITY, *words], cwd=folder, env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def make_repository(folder: Path) -> Path:
    """A repository with one commit, a dirty file and an untracked one."""
    (folder / "src").mkdir(parents=True)
    (folder / "src/main.py").write_text("print(1)\n")
    (folder / "dirty.txt").write_text("clean\n")
    (folder / ".gitignore").write_text("secret/\n*.log\nbuild/\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    (folder / "dirty.txt").write_text("the person's own edit\n")
    (folder / "untracked.txt").write_text("the person's own file\n")
    return folder


def snapshot(folder: Path, since: TreeSnapshot | None = None, **options: Any) -> TreeSnapshot:
    return take_snapshot(str(folder), run=run_child, environ=os.environ, since=since, **options)


def change(folder: Path, work: Callable[[], object], **options: Any) -> DeliverableFacts:
    before = snapshot(folder, **options)
    work()
    return compare(before, snapshot(folder, before, **options))
