"""Twenty picks at once, each from a process of its own, spread over three pools as their forecasts say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.server.site import Site

from bullswarm_core.dispatch.ledger import entries
from bullswarm_core.pools import Window
from bullswarm_core.quota.history import append_history
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.reading import write_reading
from bullswarm_core.wire import stamp

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
ELAPSED = 60.0
RESET = NOW + timedelta(days=7) * (1 - ELAPSED / 100)
PICKS = 20

PICKER = """
import json, sys
from datetime import datetime
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home
from bullswarm_core.runs.journal import Journal
from bullswarm_core.attempts.pick import pick_pool
from bullswarm_server.ops.services import services_for
import os

run, now = sys.argv[1], datetime.fromisoformat(sys.argv[2])
services = services_for(Home(os.environ["BULLSWARM_HOME"]), os.environ, now=lambda: now)
connection = open_database(services.home)
journal = Journal(connection)
state = journal.state(run)
print("ready", flush=True)
sys.stdin.readline()
picked = pick_pool(services, connection, journal, state, "run")
told = {"pool": picked.pool, "minutes": picked.expected_minutes, "forecast": picked.decision["forecast"]}
print(json.dumps(told), flush=True)
# An attempt whose kernel is gone is no load: stay until everybody has picked.
sys.stdin.readline()
connection.close()
"""


class Worked:
    """A pool whose three attempts of ``minutes`` took its week from ``used`` - 3 rises to ``used``."""

    def __init__(self, name: str, *, used: float, minutes: float, rise: float) -> None:
        self.name, self.used, self.minutes, self.rise = name, used, minutes, rise

    @property
    def rate(self) -> float:
        return self.rise / self.minutes

    def on(self, site: Site) -> None:
        site.worker(self.name, "cat > /dev/null")
        window = Window("weekly", self.used, RESET, source="live", reset_source="provider")
        with site.database() as connection:
            for back in range(4):
                at = NOW - timedelta(minutes=back * self.minutes)
                reading = Window("weekly", self.used - back * self.rise, RESET, reset_source="provider")
                append_history(site.home, self.name, Observation(at, (reading,)), now=NOW)
                if back:
                    end = at + timedelta(minutes=self.minutes)
                    connection.execute(
                        "INSERT INTO decisions (at, lane, effort, picked, ok, wall_sec, started_at, ended_at)"
                        " VALUES (?, 'analyze', 'medium', ?, 1, ?, ?, ?)",
                        (stamp(end), self.name, self.minutes * 60, stamp(at), stamp(end)),
                    )
        write_reading(site.home, self.name, [window], captured_at=NOW)


def by_hand(pools: Sequence[Worked]) -> Counter[str]:
    """Give each pick to the pool whose pace is furthest ahead of all that is in flight on it, this task included."""
    given: Counter[str] = Counter()

    def surplus(pool: Worked) -> float:
        return round(ELAPSED - pool.used - pool.rate * pool.minutes * (given[pool.name] + 1), 1)

    for _ in range(PICKS):
        given[min(pools, key=lambda pool: (-surplus(pool), pool.name)).name] += 1
    return given


def test_a_burst_spreads_by_the_forecast(site: Site) -> None:
    pools = [
        Worked("fast", used=20, minutes=10, rise=4),
        Worked("slow", used=25, minutes=40, rise=2),
        Worked("idle", used=30, minutes=6, rise=1.2),
    ]
    for pool in pools:
        pool.on(site)
    runs = [site.create().run_id for _ in range(PICKS)]
    pickers = [
        subprocess.Popen(
            [sys.executable, "-c", PICKER, run, NOW.isoformat()],
            env=site.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for run in runs
    ]  # fmt: skip
    site.started += pickers
    told = tell(pickers)
    assert Counter(pick["pool"] for pick in told) == by_hand(pools) == {"fast": 5, "slow": 7, "idle": 8}
    minutes = {pool.name: pool.minutes for pool in pools}
    for pick in told:
        assert pick["minutes"] == pick["forecast"]["candidateMinutes"] == minutes[pick["pool"]]
        assert pick["forecast"]["estimateSource"] == "history"
    for picker in pickers:
        picker.communicate("\n", timeout=60)
    with site.database() as connection:
        assert entries(connection, now=NOW) == [], "with their processes gone nothing is in flight"
        booked = connection.execute("SELECT expected_minutes, pool, expected_source FROM inflight").fetchall()
    assert sorted(map(tuple, booked)) == sorted((minutes[pick["pool"]], pick["pool"], "history") for pick in told)


def tell(pickers: Sequence[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    """Let all pick at once and return what each picked; they go on living."""
    for picker in pickers:
        assert picker.stdout is not None
        assert picker.stdout.readline() == "ready\n"
    for picker in pickers:
        assert picker.stdin is not None
        picker.stdin.write("go\n")
        picker.stdin.flush()
    return [json.loads(picker.stdout.readline()) for picker in pickers if picker.stdout is not None]
