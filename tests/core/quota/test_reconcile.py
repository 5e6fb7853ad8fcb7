"""Which reading of a window counts when another one comes: the newer, unless the two contradict each other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.pools import Window
from bullswarm_core.quota.reading import Refusal
from bullswarm_core.quota.reconcile import merged, normal_reset, refusal_left
from bullswarm_core.quota.windows import readings

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
RESET = NOW + 3 * HOUR


def window(used: float | None, *, at: float = 0, reset: datetime | None = RESET, **more: Any) -> Window:
    """A 5-hour window, read ``at`` seconds from now."""
    return Window(**{"kind": "5h", "used_pct": used, "resets_at": reset, "captured_at": NOW + at * SECOND, **more})


def told(*series: Window, now: datetime = NOW + HOUR, whole: bool = False) -> tuple[Window, ...]:
    known: tuple[Window, ...] = ()
    for one in series:
        known = merged(known, [one], now=now, whole=whole)
    return known


def acts_on(windows: tuple[Window, ...], now: datetime = NOW + HOUR) -> float | None:
    found = readings(windows, now).get(("5h", None))
    return found.used_pct if found else None


@pytest.mark.parametrize(
    ("series", "used", "unstable"),
    [
        ([window(74), window(0, at=60)], 74, True),
        ([window(0), window(74, at=60)], 74, True),
        # Alternating readings: the worse holds as long as no two in a row agree, however far apart they are.
        ([window(74), window(0, at=60), window(74, at=400)], 74, True),
        ([window(74), window(0, at=60), window(74, at=120), window(0, at=700)], 74, True),
        ([window(74), window(0, at=60), window(0, at=700)], 0, False),
        ([window(74), window(0, at=60), window(74, at=120), window(75, at=700)], 75, False),
        # Work fills a window, and some sources round.
        ([window(30), window(33, at=60)], 33, False),
        ([window(30.6), window(30, at=60)], 30, False),
        # More than two minutes apart the newer one counts.
        ([window(74), window(0, at=121)], 0, False),
        # Another reset is another window: it may come early, which two readings that agree prove, and a date may move.
        ([window(74), window(0, at=60, reset=RESET + 2 * HOUR)], 74, True),
        ([window(74), window(0, at=60, reset=RESET + 2 * HOUR), window(0, at=360, reset=RESET + 2 * HOUR)], 0, False),
        ([window(74), window(60, at=60, reset=RESET - HOUR)], 60, False),
        ([window(74), window(0, at=60, reset=RESET + 60 * SECOND)], 74, True),
        ([window(74), window(None, at=60)], 74, False),
    ],
)
def test_two_readings_of_one_window(series: list[Window], used: float, unstable: bool) -> None:
    known = told(*series)
    assert acts_on(known) == used
    assert {one.unstable for one in known} == {unstable}
    assert len(known) == 1 + unstable


def test_one_reading_read_twice_settles_nothing() -> None:
    low = window(0, at=60)
    assert told(window(74), low, low, low) == told(window(74), low)


def test_a_source_that_tells_one_window_loses_none_of_the_others() -> None:
    known = (window(10), window(20, kind="weekly", reset=NOW + 72 * HOUR), window(90, kind="weekly", scope="opus"))
    after = merged(known, [window(12, at=300)], now=NOW + HOUR)
    assert after[1:] == known[1:] and after[0].used_pct == 12
    assert [one.captured_at for one in after] == [NOW + 300 * SECOND, NOW, NOW]


def test_a_window_that_has_ended_leaves_and_one_without_a_reset_stays_for_an_hour_after_it_is_no_longer_told() -> None:
    known = (
        window(10, reset=NOW + MINUTE),
        window(20, kind="weekly", reset=None),
        window(5, kind="monthly", reset=RESET),
    )
    assert [one.kind for one in merged(known, [], now=NOW + HOUR)] == ["weekly", "monthly"]
    assert [one.kind for one in merged(known, [], now=NOW + HOUR, whole=True)] == ["weekly", "monthly"]
    assert [one.kind for one in merged(known, [], now=NOW + 61 * MINUTE, whole=True)] == ["monthly"]


@pytest.mark.parametrize(
    ("told_before", "whole", "stays"),
    [
        # The first answer without a window is no proof yet; the second one, minutes later, is.
        (None, True, True),
        (NOW - MINUTE, True, True),
        (NOW, True, True),
        (NOW + 5 * MINUTE, True, False),
        (NOW + 59 * MINUTE, True, True),
        (NOW + 5 * MINUTE, False, True),
    ],
)
def test_a_window_that_two_whole_answers_leave_out_is_closed(
    told_before: datetime | None, whole: bool, stays: bool
) -> None:
    full = window(100)
    after = merged((full,), [window(20, kind="weekly", at=3600)], now=NOW + HOUR, whole=whole, told_before=told_before)
    assert (full in after) is stays


def test_what_the_person_declared_is_no_window_that_an_answer_could_leave_out() -> None:
    declared = window(100, source="declared")
    assert merged((declared,), [], now=NOW + HOUR, whole=True, told_before=NOW + MINUTE) == (declared,)


def test_of_two_limits_of_one_kind_in_one_answer_the_fuller_counts() -> None:
    assert acts_on(merged((), [window(30), window(80), window(10)], now=NOW)) == 80


def test_what_a_later_source_leaves_out_is_kept_of_the_same_window() -> None:
    (one,) = told(window(40), window(42, at=600, reset=None))
    assert (one.used_pct, one.resets_at) == (42, RESET)
    (other,) = told(window(40), window(3, at=600, reset=None))
    assert (other.used_pct, other.resets_at) == (3, None)
    (third,) = told(window(40), window(None, at=600, reset=RESET + MINUTE))
    assert (third.used_pct, third.resets_at, third.captured_at) == (40, RESET + MINUTE, NOW)


def test_a_reset_is_told_in_whole_seconds() -> None:
    exact = datetime(2026, 3, 1, 5, 0, 0, tzinfo=UTC)
    assert normal_reset(exact - timedelta(microseconds=57_000)) == exact
    assert normal_reset(exact + timedelta(microseconds=499_999)) == exact
    (one,) = told(window(1, reset=RESET + timedelta(microseconds=943_648)))
    assert one.resets_at == RESET + SECOND
    assert normal_reset(datetime.max.replace(tzinfo=UTC)) is not None


percents = st.floats(0, 120, allow_nan=False)
offsets = st.integers(-3000, 3000)
some = st.builds(
    lambda used, at, reset: window(used, at=at, reset=reset),
    percents, offsets, st.sampled_from([None, RESET, RESET + 90 * SECOND, RESET + 4 * HOUR, NOW - HOUR]),
)  # fmt: skip


def has_not_ended(one: Window) -> bool:
    # One that has is forgotten, so nothing tells any more that it was the later one.
    return one.resets_at is None or one.resets_at > NOW + HOUR


@given(some.filter(has_not_ended), some.filter(has_not_ended))
def test_the_order_in_which_two_readings_arrive_does_not_matter(one: Window, other: Window) -> None:
    if one.captured_at == other.captured_at:
        return
    assert set(told(one, other)) == set(told(other, one))


@given(st.lists(some, max_size=8))
def test_the_worse_of_the_last_two_never_gets_lost_while_they_contradict_each_other(series: list[Window]) -> None:
    known = told(*series)
    assert len(known) <= 2 and len({(one.unstable) for one in known}) <= 1
    assert all(one.unstable for one in known) == (len(known) == 2) or not known
    if len(known) == 2:
        assert acts_on(known) == max(one.used_pct or 0 for one in known)


@given(st.integers(6, 10_000_000), percents)
def test_a_reading_of_a_wrong_clock_never_outranks_a_later_one(minutes: int, used: float) -> None:
    future = window(99, at=minutes * 60, reset=NOW + timedelta(days=400_000))
    assert acts_on(told(future, window(used), now=NOW), NOW) == used


@given(st.lists(st.tuples(st.sampled_from(["5h", "weekly", "monthly"]), st.sampled_from([None, "opus"]), percents)))
def test_no_key_is_ever_lost(entries: list[tuple[Any, str | None, float]]) -> None:
    series = [window(used, at=number, kind=kind, scope=scope) for number, (kind, scope, used) in enumerate(entries)]
    assert {(one.kind, one.scope) for one in told(*series)} == {(one.kind, one.scope) for one in series}


# --- refusal markers

REFUSAL = Refusal("5h", NOW, RESET, "named")


@pytest.mark.parametrize(
    ("reading", "whole", "stays"),
    [
        (window(70, at=60), True, True),  # the vendor's meter may lag behind its refusal
        (window(70, at=300), True, False),
        (window(70, at=300), False, False),
        (window(100, at=60), True, False),  # the reading itself keeps the pool out
        (window(2, at=60, reset=RESET + 5 * HOUR), False, False),  # the next window has begun
        (window(70, at=-60), True, True),
        (window(70, at=300, kind="weekly"), False, True),
        (window(70, at=300, kind="weekly"), True, False),
        (window(70, at=300, scope="opus"), True, True),
        (window(None, at=300), True, True),
        (window(70, at=300, source="refusal"), True, True),
    ],
)
def test_a_refusal_is_refuted_by_a_later_reading_only(reading: Window, whole: bool, stays: bool) -> None:
    assert (refusal_left(REFUSAL, [reading], now=NOW + HOUR, whole=whole) is not None) is stays


def test_a_refusal_that_a_wrong_clock_stamped_is_refuted_by_any_reading() -> None:
    refusal = Refusal("5h", NOW + timedelta(days=400), NOW + timedelta(days=401), "named")
    assert refusal_left(refusal, [window(70)], now=NOW, whole=True) is None


def test_a_refusal_ends_with_its_reset_and_not_a_minute_later() -> None:
    assert refusal_left(REFUSAL, [], now=RESET - SECOND) == REFUSAL
    assert refusal_left(REFUSAL, [], now=RESET) is None
    assert refusal_left(None, [window(1)], now=NOW) is None


def test_a_model_s_refusal_needs_a_reading_of_that_model() -> None:
    refusal = Refusal("weekly", NOW, RESET, "named", "opus")
    assert refusal_left(refusal, [window(5, at=600, kind="weekly")], now=NOW + HOUR, whole=True) == refusal
    assert refusal_left(refusal, [window(5, at=600, kind="weekly", scope="opus")], now=NOW + HOUR) is None
