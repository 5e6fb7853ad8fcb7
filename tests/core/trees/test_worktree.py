"""Worktrees of writing steps, on real repositories: what they are made of, what comes back, and what is never deleted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.trees.worktrees import contents, git, made, repository, untouched, worktree, write

from bullswarm_core.attempts.preflight import obstacles
from bullswarm_core.errors import WorkerStartError
from bullswarm_core.trees.worktree import remove_spent, unmerged

LINES = b"".join(b"line %d\n" % number for number in range(20))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with an edit, something staged, untracked and ignored."""
    tree = repository(
        tmp_path / "project",
        {
            "a.txt": LINES,
            "sub/b.txt": b"b\n",
            "gone.txt": b"gone\n",
            "run.sh": b"#!/bin/sh\n",
            ".gitignore": b"*.log\n",
        },
    )
    write(tree, "a.txt", LINES + b"edited\n")
    write(tree, "staged.txt", b"staged\n")
    git(tree, "add", "staged.txt")
    write(tree, "staged.txt", b"staged and edited\n")
    write(tree, "new/untracked.txt", b"untracked\n")
    write(tree, "noise.log", b"ignored\n")
    (tree / "gone.txt").unlink()
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("sub/b.txt")
    write(tree, "stash.txt", b"stashed\n")
    git(tree, "add", "stash.txt")
    git(tree, "stash", "push", "--quiet", "--", "stash.txt")
    return tree


def test_it_is_the_tree_as_it_stands_and_the_repository_keeps_every_byte(tmp_path: Path, project: Path) -> None:
    before, files = untouched(project), contents(project)
    tree = made(tmp_path, project)
    assert untouched(project) == before
    files.pop("noise.log")
    assert contents(tree.path) == files and contents(project) == files | {"noise.log": ("file", b"ignored\n")}
    assert git(tree.path, "status", "--porcelain") == ""
    assert git(tree.path, "log", "--format=%s").splitlines()[-1] == "first"
    assert tree.remove_if_spent() and not (project / ".git/worktrees").exists()
    assert untouched(project) == before and unmerged(tree.run_folder) == []


def test_names_and_bytes_come_through_as_they_are(tmp_path: Path) -> None:
    tree = repository(
        tmp_path / "project",
        {
            "new\nline": b"1",
            os.fsdecode(b"not-utf-8-\xff"): b"2",
            ' "quoted" ': b"3",
            "-dash": b"4",
            ":(glob)*": b"5",
            "ends.crlf": b"a\r\nb\n",
            ".gitattributes": b"*.crlf text eol=lf\n*.txt ident filter=evil working-tree-encoding=UTF-16\n",
            "id.txt": "$Id: mine$\n".encode("utf-16"),
        },
    )
    write(tree, "untracked\tand\nodd", b"6")
    git(tree, "config", "filter.evil.clean", f"touch {tmp_path}/ran; cat")
    git(tree, "config", "filter.evil.smudge", f"touch {tmp_path}/ran; cat")
    git(tree, "config", "core.fsmonitor", f"touch {tmp_path}/ran")
    git(tree, "config", "core.autocrlf", "true")
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-commit"):
        write(tree, f".git/hooks/{hook}", b"#!/bin/sh\ntouch " + os.fsencode(tmp_path) + b"/ran\n").chmod(0o755)
    files = contents(tree)
    assert contents(made(tmp_path, tree).path) == files
    assert not (tmp_path / "ran").exists()


