"""Expected minutes and the silence that a free pool is granted come from what attempts took."""

import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.pools import Effort, Lane
from bullswarm_core.quota.durations import (
    Expectations,
    Expected,
    expectations,
    expected_minutes,
    free_pool_silence_sec,
    median,
    wall_seconds,
)
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home


@pytest.mark.parametrize(
    ("lane", "effort", "minutes"),
    [("build", "high", 10), ("build", "medium", 6), ("build", "low", 5), ("analyze", "high", 5), ("chore", "low", 5)],
)
def test_the_table_holds_until_three_samples_are_known(lane: Lane, effort: Effort, minutes: float) -> None:
    assert expected_minutes(lane, effort) == Expected(minutes, "default", 0)
    assert expected_minutes(lane, effort, [6000, 6000]) == Expected(minutes, "default", 2)
    assert expected_minutes(lane, effort, [6000, 60, 1200]) == Expected(20, "history", 3)
    assert expected_minutes(lane, effort, [1, 2, 3]) == Expected(5, "history", 3)


@given(st.lists(st.floats(0.1, 1e6), min_size=1))
def test_the_median_is_the_middle(numbers: list[float]) -> None:
    assert median(numbers) == statistics.median(numbers)


def test_a_free_pool_may_be_silent_for_as_long_as_its_runs_take() -> None:
    assert free_pool_silence_sec([900, 900]) is None
    assert free_pool_silence_sec([900, 400, 100]) == 400
    assert free_pool_silence_sec([30, 40, 50]) == 300


def test_history_is_read_by_lane_and_tier_and_by_pool_when_it_has_enough(tmp_path: Path) -> None:
    connection = open_database(Home(tmp_path))

    def ran(pool: str, wall: float | None, *, lane: str = "build", effort: str = "high", stalled: int = 0) -> None:
        connection.execute(
            "INSERT INTO decisions (at, lane, effort, picked, wall_sec, stalled, ok) VALUES ('', ?, ?, ?, ?, ?, 1)",
            (lane, effort, pool, wall, stalled),
        )

    assert expectations(connection, "build", "high") == Expectations(Expected(10, "default", 0))
    assert expectations(None, "build", "high") == Expectations(Expected(10, "default", 0))
    for minutes in (10, 20, 30):
        ran("codex", minutes * 60)
    ran("grok", 3600)
    ran("grok", 7200)
    ran("codex", 99999, stalled=1)
    ran("codex", None)
    ran("codex", 0)
    ran("codex", 60, lane="analyze")
    ran("codex", 60, effort="low")
    known = expectations(connection, "build", "high")
    assert known.usual == Expected(30, "history", 5)
    assert known.on("codex") == Expected(20, "history", 3)
    assert known.on("grok") == Expected(30, "history", 5)
    assert known.minutes_by_pool() == {"codex": 20}
    assert sorted(wall_seconds(connection, effort="high", pool="codex")) == [60, 600, 1200, 1800]
    connection.close()


@pytest.mark.parametrize("kind", ["cancelled", "interrupted"])
def test_what_somebody_ended_says_nothing_about_how_long_work_takes(tmp_path: Path, kind: str) -> None:
    connection = open_database(Home(tmp_path))
    rows = [(kind, 3.0), (kind, 3.0), (kind, 3.0), ("not-produced", 900.0), (None, 1200.0)]
    connection.executemany(
        "INSERT INTO decisions (at, lane, effort, picked, failure_kind, wall_sec) VALUES ('', 'build', 'high', 'p', ?, ?)",
        rows,
    )
    assert wall_seconds(connection, lane="build", effort="high") == [1200.0, 900.0]
    connection.close()
