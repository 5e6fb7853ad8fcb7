"""The diff of an attempt is taken once, when it ends, and runs nothing of the repository."""

from __future__ import annotations

import os
from pathlib import Path

from tests.core.trees.snapshots import git, make_repository, snapshot

from bullswarm_core.attempts.conclude import DiffSnapshot, freeze_diff
from bullswarm_core.process.child import run_child
from bullswarm_core.runs.run_files import AttemptFiles, RunFolder
from bullswarm_core.store.home import Home, write_json
from bullswarm_core.trees.snapshot import DeliverableFacts, compare
from bullswarm_core.wire import to_wire


class Attempt:
    """An attempt in a tree: what was before it is on record, as a kernel keeps it."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.files: AttemptFiles = RunFolder.of(Home(tree.parent / "home"), "wf-1").attempt("fix", 1)
        self.files.folder.mkdir(parents=True)
        self.before = snapshot(tree)
        write_json(self.files.before, to_wire(self.before))

    def end(self) -> DiffSnapshot:
        facts: DeliverableFacts = compare(self.before, snapshot(self.tree, self.before))
        return freeze_diff(self.files, facts, cwd=str(self.tree), run=run_child, environ=os.environ)

    @property
    def patch(self) -> str:
        return self.files.diff.read_text()


def test_edits_new_files_and_deletions_are_shown(tmp_path: Path) -> None:
    tree = make_repository(tmp_path / "tree")
    attempt = Attempt(tree)
    (tree / "src/main.py").write_text("print(1)\nprint(2)\n")
    (tree / "new.txt").write_text("a\nb\n")
    (tree / "raw.bin").write_bytes(b"\0\1\2")
    (tree / "untracked.txt").write_text("the worker's\n")
    (tree / ".gitignore").unlink()
    frozen = attempt.end()
    assert frozen.file == str(attempt.files.diff)
    assert frozen.stat == (
        ".gitignore +0 -3", "new.txt new +2", "raw.bin new", "src/main.py +1 -0", "untracked.txt changed",
    )  # fmt: skip
    assert "+print(2)\n" in attempt.patch and "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n" in attempt.patch
    assert "dirty.txt" not in attempt.patch and "the worker's" not in attempt.patch


def test_the_patch_can_be_applied(tmp_path: Path) -> None:
    tree = make_repository(tmp_path / "tree")
    git(tree, "stash", "-u", "-q")
    git(tree, "clone", "-q", ".", str(tmp_path / "clone"))
    attempt = Attempt(tree)
    (tree / "src/main.py").write_text("print(3)\n")
    (tree / "new.txt").write_text("a\n")
    attempt.end()
    git(tmp_path / "clone", "apply", str(attempt.files.diff))
    assert (tmp_path / "clone/new.txt").read_text() == "a\n"
    assert (tmp_path / "clone/src/main.py").read_text() == "print(3)\n"


def test_commits_of_the_attempt_are_in_it(tmp_path: Path) -> None:
    tree = make_repository(tmp_path / "tree")
    attempt = Attempt(tree)
    (tree / "src/main.py").write_text("print(4)\n")
    git(tree, "commit", "-qam", "by the worker")
    assert "src/main.py +1 -1" in attempt.end().stat
    assert "+print(4)" in attempt.patch


def test_it_stays_as_it_was(tmp_path: Path) -> None:
    tree = make_repository(tmp_path / "tree")
    attempt = Attempt(tree)
    (tree / "src/main.py").write_text("print(5)\n")
    attempt.end()
    (tree / "src/main.py").write_text("somebody else's\n")
    assert "somebody" not in attempt.patch


def test_outside_of_git_new_files_are_shown_and_others_named(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "old.txt").write_text("old\n")
    attempt = Attempt(tree)
    (tree / "old.txt").write_text("newer\n")
    (tree / "new.txt").write_text("a\n")
    assert attempt.end().stat == ("new.txt new +1", "old.txt changed")
    assert attempt.patch.count("diff --git") == 1


def test_nothing_changed_is_no_diff(tmp_path: Path) -> None:
    attempt = Attempt(make_repository(tmp_path / "tree"))
    assert attempt.end() == DiffSnapshot()
    assert not attempt.files.diff.exists()


def test_no_link_is_followed_and_no_pipe_waited_for(tmp_path: Path) -> None:
    tree = make_repository(tmp_path / "tree")
    (tmp_path / "outside.txt").write_text("not the worker's\n")
    attempt = Attempt(tree)
    (tree / "link").symlink_to(tmp_path / "outside.txt")
    (tree / "large.txt").write_text("x\n" * 200_000)
    os.mkfifo(tree / "pipe")
    frozen = attempt.end()
    assert {"link new", "large.txt new"} <= set(frozen.stat)
    assert frozen.file is None


def test_names_are_taken_literally_and_no_program_of_the_repository_runs(tmp_path: Path) -> None:
    tree = make_repository(tmp_path / "tree")
    (tree / ":(glob)*").write_text("odd\n")
    git(tree, "--literal-pathspecs", "add", ":(glob)*")
    git(tree, "commit", "-qm", "odd")
    attempt = Attempt(tree)
    ran = tmp_path / "ran"
    (tree / ":(glob)*").write_text("odder\n")
    git(tree, "config", "diff.external", f"touch {ran}")
    git(tree, "config", "diff.odd.textconv", f"touch {ran};cat")
    git(tree, "config", "filter.odd.clean", f"touch {ran};cat")
    (tree / ".git/info").mkdir(exist_ok=True)
    (tree / ".git/info/attributes").write_text("* diff=odd filter=odd\n")
    assert attempt.end().stat == (":(glob)* +1 -1",)
    assert "+odder" in attempt.patch
    assert not ran.exists()
