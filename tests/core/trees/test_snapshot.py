"""What a worker left behind in real trees, with the real git, and without it."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.core.trees.snapshots import IDENTITY, change, git, make_repository, snapshot

from bullswarm_core.process.child import run_child
from bullswarm_core.trees.snapshot import DeliverableFacts, attribute, compare, take_snapshot


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "the repository")


def test_nothing_done_is_nothing_produced(repository: Path) -> None:
    facts = change(repository, lambda: None)
    assert not facts.produced and facts.changed == () and facts.is_git and not facts.head_moved and not facts.truncated


def test_looking_writes_nothing(repository: Path) -> None:
    os.utime(repository / "src/main.py")  # git would like to refresh its index now
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*")}
    change(repository, lambda: None)
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*")} == before


def test_created_modified_deleted(repository: Path) -> None:
    def work() -> None:
        (repository / "src/new.py").write_text("x")
        (repository / "fresh").mkdir()
        (repository / "fresh/a.txt").write_text("x")
        (repository / "src/main.py").write_text("print(2)\n")
        (repository / ".gitignore").unlink()

    facts = change(repository, work)
    assert facts.created == ("fresh/a.txt", "src/new.py")
    assert facts.modified == ("src/main.py",)
    assert facts.deleted == (".gitignore",)
    assert facts.produced


def test_a_dirty_file_counts_only_when_it_changes_again(repository: Path) -> None:
    def work() -> None:
        (repository / "dirty.txt").write_text("the worker's edit\n")
        (repository / "untracked.txt").unlink()

    facts = change(repository, work)
    assert facts.modified == ("dirty.txt",) and facts.deleted == ("untracked.txt",)


def test_putting_a_dirty_file_back_is_a_change(repository: Path) -> None:
    facts = change(repository, lambda: git(repository, "checkout", "--", "dirty.txt"))
    assert facts.modified == ("dirty.txt",)


def test_a_touch_and_a_stage_change_nothing(repository: Path) -> None:
    def work() -> None:
        for name in ("src/main.py", "dirty.txt", "untracked.txt"):
            os.utime(repository / name)
        git(repository, "add", "dirty.txt", "untracked.txt")

    assert not change(repository, work).produced


def test_a_change_of_the_same_size_within_one_tick_is_seen(repository: Path) -> None:
    stamp = (repository / "untracked.txt").stat()
    content = "THE PERSON'S OWN FILE\n"

    def work() -> None:
        (repository / "untracked.txt").write_text(content)
        os.utime(repository / "untracked.txt", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    assert change(repository, work).modified == ("untracked.txt",)


def test_a_file_made_executable_is_modified(repository: Path) -> None:
    assert change(repository, lambda: (repository / "src/main.py").chmod(0o755)).modified == ("src/main.py",)


def test_a_commit_of_the_workers_files(repository: Path) -> None:
    def work() -> None:
        (repository / "src/main.py").write_text("print(2)\n")
        (repository / "new name.py").write_text("x")
        git(repository, "add", "src/main.py", "new name.py")
        git(repository, "commit", "-qm", "second")

    facts = change(repository, work)
    assert facts.commits == (git(repository, "rev-parse", "HEAD"),)
    assert facts.head_moved
    assert facts.created == ("new name.py",) and facts.modified == ("src/main.py",)


def test_a_commit_of_what_was_there_makes_a_commit_but_changes_no_file(repository: Path) -> None:
    facts = change(repository, lambda: git(repository, "commit", "-aqm", "yours"))
    assert len(facts.commits) == 1 and facts.changed == () and facts.produced


def test_a_first_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("a")

    def work() -> None:
        git(tmp_path, "add", "a")
        git(tmp_path, "commit", "-qm", "first")

    facts = change(tmp_path, work)
    assert len(facts.commits) == 1 and facts.changed == ()


def test_going_to_an_old_commit_makes_none(repository: Path) -> None:
    git(repository, "stash", "-q")
    (repository / "src/main.py").write_text("print(3)\n")
    old = {"GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}
    subprocess.run(["git", *IDENTITY, "commit", "-aqm", "old"], cwd=repository, env={**os.environ, **old}, check=True)
    git(repository, "branch", "other")
    git(repository, "reset", "-q", "--hard", "HEAD~1")
    facts = change(repository, lambda: git(repository, "checkout", "-q", "other"))
    assert facts.commits == () and facts.head_moved and facts.modified == ("src/main.py",)


def test_ignored_files_count_by_their_bytes_but_not_what_tools_leave(repository: Path) -> None:
    (repository / "secret").mkdir()
    (repository / "secret/key").write_text("1")
    (repository / "secret/same").write_text("same")

    def work() -> None:
        (repository / "secret/key").write_text("2")
        (repository / "secret/same").write_text("same")
        (repository / "secret/new").write_text("x")
        (repository / "run.log").write_text("tool noise")
        (repository / "build").mkdir()
        (repository / "build/out").write_text("tool noise")

    facts = change(repository, work)
    assert facts.modified == ("secret/key",) and facts.created == ("secret/new",)


def test_a_declared_file_counts_even_in_build_output(repository: Path) -> None:
    def work() -> None:
        (repository / "build").mkdir()
        (repository / "build/report.txt").write_text("asked for")

    facts = change(repository, work, declared=["build/report.txt", str(repository / "src/main.py"), "../elsewhere"])
    assert facts.created == ("build/report.txt",) and facts.modified == ()


def test_tool_caches_are_no_deliverable_even_untracked(repository: Path) -> None:
    def work() -> None:
        for name in ("src/__pycache__/main.pyc", ".pytest_cache/v", "node_modules/x/index.js", "src/a.pyc"):
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            (repository / name).write_text("x")

    assert not change(repository, work).produced


def test_odd_names(repository: Path) -> None:
    names = ["two  blanks", "line\nbreak", 'quo"te', "-dash", "日本", " M x", "a -> b", "tab\there"]

    def work() -> None:
        for name in names:
            (repository / name).write_text("x")
        Path(os.fsdecode(bytes(repository) + b"/latin\xe9")).write_text("x")

    facts = change(repository, work)
    assert set(facts.created) == {*names, "latin\\xe9"}
    assert all(name.encode() for name in facts.created)


def test_a_folder_within_the_repository_sees_only_itself(repository: Path) -> None:
    def work() -> None:
        (repository / "outside.py").write_text("x")
        (repository / "src/inside.py").write_text("x")
        (repository / "src/main.py").write_text("print(2)\n")
        git(repository, "add", "src/main.py", "outside.py")
        git(repository, "commit", "-qm", "both")

    facts = change(repository / "src", work)
    assert facts.created == ("inside.py",) and facts.modified == ("main.py",) and len(facts.commits) == 1


def test_a_folder_that_git_ignores_is_walked(repository: Path) -> None:
    inner = repository / "build/inner"
    inner.mkdir(parents=True)
    facts = change(inner, lambda: (inner / "made.txt").write_text("x"))
    assert facts.created == ("made.txt",) and not facts.is_git


def test_symlinks_are_names_and_are_never_followed(repository: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "big").write_text("1")
    (repository / "link").symlink_to(elsewhere)
    assert not change(repository, lambda: (elsewhere / "big").write_text("2")).produced

    def repoint() -> None:
        (repository / "link").unlink()
        (repository / "link").symlink_to("/dev/zero")

    assert change(repository, repoint).modified == ("link",)


def test_pipes_and_unreadable_files_hold_nobody_up(repository: Path) -> None:
    os.mkfifo(repository / "pipe")
    (repository / "closed").write_text("x")
    (repository / "closed").chmod(0)
    assert not change(repository, lambda: None).produced


def test_submodules_and_nested_repositories(repository: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "f").write_text("1")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "inner")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(repository, "commit", "-qm", "with a submodule")
    assert not change(repository, lambda: None).produced
    assert change(repository, lambda: (repository / "sub/f").write_text("2")).modified == ("sub/f",)
    facts = change(repository, lambda: git(repository / "sub", "commit", "-aqm", "in the submodule"))
    assert facts.modified == ("sub",)
    nested = repository / "nested"

    def clone() -> None:
        git(repository, "clone", "-q", str(inner), "nested")

    assert change(repository, clone).created == ("nested/f",)
    assert change(repository, lambda: (nested / "f").write_text("9")).modified == ("nested/f",)


def test_a_submodule_path_that_leads_elsewhere_is_not_entered(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private/key").write_text("1")
    (repository / "sub").symlink_to(tmp_path / "private")
    (repository / ".gitmodules").write_text(
        '[submodule "a"]\n\tpath = sub\n[submodule "b"]\n\tpath = ../private\n[submodule "c"]\n\tpath = /etc\n'
    )
    found = snapshot(repository)
    assert not any("key" in path or "passwd" in path or path.startswith(("..", "/")) for path in found.entries)


def test_nothing_of_the_repository_runs(repository: Path) -> None:
    """A worker may plant commands in the repository's configuration; looking at its work must not run them."""
    trap = repository.parent / "trap"
    ran = repository.parent / "ran"
    trap.write_text(f"#!/bin/sh\necho $0 $* >> '{ran}'\ncat\n")
    trap.chmod(0o755)
    before = snapshot(repository)
    (repository / ".gitattributes").write_text("* filter=trap diff=trap\n")
    hooks = repository / ".git/hooks"
    for name in ("post-index-change", "pre-commit", "fsmonitor-watchman", "post-checkout", "reference-transaction"):
        (hooks / name).write_text(trap.read_text())
        (hooks / name).chmod(0o755)
    for key in ("core.fsmonitor", "filter.trap.clean", "filter.trap.smudge", "filter.trap.process", "diff.external",
                "diff.trap.textconv", "diff.trap.command", "core.pager", "core.sshCommand", "alias.status",
                "core.gitProxy", "core.alternateRefsCommand", "credential.helper"):  # fmt: skip
        git(repository, "config", key, str(trap))
    git(repository, "config", "filter.trap.required", "true")
    git(repository, "config", "status.submoduleSummary", "true")
    os.utime(repository / "src/main.py")
    (repository / "dirty.txt").write_text("again\n")
    facts = compare(before, snapshot(repository, before))
    assert not ran.exists()
    assert "dirty.txt" in facts.modified and ".gitattributes" in facts.created


