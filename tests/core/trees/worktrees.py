"""Real git repositories for the tests of worktrees."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from bullswarm_core.trees.worktree import Worktree


def git(cwd: Path, *words: str, **more: str) -> str:
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "GIT_CONFIG_NOSYSTEM": "1", **more}
    names = {f"GIT_{role}_{what}": "tester" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(["git", *words], cwd=cwd, env=environ | names, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return os.fsdecode(done.stdout)


def repository(path: Path, files: dict[str, bytes] | None = None) -> Path:
    """Make a repository; with ``files`` it gets a commit of them."""
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "--quiet", "--initial-branch=main")
    for name, data in (files or {}).items():
        write(path, name, data)
    if files:
        git(path, "add", "--all")
        git(path, "commit", "--quiet", "-m", "first")
    return path


def write(tree: Path, name: str, data: bytes) -> Path:
    file = tree / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def worktree(tmp: Path, *, id_: str = "build-1", **environ: str) -> Worktree:
    folder = tmp / "state/workflows/wf-1"
    folder.mkdir(parents=True, exist_ok=True)
    mine = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "GIT_CONFIG_NOSYSTEM": "1"}
    return Worktree(folder, id_, {**mine, **environ})


def made(tmp: Path, tree: Path, **more: str) -> Worktree:
    found = worktree(tmp, **more)
    found.make(str(tree))
    return found


def contents(tree: Path) -> dict[str, tuple[str, bytes]]:
    """Everything below a tree but its .git: by path, what it is and its bytes."""
    found: dict[str, tuple[str, bytes]] = {}
    for full in tree.rglob("*"):
        path = full.relative_to(tree)
        if ".git" in path.parts:
            continue
        if full.is_symlink():
            found[str(path)] = ("link", os.fsencode(full.readlink()))
        elif full.is_file():
            mode = "executable" if full.stat().st_mode & 0o100 else "file"
            found[str(path)] = (mode, full.read_bytes())
    return found


def untouched(tree: Path) -> dict[str, str]:
    """What of a repository no worktree may change: everything in its .git but objects and worktrees, by digest."""
    top = tree / ".git"
    return {
        str(file.relative_to(top)): hashlib.sha256(file.read_bytes()).hexdigest() + str(file.stat().st_mtime_ns)
        for file in sorted(top.rglob("*"))
        if file.is_file() and file.relative_to(top).parts[0] not in ("objects", "worktrees")
    }
