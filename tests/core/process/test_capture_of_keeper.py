"""Capture stays bounded on disk and in memory, goes on when the disk is full, and loses nothing uncounted."""

from __future__ import annotations

import errno
import os
import resource
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.keeper.keeping import Keeping, clocks, wait_for

from bullswarm_core.keeper.client import request_stop
from bullswarm_core.keeper.spec import CaptureLimits
from bullswarm_core.process.capture import (
    MEMORY_TAIL_BYTES,
    RETRY_BYTES,
    BoundedCapture,
    Follower,
    Gap,
    MemoryTail,
    captured_size,
    read_tail,
)

MEBIBYTE = 1024 * 1024
chunks = st.lists(st.binary(min_size=1, max_size=40), max_size=30)


def new_capture(path: Path, *, head: int = 50, segment: int = 20, segments: int = 3) -> BoundedCapture:
    return BoundedCapture(str(path), head_bytes=head, segment_bytes=segment, segments=segments)


@given(chunks, st.integers(1, 60), st.integers(1, 30), st.integers(1, 4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_head_and_newest_segments_are_kept_and_the_rest_is_counted(
    tmp_path: Path, pieces: list[bytes], head: int, segment: int, segments: int
) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    capture = new_capture(tmp_path / "out", head=head, segment=segment, segments=segments)
    for piece in pieces:
        capture.feed(piece)
    capture.close()
    stream = b"".join(pieces)
    read = Follower(tmp_path / "out").read()
    got = [piece for piece in read if isinstance(piece, bytes)]
    gaps = [piece.size for piece in read if isinstance(piece, Gap)]
    assert len(stream) == capture.total == sum(map(len, got)) + sum(gaps)
    assert capture.dropped == sum(gaps)
    assert b"".join(got)[:head] == stream[:head]
    assert captured_size(tmp_path / "out") <= head + segment * segments
    kept = min(len(stream), segment * (segments - 1) + 1)
    assert stream.endswith(b"".join(got)[-kept:])
    assert capture.error is None


def test_an_empty_stream_leaves_an_empty_file(tmp_path: Path) -> None:
    new_capture(tmp_path / "out").close()
    assert (tmp_path / "out").read_bytes() == b""
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600
    assert Follower(tmp_path / "out").read() == []


class Disk:
    """A disk that takes ``room`` bytes more and then says that it is full."""

    def __init__(self, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = room
        self._write = os.write
        monkeypatch.setattr("bullswarm_core.process.capture.os.write", self.write)

    def write(self, fd: int, data: memoryview) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = self._write(fd, data[: self.room])
        self.room -= taken
        return taken


def test_a_full_disk_is_survived_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Disk(1000, monkeypatch)
    capture = new_capture(tmp_path / "out", head=MEBIBYTE, segment=MEBIBYTE)
    for _ in range(300):
        capture.feed(b"x" * 10_000)
    capture.close()
    assert capture.total == 3_000_000
    assert capture.dropped == 2_999_000
    assert capture.error is not None
    assert "No space left on device" in capture.error
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "a retry left an empty segment"


def test_after_a_full_disk_capture_goes_on_with_what_memory_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(1000, monkeypatch)
    capture = new_capture(tmp_path / "out", head=MEBIBYTE, segment=8 * MEBIBYTE)
    stream = os.urandom(2 * RETRY_BYTES)
    for start in range(0, len(stream), 10_000):
        if start > RETRY_BYTES // 2:
            disk.room = 100 * MEBIBYTE
        capture.feed(stream[start : start + 10_000])
    capture.close()
    first, gap, *rest = Follower(tmp_path / "out").read()
    assert first == stream[:1000]
    assert gap == Gap(capture.dropped)
    tail = b"".join(piece for piece in rest if isinstance(piece, bytes))
    assert stream.endswith(tail)
    assert len(tail) >= MEMORY_TAIL_BYTES


def test_a_disk_that_has_room_again_at_the_end_gets_the_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(10, monkeypatch)
    capture = new_capture(tmp_path / "out", head=1000, segment=1000)
    capture.feed(b"the beginning, ")
    capture.feed(b"the middle, the end")
    disk.room = 1000
    capture.close()
    assert b"".join(piece for piece in Follower(tmp_path / "out").read() if isinstance(piece, bytes)) == (
        b"the beginning, the middle, the end"
    )
    assert capture.dropped == 0
    assert capture.error is not None


def test_a_folder_that_is_not_there_loses_nothing_uncounted(tmp_path: Path) -> None:
    capture = new_capture(tmp_path / "gone" / "out")
    capture.feed(b"words")
    capture.close()
    assert (capture.total, capture.dropped, capture.tail(99)) == (5, 5, b"words")
    assert capture.error is not None
    assert "No such file" in capture.error


@given(chunks, st.integers(1, 50))
def test_memory_tail_is_the_end_of_the_stream(pieces: list[bytes], limit: int) -> None:
    tail = MemoryTail(limit)
    for piece in pieces:
        tail.add(piece)
    assert tail.value() == b"".join(pieces)[-limit:]


def test_memory_tail_makes_no_object_of_every_byte() -> None:
    tail = MemoryTail(MEMORY_TAIL_BYTES)
    for _ in range(100_000):
        tail.add(b"x")
    assert len(tail._chunks) < 100


FLOOD = "import os\nb = b'0123456789abcde\\n' * 65536\nfor _ in range({count}): os.write(1, b)"


def peak_kib(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_flood_of_300_mb_is_drained_in_flat_memory(keeping: Keeping) -> None:
    limits = CaptureLimits(head_bytes=2 * MEBIBYTE, segment_bytes=MEBIBYTE, segments=3)
    kept = keeping.start(FLOOD.format(count=300) + "\nimport time; time.sleep(60)", capture=limits, clocks=clocks())
    wait_for(lambda: Path(f"{kept.spec.stdout_file}.tail-{299 * MEBIBYTE:015d}").exists(), seconds=40)
    peak = peak_kib(kept.keeper.pid)
    request_stop(kept.spec.stop_file, "stopped", "")
    facts = kept.end()
    assert peak < 32 * 1024, f"{peak} KiB"
    assert facts.output_bytes == 300 * MEBIBYTE
    assert captured_size(kept.spec.stdout_file) <= 5 * MEBIBYTE
    assert facts.dropped_bytes == 300 * MEBIBYTE - captured_size(kept.spec.stdout_file)
    assert read_tail(kept.spec.stdout_file, 16) == b"0123456789abcde\n"
    read = Follower(kept.spec.stdout_file).read()
    assert [piece.size for piece in read if isinstance(piece, Gap)] == [facts.dropped_bytes]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_line_of_30_mb_grows_nothing_and_hides_no_terminal_event(keeping: Keeping) -> None:
    code = (
        "import os\nos.write(1, b'{\"x\":\"')\nfor _ in range(30 * 16): os.write(1, b'y' * 65536)\n"
        'os.write(1, b\'","type":"result"}\\n\')\nimport time; time.sleep(60)'
    )
    kept = keeping.start(
        code, terminal=({"path": "type", "equals": ["result"]},), clocks=clocks(terminal_grace_sec=1.0, silence_sec=15)
    )
    wait_for(lambda: captured_size(kept.spec.stdout_file) > 30 * MEBIBYTE)
    peak = peak_kib(kept.keeper.pid)
    assert kept.end().reason == "after-terminal"
    assert peak < 32 * 1024, f"{peak} KiB"


def test_stderr_is_bounded_with_head_and_tail(keeping: Keeping) -> None:
    code = "import sys\nfor n in range(40000): print('line', n, file=sys.stderr)"
    kept = keeping.start(code, capture=CaptureLimits(stderr_bytes=40_000))
    facts = kept.end()
    assert captured_size(kept.spec.stderr_file) <= 40_000
    assert Path(kept.spec.stderr_file).read_bytes().startswith(b"line 0\n")
    assert facts.stderr_tail.endswith("line 39999\n")
    assert len(facts.stderr_tail) == 4096
    assert read_tail(kept.spec.stderr_file, 4096).decode() == facts.stderr_tail


def test_bytes_of_every_kind_reach_the_record(keeping: Keeping) -> None:
    kept = keeping.start("import os; os.write(2, bytes(range(256)) * 40); os.write(1, bytes(range(256)))")
    facts = kept.end()
    assert facts.reason == "exited"
    assert kept.stdout() == bytes(range(256))
    assert "\ufffd" in facts.stderr_tail


def test_a_full_disk_neither_stops_nor_kills_the_worker(keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit on the size of a file stands for the full disk; the keeper and all that it writes are under it."""
    import subprocess

    limit = 100_000
    run = subprocess.run

    def under_limit(*args: object, **options: object) -> object:
        options["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return run(*args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", under_limit)
    flood = "import os\nfor _ in range(64): os.write(1, b'z' * 65536)\n"
    code = flood + "os.write(1, b'the last words')\nraise SystemExit(5)"
    kept = keeping.start(code)
    facts = kept.end()
    assert (facts.reason, facts.exit_code) == ("exited", 5)
    assert facts.output_bytes == 64 * 65536 + 14
    assert "File too large" in facts.capture_error
    assert facts.dropped_bytes == facts.output_bytes - captured_size(kept.spec.stdout_file) > 0
    assert read_tail(kept.spec.stdout_file, 14) == b"the last words"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small disk")
def test_on_a_disk_that_is_really_full_the_exit_record_is_still_written(keeping: Keeping, tmp_path: Path) -> None:
    import subprocess

    from bullswarm_core.keeper import main

    disk = tmp_path / "disk"
    disk.mkdir()
    code = "import os\nfor _ in range(64): os.write(1, b'z' * 65536)\nraise SystemExit(5)"
    spec = keeping.spec(code, clocks=clocks(wall_sec=20))
    fields = {name: str(disk / Path(getattr(spec, name)).name) for name in FILES}
    from dataclasses import replace

    spec_file = tmp_path / "spec.json"
    replace(spec, cwd="/", **fields).write(spec_file)  # type: ignore[arg-type]
    script = (
        'mount -t tmpfs -o size=300k none "$1" && "$2" -I -S "$3" "$4"; echo code $?; cat "$1/exit.json"; ls "$1" >&2'
    )
    argv = ["unshare", "-m", "sh", "-c", script, "sh", str(disk), sys.executable, main.__file__, str(spec_file)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    assert "code 0" in done.stdout, done.stdout + done.stderr
    import json

    document = json.loads(done.stdout.split("\n", 1)[1])
    assert (document["reason"], document["exitCode"]) == ("exited", 5)
    assert "No space left on device" in document["captureError"]
    assert document["outputBytes"] == 64 * 65536
    assert 0 < document["droppedBytes"] < 64 * 65536


FILES = ("stdout_file", "stderr_file", "keeper_file", "exit_file", "stop_file", "lock_file")
