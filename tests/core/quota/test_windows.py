"""Window arithmetic: docs/design/quota.md, "Windows" and "Readings"."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.pools import WINDOW_KINDS, Inflight, Pool, Rate, Window, WindowKind
from bullswarm_core.pools.model import has_free_name
from bullswarm_core.quota.windows import (
    elapsed_pct,
    gates_model,
    is_reading,
    is_unanchored,
    length_of,
    minutes_left,
    month_before,
    one_decimal,
    pacing_window,
    readings,
    spent,
    spent_window,
    starts_at,
)

NOW = datetime(2026, 9, 10, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def read(kind: WindowKind, used: float | None = 100.0, resets_in: timedelta | None = HOUR, **more: Any) -> Window:
    return Window(kind, used, None if resets_in is None else NOW + resets_in, **more)


@pytest.mark.parametrize(
    ("kind", "length"),
    [("5h", timedelta(minutes=300)), ("daily", timedelta(hours=24)), ("weekly", timedelta(days=7))],
)
def test_each_kind_has_its_length(kind: WindowKind, length: timedelta) -> None:
    window = read(kind)
    assert length_of(window) == length
    assert starts_at(window) == NOW + HOUR - length


@pytest.mark.parametrize(
    ("reset", "start"),
    [
        (datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 9, 1, tzinfo=UTC)),
        (datetime(2026, 3, 31, 8, tzinfo=UTC), datetime(2026, 2, 28, 8, tzinfo=UTC)),
        (datetime(2024, 3, 30, tzinfo=UTC), datetime(2024, 2, 29, tzinfo=UTC)),
        (datetime(2026, 1, 15, 3, 30, tzinfo=UTC), datetime(2025, 12, 15, 3, 30, tzinfo=UTC)),
    ],
)
def test_a_month_is_the_utc_calendar_month_that_ends_at_its_reset(reset: datetime, start: datetime) -> None:
    assert starts_at(Window("monthly", 10.0, reset)) == start


def test_a_month_is_counted_in_utc_whatever_zone_its_reset_is_written_in() -> None:
    hong_kong = datetime.fromisoformat("2026-10-01T08:00:00+08:00")
    assert starts_at(Window("monthly", 10.0, hong_kong)) == datetime(2026, 9, 1, tzinfo=UTC)


@pytest.mark.parametrize("kind", WINDOW_KINDS)
def test_a_window_that_would_open_before_the_calendar_has_no_known_begin(kind: WindowKind) -> None:
    reset = datetime(1, 1, 1, 3, tzinfo=UTC)
    assert starts_at(Window(kind, 10.0, reset)) is None
    assert elapsed_pct(Window(kind, 10.0, reset), NOW) is None


def test_a_stated_length_wins_but_none_is_shorter_than_an_hour() -> None:
    assert length_of(read("monthly", length=timedelta(days=30))) == timedelta(days=30)
    assert length_of(read("5h", length=timedelta(seconds=5))) == HOUR
    assert length_of(read("monthly", resets_in=None)) is None
    assert month_before(datetime(2026, 5, 31, tzinfo=UTC)) == datetime(2026, 4, 30, tzinfo=UTC)


@pytest.mark.parametrize(("left", "elapsed"), [(23, 92.3), (300, 0.0), (400, 0.0), (0.01, 100.0), (240, 20.0)])
def test_elapsed_share_of_five_hours(left: float, elapsed: float) -> None:
    assert elapsed_pct(read("5h", resets_in=timedelta(minutes=left)), NOW) == elapsed


def test_elapsed_and_minutes_are_unknown_without_a_reset_ahead() -> None:
    for resets_in in (None, timedelta(0), -HOUR):
        window = read("weekly", resets_in=resets_in)
        assert elapsed_pct(window, NOW) is None
        assert minutes_left(window, NOW) is None


@given(st.integers(-10_000, 10_000), st.sampled_from(["5h", "daily", "weekly", "monthly"]))
def test_elapsed_share_lies_between_0_and_100_and_never_falls(minutes: int, kind: WindowKind) -> None:
    window = read(kind, resets_in=timedelta(minutes=minutes))
    now, later = elapsed_pct(window, NOW), elapsed_pct(window, NOW + timedelta(minutes=7))
    assert now is None or 0 <= now <= 100
    assert now is None or later is None or later >= now


@pytest.mark.parametrize(
    ("window", "counts"),
    [
        (read("5h"), True),
        (read("daily"), True),
        (read("weekly", 100.0), True),
        (read("monthly", 130.0), True),
        (read("5h", 99.9), False),
        (read("5h", None), False),
        (read("weekly", resets_in=None), True),
        (read("weekly", resets_in=None, source="stale"), True),
        (read("weekly", resets_in=-HOUR), False),
        (read("weekly", resets_in=timedelta(0)), False),
        (read("weekly", source="declared"), False),
        (read("weekly", source="live", reset_source="declared"), True),
        (read("5h", source="refusal", reset_source="named"), True),
        (read("5h", source="refusal", reset_source="measured"), True),
        (read("5h", source="refusal", reset_source="guessed"), False),
        (read("5h", source="refusal"), False),
        (read("5h", resets_in=None, source="refusal", reset_source="named"), False),
    ],
)
def test_what_counts_as_spent(window: Window, counts: bool) -> None:
    assert spent(window, NOW) is counts
    assert (spent_window([window], NOW) is window) is counts


def test_a_window_with_a_model_scope_gates_only_that_model() -> None:
    window = read("weekly", scope="opus")
    assert spent(window, NOW, model="opus")
    assert spent(window, NOW, model="claude-Opus-4-5")
    assert not spent(window, NOW, model="sonnet")
    assert not spent(window, NOW, model="opusculum")
    assert not spent(window, NOW)
    assert gates_model(read("weekly"), None)


def test_the_spent_window_that_resets_last_is_named_and_an_unknown_reset_outlasts_any() -> None:
    five, week, month = read("5h"), read("weekly", resets_in=9 * HOUR), read("monthly", resets_in=5 * HOUR)
    assert spent_window([five, week, month], NOW) is week
    unknown = read("5h", resets_in=None)
    assert spent_window([week, unknown, month], NOW) is unknown
    assert spent_window([], NOW) is None


def test_the_pacing_window_is_the_chosen_one_else_the_week_else_the_month_and_never_a_protecting_one() -> None:
    five, day, week, month = (read(kind, 10.0) for kind in ("5h", "daily", "weekly", "monthly"))
    assert pacing_window(readings([five, day, month, week], NOW)) is week
    assert pacing_window(readings([week, month], NOW), "monthly") is month
    assert pacing_window(readings([week], NOW), "monthly") is week
    assert pacing_window(readings([month], NOW), "weekly") is month
    assert pacing_window(readings([five, day], NOW)) is None
    assert pacing_window(readings([read("weekly", 10.0, -HOUR), month], NOW)) is month
    assert pacing_window(readings([read("weekly", 10.0, scope="opus"), month], NOW)) is month


def test_a_later_reading_replaces_an_earlier_one() -> None:
    marker = read("weekly", captured_at=NOW - HOUR, source="refusal", reset_source="named")
    live = read("weekly", 40.0, captured_at=NOW, source="live")
    for order in ([marker, live], [live, marker]):
        assert readings(order, NOW) == {("weekly", None): live}
    void = read("weekly", 3.0, -HOUR, captured_at=NOW)
    assert readings([void, marker], NOW) == {("weekly", None): marker}


@given(st.permutations([read("5h", 10.0), read("5h", 80.0), read("weekly", 3.0), read("weekly", 4.0, None)]))
def test_the_reading_in_force_does_not_depend_on_the_order_of_the_list(order: list[Window]) -> None:
    expected = {("5h", None): read("5h", 80.0), ("weekly", None): read("weekly", 3.0)}
    assert readings(order, NOW) == expected


def test_readings_are_numbers_that_may_be_used() -> None:
    assert is_reading(read("5h", 0.0), NOW)
    assert not is_reading(read("5h", None), NOW)
    assert not is_reading(read("5h", 0.0, -HOUR), NOW)


@pytest.mark.parametrize(
    ("name", "free"),
    [("openrouter/qwen:free", True), ("free", True), ("freeform-1", False), ("x/FREE-y", True), (None, False)],
)
def test_a_free_model_carries_the_word_on_its_own(name: str | None, free: bool) -> None:
    assert has_free_name(name) is free


@pytest.mark.parametrize("number", [math.nan, math.inf, -1.0])
def test_values_refuse_numbers_that_nobody_can_compare(number: float) -> None:
    with pytest.raises(ValueError, match=r"Window\.used_pct"):
        Window("5h", number)
    with pytest.raises(ValueError, match=r"Rate\.pct_per_minute"):
        Rate(number, "history")
    with pytest.raises(ValueError, match=r"Inflight\.expected_minutes"):
        Inflight(NOW, number)


def test_values_refuse_times_without_a_zone_and_empty_lengths() -> None:
    with pytest.raises(ValueError, match="time zone"):
        Window("5h", 1.0, datetime(2026, 9, 10))
    with pytest.raises(ValueError, match="time zone"):
        Pool("a", "a", meter_hold_until=datetime(2026, 9, 10))
    with pytest.raises(ValueError, match=r"Window\.length"):
        Window("5h", 1.0, length=timedelta(0))


def test_an_unused_window_that_is_dated_anew_at_each_reading_has_not_begun() -> None:
    latent = read("weekly", 0.0, timedelta(days=7), captured_at=NOW)
    for age in (timedelta(0), HOUR, timedelta(days=6, hours=12)):
        assert is_unanchored(latent)
        assert elapsed_pct(latent, NOW + age) is None
        assert minutes_left(latent, NOW + age) is None
    month = Window("monthly", 0.0, NOW + timedelta(days=30), captured_at=NOW, length=timedelta(days=30))
    assert is_unanchored(month)


@pytest.mark.parametrize(
    "window",
    [
        read("weekly", 0.1, timedelta(days=7), captured_at=NOW),
        read("weekly", 0.0, timedelta(days=6, hours=23), captured_at=NOW),
        read("weekly", 0.0, timedelta(days=7)),
        read("weekly", 0.0, None, captured_at=NOW),
        read("monthly", 0.0, timedelta(days=3), captured_at=NOW),
    ],
)
def test_a_window_that_has_begun_keeps_its_clock(window: Window) -> None:
    assert not is_unanchored(window)


@pytest.mark.parametrize(
    ("kind", "more", "lasts"),
    [
        ("5h", {}, timedelta(hours=5)),
        ("daily", {}, timedelta(days=1)),
        ("weekly", {}, timedelta(days=7)),
        ("monthly", {}, timedelta(days=31)),
        ("monthly", {"length": timedelta(days=30)}, timedelta(days=30)),
    ],
)
def test_a_full_window_without_a_reset_keeps_its_pool_out_for_its_length_and_no_longer(
    kind: WindowKind, more: Any, lasts: timedelta
) -> None:
    full = read(kind, 100.0, None, captured_at=NOW, **more)
    just_before = NOW + lasts - timedelta(seconds=1)
    assert spent(full, just_before) and is_reading(full, just_before)
    assert not spent(full, NOW + lasts) and not is_reading(full, NOW + lasts)
    assert readings([full], NOW + lasts) == {}


def test_of_two_limits_that_were_read_together_the_worst_one_is_in_force() -> None:
    soon, late = read("weekly", 60.0, captured_at=NOW), read("weekly", 20.0, 9 * HOUR, captured_at=NOW)
    full, over = read("weekly", 100.0, 9 * HOUR, captured_at=NOW), read("weekly", 130.0, captured_at=NOW)
    undated = read("weekly", 100.0, None, captured_at=NOW)
    for several, worst in (((soon, late), soon), ((full, over), full), ((full, over, late), full)):
        assert readings(several, NOW) == {("weekly", None): worst}
    assert readings([undated, soon], NOW) == {("weekly", None): undated}


def test_a_reset_that_moved_is_decided_by_the_later_reading_also_when_it_came_early() -> None:
    before = read("weekly", 74.0, 9 * HOUR, captured_at=NOW - HOUR)
    granted = read("weekly", 0.0, timedelta(days=6), captured_at=NOW)
    assert readings([before, granted], NOW) == {("weekly", None): granted}


def test_unsettled_readings_count_as_the_worse_one_until_a_third_settles_them() -> None:
    worse = read("weekly", 74.0, captured_at=NOW - 2 * timedelta(minutes=1), unstable=True)
    better = read("weekly", 0.0, captured_at=NOW - timedelta(minutes=1), unstable=True)
    settled = read("weekly", 1.0, captured_at=NOW)
    assert readings([worse, better], NOW) == {("weekly", None): worse}
    assert readings([worse, settled, better], NOW) == {("weekly", None): settled}


def test_a_reading_from_the_future_is_replaced_by_any_other_and_used_while_it_is_alone() -> None:
    future = read("weekly", 90.0, captured_at=NOW + timedelta(days=900))
    today = read("weekly", 10.0, captured_at=NOW - HOUR)
    assert readings([future, today], NOW) == {("weekly", None): today}
    assert readings([future], NOW) == {("weekly", None): future}
    ahead = read("weekly", 90.0, captured_at=NOW + timedelta(minutes=2))
    assert readings([ahead, today], NOW) == {("weekly", None): ahead}


captures = st.sampled_from([None, NOW - HOUR, NOW, NOW + timedelta(minutes=1), NOW + timedelta(days=400)])
rivals = st.builds(
    read,
    st.just("weekly"),
    st.sampled_from([0.0, 40.0, 99.0, 100.0, 130.0]),
    st.sampled_from([None, -HOUR, HOUR, 30 * HOUR, timedelta(days=7)]),
    captured_at=captures,
    unstable=st.booleans(),
)


@given(st.lists(rivals, max_size=5), st.randoms(use_true_random=False))
def test_the_reading_in_force_is_one_of_those_given_whatever_their_order(several: list[Window], random: Any) -> None:
    shuffled = several[:]
    random.shuffle(shuffled)
    in_force = readings(several, NOW)
    assert in_force == readings(shuffled, NOW)
    chosen = in_force.get(("weekly", None))
    usable = [window for window in several if is_reading(window, NOW)]
    assert (chosen in usable) if usable else chosen is None


@given(st.lists(rivals, min_size=1, max_size=5))
def test_a_full_reading_that_was_taken_last_always_closes_the_pool(several: list[Window]) -> None:
    full = read("weekly", 100.0, 2 * HOUR, captured_at=NOW + timedelta(minutes=1))
    assert spent_window(readings([*several, full], NOW).values(), NOW) is not None


near_ties = st.builds(
    lambda twentieth, steps: math.nextafter(twentieth / 20, math.inf) if steps else twentieth / 20,
    st.integers(-10_000, 10_000),
    st.booleans(),
)


@given(
    near_ties
    | st.floats(-1000, 1000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(10**12), 10**12)
)
def test_one_decimal_is_what_round_gives_and_never_minus_zero(value: float) -> None:
    rounded = one_decimal(value)
    assert (rounded, type(rounded)) == (round(value, 1), float)
    assert rounded or math.copysign(1, rounded) == 1
