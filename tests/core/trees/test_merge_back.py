"""The three-way rule over small trees of edits, and the all-or-nothing of its carrying out."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bullswarm_core.trees.files import MISSING, TreeFiles, Version
from bullswarm_core.trees.merge import Plan, carry_out, decide, plan_merge

# What may be at a path: nothing, a file of some lines (executable or not), or a link.
Thing = tuple[str, bytes] | None
PATHS = ("a", "b", "dir/c", "dir/deep/d")
LINES = st.lists(st.sampled_from([b"1\n", b"2\n", b"3\n", b"x\n", b"y\n"]), max_size=6).map(b"".join)
FILE = st.tuples(st.sampled_from(["file", "executable"]), LINES | st.just(b"\0bin"))
THING = st.one_of(st.none(), FILE, FILE, st.just(("link", b"a")))
TREE = st.dictionaries(st.sampled_from(PATHS), THING)
VERSION = st.builds(
    Version,
    st.sampled_from(["missing", "file", "link", "folder", "other"]),
    st.booleans(),
    st.sampled_from(["", "1", "2"]),
)


def put(root: Path, tree: Mapping[str, Thing]) -> Path:
    for path, thing in tree.items():
        if thing is not None:
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if thing[0] == "link":
                file.symlink_to(thing[1].decode())
            else:
                file.write_bytes(thing[1])
                file.chmod(0o755 if thing[0] == "executable" else 0o644)
    root.mkdir(exist_ok=True)
    return root


def got(root: Path) -> dict[str, Thing]:
    found: dict[str, Thing] = {}
    for file in root.rglob("*"):
        path = str(file.relative_to(root))
        if file.is_symlink():
            found[path] = ("link", str(file.readlink()).encode())
        elif file.is_file():
            found[path] = ("executable" if file.stat().st_mode & 0o100 else "file", file.read_bytes())
    return found


def merged(ours: Path, base: Path, theirs: Path) -> bytes | None:
    words = ["git", "merge-file", "-p", "-q", str(ours), str(base), str(theirs)]
    done = subprocess.run(words, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


class Trees:
    """Three trees on disk, and a plan that brings one into another."""

    def __init__(
        self, root: Path, base: Mapping[str, Thing], ours: Mapping[str, Thing], theirs: Mapping[str, Thing]
    ) -> None:
        self.root = root
        places = {"base": base, "ours": {**base, **ours}, "theirs": {**base, **theirs}}
        for name, tree in places.items():
            put(root / name, {path: thing for path, thing in tree.items() if thing is not None})
        self.base, self.person, self.worker = (TreeFiles(root / name) for name in places)
        (root / "stage").mkdir()

    def plan(self, files: tuple[str, ...]) -> Plan:
        known = {path: self.base.look(path) for path in PATHS}

        def blend(ours: Path, digest: str, theirs: Path) -> bytes | None:
            path = next(path for path, version in known.items() if version.digest == digest and version.kind == "file")
            return merged(ours, self.base.root / path, theirs)

        stage = self.root / "stage"
        return plan_merge(files, known, person=self.person, worker=self.worker, stage=stage, blend=blend)

    def carry_out(self, plan: Plan) -> Mapping[str, str]:
        return carry_out(plan, self.person, self.root / "stage", mark="test")


def expected(base: Thing, ours: Thing, theirs: Thing, root: Path) -> Thing | str:
    """Say by the plain words of the rule what a file becomes, or "conflict"."""
    if theirs in (base, ours):
        return ours
    if ours == base:
        return theirs
    if ours is None or theirs is None or "link" in (ours[0], theirs[0]):
        return "conflict"
    if base is None or base[0] == "link":
        executable = "executable" in (ours[0], theirs[0])
        return (("executable" if executable else "file"), ours[1]) if ours[1] == theirs[1] else "conflict"
    mode = theirs[0] if ours[0] == base[0] else ours[0]
    if base[1] in (ours[1], theirs[1]) or ours[1] == theirs[1]:
        return mode, theirs[1] if ours[1] == base[1] else ours[1]
    for name, thing in (("o", ours), ("b", base), ("t", theirs)):
        (root / name).write_bytes(thing[1])
    both = merged(root / "o", root / "b", root / "t")
    return "conflict" if both is None else (mode, both)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(base=TREE, ours=TREE, theirs=TREE, files=st.sets(st.sampled_from(PATHS)))
def test_every_declared_file_follows_the_rule_and_nothing_else_moves(
    base: dict[str, Thing], ours: dict[str, Thing], theirs: dict[str, Thing], files: set[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        trees = Trees(root, base, ours, theirs)
        before, worker = got(root / "ours"), got(root / "theirs")
        plan = trees.plan(tuple(sorted(files)))
        wanted = {
            path: expected(base.get(path), before.get(path), worker.get(path), root) for path in PATHS if path in files
        }
        links = {path for path in files if plan.conflicts.get(path, "").endswith("leads out of the tree")}
        conflicts = {path for path, thing in wanted.items() if thing == "conflict"} | links
        assert set(plan.conflicts) == conflicts
        if conflicts:
            assert got(root / "ours") == before
            return
        assert trees.carry_out(plan) == {} and trees.carry_out(plan) == {}, "the second time there is nothing to do"
        after = {**before, **wanted}
        assert got(root / "ours") == {path: thing for path, thing in after.items() if thing is not None}
        assert got(root / "theirs") == worker


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(base=TREE, theirs=TREE, done=st.integers(0, 4), touched=st.sampled_from([None, *PATHS]))
def test_a_merge_that_stopped_half_way_is_finished_or_taken_back_whole(
    base: dict[str, Thing], theirs: dict[str, Thing], done: int, touched: str | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        trees = Trees(root, base, {}, theirs)
        before, worker = got(root / "ours"), got(root / "theirs")
        plan = trees.plan(PATHS)
        if plan.conflicts:
            return
        trees.carry_out(Plan(plan.items[:done]))
        mine = None
        if touched is not None and not (root / "ours" / touched).is_symlink():
            mine = ("file", b"touched by the person\n")
            put(root / "ours", {touched: mine})
            (root / "ours" / touched).chmod(0o644)
        why = trees.carry_out(plan)
        found = got(root / "ours")
        if mine is not None and touched in {item.path for item in plan.items}:
            assert set(why) == {touched} and found == {**before, touched: mine}
        else:
            assert why == {} and found == {**worker, **({touched: mine} if mine and touched else {})}
        assert not [path for path in found if path.endswith(".tmp")]


@given(base=VERSION, ours=VERSION, theirs=VERSION)
def test_the_rule_never_takes_what_only_the_person_changed(base: Version, ours: Version, theirs: Version) -> None:
    decision = decide(base, ours, theirs)
    if theirs == base:
        assert decision.action == "keep"
    if decision.action == "take":
        assert ours == base and theirs.can_be_merged
    if decision.action == "blend":
        assert ours.kind == theirs.kind == "file"
    if decision.action == "conflict":
        assert decision.why and theirs not in (base, ours)


@pytest.mark.parametrize("turned", ["file to folder", "folder to file"])
def test_a_file_and_a_folder_may_change_places(tmp_path: Path, turned: str) -> None:
    one: dict[str, Thing] = {"a": ("file", b"1\n")}
    other: dict[str, Thing] = {"a/b": ("file", b"2\n")}
    base, theirs = (one, other) if turned == "file to folder" else (other, one)
    trees = Trees(tmp_path, base, {}, {})
    shutil.rmtree(tmp_path / "theirs")
    put(tmp_path / "theirs", theirs)
    known = {path: trees.base.look(path) for path in ("a", "a/b") if trees.base.look(path).kind == "file"}
    plan = plan_merge(
        ("a", "a/b"), known, person=trees.person, worker=trees.worker, stage=tmp_path / "stage", blend=lambda *_: None
    )
    if turned == "file to folder":
        assert not plan.conflicts and trees.carry_out(plan) == {} and got(tmp_path / "ours") == theirs
    else:
        assert set(plan.conflicts) == {"a"} and got(tmp_path / "ours") == base


def test_modes_are_the_persons(tmp_path: Path) -> None:
    trees = Trees(tmp_path, {"a": ("file", b"1\n")}, {}, {"a": ("executable", b"2\n"), "b": ("file", b"new\n")})
    (tmp_path / "ours/a").chmod(0o640)
    assert trees.carry_out(trees.plan(("a", "b"))) == {}
    assert (tmp_path / "ours/a").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "ours/b").stat().st_mode & 0o111 == 0


def test_what_is_no_file_is_never_read_or_merged(tmp_path: Path) -> None:
    import os

    trees = Trees(tmp_path, {"a": ("file", b"1\n")}, {}, {})
    (tmp_path / "theirs/a").unlink()
    os.mkfifo(tmp_path / "theirs/a")
    os.mkfifo(tmp_path / "ours/b")
    put(tmp_path / "theirs", {"b": ("file", b"2\n")})
    plan = trees.plan(("a", "b"))
    assert plan.conflicts["a"] == "the worker made a special file of it" and "b" in plan.conflicts


def test_a_disk_that_refuses_a_file_leaves_all_of_them_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = Trees(tmp_path, {"a": ("file", b"1\n"), "b": ("file", b"1\n")}, {}, {"a": None, "b": ("file", b"2\n")})
    for name in ("a", "b"):
        with suppress(FileNotFoundError):
            (tmp_path / "theirs" / name).unlink()
    put(tmp_path / "theirs", {"a": ("file", b"2\n"), "b": ("file", b"2\n")})
    plan = trees.plan(("a", "b"))
    real = TreeFiles.put

    def full(self: TreeFiles, path: str, *rest: object, **more: object) -> None:
        if path == "b":
            raise OSError(28, "No space left on device")
        real(self, path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(TreeFiles, "put", full)
    assert trees.carry_out(plan) == {"b": "it can't be written: No space left on device"}
    assert got(tmp_path / "ours") == {"a": ("file", b"1\n"), "b": ("file", b"1\n")}
    assert trees.base.look("missing") == MISSING
