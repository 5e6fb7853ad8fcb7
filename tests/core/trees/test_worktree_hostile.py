"""What a worker put in place of its worktree's own files makes nobody wait, and nothing of its work is deleted for it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.alarms import nobody_waits
from tests.core.trees.worktrees import git, made, repository, write

from bullswarm_core.attempts.preflight import obstacles
from bullswarm_core.errors import WorkerStartError
from bullswarm_core.kernel.removal import worktrees_in


def test_a_pipe_in_place_of_its_link_to_git_is_something_else(tmp_path: Path) -> None:
    tree = made(tmp_path, repository(tmp_path / "project", {"a.txt": b"a\n"}))
    write(tree.path, "a.txt", b"worked\n")
    (tree.path / ".git").unlink()
    os.mkfifo(tree.path / ".git")
    with nobody_waits("the .git of a worktree"):
        assert ".git" in tree.left() and not tree.remove_if_spent()
        with pytest.raises(WorkerStartError, match="something else is in its place"):
            tree.merge_back(("a.txt",))
        assert worktrees_in(tree.run_folder) == []
    assert (tree.path / "a.txt").read_bytes() == b"worked\n"


def test_hooks_from_settings_are_silent_while_the_worktree_is_made(tmp_path: Path) -> None:
    """Which git of this machine runs them or not: what holds for the one command that changes the repository is asked back."""
    project = repository(tmp_path / "project", {"a.txt": b"a\n"})
    for key, value in (("command", "touch ran"), ("event", "post-checkout"), ("enabled", "true")):
        git(project, "config", f"hook.e.v=il.{key}", value)
    real = shutil.which("git")
    said = "".join(f'"{real}" config hook.e.v=il.{key} >> "{tmp_path}/asked"; ' for key in ("command", "enabled"))
    wrapper = write(
        tmp_path, "bin/git", f'#!/bin/sh\ncase "$*" in *"worktree add"*) {said};; esac\nexec "{real}" "$@"\n'.encode()
    )
    wrapper.chmod(0o755)
    tree = made(tmp_path, project, PATH=f"{wrapper.parent}:{os.environ['PATH']}")
    assert tree.is_ready and (tmp_path / "asked").read_text().split() == ["true", "false"]


def test_a_repository_cannot_have_another_folder_copied(tmp_path: Path) -> None:
    project = repository(tmp_path / "home/project", {"a.txt": b"a\n"})
    (tmp_path / "home/secret").write_text("hidden")
    git(project, "config", "core.worktree", str(tmp_path / "home"))
    (why,) = obstacles(str(project), ["a.txt"], home=tmp_path / "state", environ=os.environ)
    assert "core.worktree" in why and str(tmp_path / "home") in why
