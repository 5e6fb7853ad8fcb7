"""What a worker may do to the tree, or to its repository, so that looking at it runs something or shows what is not."""

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.core.judging.cases import verdict
from tests.core.trees.snapshots import change, git, make_repository, snapshot

from bullswarm_core.process.child import ChildResult, run_child
from bullswarm_core.trees import fingerprint
from bullswarm_core.trees.snapshot import compare, take_snapshot


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "the repository")


def plant(repository: Path, name: str, keys: tuple[str, ...] = ("clean", "process", "smudge")) -> Path:
    """Plant a filter of that name on every file; return the path that comes to be when it runs."""
    trap, ran = repository.parent / "trap", repository.parent / "ran"
    trap.write_text(f"#!/bin/sh\n: > '{ran}'\ncat\n")
    trap.chmod(0o755)
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    with (repository / ".git/config").open("a") as config:
        config.write(
            f'[filter "{quoted}"]\n' + "".join(f"\t{key} = {'true' if key == 'required' else trap}\n" for key in keys)
        )
    (repository / ".git/info").mkdir(exist_ok=True)
    (repository / ".git/info/attributes").write_text(f"* filter={name}\n")
    (repository / "src/main.py").write_text("print(2)\n")
    return ran


@pytest.mark.parametrize("name", ["a=b", "=", "a.b=c.d", "clean", "a.clean=", "UPPER=x", 'q"=', "back\\=", "\u65e5="])
@pytest.mark.parametrize("keys", [("clean",), ("process",), ("clean", "required")])
def test_a_filter_of_any_name_never_runs(repository: Path, name: str, keys: tuple[str, ...]) -> None:
    before = snapshot(repository)
    ran = plant(repository, name, keys)
    facts = compare(before, snapshot(repository, before))
    assert not ran.exists() and facts.modified == ("src/main.py",)


@pytest.mark.parametrize("how", ["not listed", "cut", "not silenced"])
def test_a_git_whose_filters_are_not_surely_silent_is_not_asked(repository: Path, how: str) -> None:
    asked = []

    def run(argv: Sequence[str], *, cwd: str, environ: Mapping[str, str], timeout_sec: float) -> ChildResult:
        asked.append(argv)
        if "config" in argv and how == "not listed":
            return ChildResult(128, b"", b"fatal: bad config")
        if how == "not silenced":  # as a git before 2.31
            environ = {name: value for name, value in environ.items() if not name.startswith("GIT_CONFIG_")}
        found = run_child(argv, cwd=cwd, environ=environ, timeout_sec=timeout_sec)
        return ChildResult(0, found.stdout, b"", cut=True) if "config" in argv and how == "cut" else found

    ran = plant(repository, "a=b")
    take_snapshot(str(repository), run=run, environ=os.environ)
    assert not ran.exists() and not any("status" in argv for argv in asked)


@pytest.mark.parametrize("place", [".", "", "./", "bin", "alone"])
def test_a_git_of_the_repository_is_not_the_one_that_is_asked(repository: Path, place: str) -> None:
    """Some people have ``.`` in their PATH."""
    ran = repository.parent / "ran"
    for folder in (repository, repository / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "git").write_text(f"#!/bin/sh\n: > '{ran}'\n")
        (folder / "git").chmod(0o755)
    path = "." if place == "alone" else f"{place}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path}
    found = take_snapshot(str(repository), run=run_child, environ=environ)
    assert not ran.exists() and (found.is_git or place == "alone"), "git may lie elsewhere than where systems have it"


@pytest.mark.parametrize("hangs", ["rev-parse", "status", "ls-files"])
def test_a_git_that_hangs_is_asked_no_more(repository: Path, hangs: str) -> None:
    """A pipe in place of a .gitignore costs one wait, and not one for each question; a kernel stands still meanwhile."""
    asked: list[bool] = []

    def run(argv: Sequence[str], *, cwd: str, environ: Mapping[str, str], timeout_sec: float) -> ChildResult:
        asked.append(hangs in argv)
        if asked[-1]:
            return ChildResult(None, b"", b"", timed_out=True)
        return run_child(argv, cwd=cwd, environ=environ, timeout_sec=timeout_sec)

    take_snapshot(str(repository), run=run, environ=os.environ)
    assert asked.count(True) == 1 and asked[-1]