def test_a_merge_brings_back_declared_files_only_and_the_rest_stays(tmp_path: Path, project: Path) -> None:
    tree = made(tmp_path, project)
    before = untouched(project)
    write(tree.path, "a.txt", LINES.replace(b"line 3\n", b"theirs 3\n") + b"edited\n")
    write(tree.path, "deep/er/made.txt", b"made\n").chmod(0o755)
    write(tree.path, "other.txt", b"not declared\n")
    write(tree.path, "__pycache__/x.pyc", b"cache")
    (tree.path / "sub/b.txt").unlink()
    (tree.path / "run.sh").chmod(0o644)
    write(project, "a.txt", LINES.replace(b"line 16\n", b"ours 16\n") + b"edited\n")
    files = ["a.txt", "deep/er/made.txt", "sub/b.txt", "run.sh", "link", "never-made.txt"]
    merged = tree.merge_back(files)
    assert merged.conflicts == {} and sorted(merged.merged) == ["a.txt", "deep/er/made.txt", "run.sh", "sub/b.txt"]
    assert merged.left == ("other.txt",)
    found = contents(project)
    both = LINES.replace(b"line 16\n", b"ours 16\n").replace(b"line 3\n", b"theirs 3\n") + b"edited\n"
    assert found["a.txt"] == ("file", both) and found["deep/er/made.txt"] == ("executable", b"made\n")
    assert found["run.sh"][0] == "file" and "sub/b.txt" not in found and not (project / "sub").exists()
    assert "other.txt" not in found and untouched(project) == before
    assert tree.merge_back(files) == merged, "the same again, however often it is asked"
    assert not tree.remove_if_spent() and unmerged(tree.run_folder) == [tree.path]
    (tree.path / "other.txt").unlink()
    assert remove_spent(tree.run_folder) == [] and not tree.path.exists()
    assert git(project, "worktree", "list", "--porcelain").count("worktree ") == 1


CONFLICTS = {
    "both changed the same line": (b"mine\n", b"theirs\n", "both changed it, in the same place"),
    "deleted here": (None, b"theirs\n", "you deleted it, and the worker changed it"),
    "deleted there": (b"mine\n", None, "you changed it, and the worker deleted it"),
    "binary": (b"\0mine", b"\0theirs", "both changed it"),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_a_conflict_leaves_every_file_of_the_step_alone(tmp_path: Path, case: str) -> None:
    mine, theirs, why = CONFLICTS[case]
    project = repository(tmp_path / "project", {"a.txt": b"base\n", "b.txt": b"b\n"})
    tree = made(tmp_path, project)
    for place, data in ((project, mine), (tree.path, theirs)):
        (place / "a.txt").unlink() if data is None else write(place, "a.txt", data)
    write(tree.path, "b.txt", b"better\n")
    files = contents(project)
    merged = tree.merge_back(["b.txt", "a.txt"])
    assert contents(project) == files and set(merged.conflicts) == {"a.txt"} and why in merged.conflicts["a.txt"]
    assert not tree.remove_if_spent() and set(merged.left) == {"a.txt", "b.txt"}
    assert unmerged(tree.run_folder) == [tree.path]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"dir/a.txt": b"a\n", "b.txt": b"b\n"})
    outside = repository(tmp_path / "outside", {"a.txt": b"a\n"})
    tree = made(tmp_path, project)
    write(tree.path, "dir/a.txt", b"theirs\n")
    (project / "dir/a.txt").unlink()
    (project / "dir").rmdir()
    (project / "dir").symlink_to(outside)
    assert tree.merge_back(["dir/a.txt"]).conflicts == {"dir/a.txt": "it lies behind a symbolic link"}
    assert (outside / "a.txt").read_bytes() == b"a\n"
    (tree.path / "b.txt").unlink()


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside"])
def test_a_link_out_of_the_tree_is_not_merged(tmp_path: Path, target: str) -> None:
    project = repository(tmp_path / "project", {"dir/a.txt": b"a\n"})
    tree = made(tmp_path, project)
    (tree.path / "dir/a.txt").unlink()
    (tree.path / "dir/a.txt").symlink_to(target)
    (tree.path / "dir/inside").symlink_to("a.txt")
    assert "leads out" in tree.merge_back(["dir/a.txt", "dir/inside"]).conflicts["dir/a.txt"]
    assert contents(project) == {"dir/a.txt": ("file", b"a\n")}


def test_before_a_first_commit_and_in_a_folder_of_its_own(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    write(project, "part/a.txt", b"a\n")
    before = untouched(project)
    tree = made(tmp_path, project / "part")
    write(tree.path, "part/a.txt", b"theirs\n")
    assert tree.merge_back(["a.txt"]).merged == ("part/a.txt",)
    assert (project / "part/a.txt").read_bytes() == b"theirs\n" and untouched(project) == before
    assert tree.remove_if_spent()


def test_a_sparse_checkout_stays_sparse_and_loses_nothing(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"in/a.txt": b"a\n", "out/b.txt": b"b\n"})
    git(project, "sparse-checkout", "set", "--sparse-index", "in")
    before, files = untouched(project), contents(project)
    tree = made(tmp_path, project)
    assert untouched(project) == before and contents(tree.path) == files == {"in/a.txt": ("file", b"a\n")}
    assert "out/b.txt" in git(tree.path, "ls-tree", "-r", "--name-only", "HEAD")
    assert git(tree.path, "status", "--porcelain") == "" and tree.remove_if_spent()


