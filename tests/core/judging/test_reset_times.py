"""When a limit ends: every form that real notices used, in every zone, read at the time it was written."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.judging.reset_times import JUST_PASSED, parse_reset

WRITTEN = datetime(2026, 11, 30, 5, 0, 30, tzinfo=UTC)
ZONES = ("UTC", "Asia/Hong_Kong", "Europe/Paris", "America/New_York", "Asia/Kathmandu", "Pacific/Chatham")


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You've hit your 5-hour limit · resets 8:20pm (Asia/Hong_Kong)", utc(2026, 11, 30, 12, 21)),
        ("You've hit your 5-hour limit · resets 6:32am (UTC)", utc(2026, 11, 30, 6, 33)),
        ("You've hit your weekly limit · resets 4am (Europe/Paris)", utc(2026, 12, 1, 3, 1)),
        ("You've hit your weekly limit · resets Dec 3, 8am (Europe/Berlin)", utc(2026, 12, 3, 7, 1)),
        ("You’ve hit your usage limit. or try again at 6:02 AM.", utc(2026, 11, 30, 6, 3)),
        ("You’ve hit your usage limit. Try again at Dec 3rd, 2026 5:20 PM.", utc(2026, 12, 3, 17, 21)),
        ("try again at 6:02\u202fAM.", utc(2026, 11, 30, 6, 3)),
        ("5-hour usage limit reached. It will reset in 3 hours 2 minutes…", utc(2026, 11, 30, 8, 2, 30)),
        ("resets in 2h 30m", utc(2026, 11, 30, 7, 30, 30)),
        ("resets in 1 day, 4 hours and 5 minutes", utc(2026, 12, 1, 9, 5, 30)),
        ("Please try again in 1.5s", utc(2026, 11, 30, 5, 0, 31) + timedelta(milliseconds=500)),
        ("Please try again in 250ms.", WRITTEN + timedelta(milliseconds=250)),
        ("Please wait 20 seconds and try again", utc(2026, 11, 30, 5, 0, 50)),
        ("retry after 30 seconds", utc(2026, 11, 30, 5, 1)),
        ("retry-after: 5400", utc(2026, 11, 30, 6, 30, 30)),
        ("Claude AI usage limit reached|1796020371", utc(2026, 11, 30, 6, 32, 51)),
        ("Your limit will reset at 2026-12-01 00:35:41", utc(2026, 12, 1, 0, 35, 41)),
        ("resets 2026-12-01T00:35:41Z", utc(2026, 12, 1, 0, 35, 41)),
        ("resets 2026-12-01T00:35:41.25+08:00", utc(2026, 11, 30, 16, 35, 41) + timedelta(milliseconds=250)),
        ("limit ends 2026-12-01T00:35:41Z", utc(2026, 12, 1, 0, 35, 41)),
        ("back at 18:45", utc(2026, 11, 30, 18, 46)),
        ("quota used up until 18:45:10 UTC", utc(2026, 11, 30, 18, 45, 10)),
        ("resets 06:02 UTC+8", utc(2026, 11, 30, 22, 3)),
        ("resets at 7am PST", utc(2026, 11, 30, 15, 1)),
        ("resets Wednesday at 9am", utc(2026, 12, 2, 9, 1)),
        ("resets tomorrow at 8am (UTC)", utc(2026, 12, 1, 8, 1)),
        ("resets at midnight (UTC)", utc(2026, 12, 1)),
        ("Your limit resets weekly. Try again at 6:02 AM", utc(2026, 11, 30, 6, 3)),
        ("resets 3 Dec 2026, 8:15 am", utc(2026, 12, 3, 8, 16)),
    ],
)
def test_real_forms(text: str, expected: datetime) -> None:
    assert parse_reset(text, written_at=WRITTEN) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "You've hit your usage limit. Try again later.", "resets soon", "resets at 5", "resets 9/12/2026, 12:35 AM",
        "resets 7am (Nowhere/Land)", "resets 7am (America)", "resets at 7am CST",
        "resets Feb 31, 8am", "resets 25:70", "try again at 13:00pm", "resets 2026-13-45T99:99:99Z",
        "resets in 99999999999999999999 hours", "resets in 9999999 weeks", "at 5:20 PM we met the limit", "see https://x/reset/2026",
        "resets Jan 15, 8am (Europe/Berlin)",  # six weeks ahead: beyond the horizon
        "resets 2026-09-12 00:35:41",  # long past, and its clock is not today's
    ],
)  # fmt: skip
def test_what_names_no_time_stays_unknown(text: str) -> None:
    assert parse_reset(text, written_at=WRITTEN) is None


def test_a_stated_minute_means_its_end() -> None:
    """Read as 3:13:00, a retry at 3:13:09 comes up to 50 seconds early and spends the one try."""
    written = utc(2026, 9, 15, 3, 13, 9)
    assert parse_reset("try again at Sep 15th, 2026 3:13 AM", written_at=written) == utc(2026, 9, 15, 3, 14)


def test_a_time_that_just_passed_is_due_now_and_not_tomorrow() -> None:
    """Providers print a reset a little before or after it happens."""
    written = utc(2026, 11, 30, 10, 5)
    assert parse_reset("resets 10am", written_at=written) == utc(2026, 11, 30, 10, 1)
    assert parse_reset("resets 9am", written_at=written) == utc(2026, 12, 1, 9, 1)


def test_a_line_is_read_at_the_time_it_was_written() -> None:
    assert parse_reset("resets 10am", written_at=utc(2026, 11, 30, 9, 58)) == utc(2026, 11, 30, 10, 1)


def test_midnight_belongs_to_both_days() -> None:
    written = utc(2026, 12, 31, 23, 58, 30)
    assert parse_reset("resets 12:03am", written_at=written) == utc(2027, 1, 1, 0, 4)
    assert parse_reset("resets 11:55pm", written_at=utc(2027, 1, 1, 0, 1)) == utc(2026, 12, 31, 23, 56)


def test_a_date_without_a_year_is_the_nearest_to_come() -> None:
    """A date without a year is the nearest to come."""
    written = utc(2026, 12, 30, 12)
    assert parse_reset("resets Jan 2, 8am (Europe/Berlin)", written_at=written) == utc(2027, 1, 2, 7, 1)


def test_a_wider_horizon_is_the_callers_choice() -> None:
    text = "try again at Dec 28th, 2026 5:20 PM"
    assert parse_reset(text, written_at=WRITTEN) is None
    assert parse_reset(text, written_at=WRITTEN, horizon=timedelta(days=31)) == utc(2026, 12, 28, 17, 21)


def test_a_short_horizon_refuses_tomorrows_clock() -> None:
    assert parse_reset("resets 4am", written_at=WRITTEN, horizon=timedelta(hours=5)) is None


def test_a_naive_stamp_takes_the_providers_zone() -> None:
    """A stamp without a zone belongs to the zone of the provider."""
    text = "Your limit will reset at 2026-11-30 20:35:41"
    assert parse_reset(text, written_at=WRITTEN, zone="Asia/Shanghai") == utc(2026, 11, 30, 12, 35, 41)
    assert parse_reset(text, written_at=WRITTEN, zone=timezone(timedelta(hours=8))) == utc(2026, 11, 30, 12, 35, 41)


def test_the_hour_that_exists_twice_and_the_hour_that_does_not() -> None:
    # New York puts its clocks back on 1 November 2026: 1:30 comes at 05:30Z and again at 06:30Z.
    text = "resets 1:30am (America/New_York)"
    assert parse_reset(text, written_at=utc(2026, 11, 1, 4, 0)) == utc(2026, 11, 1, 5, 31)
    assert parse_reset(text, written_at=utc(2026, 11, 1, 5, 35)) == utc(2026, 11, 1, 6, 31)
    # It puts them forward on 8 March 2026: 2:30 does not exist and is read as 3:30 summer time.
    written = utc(2026, 3, 8, 6, 0)
    assert parse_reset("resets 2:30am (America/New_York)", written_at=written) == utc(2026, 3, 8, 7, 31)
    # A day is 23 or 25 hours long across the change.
    assert parse_reset("resets 9am (America/New_York)", written_at=utc(2026, 10, 31, 14)) == utc(2026, 11, 1, 14, 1)


def test_a_log_stamp_at_the_head_is_not_the_reset() -> None:
    text = "2026-11-30T05:00:20Z ERROR You've hit your usage limit, try again at 6:02 AM"
    assert parse_reset(text, written_at=WRITTEN) == utc(2026, 11, 30, 6, 3)
    assert parse_reset("2026-11-30T05:00:20Z ERROR You've hit your usage limit.", written_at=WRITTEN) is None


def test_a_naive_clock_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        parse_reset("resets 10am", written_at=datetime(2026, 11, 30))


def _ordinal(day: int) -> str:
    return f"{day}{'th' if 11 <= day <= 13 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


moments = st.datetimes(min_value=datetime(2026, 1, 2), max_value=datetime(2030, 12, 30), timezones=st.just(UTC))
zones = st.sampled_from(ZONES)


@given(written=moments, ahead=st.integers(min_value=61, max_value=23 * 3600), zone=zones)
def test_round_trip_of_a_wall_clock(written: datetime, ahead: int, zone: str) -> None:
    reset = written + timedelta(seconds=ahead)
    local = reset.astimezone(ZoneInfo(zone))
    text = f"You've hit your 5-hour limit · resets {local.strftime('%I:%M%p').lower().lstrip('0')} ({zone})"
    found = parse_reset(text, written_at=written)
    assert found is not None
    twice = {local.replace(fold=fold).utcoffset() for fold in (0, 1)}
    if len(twice) == 1:
        assert timedelta(0) < found - reset <= timedelta(minutes=1)


@given(written=moments, ahead=st.integers(min_value=61, max_value=7 * 86400 - 120), zone=zones)
def test_round_trip_of_a_dated_clock(written: datetime, ahead: int, zone: str) -> None:
    reset = written + timedelta(seconds=ahead)
    local = reset.astimezone(ZoneInfo(zone))
    if len({local.replace(fold=fold).utcoffset() for fold in (0, 1)}) > 1:
        return
    clock = local.strftime("%I:%M %p").lstrip("0")
    for text in (
        f"try again at {local.strftime('%b')} {_ordinal(local.day)}, {local.year} {clock}.",
        f"resets {local.strftime('%B')} {local.day} at {clock}",
    ):
        found = parse_reset(text, written_at=written, zone=zone)
        assert found is not None
        assert timedelta(0) < found - reset <= timedelta(minutes=1)


@given(written=moments, ahead=st.integers(min_value=1, max_value=7 * 86400 - 1), hours=st.integers(-12, 14))
def test_round_trip_of_a_stamp(written: datetime, ahead: int, hours: int) -> None:
    reset = (written + timedelta(seconds=ahead)).replace(microsecond=0)
    stamp = reset.astimezone(timezone(timedelta(hours=hours))).isoformat()
    assert parse_reset(f"limit resets at {stamp}", written_at=written) == reset


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59))
def test_round_trip_of_a_wait(hours: int, minutes: int, seconds: int) -> None:
    expected = WRITTEN + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    for text in (f"in {hours} hours {minutes} minutes {seconds} seconds", f"in {hours}h{minutes}m{seconds}s"):
        assert parse_reset(f"try again {text}", written_at=WRITTEN) == expected


@given(st.text(alphabet="resets try again at in 0123456789:/-.,()apmZTUCDec", max_size=200))
def test_any_text_is_read_or_refused_within_bounds(text: str) -> None:
    found = parse_reset(text, written_at=WRITTEN)
    assert found is None or WRITTEN - JUST_PASSED <= found <= WRITTEN + timedelta(days=7)
