"""What is read of a Claude account's usage free of charge: Claude Code's cached answer, and the events of our own runs."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.claude_metering import assert_in_range, ms, numbers
from tests.providers.metering import JUNK, NOW, Vendor, body, odd, profile, shown, with_binaries, write

from bullswarm_core.quota.observation import MeterContext, Observation
from bullswarm_core.streams.facts import ExitFacts, StreamFacts
from bullswarm_providers.claude_code.meter import cached_usage, event_windows, reading_in_stream

RECORDINGS = Path(__file__).parents[1] / "recordings"
ACCOUNT = "00000000-aaaa-4bbb-8ccc-000000000001"


@pytest.fixture
def environ(own_home: Path, tmp_path: Path) -> dict[str, str]:
    return with_binaries(tmp_path / "bin", "claude")


# --- Claude Code's own cache


def cached(**more: Any) -> dict[str, Any]:
    fetched = ms(NOW - timedelta(minutes=20))
    entry = {"fetchedAtMs": fetched, "accountUuid": ACCOUNT, "utilization": body("claude-code-usage"), **more}
    return {"oauthAccount": {"accountUuid": ACCOUNT}, "cachedUsageUtilization": entry}


def passive(pool: str, environ: dict[str, str]) -> tuple[Observation, ...]:
    own = profile(pool, environ)
    readings: tuple[Observation, ...] = own.provider.passive_readings(MeterContext(own, environ, NOW, Vendor().answer))
    return readings


def test_the_cached_answer_is_as_old_as_it_says(own_home: Path, environ: dict[str, str]) -> None:
    write(own_home / ".claude.json", cached())
    (reading,) = passive("claude-code", environ)
    assert reading.captured_at == NOW - timedelta(minutes=20)
    assert (reading.read_by, reading.overage) == ("Claude Code's cache", False)
    assert numbers(reading.windows) == {"5h": 41.0, "weekly": 62.0, "weekly opus": 18.0}
    assert {window.captured_at for window in reading.windows} == {reading.captured_at}


def test_each_account_has_a_cache_of_its_own(own_home: Path, environ: dict[str, str]) -> None:
    other = "00000000-aaaa-4bbb-8ccc-000000000002"
    write(own_home / ".claude.json", {"oauthAccount": {"accountUuid": ACCOUNT}})
    document = cached(accountUuid=other)
    document["oauthAccount"]["accountUuid"] = other
    write(own_home / ".claude-work/.claude.json", document)
    assert passive("claude-code", environ) == ()
    assert len(passive("claude-code:work", environ)) == 1


@pytest.mark.parametrize(
    "more",
    [{"accountUuid": "other"}, {"accountUuid": None}, {"fetchedAtMs": None}, {"fetchedAtMs": "x"}, {"fetchedAtMs": 1e30},
     {"fetchedAtMs": ms(NOW + timedelta(hours=1))}, {"fetchedAtMs": ms(NOW - timedelta(days=30))}, {"utilization": None},
     {"utilization": {}}],
)  # fmt: skip
def test_a_cache_that_is_not_proved_says_nothing(own_home: Path, environ: dict[str, str], more: dict[str, Any]) -> None:
    write(own_home / ".claude.json", cached(**more))
    assert passive("claude-code", environ) == ()


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"cachedUsageUtilization": 5}', "\x00"])
def test_a_damaged_settings_file_says_nothing(own_home: Path, environ: dict[str, str], content: str) -> None:
    write(own_home / ".claude.json", content)
    assert passive("claude-code", environ) == ()


def test_an_account_that_is_not_known_matches_no_cache() -> None:
    document = cached()
    assert cached_usage(document, account=None, now=NOW) is None
    del document["cachedUsageUtilization"]["accountUuid"]
    assert cached_usage(document, account=None, now=NOW) is None


@given(document=odd(cached()))
def test_no_cache_breaks_the_reader(document: Any) -> None:
    reading = cached_usage(document if isinstance(document, dict) else {}, account=ACCOUNT, now=NOW)
    if reading is not None:
        assert reading.captured_at <= NOW + timedelta(minutes=5)
        assert reading.windows
        assert all(window.resets_at is None or window.resets_at > NOW for window in reading.windows)


# --- the events of a stream: a used share of 0 to 1, Unix seconds


def recorded(case: str) -> list[bytes]:
    return (RECORDINGS / "claude-code" / f"{case}.jsonl").read_bytes().splitlines(keepends=True)


EVENT_TIME = datetime(2026, 11, 30, 6, 10, tzinfo=UTC)
SOON = EVENT_TIME + timedelta(minutes=30)


def test_the_event_beside_an_answer_tells_both_windows() -> None:
    reading = reading_in_stream(recorded("warned"), started_at=EVENT_TIME, now=SOON)
    assert reading is not None
    assert (reading.read_by, reading.captured_at, reading.overage) == (
        "stream",
        datetime(2026, 11, 30, 6, 15, 51, 369000, UTC),
        None,
    )
    assert shown(reading) == {"5h": (83.0, "2026-11-30T08:15:50Z"), "weekly": (62.0, "2026-12-03T08:15:50Z")}


def test_the_event_of_a_refusal_tells_a_full_window() -> None:
    reading = reading_in_stream(recorded("usage-limit"), started_at=EVENT_TIME, now=SOON)
    assert reading is not None
    assert numbers(reading.windows) == {"5h": 100.0, "weekly": 62.0}


@pytest.mark.parametrize(
    "case", ["text", "tool", "usage-limit-no-reset", "rate-limit", "denied", "killed", "hang", "unauthorized"]
)
def test_an_event_without_a_number_is_no_reading(case: str) -> None:
    assert reading_in_stream(recorded(case), started_at=EVENT_TIME, now=SOON) is None


def event(used: float, **more: Any) -> bytes:
    windows = {
        "five_hour": {"utilization": used, "resetsAt": int((NOW + timedelta(hours=3)).timestamp()), "status": "allowed"}
    }
    info = {"status": "allowed", "isUsingOverage": False, "unifiedWindows": windows, **more}
    return json.dumps({"type": "rate_limit_event", "rate_limit_info": info, "uuid": "u"}).encode() + b"\n"


def stamped(moment: datetime) -> bytes:
    line = {"type": "user", "message": {"content": []}, "timestamp": moment.isoformat().replace("+00:00", "Z")}
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def test_the_last_event_counts_from_the_last_time_before_it() -> None:
    ago = [NOW - timedelta(minutes=minutes) for minutes in (50, 40, 30, 20)]
    lines = [
        event(0.1),
        stamped(ago[1]),
        event(0.2),
        stamped(ago[2]),
        event(0.4),
        stamped(ago[3]),
        event(0.9, unifiedWindows={}),
    ]
    reading = reading_in_stream(lines, started_at=ago[0], now=NOW)
    assert reading is not None
    assert (reading.captured_at, numbers(reading.windows)) == (ago[2], {"5h": 40.0})
    first = reading_in_stream(lines[:1], started_at=ago[0], now=NOW)
    assert first is not None
    assert first.captured_at == ago[0]


def test_a_time_in_a_tools_own_words_does_not_count() -> None:
    inside = b'{"type":"user","tool_use_result":{"timestamp":"2026-11-30T08:59:00Z"},"uuid":"u"}\n'
    ahead = stamped(NOW + timedelta(days=1))
    reading = reading_in_stream([inside, event(0.4)], started_at=NOW - timedelta(hours=1), now=NOW)
    assert reading is not None
    assert reading.captured_at == NOW - timedelta(hours=1)
    reading = reading_in_stream([ahead, event(0.4)], started_at=NOW - timedelta(hours=1), now=NOW)
    assert reading is not None
    assert reading.captured_at == NOW


def test_words_of_an_agent_are_no_event() -> None:
    said = json.dumps(
        {"type": "assistant", "text": '{"type":"rate_limit_event","rate_limit_info":{"utilization":1}}'}
    ).encode()
    broken = event(0.9)[:-20] + b"\n"
    nested = json.dumps({"type": "assistant", "x": json.loads(event(0.9))}).encode()
    assert reading_in_stream([said, broken, nested, b"", b"\xff"], started_at=NOW, now=NOW) is None


def test_the_events_of_models_and_of_overage() -> None:
    told = {
        "rateLimitType": "seven_day_opus",
        "utilization": 0.5,
        "resetsAt": int((NOW + timedelta(days=2)).timestamp()),
    }
    reading = reading_in_stream([event(0.4, overageEnabled=True, **told)], started_at=NOW, now=NOW)
    assert reading is not None
    assert (numbers(reading.windows), reading.overage) == ({"5h": 40.0, "weekly opus": 50.0}, True)
    using = reading_in_stream([event(1.0, isUsingOverage=True)], started_at=NOW, now=NOW)
    assert using is not None and using.overage is True


@given(info=odd(json.loads(event(0.4))["rate_limit_info"] | {"rateLimitType": "five_hour", "utilization": 0.4}) | JUNK)
def test_no_event_breaks_the_reader(info: Any) -> None:
    assert_in_range(event_windows(info, captured_at=NOW, now=NOW), NOW)
    line = json.dumps({"type": "rate_limit_event", "rate_limit_info": info}).encode()
    reading = reading_in_stream([line], started_at=NOW, now=NOW)
    assert reading is None or reading.windows


@given(lines=st.lists(st.binary(max_size=200) | st.sampled_from([event(0.4), event(7.0), stamped(NOW)]), max_size=6))
def test_no_stream_breaks_the_reader(lines: list[bytes]) -> None:
    reading = reading_in_stream(lines, started_at=NOW - timedelta(minutes=5), now=NOW)
    assert reading is None or NOW - timedelta(minutes=5) <= reading.captured_at <= NOW


def test_an_attempts_stream_is_read_from_its_file(environ: dict[str, str], tmp_path: Path) -> None:
    pool, file = profile("claude-code", environ), tmp_path / "stream.jsonl"
    ended = ExitFacts("exited", started_at=NOW - timedelta(minutes=3))

    def reading() -> Observation | None:
        told: Observation | None = pool.provider.attempt_reading(
            pool, stream_file=file, stream=StreamFacts(), ended=ended, now=NOW
        )
        return told

    assert reading() is None
    file.write_bytes(b"x" * (2 << 20) + b"\n" + event(0.4))
    told = reading()
    assert told is not None
    assert (told.captured_at, numbers(told.windows)) == (NOW - timedelta(minutes=3), {"5h": 40.0})
