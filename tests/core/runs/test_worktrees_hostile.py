"""What a worker put in place of its worktree's own files makes nobody wait, and nothing of its work is deleted for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.alarms import nobody_waits
from tests.core.runs.trees import made, repository, write

from bullswarm_core.errors import WorkerStartError
from bullswarm_core.runs.removal import worktrees_in


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
