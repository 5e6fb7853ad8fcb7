"""The corner that hooks share with the server: times, files, numbers, text."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.fast.files import expanded, home_folder, is_behind, read_json, write_private
from bullswarm_core.fast.hook_state import number
from bullswarm_core.fast.moments import epoch_of, iso_of, span
from bullswarm_core.fast.text import clipped, one_line
from bullswarm_core.process.environment import expand_path
from bullswarm_core.store.home import Home
from bullswarm_core.wire import iso

moments = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))


@given(moments)
def test_a_time_is_read_as_the_documents_write_it(moment: datetime) -> None:
    read = epoch_of(iso(moment))
    assert read is not None and abs(read - moment.timestamp()) < 0.001


@given(moments)
def test_a_time_is_written_as_the_documents_write_it(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)
    assert iso_of(whole.timestamp()) == iso(whole)


@given(st.text(alphabet="0123456789-T:Z.+ ", max_size=26) | st.none() | st.integers())
def test_anything_else_is_no_time(value: object) -> None:
    read = epoch_of(value)
    assert read is None or isinstance(value, str)


@pytest.mark.parametrize(
    "text", ["2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00+01:00",
     "2026-01-01 00:00:00Z", "2026-01-01T00:00:00.Zx"]
)  # fmt: skip
def test_a_time_out_of_range_is_no_time(text: str) -> None:
    assert epoch_of(text) is None


def test_spans_are_short() -> None:
    assert [span(x) for x in (-1, 0, 59, 60, 3599, 3600, 90_000)] == [
        "0 s",
        "0 s",
        "59 s",
        "1 min",
        "59 min",
        "1 h",
        "1 d",
    ]


def test_the_home_is_found_as_home_finds_it(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for chosen in ("~/x", str(own_home / "y"), ""):
        monkeypatch.setenv("BULLSWARM_HOME", chosen)
        assert home_folder(os.environ) == str(Home().root)
    assert expanded("~", {"HOME": "/h"}) == "/h" and expanded("~x", {"HOME": "/h"}) == "~x"


@pytest.mark.parametrize(
    "environ", [{"HOME": "/h"}, {"HOME": "/h", "XDG_CONFIG_HOME": "/c"}, {"HOME": "/h", "XDG_CONFIG_HOME": ""}]
)
@pytest.mark.parametrize(
    "path", ["${XDG_CONFIG_HOME:-~/.config}/opencode", "~/.claude", "/abs/x", "${XDG_CONFIG_HOME:-/x}"]
)
def test_a_path_of_a_connector_is_read_as_the_server_reads_it(path: str, environ: dict[str, str]) -> None:
    assert expanded(path, environ) == expand_path(path, environ)


def test_a_private_file_is_whole_and_nobody_elses(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.json"
    write_private(str(file), {"x": "é"})
    assert read_json(str(file)) == {"x": "é"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    with pytest.raises(TypeError):
        write_private(str(file), {"x": object()})
    assert read_json(str(file)) == {"x": "é"} and [found.name for found in file.parent.iterdir()] == ["b.json"]


def test_a_private_file_does_not_follow_a_link_that_somebody_laid(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".b.json.{os.getpid()}.tmp").symlink_to(victim)
    with pytest.raises(OSError):
        write_private(str(tmp_path / "b.json"), {})
    assert victim.read_text() == "mine"


def test_the_cache_is_behind_what_was_decided_since(tmp_path: Path) -> None:
    home, cache = tmp_path, tmp_path / "cache" / "hook-state.json"
    assert not is_behind(str(home / "nowhere"))
    assert is_behind(str(home))
    (home / "state.json").write_text("{}")
    write_private(str(cache), {})
    os.utime(home / "state.json", (1, cache.stat().st_mtime - 10))
    assert not is_behind(str(home))
    (home / "pool-labels.json").write_text("{}")
    os.utime(home / "pool-labels.json", (1, cache.stat().st_mtime + 1))
    assert is_behind(str(home))
    (home / "pool-labels.json").unlink()
    for age in (400, -400):
        os.utime(cache, (1, __import__("time").time() - age))
        assert is_behind(str(home))


@given(st.text())
def test_one_line_is_one_printable_line(text: str) -> None:
    line = one_line(text)
    assert line.splitlines() in ([], [line]) and not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in line)
    assert len(clipped(line, 10)) <= 10


@pytest.mark.parametrize("value", [None, True, "1", float("nan"), float("inf"), 1e300, 10**400, []])
def test_what_is_no_number_is_missing(value: object) -> None:
    assert number(value) is None
