"""A declared reset repeats by whole windows and never drifts."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.pools import Window, WindowKind
from bullswarm_core.quota.overrides import WEEK, months_later, next_reset, with_declared_reset
from bullswarm_core.quota.windows import elapsed_pct, is_current, length_of, minutes_left, starts_at

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


class Berlin(tzinfo):
    """A zone whose clocks go forward on 29 March and back on 25 October, at 01:00 UTC (no zone files are needed)."""

    def fromutc(self, moment: datetime) -> datetime:
        naive = moment.replace(tzinfo=None)
        summer = self._summer(naive)
        local = naive + timedelta(hours=2 if summer else 1)
        return local.replace(tzinfo=self, fold=int(not summer and self._summer(naive - timedelta(hours=1))))

    def utcoffset(self, moment: datetime | None) -> timedelta:
        assert moment is not None
        naive = moment.replace(tzinfo=None, fold=0)
        in_summer, in_winter = naive - timedelta(hours=2), naive - timedelta(hours=1)
        summer = self._summer(in_winter) if moment.fold else self._summer(in_summer)
        return timedelta(hours=2 if summer else 1)

    def tzname(self, moment: datetime | None) -> str:
        return "Berlin"

    def dst(self, moment: datetime | None) -> timedelta:
        return self.utcoffset(moment) - timedelta(hours=1)

    @staticmethod
    def _summer(in_utc: datetime) -> bool:
        return datetime(in_utc.year, 3, 29, 1) <= in_utc < datetime(in_utc.year, 10, 25, 1)


BERLIN = Berlin()
changes = st.sampled_from([datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)])
near_a_change = st.builds(
    lambda change, minutes: change + timedelta(minutes=minutes), changes, st.integers(-20_000, 20_000)
)
kinds = st.sampled_from(["5h", "daily", "weekly", "monthly"])


@given(near_a_change)
def test_the_zone_of_these_tests_is_one(moment: datetime) -> None:
    local = moment.astimezone(BERLIN)
    assert local.astimezone(UTC) == moment
    assert local.utcoffset() in (timedelta(hours=1), timedelta(hours=2))


@given(near_a_change, near_a_change, st.sampled_from(["weekly", "monthly"]))
def test_clocks_that_change_move_no_declared_reset(
    anchor: datetime, after: datetime, kind: Literal["weekly", "monthly"]
) -> None:
    expected = next_reset(anchor, kind, after=after)
    local = next_reset(anchor.astimezone(BERLIN), kind, after=after.astimezone(BERLIN))
    assert (local, local.utcoffset()) == (expected, timedelta(0))
    window = Window(kind, 20, captured_at=after.astimezone(BERLIN))
    (dated,) = with_declared_reset(
        (window,), anchor=anchor.astimezone(BERLIN), kind=None, now=(after + timedelta(days=1)).astimezone(BERLIN)
    )
    assert dated.resets_at == expected


@given(near_a_change, near_a_change, kinds)
def test_clocks_that_change_move_no_window(reset: datetime, now: datetime, kind: WindowKind) -> None:
    plain, local = Window(kind, 20, reset), Window(kind, 20, reset.astimezone(BERLIN))
    here = now.astimezone(BERLIN)
    assert length_of(local) == length_of(plain)
    assert starts_at(local) == starts_at(plain)
    assert is_current(local, here) == is_current(plain, now)
    assert minutes_left(local, here) == minutes_left(plain, now)
    assert elapsed_pct(local, here) == elapsed_pct(plain, now)


@given(moments, moments, st.timedeltas(-timedelta(days=400), timedelta(days=400)))
def test_a_clock_that_jumps_finds_the_reset_of_its_own_time(anchor: datetime, now: datetime, jump: timedelta) -> None:
    """Nothing is remembered from before a jump: forward or back, the next reset is the one after the clock's time."""
    for kind, longest in (("weekly", timedelta(days=7)), ("monthly", timedelta(days=31))):
        reset = next_reset(anchor, kind, after=now + jump)  # type: ignore[arg-type]
        assert now + jump < reset <= now + jump + longest
        assert next_reset(anchor, kind, after=reset - timedelta(microseconds=1)) == reset  # type: ignore[arg-type]
        assert next_reset(reset, "weekly", after=reset) == reset + WEEK


@given(st.integers(1970, 2100), st.integers(1, 12), st.integers(0, 60))
def test_month_ends_come_back_to_their_day(year: int, month: int, months: int) -> None:
    last = (datetime(year + month // 12, month % 12 + 1, 1, 9, 30, tzinfo=UTC)) - timedelta(days=1)
    later = months_later(last, months)
    assert later.day == min(last.day, days_in(later))
    assert months_later(last, months + 12).month == later.month
    if later.month == 2:
        leap = later.year % 4 == 0 and (later.year % 100 != 0 or later.year % 400 == 0)
        assert later.day == (min(last.day, 29) if leap else 28)


def days_in(moment: datetime) -> int:
    following = datetime(moment.year + moment.month // 12, moment.month % 12 + 1, 1)
    return (following - timedelta(days=1)).day


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
