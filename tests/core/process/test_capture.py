"""A follower reads a capture in the order of the stream, while it grows and long after, and counts what it missed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bullswarm_core.process import capture
from bullswarm_core.process.capture import (
    PIECE_BYTES,
    BoundedCapture,
    Follower,
    Gap,
    Segment,
    captured_size,
    read_tail,
    segments,
)


@given(st.lists(st.one_of(st.none(), st.binary(min_size=1, max_size=30)), max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_following_gives_every_byte_in_order_or_counts_it(tmp_path: Path, steps: list[bytes | None]) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    path = tmp_path / "out"
    capture = BoundedCapture(str(path), head_bytes=25, segment_bytes=10, segments=2)
    follower = Follower(path)
    stream, rebuilt = b"", bytearray()
    known = bytearray()
    for step in [*steps, None]:
        if step is not None:
            capture.feed(step)
            stream += step
            continue
        for piece in follower.read():
            rebuilt += bytes(piece.size) if isinstance(piece, Gap) else piece
            known += bytes(piece.size) if isinstance(piece, Gap) else b"\1" * len(piece)
    capture.close()
    assert len(rebuilt) == len(stream)
    assert all(not sure or got == sent for got, sent, sure in zip(rebuilt, stream, known, strict=True))
    assert follower.read() == []
    assert follower.position == len(stream)


def test_a_follower_that_keeps_up_misses_nothing(tmp_path: Path) -> None:
    capture = BoundedCapture(str(tmp_path / "out"), head_bytes=25, segment_bytes=10, segments=2)
    follower, read = Follower(tmp_path / "out"), b""
    for number in range(100):
        capture.feed(b"line %d\n" % number)
        for piece in follower.read():
            assert isinstance(piece, bytes)
            read += piece
    capture.close()
    assert read == b"".join(b"line %d\n" % number for number in range(100))


def test_before_the_beginning_there_is_nothing(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "later" / "out")
    assert follower.read() == []
    (tmp_path / "later").mkdir()
    assert follower.read() == []
    (tmp_path / "later" / "out").write_bytes(b"words")
    assert follower.read() == [b"words"]


def test_a_segment_that_vanishes_between_listing_and_reading_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"head.")
    (tmp_path / "out.tail-000000000000005").write_bytes(b"lost.")
    last = tmp_path / "out.tail-000000000000010"
    last.write_bytes(b"tail.")
    follower = Follower(path)
    pieces = follower.pieces()
    assert next(pieces) == b"head."
    (tmp_path / "out.tail-000000000000005").unlink()
    assert list(pieces) == [Gap(5), b"tail."]


def test_a_big_capture_comes_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"x" * (2 * PIECE_BYTES + 1))
    assert [len(piece) for piece in Follower(tmp_path / "out").read() if isinstance(piece, bytes)] == [
        PIECE_BYTES,
        PIECE_BYTES,
        1,
    ]


def test_files_with_other_names_are_no_segments(tmp_path: Path) -> None:
    for name in ("out", "out.tail-abc", "out.tail-", "out.tail-000000000000004", "out2.tail-000000000000009", "x"):
        (tmp_path / name).write_bytes(b"1234")
    assert [segment.path.name for segment in segments(tmp_path / "out")] == ["out", "out.tail-000000000000004"]
    assert captured_size(tmp_path / "out") == 8


def test_the_tail_crosses_segments_but_no_gap(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"head")
    (tmp_path / "out.tail-000000000000010").write_bytes(b"abc")
    (tmp_path / "out.tail-000000000000013").write_bytes(b"def")
    assert read_tail(tmp_path / "out", 2) == b"ef"
    assert read_tail(tmp_path / "out", 5) == b"bcdef"
    assert read_tail(tmp_path / "out", 50) == b"abcdef"
    assert read_tail(tmp_path / "none", 50) == b""


def settled(folder: Path) -> None:
    """Let the folder's last change lie so far back that a look at it is believed."""
    long_ago = time.time() - 60
    os.utime(folder, (long_ago, long_ago))


def test_a_quiet_capture_is_not_looked_for_among_the_files_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out"
    file.write_bytes(b"one")
    settled(tmp_path)
    follower = Follower(file)
    assert follower.read() == [b"one"]
    looks: list[str] = []

    def looked(file: str | Path) -> list[Segment]:
        looks.append("looked")
        return segments(file)

    monkeypatch.setattr(capture, "segments", looked)
    assert follower.read() == [] and looks == []
    with file.open("ab") as grown:
        grown.write(b"two")
    assert follower.read() == [b"two"] and looks == ["looked"]
    settled(tmp_path)
    assert follower.read() == [] and follower.read() == []
    (tmp_path / "out.tail-6").write_bytes(b"three")
    assert follower.read() == [b"three"]


def test_a_folder_that_has_just_changed_is_looked_at_again(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_bytes(b"one")
    follower = Follower(file)
    assert follower.read() == [b"one"]
    stamp = tmp_path.stat().st_mtime_ns
    (tmp_path / "out.tail-3").write_bytes(b"two")
    os.utime(tmp_path, ns=(stamp, stamp))  # as on a file system whose clock moves in long steps
    assert follower.read() == [b"two"]


def test_a_reader_that_stops_in_the_middle_goes_on_there(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_bytes(b"one")
    (tmp_path / "out.tail-3").write_bytes(b"two")
    settled(tmp_path)
    follower = Follower(file)
    assert next(iter(follower.pieces())) == b"one"
    assert follower.read() == [b"two"]
