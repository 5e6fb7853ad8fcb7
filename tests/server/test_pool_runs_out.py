"""What a single `run` makes of a pool that runs out: one attempt, and nothing remembered that
is not known.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.server.site import ANSWER, Site, tree

from bullswarm_core.attempts.pick import choose, look
from bullswarm_core.pools import Window
from bullswarm_core.quota.durations import expectations
from bullswarm_core.quota.reading import write_reading
from bullswarm_core.routing import Decision
from bullswarm_core.runs.task import Task
from bullswarm_core.store.home import write_json
from bullswarm_core.wire import iso, parse_iso
from bullswarm_server.ops.services import services_for

SPENT = "You've hit your usage limit."
METERED: dict[str, Any] = {"meter": {"type": "declared"}}


def refusing(notice: str) -> str:
    return f'cat > /dev/null\necho "{notice}" >&2\nexit 1'


def meter(site: Site, pool: str, *windows: Window) -> None:
    write_reading(site.home, pool, windows, captured_at=datetime.now(UTC))


def in_two_hours() -> datetime:
    return (datetime.now(UTC) + timedelta(hours=2)).replace(microsecond=0)


def pick_at(site: Site, moment: datetime) -> Decision:
    """The pick that the next task would get at another time."""
    services = services_for(site.home, site.environ, write_cache=False, now=lambda: moment)
    task = Task(prompt="Explain the parser.", lane="analyze", cwd=str(site.project))
    with site.database() as connection:
        view = look(services, connection, workspace=str(site.project))
        return choose(view, task, (), caller_pool=None, expected=expectations(connection, "analyze", "medium"))


def test_a_usage_limit_ends_the_run_with_no_retry_and_no_move_and_keeps_the_pool_out_to_the_named_reset(
    site: Site,
) -> None:
    reset = in_two_hours()
    site.worker("alpha", refusing(f"{SPENT} Try again at {iso(reset)}."), **METERED)
    site.worker("beta", f"cat > /dev/null\necho '{ANSWER}'")
    said = site.run()
    assert said.code == 1
    verdict = said.document
    assert (verdict["failureKind"], verdict["backAtSource"]) == ("quota", "named")
    assert parse_iso(verdict["backAt"]) == reset
    assert f"back at {iso(reset)}" in verdict["why"]
    assert [row["picked"] for row in site.decisions()] == ["alpha"]
    assert site.in_flight() == []

    # Later picks leave it out until that reset, and not a moment longer.
    for moment in (datetime.now(UTC), reset - timedelta(seconds=1)):
        decision = pick_at(site, moment)
        assert decision.pool == "beta"
        assert {entry.pool: entry.until for entry in decision.excluded}["alpha"] == reset
    assert pick_at(site, reset).pool == "alpha"
    assert "(burst-gated: alpha)" in pick_at(site, reset - timedelta(seconds=1)).reason


def test_the_limit_of_a_model_keeps_the_default_model_out_that_ran_into_it_and_no_other(site: Site) -> None:
    reset = in_two_hours()
    site.worker("alpha", refusing(f"You've reached your Opus limit. Try again at {iso(reset)}."), **METERED)
    site.worker("beta", f"cat > /dev/null\necho '{ANSWER}'")
    assert site.run().document["failureKind"] == "quota"
    for moment in (datetime.now(UTC), reset - timedelta(seconds=1)):
        decision = pick_at(site, moment)
        assert decision.pool == "beta"
        assert {entry.pool: entry.until for entry in decision.excluded}["alpha"] == reset
    assert pick_at(site, reset).pool == "alpha"
    for tier in ("high", "medium", "low"):
        assert site.say("strategy", "set-rung", "alpha", tier, "--model", "sonnet", "--yes").code == 0
    assert pick_at(site, datetime.now(UTC)).pool == "alpha"


def test_the_attempt_is_ended_at_once_even_if_its_cli_would_hang(site: Site) -> None:
    event = json.dumps({"type": "error", "message": SPENT})
    site.worker("alpha", f"cat > /dev/null\ncat <<'END'\n{event}\nEND\nsleep 300", **METERED)
    rule = {"on": "error", "emit": "error", "fields": {"text": "message"}}
    table = {"schemaVersion": "bullswarm.stream.v1", "kind": ["type"], "rules": [rule]}
    write_json(site.home.providers_dir / "alpha" / "stream.json", table)
    began = time.monotonic()
    said = site.run("--pool", "alpha")
    assert (said.code, said.document["failureKind"]) == (1, "quota"), said.document["why"]
    assert time.monotonic() - began < 60


def test_with_no_known_reset_nothing_keeps_the_pool_out(site: Site) -> None:
    site.worker("alpha", refusing(SPENT), **METERED)
    said = site.run("--pool", "alpha")
    assert (said.document["failureKind"], said.document["backAt"]) == ("quota", None)
    assert not site.home.meter_file("alpha").exists()
    assert pick_at(site, datetime.now(UTC)).pool == "alpha"


def test_an_earlier_reading_gives_the_reset_that_the_notice_lacks(site: Site) -> None:
    reset = in_two_hours()
    site.worker("alpha", refusing(SPENT), **METERED)
    meter(
        site, "alpha", Window("5h", 97, reset, reset_source="provider"), Window("weekly", 40, reset + timedelta(days=2))
    )
    said = site.run("--pool", "alpha")
    assert (said.document["failureKind"], said.document["backAtSource"]) == ("quota", "measured")
    assert parse_iso(said.document["backAt"]) == reset
    assert pick_at(site, reset - timedelta(seconds=1)).pool is None
    assert pick_at(site, reset).pool == "alpha"


def test_a_later_reading_below_the_limit_makes_the_pool_eligible_again(site: Site) -> None:
    reset = in_two_hours()
    site.worker("alpha", refusing(f"{SPENT} Try again at {iso(reset)}."), **METERED)
    site.run("--pool", "alpha")
    assert pick_at(site, datetime.now(UTC)).pool is None
    meter(site, "alpha", Window("5h", 62, reset, reset_source="provider"))
    assert pick_at(site, datetime.now(UTC)).pool == "alpha"
    meter(site, "alpha", Window("5h", 100, reset, reset_source="provider"))
    assert pick_at(site, datetime.now(UTC)).pool is None


@pytest.mark.parametrize("notice", ["Too many requests", "Rate limit exceeded. Please wait a moment and try again."])
def test_a_throttle_is_recorded_not_retried_and_keeps_no_pool_out(site: Site, notice: str) -> None:
    site.worker("alpha", refusing(notice), **METERED)
    said = site.run("--pool", "alpha")
    assert (said.code, said.document["failureKind"], said.document["backAt"]) == (1, "throttle", None)
    assert [row["failure_kind"] for row in site.decisions()] == ["throttle"]
    assert not site.home.meter_file("alpha").exists()
    assert pick_at(site, datetime.now(UTC)).pool == "alpha"


def test_a_throttle_that_names_its_wait_says_when_the_pool_is_back(site: Site) -> None:
    site.worker("alpha", refusing("Rate limit exceeded. Try again in 20 minutes."), **METERED)
    before = datetime.now(UTC)
    verdict = site.run("--pool", "alpha").document
    assert verdict["failureKind"] == "throttle"
    assert timedelta(minutes=19) < parse_iso(verdict["backAt"]) - before < timedelta(minutes=21)
    assert pick_at(site, datetime.now(UTC)).pool == "alpha"


def test_a_throttle_of_a_pool_whose_meter_is_full_is_a_usage_limit(site: Site) -> None:
    reset = in_two_hours()
    site.worker(
        "alpha",
        "cat > /dev/null\nwhile [ ! -e go ]; do sleep 0.05; done\necho 'Too many requests' >&2; exit 1",
        **METERED,
    )
    running = site.start_run("--pool", "alpha")
    site.happened("attempt.launched")
    meter(site, "alpha", Window("5h", 100, reset, reset_source="provider"))
    site.go()
    assert running.communicate(timeout=60)[0]
    row = site.decisions()[-1]
    assert row["failure_kind"] == "quota"
    assert pick_at(site, reset - timedelta(seconds=1)).pool is None
    assert pick_at(site, reset).pool == "alpha"


def test_a_refused_sign_in_is_remembered_by_nobody(site: Site) -> None:
    site.worker("alpha", refusing("Failed to authenticate: invalid api key"), **METERED)
    before = site.home.meters_dir.exists()
    assert site.run("--pool", "alpha").document["failureKind"] == "auth"
    assert site.home.meters_dir.exists() == before
    assert pick_at(site, datetime.now(UTC)).pool == "alpha"


def test_with_every_pool_at_a_limit_each_is_named_with_its_return_and_nothing_waits(site: Site) -> None:
    soon = in_two_hours()
    later = soon + timedelta(days=2)
    for name, window in (("alpha", Window("5h", 100, soon)), ("beta", Window("weekly", 104, later))):
        site.worker(name, refusing("never started"), **METERED)
        meter(site, name, window)
    before = tree(site.home.meters_dir)
    said = site.run("--use-pool", "alpha", "--use-pool", "beta")
    assert said.code == 1
    verdict = said.document
    expected = f"alpha at its 5-hour limit until {iso(soon)}; beta at its weekly limit until {iso(later)}"
    assert f"no pool with quota to spare: {expected}" in verdict["why"]
    assert (verdict["failureKind"], verdict["backAt"], verdict["backAtSource"]) == ("quota", iso(soon), "measured")
    assert site.decisions() == []
    assert tree(site.home.meters_dir) == before
