"""Five worktrees of one repository at once: no lock of git's is met, nothing of the repository changes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.core.trees.worktrees import contents, git, made, repository, untouched


def test_five_at_once_from_a_branch_that_follows_a_remote(tmp_path: Path) -> None:
    remote = repository(tmp_path / "remote", {"a.txt": b"a\n", "sub/b.txt": b"b\n"})
    project = tmp_path / "project"
    git(tmp_path, "clone", "--quiet", str(remote), str(project))
    git(project, "checkout", "--quiet", "-b", "topic", "--track", "origin/HEAD")
    before, files = untouched(project), contents(project)
    with ThreadPoolExecutor(5) as pool:
        trees = list(pool.map(lambda number: made(tmp_path / f"run-{number}", project), range(5)))
    assert len({tree.path for tree in trees}) == 5
    for tree in trees:
        assert contents(tree.path) == files and git(tree.path, "status", "--porcelain") == ""
    assert untouched(project) == before, "no branch, no tracking, no record in the person's repository"
    with ThreadPoolExecutor(5) as pool:
        assert all(pool.map(lambda tree: tree.remove_if_spent(), trees))
    assert untouched(project) == before
    assert not list((project / ".git").rglob("*.lock"))
