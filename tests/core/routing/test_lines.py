"""The lines that routing draws: on the line, and a hair to either side of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.core.routing.builders import NOW, ending, history, pool, row_of, window

from bullswarm_core.routing import Request


@pytest.mark.parametrize(("minutes", "over"), [(10, False), (10.1, True)])
def test_a_forecast_of_exactly_the_wall_is_not_past_it(minutes: float, over: bool) -> None:
    one = pool("a", window("5h", 90, 50), rates={"5h": history(1)})
    assert row_of(one, Request("analyze", candidate_minutes=minutes)).forecast_over_limit is over


@pytest.mark.parametrize(("used", "near"), [(74.9, False), (75.0, True)])
def test_the_near_limit_line_is_75(used: float, near: bool) -> None:
    assert row_of(pool("a", window("5h", used, 50))).near_five_hour_limit is near
    assert row_of(pool("a", window("5h", used, used))).under_clock is near


@pytest.mark.parametrize(
    ("left", "kind", "soon"),
    [(24, "weekly", True), (24.1, "weekly", False), (72, "monthly", True), (72.1, "monthly", False)],
)
def test_a_week_expires_soon_in_its_last_day_and_a_month_in_its_last_three(left: float, kind: str, soon: bool) -> None:
    row = row_of(pool("a", ending(kind, 20, timedelta(hours=left))))  # type: ignore[arg-type]
    assert row.expiring_soon is soon
    assert (row.urgency is not None) is soon


def test_urgency_divides_by_at_least_half_a_percent_of_the_window() -> None:
    row = row_of(pool("a", ending("weekly", 80, timedelta(minutes=1))))
    assert (row.pacing_left_pct, row.urgency) == (0.0, 4000.0)


def test_a_window_that_has_not_begun_is_never_about_to_expire() -> None:
    captured = NOW - timedelta(days=6, hours=12)
    latent = pool("a", window("weekly", 0, captured_at=captured, resets_at=captured + timedelta(days=7)))
    row = row_of(latent)
    assert (row.urgency_state, row.expiring_soon, row.urgency, row.pace) == (None, False, None, None)
    assert (row.pacing_resets_at, row.pace_resets_in_minutes, row.pacing_elapsed_pct) == (None, None, None)
    begun = pool("a", window("weekly", 1, captured_at=captured, resets_at=captured + timedelta(days=7)))
    assert row_of(begun).urgency_state == "urgent"
