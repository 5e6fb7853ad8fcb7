"""When a meter may be asked: hold, fresh cache, live, stale; and never silent for ever, whatever the clock did."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.pools import Window
from bullswarm_core.quota.holds import (
    FIRST_BACKOFF,
    LONGEST_BACKOFF,
    LONGEST_HOLD,
    Hold,
    clear_hold,
    hold_after,
    hold_file,
    hold_from,
    is_fresh,
    is_held,
    load_hold,
    may_ask_at,
    next_step,
    write_hold,
)
from bullswarm_core.quota.reading import Refusal, load_reading, write_reading
from bullswarm_core.quota.windows import readings
from bullswarm_core.store.home import Home, read_json, write_json

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
seconds = st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 90_000)
moments = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("kind", "retry_after", "pause"),
    [
        ("limited", None, 5 * MINUTE), ("limited", 0.0, 5 * MINUTE), ("limited", 12.0, 5 * MINUTE),
        ("limited", 1200.0, 20 * MINUTE), ("limited", 7200.0, 120 * MINUTE), ("limited", 1e12, LONGEST_HOLD),
        ("unreachable", None, 5 * MINUTE), ("unreachable", 0.0, 5 * MINUTE), ("unreachable", 30.0, MINUTE / 2),
        ("sign-in", None, 5 * MINUTE), ("limited", math.nan, 5 * MINUTE), ("limited", -5.0, 5 * MINUTE),
    ],
)  # fmt: skip
def test_a_failure_pauses_the_meter(kind: str, retry_after: float | None, pause: timedelta) -> None:
    assert hold_after(kind=kind, reason="x", retry_after_sec=retry_after, now=NOW).pause == pause


def test_the_pause_grows_with_each_429_to_half_an_hour_and_starts_anew_after_another_failure() -> None:
    hold: Hold | None = None
    pauses = []
    for _ in range(6):
        hold = hold_after(kind="limited", reason="429", now=NOW, previous=hold)
        pauses.append(hold.pause / MINUTE)
    assert pauses == [5, 10, 20, 30, 30, 30]
    other = hold_after(kind="unreachable", reason="down", now=NOW, previous=hold)
    assert hold_after(kind="limited", reason="429", now=NOW, previous=other).pause == FIRST_BACKOFF


@given(st.sampled_from(["limited", "unreachable", "sign-in", "refused"]), seconds, st.integers(0, 10**9), moments)
def test_every_hold_ends_within_a_day_and_after_a_429_not_within_five_minutes(
    kind: str, retry_after: float | None, failures: int, clock: datetime
) -> None:
    previous = Hold(NOW, FIRST_BACKOFF, "limited", "429", failures=failures + 1)
    hold = hold_after(kind=kind, reason="x", retry_after_sec=retry_after, previous=previous, now=NOW)
    assert timedelta(0) < hold.pause <= LONGEST_HOLD
    if kind == "limited":
        assert hold.pause >= FIRST_BACKOFF
        asked = retry_after if retry_after is not None and math.isfinite(retry_after) else 0.0
        assert hold.pause.total_seconds() <= max(LONGEST_BACKOFF.total_seconds(), asked + 1) or retry_after == math.inf
    # Whatever the clock says now: either it is free to ask, or it will be within a day.
    assert not is_held(hold, clock) or hold.until - clock <= LONGEST_HOLD + 5 * MINUTE


@given(moments, moments, st.floats(0, 86400))
def test_a_stamp_of_a_wrong_clock_never_delays_beyond_the_interval(
    stamp: datetime, clock: datetime, interval: float
) -> None:
    allowed = may_ask_at(stamp, interval, clock)
    assert clock <= allowed <= clock + timedelta(seconds=interval) + 5 * MINUTE


def windows(*, age: float = 0, kinds: tuple[str, ...] = ("5h", "weekly"), resets_in: float = 180) -> list[Window]:
    taken = NOW - age * MINUTE
    return [Window(kind, 10, NOW + resets_in * MINUTE, captured_at=taken) for kind in kinds]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "checked_ago", "expected"),
    [
        ([], None, False), ([], 1, True), ([], 5.1, False), (windows(age=4), None, True), (windows(age=6), None, False),
        (windows(kinds=("5h",)), None, False), (windows(kinds=("5h",)), 60, True), (windows(age=-1), None, True),
        ([*windows(kinds=("5h",)), *windows(kinds=("weekly",), age=9)], None, False),
        ([*windows(kinds=("5h",)), *windows(kinds=("weekly",), age=9)], 4, True),
        (windows(age=-30), None, False), ([], -30, False),
        # It ended since: nobody knows what came after.
        (windows(age=3, resets_in=-1), 3, False),
        # Told as over by the vendor itself: asking again would tell the same.
        (windows(age=3, resets_in=-4), 3, True),
    ],
)  # fmt: skip
def test_a_reading_is_fresh_when_all_was_told_within_five_minutes(
    found: list[Window], checked_ago: float | None, expected: bool
) -> None:
    checked_at = None if checked_ago is None else NOW - checked_ago * MINUTE
    assert is_fresh(found, checked_at=checked_at, declared=("5h", "weekly"), now=NOW) is expected


def test_a_marker_and_a_model_window_neither_make_nor_spoil_freshness() -> None:
    refusal = Window("weekly", 100, NOW + MINUTE, source="refusal", captured_at=NOW)
    scoped = Window("weekly", 10, NOW + MINUTE, captured_at=NOW - 99 * MINUTE, scope="opus")
    assert not is_fresh([refusal], checked_at=None, declared=("weekly",), now=NOW)
    assert is_fresh([*windows(), scoped], checked_at=None, declared=("weekly",), now=NOW)


HOLD = Hold(NOW - MINUTE, 5 * MINUTE, "limited", "429")


@pytest.mark.parametrize(
    ("fresh", "hold", "polled_ago", "force", "step"),
    [
        (True, None, None, False, "fresh"), (True, HOLD, None, False, "fresh"), (False, HOLD, None, False, "held"),
        (False, None, None, False, "live"), (True, HOLD, None, True, "live"), (False, None, 2, False, "waits"),
        (True, HOLD, 2, True, "waits"), (False, None, 3, False, "live"), (False, None, -60, False, "live"),
        (False, Hold(NOW - 6 * MINUTE, 5 * MINUTE), None, False, "live"),
        (False, Hold(NOW + 60 * MINUTE, 5 * MINUTE), None, False, "live"),
    ],
)  # fmt: skip
def test_the_next_step(fresh: bool, hold: Hold | None, polled_ago: float | None, force: bool, step: str) -> None:
    polled = None if polled_ago is None else NOW - polled_ago * MINUTE
    assert next_step(fresh=fresh, hold=hold, polled_at=polled, min_interval_sec=180, force=force, now=NOW) == step


# --- on disk


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_hold_survives_a_restart_and_is_forgotten_on_success(home: Home) -> None:
    hold = Hold(NOW, 7 * MINUTE, "limited", "api.example answered 429", "wait", 2)
    write_hold(home, "claude-code:acme", hold)
    assert load_hold(home, "claude-code:acme") == (hold, None)
    clear_hold(home, "claude-code:acme")
    clear_hold(home, "claude-code:acme")
    assert load_hold(home, "claude-code:acme") == (None, None)


@pytest.mark.parametrize(
    "change",
    [
        {"pauseSec": "long"}, {"pauseSec": -1}, {"pauseSec": True}, {"failedAt": "soon"}, {"failedAt": None}, {"failures": 0},
        {"failures": 1.5}, {"schemaVersion": "other"}, {"failedAt": "9999-12-31T23:59:59Z"},
    ],
)  # fmt: skip
def test_a_damaged_hold_is_ignored_and_told(home: Home, change: dict[str, object]) -> None:
    write_hold(home, "codex", HOLD)
    path = hold_file(home, "codex")
    write_json(path, {**read_json(path), **change})
    hold, trouble = load_hold(home, "codex")
    assert hold is None and trouble is not None and str(path) in trouble
    assert load_reading(home, "codex", now=NOW).problem == trouble


@pytest.mark.parametrize("text", ["", "{", "[]", "null1", "\x00"])
def test_a_hold_that_is_no_json_is_ignored_and_told(home: Home, text: str) -> None:
    write_hold(home, "codex", HOLD)
    hold_file(home, "codex").write_text(text)
    hold, trouble = load_hold(home, "codex")
    assert hold is None and trouble


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
names = st.sampled_from(["schemaVersion", "failedAt", "pauseSec", "kind", "reason", "failures", "hint"])


@given(st.recursive(plain, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=7)))
def test_any_document_is_borne(document: object) -> None:
    assert hold_from(document) is None


def test_a_marker_in_the_file_outranks_every_reading_beside_it_also_one_of_a_wrong_clock(home: Home) -> None:
    for age in (0, 30, -600_000):
        beside = [Window("weekly", 10, NOW + timedelta(days=900), captured_at=NOW - age * MINUTE)]
        marker = Refusal("weekly", NOW - 10 * MINUTE, NOW + 60 * MINUTE, "named")
        write_reading(home, "codex", beside, captured_at=NOW - age * MINUTE, refusal=marker)
        found = load_reading(home, "codex", now=NOW)
        assert readings(found.windows, NOW)["weekly", None].source == "refusal"
        assert found.refusal == marker


def test_a_reading_that_could_not_be_renewed_is_stale_and_one_without_a_sign_in_at_once(home: Home) -> None:
    write_reading(home, "codex", windows(age=10), captured_at=NOW - 10 * MINUTE)
    assert {one.source for one in load_reading(home, "codex", now=NOW).windows} == {"cache"}
    write_hold(home, "codex", HOLD)
    reading = load_reading(home, "codex", now=NOW)
    assert {one.source for one in reading.windows} == {"stale"} and reading.hold == HOLD
    write_reading(home, "codex", windows(age=2), captured_at=NOW - 2 * MINUTE)
    assert {one.source for one in load_reading(home, "codex", now=NOW).windows} == {"live"}
    write_hold(home, "codex", Hold(NOW - MINUTE, 5 * MINUTE, "sign-in", "401"))
    assert {one.source for one in load_reading(home, "codex", now=NOW).windows} == {"stale"}
    # What was read after the failure is as good as ever.
    write_reading(home, "codex", windows(), captured_at=NOW)
    assert {one.source for one in load_reading(home, "codex", now=NOW).windows} == {"live"}
