"""What vendors say of usage, in every unit and every odd form, and what becomes of it."""

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.meters.normalize import (
    duration,
    kind_of_length,
    moment,
    moment_after,
    number,
    one_of_each,
    used_of_fraction,
    used_of_remaining,
    used_of_share,
    used_percent,
    window,
)
from bullswarm_core.pools import Window, WindowKind
from bullswarm_core.quota.windows import WINDOW_LENGTHS

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
ODD: tuple[Any, ...] = (
    None, True, False, "", " ", "x", "NaN", "-1", "1e3", "0x10", "١٢", "9" * 5000, -1, -0.5, math.nan, math.inf, -math.inf,
    10**400, [], [1], {}, {"a": 1}, b"1", object(),
)  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=80) | st.sampled_from(ODD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:20])
def test_what_is_no_number_is_none_and_never_zero(value: Any) -> None:
    assert number(value) is None
    assert used_percent(value) is None
    assert used_of_fraction(value) is None
    assert used_of_remaining(value) is None
    assert used_of_share(value, 10) is None
    assert used_of_share(10, value) is None
    assert duration(value) is None
    assert moment(value) is None


@pytest.mark.parametrize(
    ("value", "used"), [(0, 0.0), (42, 42.0), ("42.5", 42.5), (100, 100.0), (137.2, 137.2), (1001, None), (1e300, None)]
)
def test_percent_used(value: Any, used: float | None) -> None:
    assert used_percent(value) == used


@pytest.mark.parametrize(
    ("value", "used"), [(0, 0.0), (0.07, 7.0), (0.83, 83.0), (1, 100.0), ("1.2", 120.0), (42, None)]
)
def test_a_fraction_used(value: Any, used: float | None) -> None:
    assert used_of_fraction(value) == used


@pytest.mark.parametrize(("value", "used"), [(100, 0.0), (98, 2.0), (0, 100.0), ("33.3", 66.7), (101, None)])
def test_percent_remaining(value: Any, used: float | None) -> None:
    assert used_of_remaining(value) == used


@pytest.mark.parametrize(
    ("used", "cap", "pct"), [(5, 20, 25.0), (0, 20, 0.0), (21, 20, 105.0), (0, 0, None), (1, 1e-300, None)]
)
def test_an_amount_of_a_cap(used: Any, cap: Any, pct: float | None) -> None:
    assert used_of_share(used, cap) == pct


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1796029200, NOW),
        (1796029200.5, NOW + timedelta(seconds=0.5)),
        (1796029200000, NOW),
        ("1796029200", NOW),
        ("2026-11-30T09:00:00Z", NOW),
        ("2026-11-30T10:00:00.000000+01:00", NOW),
        ("2026-11-30T09:00:00.123456789Z", NOW + timedelta(microseconds=123456)),
        ("2026-11-30T09:00:00", None),
        (9_999_999_999, None),
        (10_000_000_000, None),
        (5, None),
        (4102444800, None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
    ],
)
def test_a_moment_in_each_unit(value: Any, found: datetime | None) -> None:
    assert moment(value) == found


def test_a_time_without_an_offset_is_in_the_vendors_zone() -> None:
    assert moment("2026-11-30T17:00:00", zone=timezone(timedelta(hours=8))) == NOW
    assert moment("2026-11-30T17:00:00+08:00", zone=UTC) == NOW


def test_seconds_that_are_left() -> None:
    assert moment_after(90, NOW) == NOW + timedelta(seconds=90)
    assert moment_after(0, NOW) is None
    assert moment_after(1e12, NOW) is None


@pytest.mark.parametrize(
    ("hours", "kind"),
    [(1, "5h"), (5, "5h"), (12, "5h"), (24, "daily"), (72, "daily"), (168, "weekly"), (336, "weekly"), (672, "monthly"),
     (720, "monthly"), (744, "monthly"), (8760, "monthly")],
)  # fmt: skip
def test_a_length_tells_the_kind(hours: int, kind: WindowKind) -> None:
    assert kind_of_length(timedelta(hours=hours)) == kind


@pytest.mark.parametrize(
    ("used", "reset", "captured", "known"),
    [
        (40.0, NOW + timedelta(hours=2), NOW, NOW + timedelta(hours=2)),
        (40.0, None, NOW, None),
        (40.0, NOW + timedelta(hours=7), NOW, None),
    ],
)
def test_a_window_that_says_something(used: float, reset: Any, captured: datetime, known: Any) -> None:
    found = window("5h", used, reset, captured_at=captured, now=NOW, length=timedelta(hours=5))
    assert found is not None
    assert (found.used_pct, found.resets_at) == (used, known)
    assert found.reset_source == ("provider" if known else None)


def test_a_length_of_minutes_is_an_artefact() -> None:
    found = window("5h", 40.0, NOW + timedelta(hours=2), captured_at=NOW, now=NOW, length=timedelta(minutes=5))
    assert found == window("5h", 40.0, NOW + timedelta(hours=2), captured_at=NOW, now=NOW)


@pytest.mark.parametrize(
    ("used", "reset", "captured"),
    [
        (None, NOW + timedelta(hours=2), NOW),
        (40.0, NOW, NOW - timedelta(hours=1)),
        (40.0, NOW - timedelta(days=1), NOW - timedelta(days=1)),
        (100.0, None, NOW - timedelta(hours=5)),
    ],
)
def test_a_window_that_says_nothing_about_now(used: Any, reset: Any, captured: datetime) -> None:
    assert window("5h", used, reset, captured_at=captured, now=NOW) is None


def test_the_worse_of_two_windows_of_one_kind_stays() -> None:
    def told(used: float, scope: str | None = None, hours: int = 1) -> Window:
        return Window("5h", used, NOW + timedelta(hours=hours), scope=scope)

    found = one_of_each([told(10), None, told(90), told(20, "opus"), told(30, "Opus"), told(90, hours=2)])
    assert found == (told(90, hours=2), told(30, "Opus"))


@given(value=ANYTHING)
def test_no_value_breaks_a_reader(value: Any) -> None:
    for read in (number, used_percent, used_of_fraction, used_of_remaining):
        found = read(value)
        assert found is None or (math.isfinite(found) and found >= 0)
    used = used_percent(value)
    assert used is None or used <= 1000
    read_at = moment(value)
    assert read_at is None or (read_at.utcoffset() == timedelta(0) and 2000 <= read_at.year < 2100)
    length = duration(value)
    assert length is None or timedelta(0) < length <= timedelta(days=3653)


@given(
    used=st.none() | st.floats(0, 1000),
    reset=st.none() | st.datetimes(datetime(2000, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC)),
    captured=st.datetimes(datetime(2000, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC)),
    seconds=st.none() | st.floats(0.001, 3653 * 86400),
)
def test_a_window_never_outlives_itself(used: Any, reset: Any, captured: datetime, seconds: Any) -> None:
    length = None if seconds is None else duration(seconds)
    kind = "monthly" if length is None else kind_of_length(length)
    found = window(kind, used, reset, captured_at=captured, now=NOW, length=length)
    if found is not None:
        assert found.used_pct is not None
        assert found.resets_at is None or found.resets_at > NOW
        lasts = found.length or WINDOW_LENGTHS.get(kind, timedelta(days=31))
        assert found.resets_at is None or found.resets_at <= captured + lasts + timedelta(hours=1)
        assert found.resets_at is not None or captured + lasts > NOW
