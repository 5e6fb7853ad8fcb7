"""What work spends is seen where it is decided: in the lines of `pools`, in its document, in a pick, in a dry run."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.server.site import Site, tree

from bullswarm_core.dispatch.ledger import Booking, book
from bullswarm_core.pools import Window
from bullswarm_core.process.identity import current
from bullswarm_core.quota.history import append_history
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.reading import write_reading
from bullswarm_core.wire import stamp

MINUTE = timedelta(minutes=1)


@pytest.fixture
def measured(site: Site) -> Site:
    """A pool that spends 0.5 % of its five hours and 0.1 % of its week a minute, and is at work for 25 minutes more."""
    site.worker("alpha", "cat > /dev/null", meter={"type": "declared"})
    now = datetime.now(UTC).replace(microsecond=0)
    with site.database() as connection:
        for back in (30, 20, 10, 0):
            at = now - back * MINUTE
            windows = (
                Window("5h", 40 - back * 0.5, now + timedelta(hours=2), source="live", reset_source="provider"),
                Window("weekly", 30 - back * 0.1, now + timedelta(days=3), source="live", reset_source="provider"),
            )
            append_history(site.home, "alpha", Observation(at, windows), now=now)
            write_reading(site.home, "alpha", windows, captured_at=at)
        row = (stamp(now), 1800.0, stamp(now - 30 * MINUTE), stamp(now))
        columns = "at, wall_sec, started_at, ended_at, lane, effort, picked, ok"
        connection.execute(f"INSERT INTO decisions ({columns}) VALUES (?, ?, ?, ?, 'build', 'high', 'alpha', 1)", row)
        booking = Booking(
            run="wf-1", step="run", attempt="run-1", pool="alpha", lane="build", effort="high", started_at=now,
            kernel=current(), expected_minutes=25,
        )  # fmt: skip
        book(connection, booking)
    return site


def test_pools_shows_reading_projection_rate_and_source(measured: Site) -> None:
    line = next(line for line in measured.say("pools").out.splitlines() if line.startswith("alpha "))
    assert " 5h=40%->52.5% (60% elapsed) " in line
    document = measured.say("pools", "--json").document
    (row,) = [row for row in document["pools"] if row["pool"] == "alpha"]
    five_hours = {"ratePerMinute": pytest.approx(0.5), "source": "history", "samples": 3}
    week = {"ratePerMinute": pytest.approx(0.1), "source": "history", "samples": 3}
    nothing = {"ratePerMinute": None, "source": None, "samples": 0}
    assert row["spend"] == {
        "fiveHour": five_hours,
        "daily": nothing,
        "weekly": week,
        "monthly": nothing,
        "pacing": {"window": "weekly", **week},
    }
    assert row["estimateSource"] == "history"
    assert row["projectedFiveHourPct"] == pytest.approx(52.5, abs=0.1)
    assert row["projectedWeeklyPct"] == row["projectedPacingPct"] == pytest.approx(32.5, abs=0.1)
    assert row["projectedMonthlyPct"] is None
    assert row["effectiveSurplus"] == pytest.approx(row["pace"] - 2.5, abs=0.11)
    assert row["inflight"]["remainingMinutes"] == pytest.approx(25, abs=0.2)


def test_a_pick_is_forecast_with_the_rate_and_a_dry_run_keeps_nothing(measured: Site) -> None:
    before = tree(measured.home.root)
    said = measured.say("route", "--lane", "analyze", "--json", "--pool", "alpha", "--add-dir", str(measured.project))
    (row,) = said.document["candidates"]
    # 25 minutes in flight and 5 for the task itself.
    assert row["projectedFiveHourPct"] == pytest.approx(52.5, abs=0.1)
    assert row["forecastFiveHourPct"] == pytest.approx(55, abs=0.1)
    assert row["forecastPacingPct"] == pytest.approx(33, abs=0.1)
    assert row["expectedMinutes"] == said.document["forecast"]["expectedMinutes"] == 5
    assert row["ratePerMinute"] == pytest.approx(0.5)
    assert row["estimateSource"] == "history"
    dry = measured.run("--dry-run", "--pool", "alpha")
    assert dry.code == 0, dry
    assert tree(measured.home.root) == before
    measured.say("pools")
    kept = json.loads((measured.home.cache_dir / "rates.json").read_text())
    assert kept["pools"]["alpha"]["rates"]["5h"][1:] == ["history", 3]


def test_a_home_that_can_not_be_written_has_rates_all_the_same(measured: Site) -> None:
    measured.home.cache_dir.mkdir(exist_ok=True)
    (measured.home.cache_dir / "rates.json").mkdir()
    document = measured.say("pools", "--json").document
    assert next(row for row in document["pools"] if row["pool"] == "alpha")["spend"]["pacing"]["source"] == "history"
