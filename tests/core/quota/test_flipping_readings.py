"""A window whose readings flip between two states, minutes apart and each with a reset of its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.pools import Window
from bullswarm_core.quota.reconcile import merged
from bullswarm_core.quota.windows import readings

NOW = datetime(2026, 9, 13, 9, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
USED_RESET, EMPTY_RESET = datetime(2026, 9, 15, 6, tzinfo=UTC), datetime(2026, 9, 17, 6, tzinfo=UTC)


def week(used: float, reset: datetime, *, minute: float, **more: Any) -> Window:
    return Window("weekly", used, reset, captured_at=NOW + minute * MINUTE, length=7 * DAY, **more)


def used_state(minute: float, used: float = 74) -> Window:
    return week(used, USED_RESET, minute=minute)


def empty_state(minute: float, used: float = 0) -> Window:
    return week(used, EMPTY_RESET, minute=minute)


def told(*series: Window, now: datetime = NOW + 2 * HOUR) -> tuple[Window, ...]:
    known: tuple[Window, ...] = ()
    for one in series:
        known = merged(known, [one], now=now, whole=True)
    return known


def in_force(windows: tuple[Window, ...], now: datetime = NOW + 2 * HOUR) -> Window:
    return readings(windows, now)["weekly", None]


def test_the_worse_state_counts_while_the_readings_alternate() -> None:
    flips = [used_state(0), empty_state(5), used_state(10, 75), empty_state(15), used_state(20, 76), empty_state(25)]
    for count in range(2, len(flips) + 1):
        known = told(*flips[:count])
        worst = max(one.used_pct or 0 for one in flips[:count])
        assert (in_force(known).used_pct, in_force(known).resets_at) == (worst, USED_RESET)
        assert {one.unstable for one in known} == {True}


def test_two_readings_that_agree_settle_it_either_way() -> None:
    granted = told(used_state(0), empty_state(5), empty_state(10, 1))
    assert [(one.used_pct, one.resets_at, one.unstable) for one in granted] == [(1, EMPTY_RESET, False)]
    held = told(used_state(0), empty_state(5), used_state(10, 75), used_state(15, 76))
    assert [(one.used_pct, one.resets_at, one.unstable) for one in held] == [(76, USED_RESET, False)]


def test_a_window_that_was_closed_early_and_has_not_begun_anew_is_settled_by_its_second_reading() -> None:
    """An unused window is dated anew at every reading, so that its reset is never told twice."""
    first, second = (week(0, NOW + minute * MINUTE + 7 * DAY, minute=minute) for minute in (5, 10))
    assert in_force(told(used_state(0), first)).used_pct == 74
    assert told(used_state(0), first, second) == (second,)


def test_a_reset_that_was_due_needs_no_second_witness() -> None:
    known = told(week(74, NOW + 3 * MINUTE, minute=0), week(0, NOW + 7 * DAY, minute=5))
    assert [(one.used_pct, one.unstable) for one in known] == [(0, False)]


def test_an_old_reading_is_no_witness_against_a_new_one() -> None:
    assert in_force(told(used_state(0), empty_state(61))).used_pct == 0


def test_once_the_worse_state_has_reached_its_reset_the_other_one_stands_alone() -> None:
    after = merged(told(used_state(0), empty_state(5)), [], now=USED_RESET)
    assert [(one.resets_at, one.unstable) for one in after] == [(EMPTY_RESET, False)]


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 60)), min_size=1, max_size=8))
def test_nobody_acts_on_the_better_state_before_it_was_told_twice_in_a_row(steps: list[tuple[bool, float]]) -> None:
    series, minute = [used_state(0)], 0.0
    for empty, apart in steps:
        minute += min(apart, 12) + 0.1
        series.append(empty_state(minute) if empty else used_state(minute))
    empty_at_last = next((n for n, one in enumerate(reversed(series)) if one.used_pct), len(series))
    assert in_force(told(*series)).used_pct == (0 if empty_at_last >= 2 else 74)
