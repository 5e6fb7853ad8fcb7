"""What a worker put in place of its CLI's own files makes nobody wait: pools are shown and picked all the same."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from tests.alarms import nobody_waits

from bullswarm_providers.codex.rollout_limits import readings_of, rollout_readings
from bullswarm_providers.sign_in import read_object, read_toml

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


def test_a_pipe_in_place_of_a_sign_in_or_of_settings_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with nobody_waits("a sign-in that is a pipe"):
        assert read_object(tmp_path / "pipe") == {}
        assert read_toml(tmp_path / "pipe") is None


def test_a_pipe_among_the_rollouts_tells_nothing(tmp_path: Path) -> None:
    day = tmp_path / "sessions/2026/07/01"
    day.mkdir(parents=True)
    pipe = day / "rollout-2026-07-01T11-00-00-0123.jsonl"
    os.mkfifo(pipe)
    with nobody_waits("a rollout that is a pipe"):
        assert readings_of(pipe, now=NOW) == {}
        assert rollout_readings(tmp_path, now=NOW) == ()
