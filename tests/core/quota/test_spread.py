"""How widely task lengths differ is learned from the decision log, and reaches the policy that asks for it."""

from __future__ import annotations

import math
import random
import statistics
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.attempts import pick
from bullswarm_core.pools.settings import Settings
from bullswarm_core.quota.durations import MIN_SPREAD_SAMPLES, expectations, log_spread
from bullswarm_core.runs.task import Task
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home


@given(st.lists(st.floats(0.1, 1e6), min_size=MIN_SPREAD_SAMPLES))
def test_the_spread_is_the_deviation_of_the_logarithms_in_any_unit(seconds: list[float]) -> None:
    spread = log_spread(seconds)
    assert spread == pytest.approx(statistics.stdev([math.log(value) for value in seconds]), abs=1e-9)
    assert spread == pytest.approx(log_spread([value / 60 for value in seconds]), abs=1e-9)


def test_the_spread_of_few_is_unknown_and_what_took_no_time_counts_for_nothing() -> None:
    assert log_spread([60.0] * (MIN_SPREAD_SAMPLES - 1)) is None
    assert log_spread([60.0] * (MIN_SPREAD_SAMPLES - 1) + [0.0]) is None
    assert log_spread([60.0] * MIN_SPREAD_SAMPLES) == 0


def test_the_spread_of_drawn_lengths_is_the_one_they_were_drawn_with() -> None:
    chance = random.Random(3)
    assert log_spread([chance.lognormvariate(6, 0.9) for _ in range(500)]) == pytest.approx(0.9, abs=0.08)


def test_a_pick_knows_the_spread_of_what_such_tasks_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = open_database(Home(tmp_path))
    took = [100.0 * 2**place for place in range(MIN_SPREAD_SAMPLES)]
    connection.executemany(
        "INSERT INTO decisions (at, lane, effort, picked, wall_sec) VALUES ('', 'build', 'medium', 'p', ?)",
        [(seconds,) for seconds in took],
    )
    expected = expectations(connection, "build", "medium")
    connection.close()
    assert expected.spread == pytest.approx(log_spread(took))
    asked: list[Any] = []
    monkeypatch.setattr(pick, "decide", lambda request, pools, **given: asked.append(given))
    services = SimpleNamespace(load_profiles=tuple, environ={})
    view: Any = SimpleNamespace(
        settings=Settings(), incumbents={}, quarantines={}, pools=lambda bookings: (), now=None, services=services
    )
    task = Task(prompt="x", lane="build", cwd=str(tmp_path))
    pick.choose(view, task, [], caller_pool=None, expected=expected)
    assert asked[0]["context"].task_spread == expected.spread
