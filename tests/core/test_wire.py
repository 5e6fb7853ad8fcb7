"""Times are written in one form for documents and in one for columns, and as text the columns keep the order of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.wire import iso, parse_iso, stamp, whole_second

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
zones = st.integers(-14, 14).map(lambda hours: timezone(timedelta(hours=hours)))
moments = st.datetimes(datetime(1900, 1, 2), datetime(9998, 12, 30), timezones=zones)
near = st.integers(0, 2_000_000).map(lambda microseconds: NOON + timedelta(microseconds=microseconds))


@given(near | moments, near | moments)
def test_as_text_two_columns_stand_as_their_times_do(one: datetime, other: datetime) -> None:
    assert (stamp(one) <= stamp(other)) or one > other
    assert stamp(one) != stamp(other) or abs(one - other) < timedelta(milliseconds=1)
    assert len(stamp(one)) == len("2026-03-01T12:00:00.000Z")


@given(near | moments)
def test_a_document_tells_what_the_column_holds(moment: datetime) -> None:
    read = parse_iso(stamp(moment))
    assert parse_iso(iso(moment)) == read
    assert timedelta() <= moment - read < timedelta(milliseconds=1)
    assert whole_second(moment) == iso(read.replace(microsecond=0))


def test_the_forms_as_they_are_documented() -> None:
    assert (stamp(NOON), iso(NOON)) == ("2026-03-01T12:00:00.000Z", "2026-03-01T12:00:00Z")
    later = NOON + timedelta(milliseconds=120)
    assert (iso(later), whole_second(later)) == ("2026-03-01T12:00:00.120Z", "2026-03-01T12:00:00Z")
    assert whole_second(None) is None


@pytest.mark.parametrize("write", [stamp, iso, whole_second])
def test_a_time_without_a_zone_is_refused(write: object) -> None:
    assert callable(write)
    with pytest.raises(ValueError, match="no time zone"):
        write(datetime(2026, 3, 1))
