"""A process that is killed at any moment of making, merging or removing a worktree: the next one goes on from there."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.trees.worktrees import contents, git, made, repository, untouched, worktree, write

from bullswarm_core.trees.worktree import Worktree, unmerged

# What changes something on a disk, or starts something that does.
MOMENTS = ("subprocess.Popen", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.symlink", "os.truncate")
LINES = b"".join(b"line %d\n" % number for number in range(20))
FILES = ["a.txt", "deep/made.txt", "gone.txt", "link"]


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Do ``work`` in a process that is killed right before its ``number``-th change; False when it came to its end first."""
    with warnings.catch_warnings():
        # Of a test runner's threads none holds what the child needs: it works on files, and never returns.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0, "the work itself failed"
        return os.WIFSIGNALED(status)
    seen = 0

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in MOMENTS or writes:
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    code = 1
    try:
        sys.addaudithook(count)
        work()
        code = 0
    finally:
        os._exit(code)


def each_kill(work: Callable[[], object], check: Callable[[], None], *, stride: int = 1) -> int:
    """Kill ``work`` before each of its changes in turn, calling ``check`` after each; return how many kills there were."""
    kills = 0
    while killed_at(1 + kills * stride, work):
        check()
        kills += 1
    check()
    return kills


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {"a.txt": LINES, "gone.txt": b"gone\n", "sub/b.txt": b"b\n", "old": b"old\n"}
    tree = repository(tmp_path / "project", files)
    write(tree, "untracked.txt", b"u\n")
    return tree


def fresh(tree: Worktree) -> None:
    tree.remove_if_spent()
    assert not tree.path.exists()


def test_a_making_that_was_cut_short_is_begun_again(tmp_path: Path, project: Path) -> None:
    tree, files, kept = worktree(tmp_path), contents(project), untouched(project)

    def check() -> None:
        assert unmerged(tree.run_folder) == [], "nobody has worked in it"
        tree.make(str(project))
        assert contents(tree.path) == files == contents(project) and untouched(project) == kept
        assert git(tree.path, "status", "--porcelain") == "" and tree.left() == ()
        assert git(project, "worktree", "list", "--porcelain").count("worktree ") == 2
        fresh(tree)
        assert not (project / ".git/worktrees").exists()

    assert each_kill(lambda: tree.make(str(project)), check, stride=3) > 6


def edit(tree: Path) -> None:
    write(tree, "a.txt", LINES.replace(b"line 3\n", b"theirs\n"))
    write(tree, "deep/made.txt", b"made\n").chmod(0o755)
    (tree / "gone.txt").unlink()
    (tree / "link").symlink_to("a.txt")


def test_a_merge_that_was_cut_short_is_finished(tmp_path: Path, project: Path) -> None:
    tree = made(tmp_path, project)
    edit(tree.path)
    write(project, "a.txt", LINES.replace(b"line 16\n", b"ours\n"))
    old, state = contents(project), tree.path.with_name("build-1.state")
    both = LINES.replace(b"line 16\n", b"ours\n").replace(b"line 3\n", b"theirs\n")
    new = {**old, "a.txt": ("file", both), "deep/made.txt": ("executable", b"made\n"), "link": ("link", b"a.txt")}
    del new["gone.txt"]
    shutil.copytree(state, tmp_path / "kept")

    def check() -> None:
        now = {path: found for path, found in contents(project).items() if not path.endswith(".tmp")}
        for path in {*old, *new}:
            assert now.get(path) in (old.get(path), new.get(path)), "each file is whole: the old one or the new one"
        merged = tree.merge_back(FILES)
        assert merged.conflicts == {} and merged.left == () and contents(project) == new
        shutil.rmtree(state)
        shutil.copytree(tmp_path / "kept", state)
        for path in {*old, *new}:
            (project / path).unlink(missing_ok=True)
        for path, (_, data) in old.items():
            write(project, path, data)

    assert each_kill(lambda: tree.merge_back(FILES), check, stride=2) > 10


def test_a_merge_that_was_cut_short_is_taken_back_when_a_file_has_changed_since(tmp_path: Path, project: Path) -> None:
    tree = made(tmp_path, project)
    edit(tree.path)
    old, state, taken_back = contents(project), tree.path.with_name("build-1.state"), 0
    shutil.copytree(state, tmp_path / "kept")

    def check() -> None:
        nonlocal taken_back
        begun = (state / "merge.json").exists()
        write(project, "link", b"mine\n") if not (project / "link").is_symlink() else None
        mine = (project / "link").is_file() and not (project / "link").is_symlink()
        merged = tree.merge_back(FILES)
        if mine:
            assert set(merged.conflicts) == {"link"} and contents(project) == {**old, "link": ("file", b"mine\n")}
            assert unmerged(tree.run_folder) == [tree.path]
            taken_back += begun
        shutil.rmtree(state)
        shutil.copytree(tmp_path / "kept", state)
        for path in {*old, *FILES}:
            (project / path).unlink(missing_ok=True)
        for path, (_, data) in old.items():
            write(project, path, data)

    each_kill(lambda: tree.merge_back(FILES), check, stride=2)
    assert taken_back > 1


def test_a_removal_that_was_cut_short_is_finished_and_loses_nothing(tmp_path: Path, project: Path) -> None:
    tree = worktree(tmp_path)
    tree.make(str(project))

    def check() -> None:
        assert unmerged(tree.run_folder) == []
        fresh(tree)
        assert not (project / ".git/worktrees").exists() and tree.path.with_name("build-1.state").exists() is False
        tree.make(str(project))

    assert each_kill(tree.remove_if_spent, check, stride=3) > 4