@pytest.mark.parametrize("how", ["removed", "replaced", "a file"])
def test_a_folder_that_is_gone_holds_no_work(repository: Path, how: str) -> None:
    def work() -> None:
        repository.rename(repository.parent / "elsewhere")
        if how == "replaced":
            shutil.copytree(repository.parent / "elsewhere", repository)
            (repository / "new.py").write_text("x")
        elif how == "a file":
            repository.write_text("x")

    facts = change(repository, work)
    assert facts.gone and not facts.produced
    found = verdict("build", deliverable=facts)
    assert (found.ok, found.failure_kind) == (False, "not-produced") and "the folder is gone" in found.why
    answered = verdict("analyze", deliverable=facts)
    assert answered.ok and [note.kind for note in answered.notes] == ["folder-gone"]


def spoil(repository: Path) -> None:
    (repository / ".git/index").write_bytes(b"")
    (repository / ".git/index").chmod(0o600)
    (repository / ".git/index").write_bytes(b"no index at all, but long enough to be looked at")


def test_work_is_seen_beside_an_index_that_was_spoiled_before(repository: Path) -> None:
    spoil(repository)
    facts = change(repository, lambda: (repository / "src/main.py").write_text("print(2)\n"))
    assert facts.modified == ("src/main.py",) and not facts.truncated


def test_work_is_seen_beside_an_index_that_is_spoiled_meanwhile(repository: Path) -> None:
    time.sleep(0.1)  # beyond the tick in which a time stamp tells nothing

    def work() -> None:
        spoil(repository)
        (repository / "src/main.py").write_text("print(2)\n")
        (repository / "new.py").write_text("x")
        (repository / "untracked.txt").unlink()
        (repository / ".gitignore").unlink()

    facts = change(repository, work)
    assert (facts.created, facts.modified) == (("new.py",), ("src/main.py",))
    assert facts.deleted == (".gitignore", "untracked.txt")
    assert "git could not read the repository" in facts.unseen


def test_a_spoiled_index_alone_is_no_work_and_the_reason_is_the_true_one(repository: Path) -> None:
    time.sleep(0.1)
    found = verdict("build", deliverable=change(repository, lambda: spoil(repository)))
    assert found.failure_kind == "not-produced" and "could not read" in found.why and "too large" not in found.why


@pytest.mark.parametrize("committed", [True, False])
def test_a_repository_that_is_only_linked_is_walked(repository: Path, committed: bool) -> None:
    nested = make_repository(repository / "nested")
    git(repository, "add", "nested")
    if committed:
        git(repository, "commit", "-qm", "a link")

    def work() -> None:
        (nested / "src/main.py").write_text("print(2)\n")
        (nested / "new.py").write_text("x")

    facts = change(repository, work)
    assert (facts.created, facts.modified) == (("nested/new.py",), ("nested/src/main.py",))


def test_a_large_ignored_file_counts_by_its_bytes_and_is_named_as_ignored(repository: Path) -> None:
    (repository / "secret").mkdir()
    large = repository / "secret/big.db"
    large.write_bytes(b"a" * (3 << 20))
    assert not change(repository, lambda: os.utime(large)).produced
    facts = change(repository, lambda: large.write_bytes(b"a" * (3 << 20) + b"b"))
    assert facts.modified == ("secret/big.db",) and facts.only_ignored
    facts = change(repository, lambda: large.write_bytes(b"b" * (3 << 20) + b"b"))
    assert facts.modified == ("secret/big.db",) and facts.only_ignored
    assert "only-ignored-files" in {note.kind for note in verdict("build", deliverable=facts).notes}


def test_an_ignored_file_beyond_the_budget_is_told_by_its_size(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "run.bin").write_bytes(b"a" * 4096)
    (repository / ".git/info/exclude").write_text("*.bin\n")
    monkeypatch.setattr(fingerprint, "HASHED_BYTES", 100)  # no file may be read that is larger
    assert not change(repository, lambda: os.utime(repository / "run.bin")).produced


def test_an_ignored_file_beside_a_tracked_one_needs_no_note(repository: Path) -> None:
    def work() -> None:
        (repository / "secret").mkdir()
        (repository / "secret/key").write_text("x")
        (repository / "src/main.py").write_text("print(2)\n")

    assert not change(repository, work).only_ignored
