"""Files of the home are whole or unchanged, damaged ones are named with their line, and locks end with their holder."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.errors import LockTimeoutError, StateError, StorageError
from bullswarm_core.fast.files import file_name_of
from bullswarm_core.store.home import Home, file_lock, read_json, write_bytes_atomic, write_json

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def test_the_home_is_where_the_environment_says_and_building_one_creates_nothing(own_home: Path) -> None:
    home = Home()
    assert home.root == own_home / ".bullswarm"
    assert home.state_file == home.root / "state.json"
    assert home.meter_file("claude-code:acme") == home.root / "meters" / "claude-code%3Aacme.json"
    assert home.meter_history_file("codex") == home.root / "meters" / "history" / "codex.jsonl"
    assert list(own_home.iterdir()) == []


def test_the_default_home_is_in_the_users_folder(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BULLSWARM_HOME")
    assert Home().root == own_home / ".bullswarm"
    assert Home("~/elsewhere").root == own_home / "elsewhere"


def test_a_home_is_for_its_owner_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "b").ensure()
    assert home.root.stat().st_mode & 0o777 == 0o700
    assert home.root.parent.stat().st_mode & 0o777 == 0o700
    write_json(home.meter_file("codex"), {})
    assert home.meters_dir.stat().st_mode & 0o777 == 0o700
    assert home.meter_file("codex").stat().st_mode & 0o777 == 0o600


def test_a_home_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot create the folder"):
        Home(tmp_path / "file" / "home").ensure()


@given(st.text(min_size=1))
def test_a_pool_id_becomes_one_safe_file_name(pool_id: str) -> None:
    name = file_name_of(pool_id)
    assert name
    assert "/" not in name
    assert not name.startswith(".")
    assert "\0" not in name
    assert name.isascii()


@given(st.text(min_size=1), st.text(min_size=1))
def test_two_pool_ids_never_share_a_file_name(one: str, other: str) -> None:
    assert (file_name_of(one) == file_name_of(other)) == (one == other)


@given(json_values)
def test_what_was_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.mktemp("round") / "value.json"
    write_json(path, value)
    assert read_json(path) == value
    assert [item.name for item in path.parent.iterdir()] == ["value.json"]


def test_a_missing_file_is_its_default_and_nothing_is_made(tmp_path: Path) -> None:
    assert read_json(tmp_path / "none" / "file.json") is None
    assert read_json(tmp_path / "none" / "file.json", default={"a": 1}) == {"a": 1}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{\n "a": 1,\n "b" 2\n}', "line 3"),
        (b"", "line 1"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": Infinity}', "Infinity"),
        (b'{"a":\n"\xff"}', "line 2"),
        (b"[" * 200_000, "line 1"),
        (b'{"a": ' + b"9" * 5000 + b"}", "line 1"),
    ],
)
def test_a_damaged_file_is_named_with_its_line_and_the_way_out(tmp_path: Path, content: bytes, line: str) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    with pytest.raises(StateError) as caught:
        read_json(path, default={})
    assert str(path) in str(caught.value)
    assert line in str(caught.value)
    assert f"mv {path}" in str(caught.value)
    assert caught.value.exit_code == 2
    assert path.read_bytes() == content


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot read .*Is a directory"):
        read_json(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot read"):
        read_json(tmp_path / "file" / "state.json")


def test_what_is_no_file_is_said_to_be_none_and_nobody_waits_for_it(tmp_path: Path) -> None:
    pipe, endless = tmp_path / "pipe.json", tmp_path / "endless.json"
    os.mkfifo(pipe)
    endless.symlink_to("/dev/zero")
    for path in (pipe, endless):
        with pytest.raises(StateError, match=r"cannot read .*it is no ordinary file"):
            read_json(path)


def test_a_byte_order_mark_and_half_a_surrogate_are_read_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": "\\ud800"}')
    value = read_json(path)
    assert value == {"a": "\ud800"}
    write_json(path, value)
    assert read_json(path) == value


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_lacks_is_refused_and_the_old_file_stays(tmp_path: Path, number: float) -> None:
    path = tmp_path / "state.json"
    write_json(path, {"a": 1})
    with pytest.raises(StateError, match="cannot write"):
        write_json(path, {"a": number})
    assert read_json(path) == {"a": 1}


def test_a_full_disk_keeps_the_old_file_and_leaves_no_rubbish(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_json(path, {"a": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        with pytest.raises(StorageError) as caught:
            write_bytes_atomic(path, b"x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "nothing was changed" in str(caught.value)
    assert caught.value.exit_code == 1
    assert read_json(path) == {"a": 1}
    assert [item.name for item in tmp_path.iterdir()] == ["state.json"]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "state.json"
    write_json(real, {"a": 1})
    link = tmp_path / "state.json"
    link.symlink_to(real)
    write_json(link, {"a": 2})
    assert link.is_symlink()
    assert read_json(real) == {"a": 2}


def test_a_killed_writer_never_leaves_a_part_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_json(path, {"round": 0})
    script = (
        "import sys; from pathlib import Path; from bullswarm_core.store.home import write_json\n"
        "n = 0\nprint('go', flush=True)\n"
        "while True:\n n += 1\n write_json(Path(sys.argv[1]), {'round': n, 'filling': 'x' * 100_000})\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, env=_environment()
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            assert set(read_json(path)) >= {"round"}
        child.kill()
    assert read_json(path)["round"] > 0


def test_a_lock_keeps_others_out_and_names_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "state.lock"
    with file_lock(path), pytest.raises(LockTimeoutError) as caught, file_lock(path, timeout_sec=0.05):
        pass
    assert str(os.getpid()) in str(caught.value)
    assert str(path) in str(caught.value)
    with file_lock(path, timeout_sec=0):
        pass


def test_a_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    path = tmp_path / "state.lock"
    script = (
        "import sys, time; from pathlib import Path; from bullswarm_core.store.home import file_lock\n"
        "with file_lock(Path(sys.argv[1])):\n print('held', flush=True)\n time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, env=_environment()
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(LockTimeoutError, match=f"process {child.pid}"), file_lock(path, timeout_sec=0.05):
            pass
        child.kill()
        child.wait()
        with file_lock(path, timeout_sec=1):
            pass


def test_a_lock_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot lock"), file_lock(tmp_path):
        pass


def test_a_file_holds_one_json_document_that_people_can_read(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"name": "Zoë"})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text == '{\n  "name": "Zoë"\n}\n'
    assert json.loads(text) == {"name": "Zoë"}


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
