"""A rate is what readings rose by over the worker-minutes between them, or nothing."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.pools import Rate, Window, WindowKind
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.rates import (
    LONGEST_UNSEEN,
    MAX_PCT_PER_MINUTE,
    Work,
    WorkerTime,
    attempt_work,
    fitted_rates,
)

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RESET = NOW + timedelta(hours=4)


def at(minutes: float) -> datetime:
    return NOW + minutes * MINUTE


def read(
    minutes: float, used: float, *, kind: WindowKind = "5h", reset: datetime | None = RESET, **more: Any
) -> Observation:
    return Observation(at(minutes), (Window(kind, used, reset, captured_at=at(minutes), **more),))


def worked(*spans: tuple[float, float]) -> WorkerTime:
    return WorkerTime([Work(at(begin), at(end)) for begin, end in spans])


def test_a_rate_is_the_rise_over_the_worker_minutes_of_the_pairs() -> None:
    readings = [read(0, 10), read(10, 14), read(20, 20)]
    assert fitted_rates(readings, worked((0, 20))) == {"5h": Rate(0.5, "history", 2)}
    # Two workers for the same time are twice the minutes.
    assert fitted_rates(readings, worked((0, 20), (0, 20))) == {"5h": Rate(0.25, "history", 2)}


def test_readings_count_in_the_order_of_their_times() -> None:
    readings = [read(20, 20), read(0, 10), read(10, 14), read(10, 14)]
    assert fitted_rates(readings, worked((0, 20))) == {"5h": Rate(0.5, "history", 2)}


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        (read(30, 2, reset=RESET + timedelta(hours=5)), "the window rolled"),
        (read(30, 30, reset=RESET + timedelta(seconds=121)), "another reset"),
        (read(30, 30, reset=None), "no reset"),
        (read(30, 12), "the use fell"),
        (read(60, 90), "nobody was at work"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pair_that_measures_nothing_is_skipped(extra: Observation, why: str) -> None:
    readings = [read(0, 10), read(10, 14), read(20, 20), extra]
    until = 20 if why == "nobody was at work" else 30
    assert fitted_rates(readings, worked((0, until))) == {"5h": Rate(0.5, "history", 2)}


def test_a_reset_that_wobbles_is_one_reset() -> None:
    readings = [
        read(minutes, minutes, reset=RESET + timedelta(seconds=wobble))
        for minutes, wobble in ((0, 0), (10, -90), (20, 30))
    ]
    assert fitted_rates(readings, worked((0, 20)))["5h"] == Rate(1.0, "history", 2)


@pytest.mark.parametrize(
    "content",
    [{"unstable": True}, {"source": "declared"}, {"source": "refusal", "reset_source": "named"}, {"scope": "opus"}],
    ids=str,
)
def test_what_no_meter_showed_of_the_account_is_no_measurement(content: dict[str, Any]) -> None:
    readings = [read(0, 10), read(5, 99, **content), read(10, 14), read(20, 20)]
    assert fitted_rates(readings, worked((0, 20))) == {"5h": Rate(0.5, "history", 2)}
    assert fitted_rates([read(0, 1, **content), read(9, 2, **content), read(19, 3, **content)], worked((0, 19))) == {}


def test_readings_that_contradict_each_other_are_no_measurements() -> None:
    # 46 points in one minute, and the next reading knows nothing of them.
    readings = [read(0, 10), read(10, 14), read(11, 60), read(12, 15), read(20, 20), read(30, 25)]
    assert fitted_rates(readings, worked((0, 30))) == {"5h": Rate(15 / 30, "history", 2)}
    one_pair_left = [read(0, 40), read(9, 90), read(10, 44), read(20, 50)]
    assert fitted_rates(one_pair_left, worked((0, 20))) == {"5h": Rate(50 / 20, "bootstrap", 1)}
    # Two minutes apart they are a rise and a fall like any other.
    apart = [read(0, 10), read(10, 14), read(12.1, 18), read(20, 20)]
    assert fitted_rates(apart, worked((0, 20))) == {"5h": Rate(10 / 20, "history", 3)}


def test_two_sources_that_round_differently_make_no_use() -> None:
    readings = [read(minutes, 40.4 if minutes % 2 else 40.0) for minutes in range(40)]
    found = fitted_rates(readings, worked((0, 40)))["5h"]
    assert found.pct_per_minute == pytest.approx(0.4 / 39)
    assert found.samples == 20
    later = fitted_rates([*readings, read(50, 45.4)], worked((0, 50)))["5h"]
    assert later.pct_per_minute == pytest.approx(5.4 / 50)
    assert later.samples == 21


def test_a_models_window_is_kept_apart_from_the_accounts() -> None:
    both = [
        Observation(at(minutes), (Window("weekly", used, RESET), Window("weekly", 90 - minutes, RESET, scope="opus")))
        for minutes, used in ((0, 10), (10, 12), (20, 14))
    ]
    assert fitted_rates(both, worked((0, 20))) == {"weekly": Rate(0.2, "history", 2)}


def test_two_pairs_and_five_worker_minutes_are_the_least() -> None:
    undated: dict[str, Any] = {"reset": None}
    assert fitted_rates([read(0, 10, **undated), read(9, 20, **undated)], worked((0, 9))) == {}
    three = [read(0, 10, **undated), read(2, 12, **undated), read(4.99, 14, **undated)]
    assert fitted_rates(three, worked((0, 4.99))) == {}
    assert fitted_rates([*three[:2], read(5, 14, **undated)], worked((0, 5)))["5h"] == Rate(0.8, "history", 2)


def test_without_pairs_the_newest_reading_counts_from_the_opening_of_its_window() -> None:
    opened = -60  # five hours before the reset
    time = worked((opened - 30, opened + 10), (-5, 15))
    assert fitted_rates([read(0, 30)], time) == {"5h": Rate(30 / 15, "bootstrap", 1)}
    assert fitted_rates([read(0, 30, reset=None)], time) == {}
    assert fitted_rates([read(0, 30, reset_source="declared")], time) == {}
    assert fitted_rates([read(0, 0)], time) == {}
    assert fitted_rates([read(0, 30)], worked((-4.9, 0))) == {}
    assert fitted_rates([read(0, 30)], worked((-5, 0))) == {"5h": Rate(6.0, "bootstrap", 1)}


def test_a_week_opens_seven_days_before_its_reset_and_a_month_at_the_reset_before() -> None:
    reset = datetime(2026, 3, 31, 12, tzinfo=UTC)
    days = 24 * 60
    time = worked((-10 * days, -10 * days + 50), (-60, -10))
    assert (
        fitted_rates([read(0, 20, kind="weekly", reset=NOW + timedelta(days=5))], time)["weekly"].pct_per_minute
        == 20 / 50
    )
    assert fitted_rates([read(0, 20, kind="monthly", reset=reset)], time)["monthly"].pct_per_minute == 20 / 100


def test_no_rise_is_no_measurement() -> None:
    assert fitted_rates([read(0, 0), read(10, 0), read(20, 0)], worked((0, 20))) == {}
    # Forty percent that did not move in twenty minutes still tell what the window took so far.
    assert fitted_rates([read(0, 40), read(10, 40), read(20, 40)], worked((-40, 20))) == {
        "5h": Rate(40 / 60, "bootstrap", 1)
    }


def test_a_rate_that_no_worker_can_have_is_refused() -> None:
    readings = [read(minutes * 3, used, reset=RESET + timedelta(hours=minutes)) for minutes, used in ((0, 0), (1, 99))]
    assert fitted_rates(readings, worked((0, 3))) == {}
    pairs = [
        read(window * 10 + step, used, reset=RESET + timedelta(hours=window))
        for window in range(5)
        for step, used in ((0, 0), (1.25, 26))
    ]
    assert fitted_rates(pairs, worked((0, 60))) == {}
    assert MAX_PCT_PER_MINUTE == 20


def test_work_that_nobody_measured_measures_no_pair() -> None:
    lost = Work(at(12), at(13), measured=False)
    time = WorkerTime([Work(at(0), at(40)), lost])
    readings = [read(0, 10), read(10, 14), read(20, 90), read(30, 95)]
    assert fitted_rates(readings, time) == {"5h": Rate(9 / 20, "history", 2)}
    assert fitted_rates([read(0, 30)], WorkerTime([Work(at(-50), at(0)), Work(at(-9), at(-8), measured=False)])) == {}


@pytest.mark.parametrize(
    ("begun", "ended", "wall", "expected"),
    [
        (0, 10, 600, Work(at(0), at(10))),
        (0, 600, 600, Work(at(0), at(10))),
        (0, 10, 6000, Work(at(0), at(10))),
        (0, None, 600, Work(at(0), at(10))),
        (None, None, 600, Work(at(90), at(100))),
        (None, 100, 600, Work(at(90), at(100))),
        (0, 10, 0, None),
        (10, 0, 600, None),
        (0, None, None, Work(at(0), at(100), measured=False)),
        (None, None, None, None),
        (-5000, 90, None, Work(at(-5000), at(-5000) + LONGEST_UNSEEN, measured=False)),
    ],
)
def test_the_time_of_an_attempt(
    begun: float | None, ended: float | None, wall: float | None, expected: Work | None
) -> None:
    started_at = None if begun is None else at(begun)
    ended_at = None if ended is None else at(ended)
    assert attempt_work(started_at, ended_at, recorded_at=at(100), wall_sec=wall) == expected


spans = st.lists(
    st.tuples(st.integers(-500, 500), st.integers(0, 200)).map(lambda item: (item[0], item[0] + item[1])), max_size=12
)


@given(spans, st.integers(-600, 800), st.integers(0, 900))
def test_worker_minutes_are_the_sum_of_the_overlaps(done: list[tuple[int, int]], begin: int, length: int) -> None:
    end = begin + length
    expected = sum(max(0, min(end, until) - max(begin, since)) for since, until in done)
    assert worked(*done).minutes(at(begin), at(end)) == expected


@given(spans, st.lists(st.tuples(st.integers(-500, 700), st.integers(0, 120)), max_size=30))
def test_a_rate_is_never_negative_and_agrees_with_the_sums_by_hand(
    done: list[tuple[int, int]], taken: list[tuple[int, int]]
) -> None:
    readings = sorted(dict(taken).items())
    found = fitted_rates([read(minutes, used, reset=None) for minutes, used in readings], worked(*done)).get("5h")
    pairs, spent, minutes = by_hand(readings, done)
    fits = pairs >= 2 and minutes >= 5 and 0 < spent <= MAX_PCT_PER_MINUTE * minutes
    assert found == (Rate(spent / minutes, "history", pairs) if fits else None)


def by_hand(readings: Sequence[tuple[int, int]], done: Sequence[tuple[int, int]]) -> tuple[int, float, float]:
    """Sum up the pairs by the rules: what contradicts a neighbour is no reading, and a fall of one point is a rounding."""
    doubtful: set[int] = set()
    for (begin, before), (end, after) in pairwise(readings):
        if end - begin <= 2 and not -1 <= after - before <= 25:
            doubtful |= {begin, end}
    pairs, spent, total = 0, 0.0, 0.0
    kept: list[tuple[int, int]] = []
    for moment, used in readings:
        if moment not in doubtful and not (kept and kept[-1][1] - used == 1):
            kept.append((moment, used))
    for (begin, before), (end, after) in pairwise(kept):
        minutes = sum(max(0, min(end, until) - max(begin, since)) for since, until in done)
        if minutes and after >= before:
            pairs, spent, total = pairs + 1, spent + after - before, total + minutes
    return pairs, spent, total
