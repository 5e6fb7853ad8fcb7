"""What a worker left behind in plain folders, in trees without a git that answers, and in ones too large to see."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.trees.snapshots import change, git, make_repository, snapshot

from bullswarm_core.errors import WorkerStartError
from bullswarm_core.process.child import ChildResult
from bullswarm_core.trees import fingerprint
from bullswarm_core.trees.fingerprint import MISSING, Budget, Entry, Looker
from bullswarm_core.trees.snapshot import compare, take_snapshot


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "the repository")


def test_outside_of_git(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/c").write_text("1")
    (folder / "gone").write_text("1")
    (folder / "node_modules").mkdir()

    def work() -> None:
        (folder / "a/b/c").write_text("2")
        (folder / "gone").unlink()
        (folder / "new").write_text("x")
        (folder / "node_modules/m").write_text("x")

    facts = change(folder, work)
    assert (facts.created, facts.modified, facts.deleted) == (("new",), ("a/b/c",), ("gone",))
    assert not facts.is_git and not change(folder, lambda: None).produced


def test_a_folder_that_becomes_a_repository(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a").write_text("1")

    def work() -> None:
        git(folder, "init", "-q")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "first")

    facts = change(folder, work)
    assert len(facts.commits) == 1 and facts.changed == () and facts.produced


def test_a_repository_that_is_taken_away(repository: Path) -> None:
    facts = change(repository, lambda: (repository / ".git").rename(repository.parent / "gone"))
    assert facts.truncated and facts.changed == ()


@pytest.mark.parametrize("how", ["missing", "fails", "hangs"])
def test_without_a_git_that_answers_the_folder_is_walked(repository: Path, how: str) -> None:
    def run(argv: Sequence[str], *, cwd: str, environ: Mapping[str, str], timeout_sec: float) -> ChildResult:
        if how == "missing":
            raise WorkerStartError("cannot run git")
        return ChildResult(None if how == "hangs" else 128, b"", b"fatal: detected dubious ownership", how == "hangs")

    before = take_snapshot(str(repository), run=run, environ={})
    (repository / "src/main.py").write_text("print(2)\n")
    facts = compare(before, take_snapshot(str(repository), run=run, environ={}, since=before))
    assert facts.modified == ("src/main.py",) and not facts.is_git


def test_a_tree_of_folders_alone_is_bounded_too(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"d{number}/e").mkdir(parents=True)
    budget = Budget(files=5, folders=20)
    assert list(Looker(str(tmp_path), budget).walk("", names=frozenset(), suffixes=())) == [] and budget.spent


def test_a_tree_too_large_to_see_says_so_and_invents_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (tmp_path / f"f{number:02}").write_text("x")
    old = [(tmp_path / f"f{number:02}").stat().st_ctime_ns for number in range(20)]
    monkeypatch.setattr(fingerprint, "FOLDER_FILES", 10)
    before = snapshot(tmp_path, clock_ns=lambda: max(old) + 10**9)
    assert before.truncated and len(before.entries) == 10
    for number in range(5):
        (tmp_path / f"f{number:02}").unlink()
    facts = compare(before, snapshot(tmp_path, before))
    assert facts.truncated and len(facts.deleted) == 5 and facts.created == () and facts.modified == ()


FILES = st.dictionaries(st.sampled_from(["a", "b", "d/c", "d/e", "f"]), st.binary(max_size=3), max_size=5)


@given(old=FILES, new=FILES)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_two_folders(tmp_path: Path, old: dict[str, bytes], new: dict[str, bytes]) -> None:
    def put(files: dict[str, bytes]) -> None:
        for path in [p for p in tmp_path.rglob("*") if p.is_file()]:
            path.unlink()
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(content)

    def no_git(argv: Sequence[str], *, cwd: str, environ: Mapping[str, str], timeout_sec: float) -> ChildResult:
        raise WorkerStartError("no git")

    put(old)
    before = take_snapshot(str(tmp_path), run=no_git, environ={})
    put(new)
    facts = compare(before, take_snapshot(str(tmp_path), run=no_git, environ={}, since=before))
    assert set(facts.created) == set(new) - set(old)
    assert set(facts.deleted) == set(old) - set(new)
    assert set(facts.modified) == {name for name in set(old) & set(new) if old[name] != new[name]}


def test_entries_without_bytes_are_told_by_their_times() -> None:
    one = Entry("file", 10, 1, 1, 7)
    assert one.same_as(one) and not one.same_as(Entry("file", 10, 2, 2, 7)) and not one.same_as(MISSING)
    assert Looker("/nowhere").entry("x") == MISSING and Looker("/nowhere").entry("a\0b") == MISSING
