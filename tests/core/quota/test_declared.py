"""A declared reset repeats by whole windows and never drifts."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.pools import Window
from bullswarm_core.quota.declared import WEEK, months_later, next_reset, with_declared_reset

moments = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
NOW = datetime(2026, 3, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("anchor", "after", "expected"),
    [
        ("2026-01-31T10:00:00", "2026-02-01T00:00:00", "2026-02-28T10:00:00"),
        ("2026-01-31T10:00:00", "2026-02-28T10:00:00", "2026-03-31T10:00:00"),
        ("2026-01-31T10:00:00", "2026-04-01T00:00:00", "2026-04-30T10:00:00"),
        ("2024-02-29T00:00:00", "2026-02-01T00:00:00", "2026-02-28T00:00:00"),
        ("2024-02-29T00:00:00", "2028-02-28T12:00:00", "2028-02-29T00:00:00"),
        ("2026-12-31T23:00:00", "2026-12-31T23:00:00", "2027-01-31T23:00:00"),
        ("2026-08-15T00:00:00", "2026-03-10T00:00:00", "2026-03-15T00:00:00"),
    ],
)
def test_months_are_calendar_months_with_the_day_clamped(anchor: str, after: str, expected: str) -> None:
    moment = next_reset(utc(anchor), "monthly", after=utc(after))
    assert moment == utc(expected)


def test_weeks_are_seven_days() -> None:
    anchor = utc("2026-01-01T08:00:00")
    assert next_reset(anchor, "weekly", after=utc("2026-03-10T00:00:00")) == utc("2026-03-12T08:00:00")
    assert next_reset(anchor, "weekly", after=utc("2026-03-12T08:00:00")) == utc("2026-03-19T08:00:00")
    assert next_reset(anchor, "weekly", after=utc("2025-12-30T00:00:00")) == utc("2026-01-01T08:00:00")


def test_an_anchor_of_another_zone_counts_in_utc() -> None:
    east = timezone(timedelta(hours=9))
    anchor = datetime(2026, 1, 1, 3, tzinfo=east)  # 31 December 18:00 UTC
    assert next_reset(anchor, "monthly", after=utc("2026-01-05T00:00:00")) == utc("2026-01-31T18:00:00")


@given(moments, moments)
def test_the_next_week_is_ahead_and_within_seven_days(anchor: datetime, after: datetime) -> None:
    reset = next_reset(anchor, "weekly", after=after)
    assert after < reset <= after + WEEK
    assert (reset - anchor) % WEEK == timedelta(0)


@given(moments, moments)
def test_the_next_month_is_ahead_and_the_one_before_is_not(anchor: datetime, after: datetime) -> None:
    reset = next_reset(anchor, "monthly", after=after)
    months = (reset.year - anchor.year) * 12 + reset.month - anchor.month
    assert reset == months_later(anchor, months)
    assert months_later(anchor, months - 1) <= after < reset
    assert reset.day == min(anchor.day, (months_later(reset.replace(day=1), 1) - timedelta(days=1)).day)
    assert reset.timetz() == anchor.timetz()


def test_only_undated_pacing_windows_take_the_declared_reset() -> None:
    dated = Window("weekly", 20, NOW + timedelta(days=1), reset_source="provider", captured_at=NOW)
    undated = Window("monthly", 30, captured_at=NOW)
    burst = Window("5h", 40, captured_at=NOW)
    anchor = utc("2026-01-31T00:00:00")
    found = with_declared_reset((dated, undated, burst), anchor=anchor, kind=None, now=NOW)
    assert found[0] == dated
    assert (found[1].resets_at, found[1].reset_source) == (utc("2026-03-31T00:00:00"), "declared")
    assert found[2] == burst
    assert with_declared_reset((undated,), anchor=anchor, kind="weekly", now=NOW) == (undated,)
    assert with_declared_reset((undated,), anchor=None, kind="monthly", now=NOW) == (undated,)


def test_a_reading_from_before_the_last_reset_belongs_to_a_window_that_is_over() -> None:
    old = Window("weekly", 95, captured_at=utc("2026-03-01T00:00:00"))
    (found,) = with_declared_reset((old,), anchor=utc("2026-03-04T00:00:00"), kind="weekly", now=NOW)
    assert found.resets_at == utc("2026-03-04T00:00:00")
    assert found.resets_at < NOW


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
