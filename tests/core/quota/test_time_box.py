"""The time box of a step: the program's word, else what such work took, else twenty minutes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.runs.journals import START

from bullswarm_core.quota.durations import History, TimeBox, box_history, time_box
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home

CLOCK = "2026-03-01T12:00:00Z"
minutes = st.lists(st.floats(0.1, 1000), max_size=12)


@pytest.mark.parametrize(
    ("given_minutes", "history", "box"),
    [
        (45, History([1.0] * 9, [1.0] * 9), TimeBox(45, 32, "program", 0, None, CLOCK)),
        (1, History(), TimeBox(1, 1, "program", 0, None, CLOCK)),
        (240, History(), TimeBox(240, 168, "program", 0, None, CLOCK)),
        (None, History(), TimeBox(20, 14, "fallback", 0, None, CLOCK)),
        (None, History([9.0] * 4, [9.0] * 4), TimeBox(20, 14, "fallback", 4, 9.0, CLOCK)),
        (None, History([9.0] * 4, [20.0] * 5), TimeBox(30, 21, "kind", 5, 20.0, CLOCK)),
        (None, History([9.0] * 5, [20.0] * 9), TimeBox(15, 11, "pair", 5, 9.0, CLOCK)),
        # 1.5 times 15 is 22.5, which lies in the middle and goes up.
        (None, History([15.0] * 5), TimeBox(25, 18, "pair", 5, 15.0, CLOCK)),
        (None, History([1.0] * 5), TimeBox(10, 7, "pair", 5, 1.0, CLOCK)),
        (None, History([500.0] * 5), TimeBox(60, 42, "pair", 5, 500.0, CLOCK)),
    ],
)
def test_the_ladder(given_minutes: int | None, history: History, box: TimeBox) -> None:
    assert time_box(given_minutes, history, start=START) == box


def test_zero_leaves_it_out() -> None:
    assert time_box(0, History([9.0] * 5), start=START) is None


@given(minutes, minutes)
def test_a_computed_box_is_between_ten_and_sixty_minutes_in_steps_of_five(pair: list[float], kind: list[float]) -> None:
    box = time_box(None, History(pair, kind), start=START)
    assert box is not None
    assert box.minutes in range(10, 61, 5)
    assert 0 < box.wrap_up_minutes < box.minutes
    assert box.source == ("pair" if len(pair) >= 5 else "kind" if len(kind) >= 5 else "fallback")


def test_only_what_succeeded_on_paid_pools_for_the_same_work_counts(tmp_path: Path) -> None:
    connection = open_database(Home(tmp_path))
    rows = [
        # pool, lane, effort, ok, minutes, model, payload
        ("codex", "build", "high", 1, 10, "m", "{}"),
        ("codex", "build", "high", 1, 12, "m", json.dumps({"free": False})),
        ("codex", "build", "high", 0, 99, "m", "{}"),
        ("codex", "build", "low", 1, 98, "m", "{}"),
        ("codex", "analyze", "high", 1, 97, "m", "{}"),
        ("codex", "build", "high", 1, 0, "m", "{}"),
        ("codex", "build", "high", 1, 14, None, None),
        ("codex", "build", "high", 1, 16, "m", "no json"),
        ("grok", "build", "high", 1, 20, "m", "{}"),
        ("opencode", "build", "high", 1, 96, "m", json.dumps({"free": True})),
        ("opencode", "build", "high", 1, 95, "vendor/model:free", "{}"),
    ]
    connection.executemany(
        "INSERT INTO decisions (at, picked, lane, effort, ok, wall_sec, model, payload) VALUES ('', ?, ?, ?, ?, ? * 60, ?, ?)",
        rows,
    )
    found = box_history(connection, pool="codex", lane="build", effort="high")
    assert found == History(pair=(16, 14, 12, 10), kind=(20, 16, 14, 12, 10))
    assert box_history(connection, pool="opencode", lane="build", effort="high").pair == ()