def test_inside_another_worktree_whose_git_is_a_file(tmp_path: Path) -> None:
    main = repository(tmp_path / "main", {"a.txt": b"a\n"})
    git(main, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    write(tmp_path / "side", "a.txt", b"side\n")
    tree = made(tmp_path, tmp_path / "side")
    assert contents(tree.path) == {"a.txt": ("file", b"side\n")}
    write(tree.path, "a.txt", b"theirs\n")
    assert tree.merge_back(["a.txt"]).conflicts == {} and (tmp_path / "side/a.txt").read_bytes() == b"theirs\n"
    assert (main / "a.txt").read_bytes() == b"a\n" and tree.remove_if_spent()


def test_repositories_inside_are_left_out_and_submodules_are_refused(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"a.txt": b"a\n"})
    repository(project / "nested", {"n.txt": b"n\n"})
    assert "nested/n.txt" not in contents(made(tmp_path, project).path)
    told = obstacles(str(project), ["nested/n.txt"], home=tmp_path / "state", environ=os.environ)
    assert told == [
        "nested/n.txt lies in another repository (nested/), which a worktree would not hold; leave --isolation out"
    ]
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(project / "nested"), "module")
    (submodule,) = obstacles(str(project), ["a.txt"], home=tmp_path / "state", environ=os.environ)
    assert submodule == (
        "the submodules module are checked out, and a worktree would not hold their files; leave --isolation out, and say"
        f" --concurrency 1 to have the steps work in {project} itself, one after the other"
    )


def test_a_merge_in_progress_is_taken_as_the_files_are(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"a.txt": b"a\n"})
    git(project, "checkout", "--quiet", "-b", "side")
    write(project, "a.txt", b"side\n")
    git(project, "commit", "--quiet", "-am", "side")
    git(project, "checkout", "--quiet", "main")
    write(project, "a.txt", b"main\n")
    git(project, "commit", "--quiet", "-am", "main")
    with pytest.raises(AssertionError):
        git(project, "merge", "--quiet", "side")
    before, files = untouched(project), contents(project)
    assert b"<<<<<<<" in files["a.txt"][1]
    assert contents(made(tmp_path, project).path) == files and untouched(project) == before


@pytest.mark.parametrize("cwd", [".", "part"])
def test_what_stands_in_the_way_is_told_before_anything_is_made(tmp_path: Path, cwd: str) -> None:
    project = repository(tmp_path / "project", {"part/a.txt": b"a\n", ".gitignore": b"ignored\n"})
    (project / "link").symlink_to("part")
    ways = {
        "link/a.txt": "behind the symbolic link link",
        "part": "is a folder",
        ".git/config": "outside",
        "../x": "outside",
    }
    files = list(ways) if cwd == "." else ["../" + name for name in ways]
    told = obstacles(str(project / cwd), files, home=tmp_path / "state", environ=os.environ)
    assert len(told) == 4 and all(word in line for word, line in zip(ways.values(), told, strict=True))
    assert obstacles(str(project / cwd), ["fine.txt"], home=tmp_path / "state", environ=os.environ) == []
    (told_one,) = obstacles(str(tmp_path), ["fine.txt"], home=tmp_path / "state", environ=os.environ)
    assert "needs a git working tree" in told_one
    (project / "ignored").mkdir()
    (ignored,) = obstacles(str(project / "ignored"), [], home=tmp_path / "state", environ=os.environ)
    assert "git ignores" in ignored
    write(project, "state/x", b"x")
    (own,) = obstacles(str(project), [], home=project / "state", environ=os.environ)
    assert "own state" in own


def stage_and_delete(tree: Path) -> None:
    write(tree, "x.txt", b"x")
    git(tree, "add", "x.txt")
    (tree / "x.txt").unlink()