def test_the_callers_git_variables_point_nowhere(repository: Path, tmp_path: Path) -> None:
    lost = {**os.environ, "GIT_DIR": str(tmp_path / "nowhere"), "GIT_WORK_TREE": "/", "GIT_INDEX_FILE": "/nope"}
    found = take_snapshot(str(repository), run=run_child, environ=lost)
    assert found.is_git and found.head == git(repository, "rev-parse", "HEAD")


def test_what_is_bullswarms_own_is_left_out(repository: Path) -> None:
    home = repository / ".bullswarm"

    def work() -> None:
        home.mkdir()
        (home / "out.md").write_text("x")

    assert not change(repository, work, left_out=[str(home)]).produced


def test_overlapping_work_counts_only_what_is_known_to_be_the_workers(repository: Path) -> None:
    def work() -> None:
        for name in ("mine.py", "theirs.py", "declared.md"):
            (repository / name).write_text("x")
        git(repository, "commit", "-aqm", "whose?")

    facts = change(repository, work)
    assert attribute(facts, cwd=str(repository), overlapped=False) == facts
    edits = (str(repository / "mine.py"), "untouched.py", "/etc/passwd")
    own = attribute(facts, cwd=str(repository), overlapped=True, edits=edits, declared=("./declared.md",))
    assert own.changed == ("declared.md", "mine.py") and own.attribution == "shared" and own.commits == ()
    assert own.unattributed == 2
    none = attribute(facts, cwd=str(repository), overlapped=True)
    assert not none.produced and none.unattributed == 4


def test_edits_reached_through_a_symlink_are_the_workers(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(repository)
    facts = DeliverableFacts(modified=("src/main.py",))
    edits = (str(tmp_path / "alias/src/main.py"),)
    assert attribute(facts, cwd=str(repository), overlapped=True, edits=edits).produced
