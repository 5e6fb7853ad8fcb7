"""One walk and one removal for folders that a worker made: of any depth, with any names, without any exception."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullswarm_core.fast import tree
from bullswarm_core.fast.tree import CHANGED, TOO_DEEP, TOO_MANY, Entry, Walk, remove_tree, walk

_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..")
) | st.sampled_from(["a", "b", "new\nline", "\udc80\udcff", "-rf", " ", "\x1b[2J"])
_TREES = st.recursive(
    st.sampled_from(["file", "link", "loop", "pipe"]),
    lambda kinds: st.dictionaries(_NAMES, kinds, max_size=4),
    max_leaves=12,
)


def make(place: Path, what: object) -> None:
    if isinstance(what, dict):
        place.mkdir()
        for name, inner in what.items():
            make(place / name, inner)
    elif what == "file":
        place.write_bytes(b"12345")
    elif what == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(".." if what == "loop" else "/etc/passwd")


def go_deep(folder: Path, levels: int, *, name: str = "a", at_the_end: str | None = None) -> None:
    """Make ``levels`` folders, each in the one before."""
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    if at_the_end:
        os.close(os.open(at_the_end, os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


def open_files() -> set[int]:
    return {int(entry.name) for entry in Path("/dev/fd").iterdir()}


@contextmanager
def few_open_files(most: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(open_files()) + most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def problems(walked: Walk) -> list[tuple[str, str]]:
    return [(problem.path, problem.what) for problem in walked.problems]


def shown(folder: Path, **options: object) -> tuple[list[str], list[tuple[str, str]]]:
    walked = walk(folder, **options)  # type: ignore[arg-type]
    return [entry.path for entry in walked], problems(walked)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(_NAMES, _TREES, max_size=5))
def test_a_walk_shows_what_the_library_shows_and_a_removal_leaves_nothing(what: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "root")
        make(folder, what)
        files: set[str] = set()
        folders: set[str] = set()
        for place, inner, names in os.walk(folder):
            at = os.path.relpath(place, folder)
            for name in names + inner:
                path = os.path.normpath(f"{at}/{name}")
                is_folder = name in inner and not Path(place, name).is_symlink()
                (folders if is_folder else files).add(path)
        walked = walk(folder)
        found = [(entry.path, entry.kind, entry.depth, entry.stat()) for entry in walked]
        assert walked.problems == []
        assert len(found) == len({path for path, *_ in found})
        assert {path for path, kind, *_ in found if kind == "folder"} == folders
        assert {path for path, kind, *_ in found if kind != "folder"} == files
        for path, kind, depth, status in found:
            assert status == os.lstat(folder / path)
            assert depth == len(path.split("/"))
            assert (kind == "link") == (folder / path).is_symlink()
            assert (kind == "file") == ((folder / path).is_file() and kind != "link")
        assert remove_tree(folder) is None
        assert list(Path(parent).iterdir()) == []


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(_NAMES, _TREES, max_size=5), st.integers(1, 4), st.integers(0, 12))
def test_a_bound_leaves_the_beginning_and_is_named(what: dict[str, object], deep: int, many: int) -> None:
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "root")
        make(folder, what)
        everything = [(entry.path, entry.depth, entry.kind) for entry in walk(folder)]
        reached, too_deep = shown(folder, max_depth=deep)
        assert reached == [path for path, depth, _ in everything if depth <= deep]
        assert too_deep == [(path, TOO_DEEP) for path, depth, kind in everything if depth == deep and kind == "folder"]
        first, too_many = shown(folder, max_entries=many)
        assert len(first) == min(many, len(everything))
        assert set(first) <= {path for path, *_ in everything}
        assert [what for _, what in too_many] == [TOO_MANY] * (len(everything) > many)


@pytest.mark.parametrize("levels", [1_500, 9_000])
def test_a_deep_folder_is_walked_and_removed_with_few_open_files(tmp_path: Path, levels: int) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    go_deep(folder, levels, at_the_end="last")
    with few_open_files(30):
        count = 0
        walked = walk(folder)
        for entry in walked:
            count += 1
            deepest = entry.depth
            status = entry.stat()
            assert status is not None
        assert (count, deepest, entry.name, walked.problems) == (levels + 1, levels + 1, "last", [])
        assert remove_tree(folder) is None
    assert list(tmp_path.iterdir()) == []


def test_what_is_deeper_than_the_bound_is_named_and_still_removed(tmp_path: Path) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    go_deep(folder, tree.MAX_DEPTH + 500)
    walked = walk(folder)
    count = sum(1 for _ in walked)
    assert count == tree.MAX_DEPTH
    assert [what for _, what in problems(walked)] == [TOO_DEEP]
    assert remove_tree(folder) is None
    assert list(tmp_path.iterdir()) == []


def test_a_deep_folder_with_side_folders_is_walked_on_the_way_back_too(tmp_path: Path) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(100):
        for name in ("a", "z"):
            os.mkdir(name, dir_fd=fd)
        os.close(os.open("z/file", os.O_CREAT, dir_fd=fd))
        below = os.open("a", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    with few_open_files(30):
        paths, left_out = shown(folder)
    assert left_out == []
    assert len(paths) == len(set(paths)) == 300
    assert sum(path.endswith("z/file") for path in paths) == 100
    assert remove_tree(folder) is None


def test_names_of_any_kind(tmp_path: Path) -> None:
    folder = tmp_path / "root"
    names = ["new\nline", os.fsdecode(b"\xff\xfe\x80"), "x" * 255, "-rf", "*", " ", "\x1b]0;t\x07", "ü" * 127]
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / name).write_bytes(b"1")
    paths, left_out = shown(folder)
    assert sorted(paths) == sorted([*names, *(f"{name}/{name}" for name in names)])
    assert left_out == []
    go_deep(folder, 100, name="y" * 255)
    assert remove_tree(folder) is None
    assert not folder.exists()


def test_no_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"1")
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "loop").symlink_to(".")
    (folder / "out").symlink_to(outside)
    (folder / "dead").symlink_to("nowhere")
    assert shown(folder) == (["dead", "loop", "out"], [])
    link = tmp_path / "link"
    link.symlink_to(folder)
    paths, left_out = shown(link)
    assert (paths, [path for path, _ in left_out]) == ([], [""])
    assert shown(link, follow_root=True)[0] == ["dead", "loop", "out"]
    assert remove_tree(f"{link}/") is None
    assert folder.is_dir()
    assert not link.is_symlink()
    assert remove_tree(folder) is None
    assert (outside / "kept").read_bytes() == b"1"


def test_what_is_missing_or_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"1")
    assert shown(file) == ([], [("", "Not a directory")])
    assert shown(tmp_path / "none") == ([], [("", "No such file or directory")])
    assert remove_tree(tmp_path / "none") is None
    assert remove_tree(tmp_path / "none" / "deeper") is None
    assert remove_tree(file) is None
    assert not file.exists()


def test_skip_leaves_out_an_entry_with_all_that_it_holds(tmp_path: Path) -> None:
    make(tmp_path / "root", {"a": {"b": "file"}, "c": {"a": "file", "d": "file"}})
    seen: list[str] = []

    def skip(entry: Entry) -> bool:
        seen.append(entry.path)
        return entry.name == "a"

    assert shown(tmp_path / "root", skip=skip)[0] == ["c", "c/d"]
    assert seen == ["a", "c", "c/a", "c/d"]


def test_an_entry_is_asked_in_the_loop_only(tmp_path: Path) -> None:
    make(tmp_path / "root", {"a": {"b": "file"}})
    kept = list(walk(tmp_path / "root"))
    with pytest.raises(ValueError, match="loop"):
        kept[0].stat()
    assert [entry.path for entry in kept] == ["a", "a/b"]


def test_an_abandoned_walk_leaves_no_folder_open(tmp_path: Path) -> None:
    make(tmp_path / "root", {"a": {"b": {"c": "file"}}})
    before = open_files()
    for entry in walk(tmp_path / "root"):
        if entry.name == "b":
            break
    del entry
    assert open_files() == before


_AS_A_USER = """
import os, sys
sys.path.insert(0, sys.argv[2])
from bullswarm_core.fast.tree import remove_tree, walk
os.chdir("/")
os.setgroups([]); os.setgid(54321); os.setuid(54321)
walked = walk(sys.argv[1])
print(sorted(entry.path for entry in walked), sorted((one.path, one.what) for one in walked.problems))
print(remove_tree(sys.argv[1]))
"""


def as_a_user(folder: Path) -> list[str]:
    """Walk and remove ``folder`` as somebody whom permissions bind."""
    core = str(Path(tree.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-I", "-c", _AS_A_USER, str(folder), core], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder whose parents everybody may enter, which those of pytest are not."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o777)
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize("mode", [0o000, 0o200, 0o400, 0o100, 0o500, 0o300])
def test_a_folder_without_permissions_is_named_and_removed(open_to_all: Path, mode: int) -> None:
    folder = open_to_all / "root"
    make(folder, {"closed": {"in": {"deeper": "file"}, "more": "file"}, "open": "file"})
    for place in (folder, *folder.rglob("*")):
        os.chown(place, 54321, 54321)
    (folder / "closed" / "in").chmod(mode)
    (folder / "closed").chmod(mode)
    walked, removed = as_a_user(folder)
    assert removed == "None"
    assert not folder.exists()
    assert walked.startswith("['closed', ")
    can_read = mode & 0o400
    assert ("('closed', 'Permission denied')" in walked) == (not can_read)
    assert ("closed/in" in walked) == bool(can_read)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_what_cannot_be_removed_is_named_and_the_rest_is_gone(open_to_all: Path) -> None:
    folder = open_to_all / "root"
    make(folder, {"a": {"foreign": {"kept": "file"}, "own": "file"}, "b": {"c": "file"}})
    for place in (folder, folder / "a", folder / "b"):
        os.chown(place, 54321, 54321)
    assert as_a_user(folder)[1] == f"{folder}/a/foreign/kept: Permission denied"
    assert [str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))] == ["a", "a/foreign", "a/foreign/kept"]


@pytest.mark.parametrize("lost", [False, True])
def test_a_folder_that_is_moved_away_during_a_walk_is_found_by_its_name_or_named(tmp_path: Path, lost: bool) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    go_deep(folder, 60, at_the_end="last")
    (folder / "z").mkdir()
    (folder / "a" / "z").mkdir()
    walked = walk(folder)
    paths = []
    for entry in walked:
        paths.append(entry.path)
        if entry.name == "last":
            (folder / "a" / "a" / "a").rename(tmp_path / "moved")
            if lost:
                (folder / "a" / "a").rename(tmp_path / "moved too")
    assert problems(walked) == ([("a/a", CHANGED)] if lost else [])
    assert paths[-1].endswith("/last")
    assert {"z", "a/z"} < set(paths)


def test_a_removal_while_others_move_add_and_remove(tmp_path: Path) -> None:
    folder = tmp_path / "root"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"1")
    over = threading.Event()

    def disturb() -> None:
        turn = 0
        while not over.wait(0.0005):
            turn += 1
            with suppress(OSError):
                (folder / "a" / "a").rename(folder / f"moved{turn}")
            with suppress(OSError):
                (folder / "a" / f"link{turn}").symlink_to(outside)
            with suppress(OSError):
                (folder / "b").mkdir()
            with suppress(OSError):
                (folder / "b").rmdir()
            with suppress(OSError):
                (folder / "b").symlink_to(outside)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(20):
            folder.mkdir(exist_ok=True)
            with suppress(OSError):
                go_deep(folder, 60)
            remove_tree(folder)
    finally:
        over.set()
        thread.join()
    assert remove_tree(folder) is None
    assert not folder.exists()
    assert (outside / "kept").read_bytes() == b"1"


def seconds_of(folder: Path) -> float:
    started = time.process_time()
    assert sum(1 for _ in walk(folder)) > 0
    assert remove_tree(folder) is None
    return time.process_time() - started


def test_a_wide_folder_takes_time_in_proportion(tmp_path: Path) -> None:
    times = []
    for count in (20_000, 100_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        fd = os.open(folder, os.O_RDONLY)
        for number in range(count):
            os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        os.close(fd)
        times.append(seconds_of(folder))
    # Five times the files; a square would be 25 times.
    assert times[1] < 9 * times[0] + 0.5


def test_a_deep_folder_takes_time_in_proportion(tmp_path: Path) -> None:
    times = []
    for count in (2_000, 8_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        go_deep(folder, count)
        times.append(seconds_of(folder))
    assert times[1] < 9 * times[0] + 0.5
