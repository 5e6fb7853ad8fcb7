"""Files that a caller names are read whole, within a limit, and never waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bullswarm_core.errors import UsageError
from bullswarm_server.ops.files import parse_json_strict, read_regular, tail


def read(path: Path, most: int = 8) -> bytes:
    return read_regular(path, what=f"the file {path.name}", most=most, irregular="give a file", too_large="give less")


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "full").write_bytes(b"12345678")
    (tmp_path / "over").write_bytes(b"123456789")
    assert read(tmp_path / "full") == b"12345678"
    with pytest.raises(UsageError, match="the file over has more than 8 bytes · give less"):
        read(tmp_path / "over")


def test_what_is_no_file_is_refused_without_a_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(UsageError, match="is no regular file · give a file"):
            read(path)
    with pytest.raises(UsageError, match="cannot read the file away: No such file"):
        read(tmp_path / "away")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a": 1, "a": 2}', 'is not JSON: the key "a" stands twice in one object'),
        (b'{"a": NaN}', "is not JSON: NaN is not a JSON number"),
        (b"1" * 1001, "is not JSON: a number has 1001 digits"),
        (b"[" * 100_000, "is not JSON: it is nested too deeply"),
        (b'{"a": 1', "is not JSON: line 1 column 8: .* · read the rules"),
        ('{"a": 1}'.encode("utf-16"), "is not UTF-8 [(]byte 0[)]"),
    ],
)
def test_json_that_can_be_understood_in_two_ways_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_json_strict(data, what="the program", contract="read the rules")


def test_a_byte_order_mark_is_no_part_of_the_value() -> None:
    assert parse_json_strict(b'\xef\xbb\xbf{"a": 1}', what="the program", contract="") == {"a": 1}


def test_the_tail_says_whether_it_is_all(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one\ntwo\n")
    assert tail(tmp_path / "log", 4) == (b"two\n", True)
    assert tail(tmp_path / "log", 8) == (b"one\ntwo\n", False)
