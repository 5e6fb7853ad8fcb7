"""Meter files, refusals and ``--meter``: what is not understood is no reading, and a missing number is never a zero."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.errors import UsageError
from bullswarm_core.pools import WINDOW_KINDS, Window, WindowKind
from bullswarm_core.quota.overrides import parse_meter, parse_meters, with_supposed
from bullswarm_core.quota.reading import (
    Reading,
    Refusal,
    load_reading,
    reading_from,
    record_refusal,
    refusal_after_limit,
    write_reading,
)
from bullswarm_core.quota.windows import spent_window
from bullswarm_core.store.home import Home, read_json, write_json

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=3)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def meter(**changes: Any) -> dict[str, Any]:
    window = {"kind": "weekly", "usedPct": 31, "resetsAt": "2026-03-05T00:00:00Z", "lengthSec": 604800}
    return {
        "schemaVersion": "bullswarm.meter.v1",
        "pool": "codex",
        "capturedAt": "2026-03-01T12:00:00Z",
        "windows": [{**window, "scope": None, "source": "live", "resetSource": "provider", **changes}],
        "refusal": None,
    }


def test_a_missing_meter_is_no_reading_and_no_problem(home: Home) -> None:
    assert load_reading(home, "codex", now=NOW) == Reading()
    assert not home.root.exists()


def test_a_reading_is_read_as_it_was_written(home: Home) -> None:
    windows = (
        Window("5h", 12.5, LATER, captured_at=NOW, source="live", reset_source="provider"),
        Window("weekly", None, None, captured_at=NOW, source="live"),
        Window(
            "monthly", 150.0, LATER, captured_at=NOW, source="live", length=timedelta(days=30), reset_source="named"
        ),
        Window("weekly", 5.0, LATER, captured_at=NOW, source="live", reset_source="provider", scope="opus"),
        Window("daily", 9.0, LATER, captured_at=NOW, source="declared", reset_source="declared"),
    )
    write_reading(home, "claude-code:acme", windows, captured_at=NOW)
    assert load_reading(home, "claude-code:acme", now=NOW) == Reading(NOW, windows)
    assert set(read_json(home.meter_file("claude-code:acme"))) == {
        "schemaVersion", "pool", "capturedAt", "windows", "refusal",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("age", "source"),
    [
        (timedelta(0), "live"),
        (timedelta(minutes=5), "live"),
        (timedelta(minutes=5, seconds=1), "cache"),
        (timedelta(minutes=60), "cache"),
        (timedelta(minutes=60, seconds=1), "stale"),
        (timedelta(minutes=-4), "live"),
        (timedelta(days=-1), "stale"),
    ],
)
def test_the_source_tells_the_age(age: timedelta, source: str) -> None:
    assert reading_from(meter(), now=NOW + age).windows[0].source == source


def test_a_reading_without_a_capture_time_is_stale() -> None:
    assert reading_from({**meter(), "capturedAt": None}, now=NOW).windows[0].source == "stale"


@pytest.mark.parametrize("used", [None, True, "31", -1, [], {}])
def test_what_is_no_number_is_unknown_and_never_zero(used: object) -> None:
    reading = reading_from(meter(usedPct=used), now=NOW)
    assert reading.windows[0].used_pct is None
    assert (reading.problem is None) == (used is None)


@pytest.mark.parametrize(
    "document",
    [
        [],
        "text",
        {"schemaVersion": "bullswarm.meter.v9", "windows": []},
        meter(kind="yearly"),
        meter(resetsAt="soon"),
        meter(resetsAt=12345),
        {**meter(), "windows": ["x"]},
        {**meter(), "windows": [], "refusal": {"kind": "century"}},
    ],
)
def test_what_cannot_be_understood_is_no_reading_and_is_named(document: object) -> None:
    reading = reading_from(document, now=NOW)
    assert reading.windows == ()
    assert reading.problem


def test_a_damaged_meter_file_is_no_reading_and_is_named(home: Home) -> None:
    write_json(home.meter_file("codex"), {})
    home.meter_file("codex").write_text('{"windows": [')
    reading = load_reading(home, "codex", now=NOW)
    assert reading.windows == ()
    assert "line 1" in (reading.problem or "")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


FIELDS = ("usedPct", "resetsAt", "lengthSec", "scope", "source", "resetSource")


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "capturedAt": json_values | st.just("2026-03-01T12:00:00Z"),
            "refusal": json_values
            | st.fixed_dictionaries({"kind": st.sampled_from(WINDOW_KINDS), "resetsAt": json_values}),
            "windows": json_values
            | st.lists(
                st.fixed_dictionaries(
                    {"kind": st.sampled_from(WINDOW_KINDS) | json_values},
                    optional=dict.fromkeys(FIELDS, json_values),
                )
            ),
        },
    )
)
def test_no_content_of_a_meter_file_ever_fails(document: dict[str, Any]) -> None:
    reading = reading_from(document, now=NOW)
    assert all(window.used_pct is None or window.used_pct >= 0 for window in reading.windows)


def test_a_refusal_keeps_the_pool_out_until_a_reset_that_is_known(home: Home) -> None:
    write_reading(home, "codex", [Window("weekly", 40, LATER, captured_at=NOW, source="live")], captured_at=NOW)
    record_refusal(home, "codex", Refusal("5h", NOW, LATER, "named"), now=NOW)
    reading = load_reading(home, "codex", now=NOW + timedelta(hours=2))
    assert {window.kind: window.source for window in reading.windows} == {"weekly": "stale", "5h": "refusal"}
    assert spent_window(reading.windows, NOW + timedelta(hours=2)) == Refusal("5h", NOW, LATER, "named").window()
    assert spent_window(reading.windows, LATER) is None


def test_a_refusal_with_a_guessed_reset_keeps_nothing_out(home: Home) -> None:
    record_refusal(home, "codex", Refusal("5h", NOW, LATER, "guessed"), now=NOW)
    assert spent_window(load_reading(home, "codex", now=NOW).windows, NOW) is None
    document = {**read_json(home.meter_file("codex")), "refusal": {"kind": "5h", "resetsAt": "2026-03-01T15:00:00Z"}}
    assert spent_window(reading_from(document, now=NOW).windows, NOW) is None


def test_a_later_reading_replaces_the_refusal(home: Home) -> None:
    record_refusal(home, "codex", Refusal("5h", NOW, LATER, "named"), now=NOW)
    write_reading(home, "codex", [Window("5h", 10, LATER, captured_at=NOW, source="live")], captured_at=NOW)
    assert spent_window(load_reading(home, "codex", now=NOW).windows, NOW) is None


WEEK_FULL = Window("weekly", 96, NOW + timedelta(days=2), captured_at=NOW)
BURST_FULL = Window("5h", 100, LATER, captured_at=NOW)
BURST_LOW = Window("5h", 50, LATER, captured_at=NOW)


@pytest.mark.parametrize(
    ("windows", "kind", "named", "expected"),
    [
        ((), None, LATER, ("5h", LATER, "named")),
        ((), None, NOW + timedelta(days=6), ("weekly", NOW + timedelta(days=6), "named")),
        ((), None, NOW + timedelta(days=20), ("monthly", NOW + timedelta(days=20), "named")),
        ((), "weekly", LATER, ("weekly", LATER, "named")),
        ((BURST_LOW,), "5h", None, ("5h", LATER, "measured")),
        ((WEEK_FULL, BURST_FULL), None, None, ("weekly", WEEK_FULL.resets_at, "measured")),
        ((BURST_LOW,), None, None, None),
        ((), None, None, None),
        ((), "5h", NOW - timedelta(minutes=1), None),
        ((Window("5h", 100, NOW, captured_at=NOW),), "5h", None, None),
        ((Window("5h", 100, None, captured_at=NOW),), "5h", None, None),
        ((Refusal("5h", NOW, LATER, "named").window(),), "5h", None, None),
    ],
)
def test_after_a_limit_only_a_known_reset_is_kept(
    windows: tuple[Window, ...], kind: WindowKind | None, named: datetime | None, expected: tuple[Any, ...] | None
) -> None:
    refusal = refusal_after_limit(windows, kind=kind, named_reset=named, now=NOW)
    assert (refusal and (refusal.kind, refusal.resets_at, refusal.reset_source)) == expected


@pytest.mark.parametrize(
    ("text", "pool", "kind", "used", "reset"),
    [
        ("codex:5h=81", "codex", "5h", 81, None),
        ("codex:5h=33%", "codex", "5h", 33, None),
        ("codex:weekly=0", "codex", "weekly", 0, None),
        ("codex:monthly=150.5%@+2h30m", "codex", "monthly", 150.5, NOW + timedelta(hours=2, minutes=30)),
        ("claude-code:acme:5h=81@+23m", "claude-code:acme", "5h", 81, NOW + timedelta(minutes=23)),
        ("a=b:daily=1@+1d2h3m4s", "a=b", "daily", 1, NOW + timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("codex:weekly=1@2026-03-05T00:00:00Z", "codex", "weekly", 1, datetime(2026, 3, 5, tzinfo=UTC)),
        ("codex:weekly=1@2026-03-05T02:00:00+02:00", "codex", "weekly", 1, datetime(2026, 3, 5, tzinfo=UTC)),
        ("codex:weekly=1@2026-03-05", "codex", "weekly", 1, datetime(2026, 3, 5, tzinfo=UTC)),
    ],
)
def test_a_supposed_meter(text: str, pool: str, kind: str, used: float, reset: datetime | None) -> None:
    found = parse_meter(text, now=NOW)
    assert found.pool == pool
    assert (found.window.kind, found.window.used_pct, found.window.resets_at) == (kind, used, reset)
    assert found.window.source == "live"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "it is not POOL:WINDOW=USED[@RESET]"),
        ("codex", "it is not POOL:WINDOW=USED[@RESET]"),
        ("codex=5", "it is not POOL:WINDOW=USED[@RESET]"),
        (":5h=5", "it is not POOL:WINDOW=USED[@RESET]"),
        ("codex:yearly=5", 'unknown window "yearly"; it is one of 5h, daily, weekly, monthly'),
        ("codex:5h=", '"" is not a percentage of 0 or more'),
        ("codex:5h=-1", '"-1" is not a percentage of 0 or more'),
        ("codex:5h=nan", '"nan" is not a percentage of 0 or more'),
        ("codex:5h=inf", '"inf" is not a percentage of 0 or more'),
        ("codex:5h=1e3", '"1e3" is not a percentage of 0 or more'),
        ("codex:5h=٣", '"٣" is not a percentage of 0 or more'),
        ("codex:5h=1@", '"" is neither an ISO-8601 time nor a distance such as +2h30m'),
        ("codex:5h=1@soon", '"soon" is neither an ISO-8601 time nor a distance such as +2h30m'),
        ("codex:5h=1@+", '"+" is neither an ISO-8601 time nor a distance such as +2h30m'),
        ("codex:5h=1@+5", '"+5" is neither an ISO-8601 time nor a distance such as +2h30m'),
        ("codex:5h=1@+30m2h", '"+30m2h" is neither an ISO-8601 time nor a distance such as +2h30m'),
    ],
)
def test_a_bad_supposition_is_named_exactly(text: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_meter(text, now=NOW)
    assert caught.value.message == f'--meter "{text}": {what}'
    assert caught.value.exit_code == 2


def test_one_window_is_supposed_once() -> None:
    assert len(parse_meters(["codex:5h=1", "codex:weekly=2", "grok:5h=3"], now=NOW)) == 3
    with pytest.raises(UsageError, match="codex:5h is given twice"):
        parse_meters(["codex:5h=1", "codex:5h=1"], now=NOW)


@given(
    st.from_regex(r"[a-z][a-z0-9-]{0,8}(:[a-z0-9.]{1,6})?", fullmatch=True),
    st.sampled_from(WINDOW_KINDS),
    st.floats(0, 1000).map(lambda number: round(number, 3)),
    st.integers(1, 40 * 86400),
)
def test_every_well_formed_supposition_is_read(pool: str, kind: WindowKind, used: float, seconds: int) -> None:
    found = parse_meter(f"{pool}:{kind}={used:.3f}@+{seconds}s", now=NOW)
    assert (found.pool, found.window.kind, found.window.used_pct) == (pool, kind, used)
    assert found.window.resets_at == NOW + timedelta(seconds=seconds)
    moment = (NOW + timedelta(seconds=seconds)).isoformat()
    assert parse_meter(f"{pool}:{kind}={used:.3f}%@{moment}", now=NOW) == found


@given(st.text(max_size=30))
def test_any_other_text_is_a_usage_error(text: str) -> None:
    try:
        parse_meter(text, now=NOW)
    except UsageError as error:
        assert text in error.message


def test_a_supposition_takes_the_place_of_what_was_read() -> None:
    supposed = Window("5h", 99, LATER)
    assert with_supposed((BURST_LOW, WEEK_FULL), {"5h": supposed}) == (WEEK_FULL, supposed)
