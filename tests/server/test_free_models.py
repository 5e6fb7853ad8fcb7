"""A free model is tried with one word before a real task, and a free pool may be silent as long as its own runs take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.server.site import ANSWER, CONNECTOR, Site, tree

MODEL = "union:free"
# Each call leaves one line: the model that was asked for, and the first word of the task.
FREE = f"""word=$(head -c 4)
cat > /dev/null
echo "$2 $word" >> "$BULLSWARM_HOME/calls"
if [ -e "$BULLSWARM_HOME/gone" ]; then echo '{{"error": {{"statusCode": 404}}}}' >&2; exit 1; fi
echo '{ANSWER}'"""
METERED = f"cat > /dev/null\necho '{ANSWER}'"
NO_FLAG: dict[str, Any] = {**CONNECTOR["launch"], "modelFlag": "-m"}


@pytest.fixture
def free_first(site: Site) -> Site:
    """``alpha`` has a rung with a free model, ``beta`` its CLI's default."""
    site.worker("alpha", FREE, launch=NO_FLAG)
    site.worker("beta", METERED)
    said = site.say("strategy", "set-rung", "alpha", "medium", "--model", MODEL, "--yes")
    assert said.code == 0, said
    return site


def run(site: Site, **environ: str) -> tuple[bool, str, str | None]:
    """Run a task; whether it went well, and the pool and model that did it."""
    said = site.run(environ=environ)
    last = site.decisions()[-1]
    return said.document["ok"], last["picked"], last["model"]


def calls(site: Site) -> list[str]:
    file = site.home.root / "calls"
    return file.read_text().splitlines() if file.exists() else []


def test_a_free_model_that_answers_gets_the_task_and_is_tried_once_in_15_minutes(free_first: Site) -> None:
    for _ in range(2):
        assert run(free_first) == (True, "alpha", MODEL)
    words = calls(free_first)
    assert words[0] == f"{MODEL} PONG"
    assert len(words) == 3, words
    assert not any(word.endswith("PONG") for word in words[1:])


def test_one_that_does_not_is_left_out_of_the_pick_with_its_reason_and_no_other_model_takes_its_place(
    free_first: Site,
) -> None:
    (free_first.home.root / "gone").touch()
    assert run(free_first) == (True, "beta", None)
    assert "probe: 404 (alpha)" in free_first.decisions()[0]["reason"]
    # The bad answer is kept as well.
    (free_first.home.root / "gone").unlink()
    assert run(free_first) == (True, "beta", None)
    assert calls(free_first) == [f"{MODEL} PONG"]


def test_with_no_other_pool_the_run_says_that_the_probe_failed(free_first: Site) -> None:
    (free_first.home.root / "gone").touch()
    said = free_first.run("--pool", "alpha")
    assert said.code == 1
    assert "probe: 404" in said.document["why"]
    assert said.document["failureKind"] == "unavailable"


def test_a_dry_run_and_a_shown_pick_try_nothing_and_write_nothing(free_first: Site) -> None:
    before = tree(free_first.home.root)
    assert free_first.run("--dry-run").code == 0
    assert free_first.say("route", "--lane", "analyze", "--add-dir", str(free_first.project)).code == 0
    assert calls(free_first) == []
    assert tree(free_first.home.root) == before


def test_the_cli_s_own_default_is_never_tried(site: Site) -> None:
    site.worker(
        "alpha",
        FREE,
        tiers={tier: {"model": MODEL, "free": True} for tier in ("high", "medium", "low")},
        launch=NO_FLAG,
    )
    assert run(site) == (True, "alpha", MODEL)
    assert not any(word.endswith("PONG") for word in calls(site))


@pytest.mark.parametrize(
    ("walls", "more", "expected"),
    [
        ([900.0, 400.0, 100.0], {}, 400.0),
        ([30.0, 40.0, 50.0], {}, 300.0),
        ([900.0, 400.0], {}, 3600.0),
        ([900.0, 400.0, 100.0], {"BULLSWARM_WORKER_SILENCE_SEC": "77"}, 77.0),
    ],
    ids=["the median", "five minutes at least", "three runs at least", "what the person says"],
)
def test_a_free_pool_may_be_silent_as_long_as_its_own_runs_took(
    free_first: Site, walls: list[float], more: dict[str, str], expected: float
) -> None:
    with free_first.database() as connection:
        # One that stalled is no measure: it would tighten the clock that it hit.
        rows = [(wall, 0) for wall in walls] + [(1.0, 1)]
        connection.executemany(
            "INSERT INTO decisions (at, lane, effort, picked, ok, wall_sec, stalled)"
            " VALUES ('', 'chore', 'medium', 'alpha', 1, ?, ?)",
            rows,
        )
    assert run(free_first, **more) == (True, "alpha", MODEL)
    launched = next(iter(free_first.home.workflows_dir.glob("*/attempt-run-1.launch.json")))
    assert json.loads(launched.read_bytes())["clocks"]["silenceSec"] == expected