def commit(tree: Path, *, take_back: bool = False) -> None:
    write(tree, "a.txt", b"x")
    git(tree, "commit", "-qam", "x")
    if take_back:
        git(tree, "reset", "-q", "--hard", "HEAD~1")


def point_elsewhere(tree: Path) -> None:
    (tree / ".git").unlink()
    write(tree, ".git", b"gitdir: /nowhere\n")


LOST: dict[str, Callable[[Path], object]] = {
    "an untracked file": lambda tree: write(tree, "x.txt", b"x"),
    "an edit": lambda tree: write(tree, "a.txt", b"x"),
    "a deletion": lambda tree: (tree / "a.txt").unlink(),
    "a mode": lambda tree: (tree / "a.txt").chmod(0o755),
    "an ignored file": lambda tree: write(tree, "keys.secret", b"x"),
    "a commit": commit,
    "a commit that was taken back": lambda tree: commit(tree, take_back=True),
    "something staged and gone": stage_and_delete,
    "a repository": lambda tree: repository(tree / "own", {"x": b"x"}),
    "another .git": point_elsewhere,
}


@pytest.mark.parametrize("what", LOST)
def test_a_worktree_with_anything_of_its_own_is_never_removed(tmp_path: Path, what: str) -> None:
    project = repository(tmp_path / "project", {"a.txt": b"a\n", ".gitignore": b"*.secret\nbuild/\n"})
    tree = made(tmp_path, project)
    LOST[what](tree.path)
    assert not tree.remove_if_spent() and tree.path.is_dir() and unmerged(tree.run_folder) == [tree.path]
    assert tree.left() and remove_spent(tree.run_folder) == [tree.path]


def test_a_worktree_without_its_record_is_kept(tmp_path: Path) -> None:
    tree = made(tmp_path, repository(tmp_path / "project", {"a.txt": b"a\n"}))
    (tree.run_folder / "workspaces/build-1.state/worktree.json").write_text("{")
    assert unmerged(tree.run_folder) == [tree.path] and not tree.remove_if_spent()
    with pytest.raises(WorkerStartError, match="something else is in its place"):
        tree.make(str(tmp_path / "project"))


def test_another_folder_in_its_place_is_noticed(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"a.txt": b"a\n"})
    tree = made(tmp_path, project)
    tree.path.rename(tmp_path / "elsewhere")
    repository(tree.path, {"a.txt": b"evil\n"})
    with pytest.raises(WorkerStartError, match="something else is in its place"):
        tree.merge_back(["a.txt"])
    assert (project / "a.txt").read_bytes() == b"a\n"


def test_a_repository_that_is_gone_takes_no_work_with_it(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"a.txt": b"a\n"})
    tree = made(tmp_path, project)
    write(tree.path, "b.txt", b"b\n")
    project.rename(tmp_path / "moved")
    assert tree.left() == ("b.txt",)
    (tree.path / "b.txt").unlink()
    assert tree.remove_if_spent()


def test_sha256_repositories_work(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "--quiet", "--object-format=sha256")
    write(project, "a.txt", LINES)
    tree = made(tmp_path, project)
    write(tree.path, "a.txt", LINES.replace(b"line 3\n", b"theirs\n"))
    write(project, "a.txt", LINES.replace(b"line 13\n", b"ours\n"))
    assert tree.merge_back(["a.txt"]).conflicts == {}
    assert b"ours\n" in (project / "a.txt").read_bytes() and b"theirs\n" in (project / "a.txt").read_bytes()
    assert tree.remove_if_spent()


def test_two_of_one_name_and_a_second_make_do_not_meet(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", {"a.txt": b"a\n"})
    first, second = made(tmp_path / "one", project), made(tmp_path / "two", project)
    write(first.path, "a.txt", b"theirs\n")
    first.make(str(project))
    assert (first.path / "a.txt").read_bytes() == b"theirs\n"
    assert second.remove_if_spent() and first.left() == ("a.txt",)
    assert git(first.path, "status", "--porcelain") == " M a.txt\n"
    assert worktree(tmp_path / "three").remove_if_spent(), "one that was never made is gone"
