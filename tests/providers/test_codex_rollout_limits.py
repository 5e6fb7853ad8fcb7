"""Which line of which rollout is the newest word on a Codex account's limits."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.metering import NOW, Vendor, body, odd, profile, with_binaries, write

from bullswarm_core.quota.observation import MeterContext, Observation
from bullswarm_core.streams.facts import ExitFacts, StreamFacts
from bullswarm_providers.codex import rollout_limits
from bullswarm_providers.codex.rollout_limits import readings_of, rollout_readings

THREAD = "01a22b27-33d8-71a1-b7a8-526994a1f1a7"


def stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(minutes_ago: float, used: float | None, **more: Any) -> dict[str, Any]:
    limits: Any = {**body("codex-rollout"), "secondary": None, **more}
    if used is not None:
        limits["primary"] = {**limits["primary"], "used_percent": used}
    payload = {"type": "token_count", "info": None, "rate_limits": limits if used is not None else None}
    return {
        "timestamp": stamp(NOW - timedelta(minutes=minutes_ago)),
        "ordinal": 9,
        "type": "event_msg",
        "payload": payload,
    }


def meta(minutes_ago: float, **more: Any) -> dict[str, Any]:
    payload = {"id": THREAD, "base_instructions": "x" * 30_000, **more}
    return {"timestamp": stamp(NOW - timedelta(minutes=minutes_ago)), "type": "session_meta", "payload": payload}


def keep(folder: Path, name: str, *records: Any, day: str = "2026/11/30", written: float = 0) -> Path:
    path = folder / "sessions" / day / f"rollout-2026-11-30T06-31-59-{name}.jsonl"
    write(path, "".join(json.dumps(one) + "\n" for one in records))
    os.utime(path, (NOW.timestamp() - written * 60,) * 2)
    return path


def used(readings: tuple[Observation, ...]) -> list[float | None]:
    return [reading.windows[0].used_pct for reading in readings]


def test_no_sessions_say_nothing(tmp_path: Path) -> None:
    assert rollout_readings(tmp_path, now=NOW) == ()
    (tmp_path / "sessions").write_text("a file")
    assert rollout_readings(tmp_path, now=NOW) == ()


def test_the_last_line_that_tells_of_limits_counts(tmp_path: Path) -> None:
    keep(tmp_path, "a", meta(60), counted(50, 10), counted(40, 20), counted(30, None))
    (reading,) = rollout_readings(tmp_path, now=NOW)
    assert (reading.captured_at, reading.read_by, reading.overage) == (NOW - timedelta(minutes=40), "rollout", True)
    assert used((reading,)) == [20.0]


def test_the_newest_reading_is_not_in_the_newest_file(tmp_path: Path) -> None:
    keep(tmp_path, "a", meta(600), counted(5, 30), day="2026/11/28", written=5)
    keep(tmp_path, "b", meta(60), counted(50, 20), counted(20, None), written=1)
    keep(tmp_path, "c", meta(2), written=0)
    assert used(rollout_readings(tmp_path, now=NOW)) == [30.0]


def test_two_limits_are_kept_apart(tmp_path: Path) -> None:
    other = {"limit_id": "codex_other", "limit_name": "GPT-Other"}
    keep(tmp_path, "a", meta(60), counted(50, 10), counted(40, 77, **other), counted(30, 78, **other))
    newest, account = rollout_readings(tmp_path, now=NOW)
    assert (newest.windows[0].scope, newest.windows[0].used_pct) == ("GPT-Other", 78.0)
    assert (account.windows[0].scope, account.windows[0].used_pct) == (None, 10.0)
    assert account.captured_at == NOW - timedelta(minutes=50)


def test_a_forks_copied_history_is_no_new_reading(tmp_path: Path) -> None:
    parent = {"forked_from_id": "01a22b27-0000-71a1-b7a8-526994a1f1a7"}
    keep(tmp_path, "a", meta(60), counted(50, 40))
    fork = keep(tmp_path, "b", meta(10, **parent), counted(10, 5), counted(9.99, 6))
    assert used(rollout_readings(tmp_path, now=NOW)) == [40.0]
    with fork.open("a", encoding="utf-8") as file:
        file.write(json.dumps(counted(5, 45)) + "\n")
    assert used(rollout_readings(tmp_path, now=NOW)) == [45.0]


def test_a_thread_that_is_no_fork_may_tell_at_once(tmp_path: Path) -> None:
    keep(tmp_path, "a", meta(10, forked_from_id=None), counted(10, 40))
    assert used(rollout_readings(tmp_path, now=NOW)) == [40.0]


def test_of_two_lines_of_one_moment_the_worse_counts(tmp_path: Path) -> None:
    keep(tmp_path, "a", meta(60), counted(50, 40))
    keep(tmp_path, "b", meta(60), counted(50, 90))
    keep(tmp_path, "c", meta(60), counted(50, 60))
    assert used(rollout_readings(tmp_path, now=NOW)) == [90.0]


def test_only_the_end_of_a_long_rollout_is_read(tmp_path: Path) -> None:
    filler = {"type": "response_item", "payload": {"text": "x" * 700_000}}
    keep(tmp_path, "a", meta(60), counted(50, 10), filler)
    assert rollout_readings(tmp_path, now=NOW) == ()
    keep(tmp_path, "a", meta(60), counted(50, 10), filler, counted(40, 20))
    assert used(rollout_readings(tmp_path, now=NOW)) == [20.0]


def test_only_the_last_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout_limits, "_FILES_READ", 2)
    for number in range(5):
        keep(tmp_path, str(number), meta(60), counted(10 - number, number), written=number)
    assert used(rollout_readings(tmp_path, now=NOW)) == [1.0]


def test_a_window_that_has_been_reset_since_says_nothing(tmp_path: Path) -> None:
    path = keep(tmp_path, "a", meta(60), counted(50, 99))
    assert readings_of(path, now=NOW + timedelta(hours=3)) == {}


def test_a_line_from_the_future_is_of_a_wrong_clock(tmp_path: Path) -> None:
    keep(tmp_path, "a", meta(60), counted(50, 20), counted(-30, 99))
    assert used(rollout_readings(tmp_path, now=NOW)) == [20.0]


def test_a_file_that_may_not_be_read_is_passed_over(tmp_path: Path) -> None:
    keep(tmp_path, "a", meta(60), counted(50, 20))
    (tmp_path / "sessions/2026/11/30/rollout-x.jsonl").mkdir()
    (tmp_path / "sessions/2026/11/30/rollout-y.jsonl").symlink_to(tmp_path / "nowhere")
    assert used(rollout_readings(tmp_path, now=NOW)) == [20.0]


def test_a_line_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    path = keep(tmp_path, "a", meta(60), counted(50, 20))
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(counted(40, 30))[:-30])
    assert used(rollout_readings(tmp_path, now=NOW)) == [20.0]


@given(
    records=st.lists(odd(counted(30, 20)) | odd(meta(60, forked_from_id="x")) | st.just(counted(20, 30)), max_size=5),
    junk=st.binary(max_size=100),
)
def test_no_rollout_breaks_the_reader(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any], junk: bytes
) -> None:
    path = tmp_path_factory.mktemp("rollouts") / "rollout.jsonl"
    path.write_bytes(b"".join(json.dumps(record).encode() + b"\n" for record in records) + junk)
    for reading in readings_of(path, now=NOW).values():
        assert reading.windows
        assert datetime(2000, 1, 1, tzinfo=UTC) <= reading.captured_at <= NOW + timedelta(minutes=5)
        assert all(0 <= (window.used_pct or 0) <= 1000 for window in reading.windows)


def test_the_pool_tells_what_its_rollouts_hold(tmp_path: Path, own_home: Path) -> None:
    environ = with_binaries(tmp_path / "bin", "codex")
    write(own_home / ".codex/auth.json", {"tokens": {"access_token": "t"}})
    keep(own_home / ".codex", THREAD, meta(60), counted(50, 20), written=0)
    pool = profile("codex", environ)
    (reading,) = pool.provider.passive_readings(MeterContext(pool, environ, NOW, Vendor().answer))
    assert used((reading,)) == [20.0]
    told = pool.provider.attempt_reading(
        pool, stream_file=tmp_path / "none", stream=StreamFacts(session_id=THREAD), ended=ExitFacts("exited"), now=NOW
    )
    assert told == reading
    other = StreamFacts(session_id="01a22b27-0000-0000-0000-526994a1f1a7")
    assert (
        pool.provider.attempt_reading(pool, stream_file=tmp_path, stream=other, ended=ExitFacts("exited"), now=NOW)
        is None
    )
