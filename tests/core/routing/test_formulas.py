"""Every number of a row is what the formulas give, written out by hand (docs/design/routing.md, "Forecasts", "Load")."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.routing.builders import NOW, busy, ending, history, pool, row_of, window

from bullswarm_core.pools import Inflight, Rate, Rung, Window, WindowKind
from bullswarm_core.routing import Candidate, Request, RoutingContext, decide

LENGTHS = {"5h": 300.0, "weekly": 10_080.0, "monthly": 43_200.0}
ROUNDED = 0.0501
"""A tenth is the last digit of a row: half of one, and what a sum of floats is off by."""


def tenth(number: float) -> object:
    return pytest.approx(number, abs=ROUNDED)


minutes = st.integers(0, 400).map(float)
records = st.lists(st.tuples(st.integers(0, 200), st.none() | minutes), max_size=5)
rates = st.none() | st.sampled_from([0.01, 0.1, 0.5, 2.0])
left = st.none() | st.integers(1, 299).map(float)


@given(
    kind=st.sampled_from(["weekly", "monthly"]),
    used=st.sampled_from([0.0, 12.5, 61.3, 94.9, 99.9]),
    used_five=st.sampled_from([0.0, 30.0, 74.9, 81.0]),
    left_five=left,
    left_pacing=st.none() | st.integers(1, 10_000).map(float),
    flights=records,
    rate_five=rates,
    rate=rates,
    candidate=st.none() | minutes,
    penalty=st.sampled_from([0.0, 3.0, 7.5]),
)
def test_the_numbers_of_a_row(
    kind: WindowKind,
    used: float,
    used_five: float,
    left_five: float | None,
    left_pacing: float | None,
    flights: list[tuple[int, float | None]],
    rate_five: float | None,
    rate: float | None,
    candidate: float | None,
    penalty: float,
) -> None:
    found = {"5h": rate_five, kind: rate}
    one = pool(
        "a",
        reading("5h", used_five, left_five),
        reading(kind, used, left_pacing),
        pacing=kind,
        rates={name: Rate(number, "history", 2) for name, number in found.items() if number is not None},
        inflight=tuple(Inflight(NOW - timedelta(minutes=age), expected) for age, expected in flights),
    )
    row = row_of(one, Request("analyze", candidate_minutes=candidate), RoutingContext(inflight_penalty_pct=penalty))
    remaining = [max(0.0, expected - age) for age, expected in flights if expected is not None]
    unknown = sum(expected is None for _, expected in flights)

    assert row.projected_five_hour_pct == projected(used_five, rate_five, remaining, left_five)
    assert row.forecast_five_hour_pct == forecast(used_five, rate_five, remaining, left_five, candidate)
    assert row.projected_pacing_pct == projected(used, rate, remaining, left_pacing)
    assert row.projected_pacing_pct == (row.projected_weekly_pct if kind == "weekly" else row.projected_monthly_pct)

    # The load is charged in full, whatever window it falls in; the flat penalty stands in for what is not known.
    if rate is None:
        load = len(flights) * penalty
        assert row.forecast_pacing_pct == tenth(used + load)
    else:
        load = rate * (sum(remaining) + (candidate or 0.0)) + unknown * penalty
        assert row.forecast_pacing_pct == forecast(used, rate, remaining, left_pacing, candidate)
    elapsed = None if left_pacing is None else max(0.0, 100 - left_pacing * 100 / LENGTHS[kind])
    assert row.pacing_elapsed_pct == (None if elapsed is None else tenth(elapsed))
    assert row.pace == (None if elapsed is None else pytest.approx(elapsed - used, abs=2 * ROUNDED))
    assert row.effective_surplus == pytest.approx((row.pace or 0.0) - load, abs=ROUNDED)
    check_state(row, kind, used, left_pacing, rate)


def reading(kind: WindowKind, used: float, minutes_left: float | None) -> Window:
    if minutes_left is None:
        return window(kind, used)
    # An unused window that resets a whole length after its reading has not begun, which is another rule.
    return ending(kind, used, timedelta(minutes=minutes_left), captured_at=NOW - timedelta(minutes=7))


def within(one: float, minutes_left: float | None) -> float:
    return one if minutes_left is None else min(one, minutes_left)


def projected(used: float, rate: float | None, remaining: list[float], minutes_left: float | None) -> object:
    if not sum(remaining):
        return used
    return None if rate is None else tenth(used + rate * sum(within(item, minutes_left) for item in remaining))


def forecast(
    used: float, rate: float | None, remaining: list[float], minutes_left: float | None, candidate: float | None
) -> object:
    if rate is None:
        return tenth(used)
    after = sum(max(0.0, item - minutes_left) for item in remaining) if minutes_left is not None else 0.0
    in_flight = max(used, used + rate * sum(remaining) - rate * after)
    return tenth(in_flight + (rate * within(candidate, minutes_left) if candidate is not None else 0.0))


def check_state(row: Candidate, kind: WindowKind, used: float, minutes_left: float | None, rate: float | None) -> None:
    lead = 24 * 60 if kind == "weekly" else 72 * 60
    if minutes_left is None or minutes_left > lead:
        assert (row.urgency_state, row.urgency) == (None, None)
        return
    assert row.pacing_elapsed_pct is not None and row.forecast_pacing_pct is not None
    if row.forecast_pacing_pct >= 95 and row.forecast_pacing_pct > row.pacing_elapsed_pct:
        expected = "draining"
    else:
        expected = "urgent" if row.effective_surplus > 0 and (rate is not None or used <= 90) else "normal"
    assert row.urgency_state == expected
    fraction = max(0.005, (100 - row.pacing_elapsed_pct) / 100)
    assert row.urgency == pytest.approx(row.effective_surplus / fraction, abs=0.06)


def test_a_pool_is_forecast_with_the_minutes_that_its_own_work_takes() -> None:
    pools = [
        pool(name, window("weekly", 20, 60), window("5h", 40, 50), rates={"weekly": history(1.0), "5h": history(1.0)})
        for name in ("quick", "slow", "unknown")
    ]
    context = RoutingContext(expected_minutes={"quick": 2.0, "slow": 30.0})
    decision = decide(Request("analyze", candidate_minutes=10), pools, now=NOW, context=context)
    rows = {row.pool: row for row in decision.candidates}
    assert {name: row.expected_minutes for name, row in rows.items()} == {"quick": 2, "slow": 30, "unknown": 10}
    assert {name: row.forecast_five_hour_pct for name, row in rows.items()} == {"quick": 42, "slow": 70, "unknown": 50}
    assert {name: row.effective_surplus for name, row in rows.items()} == {"quick": 38, "slow": 10, "unknown": 30}
    assert decision.pool == "quick"
    assert decision.forecast["expectedMinutes"] == decision.forecast["candidateMinutes"] == 2


def test_unknown_durations_stay_out_of_the_forecast_and_are_charged_the_penalty() -> None:
    flights = (*busy(2), *busy(1, 10))
    one = pool("a", window("weekly", 20, 60), rates={"weekly": history(0.5)}, inflight=flights)
    row = row_of(one)
    assert row.projected_pacing_pct == row.forecast_pacing_pct == 25
    assert row.effective_surplus == 40 - 5 - 2 * 3


def test_without_a_rate_of_the_month_the_week_s_counts_and_the_five_hours_never_do() -> None:
    paced = window("monthly", 20, 60)
    assert (
        row_of(
            pool("a", paced, pacing="monthly", rates={"weekly": history(0.5)}, inflight=busy(1, 10))
        ).effective_surplus
        == 35
    )
    assert (
        row_of(pool("a", paced, pacing="monthly", rates={"5h": history(0.5)}, inflight=busy(1, 10))).effective_surplus
        == 37
    )


def test_each_number_stands_under_its_own_name() -> None:
    """A row is filled in by place: here every name has a value that hardly another one has."""
    one = pool(
        "a:x",
        window("5h", 95.0, 52.0),
        window("daily", 64.0, 37.0),
        ending("weekly", 90.6, timedelta(hours=20)),
        window("monthly", 22.0, 61.0),
        label="main",
        inflight=(Inflight(NOW, 7.0), Inflight(NOW, None)),
        rates={"5h": history(0.5), "daily": history(0.25), "weekly": history(0.3), "monthly": history(0.02)},
        cost_rank=4,
        tiers={"medium": Rung("m:free", "high", free=True, source="settings")},
    )
    row = row_of(one, Request("analyze", candidate_minutes=30.0), RoutingContext(reserves={"a:x": 60.0}))
    assert {name: getattr(row, name) for name in Candidate.__match_args__} == {
        "pool": "a:x",
        "pool_label": "main",
        "provider": "a",
        "model": "m:free",
        "reasoning": "high",
        "model_policy": "settings",
        "metered": True,
        "pace": -2.5,
        "effective_surplus": -16.6,
        "inflight": 2,
        "expected_minutes": 30.0,
        "cost_rank": 4,
        "five_hour_used_pct": 95.0,
        "projected_five_hour_pct": 98.5,
        "forecast_five_hour_pct": 113.5,
        "five_hour_elapsed_pct": 52.0,
        "five_hour_resets_at": NOW + timedelta(minutes=144),
        "daily_used_pct": 64.0,
        "forecast_daily_pct": 73.2,
        "daily_elapsed_pct": 37.0,
        "projected_weekly_pct": 92.7,
        "projected_monthly_pct": 22.1,
        "pacing_window": "weekly",
        "pacing_source": "cache",
        "pacing_used_pct": 90.6,
        "pacing_elapsed_pct": 88.1,
        "pacing_left_pct": 11.9,
        "pacing_resets_at": NOW + timedelta(hours=20),
        "pace_resets_in_minutes": 1200.0,
        "projected_pacing_pct": 92.7,
        "forecast_pacing_pct": 101.7,
        "rate_per_minute": 0.5,
        "pacing_rate_per_minute": 0.3,
        "daily_rate_per_minute": 0.25,
        "estimate_source": "history",
        "near_five_hour_limit": True,
        "near_five_hour_penalty": False,
        "near_window": "5h",
        "under_clock": False,
        "forecast_gated": False,
        "forecast_over_limit": True,
        "over_window": "5h",
        "reserve_pct": 50.0,
        "reserved": True,
        "sliver_window": "5h",
        "sliver_headroom_pct": 1.5,
        "sliver_need_pct": 15.0,
        "expiring_soon": True,
        "urgency": -139.5,
        "urgency_state": "draining",
        "free": True,
        "free_model": "m:free",
    }
