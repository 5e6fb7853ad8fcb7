"""Rates are fitted from the files and the log of a home, kept, and fitted anew when one of their sources has changed."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.pools import Inflight, Rate, Window, WindowKind
from bullswarm_core.quota import rate_fit
from bullswarm_core.quota.history import append_history
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.rate_cache import learned_rates
from bullswarm_core.quota.reading import write_reading
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home
from bullswarm_core.wire import stamp

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
RESET = NOW + timedelta(hours=3)
HALF = {"5h": Rate(0.5, "history", 2)}


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


class Machine:
    """A home with a log, and a count of how often rates were fitted in it."""

    def __init__(self, home: Home) -> None:
        self.home, self.connection = home, open_database(home)
        self.fitted: list[str] = []

    def read(self, minutes: float, used: float, *, pool: str = "codex") -> None:
        window = Window("5h", used, RESET, captured_at=at(minutes), reset_source="provider")
        append_history(self.home, pool, Observation(at(minutes), (window,)), now=at(minutes))

    def worked(self, begin: float, end: float, *, pool: str = "codex", **more: Any) -> None:
        row = {
            "at": stamp(at(end)),
            "started_at": stamp(at(begin)),
            "ended_at": stamp(at(end)),
            "wall_sec": (end - begin) * 60,
        }
        row |= {"picked": pool, **more}
        marks = ", ".join("?" * len(row))
        self.connection.execute(f"INSERT INTO decisions ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))

    def rates(
        self, *pools: str, inflight: Sequence[Inflight] = (), write_cache: bool = True
    ) -> dict[str, dict[WindowKind, Rate]]:
        return learned_rates(
            self.home,
            pools or ("codex",),
            self.connection,
            inflight={"codex": inflight} if inflight else {},
            write_cache=write_cache,
        )


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine(Home(tmp_path))
    real = rate_fit.fit

    def counted(home: Home, pool_id: str, *rest: Any) -> Any:
        made.fitted.append(pool_id)
        return real(home, pool_id, *rest)

    monkeypatch.setattr(rate_fit, "fit", counted)
    yield made
    made.connection.close()


@pytest.fixture
def measured(machine: Machine) -> Machine:
    for minutes, used in ((0, 10), (10, 14), (20, 20)):
        machine.read(minutes, used)
    machine.worked(0, 20)
    return machine


def test_without_a_log_or_any_work_there_is_no_rate_and_nothing_is_written(machine: Machine) -> None:
    machine.read(0, 10)
    assert learned_rates(machine.home, ["codex"], None, inflight={}, write_cache=True) == {}
    assert machine.rates() == {}
    assert not machine.home.cache_dir.exists()


def test_a_rate_is_fitted_once_and_kept_until_a_source_changes(measured: Machine) -> None:
    assert measured.rates() == {"codex": HALF}
    assert measured.rates() == {"codex": HALF}
    assert measured.fitted == ["codex"]
    measured.read(30, 21)
    measured.worked(20, 30)
    assert measured.rates() == {"codex": {"5h": Rate(11 / 30, "history", 3)}}
    assert measured.rates() == {"codex": {"5h": Rate(11 / 30, "history", 3)}}
    assert measured.fitted == ["codex"] * 2


def test_work_on_one_pool_fits_no_other_pool_anew(measured: Machine) -> None:
    measured.read(0, 1, pool="grok")
    assert measured.rates("codex", "grok") == {"codex": HALF}
    assert measured.fitted == ["codex", "grok"]
    measured.worked(0, 10, pool="grok")
    measured.worked(0, 10, pool="gone")
    assert measured.rates("codex", "grok") == {"codex": HALF}
    assert measured.fitted == ["codex", "grok", "grok"]


def test_a_dry_run_writes_nothing_and_knows_as_much(measured: Machine) -> None:
    assert measured.rates(write_cache=False) == {"codex": HALF}
    assert not measured.home.cache_dir.exists()
    measured.rates()
    kept = (measured.home.cache_dir / "rates.json").read_bytes()
    measured.worked(5, 15)
    assert measured.rates(write_cache=False) == {"codex": {"5h": Rate(10 / 30, "history", 2)}}
    assert (measured.home.cache_dir / "rates.json").read_bytes() == kept


def test_work_in_flight_counts_up_to_the_newest_reading(measured: Machine) -> None:
    running = [Inflight(at(10), 60)]
    assert measured.rates(inflight=running) == {"codex": {"5h": Rate(10 / 30, "history", 2)}}
    # What began after the newest reading measures nothing yet, and costs nothing either.
    late = [*running, Inflight(at(25), 60), Inflight(at(26), 60)]
    assert measured.rates(inflight=late) == {"codex": {"5h": Rate(10 / 30, "history", 2)}}
    assert measured.fitted == ["codex"]
    assert measured.rates() == {"codex": HALF}
    assert measured.fitted == ["codex"] * 2


def test_the_meter_file_is_a_reading_too(machine: Machine) -> None:
    window = Window("5h", 30, RESET, reset_source="provider")
    write_reading(machine.home, "codex", [window], captured_at=at(0))
    machine.worked(-60, -30)
    assert machine.rates() == {"codex": {"5h": Rate(1.0, "bootstrap", 1)}}
    write_reading(machine.home, "codex", [window], captured_at=at(1))
    assert machine.rates() == {"codex": {"5h": Rate(1.0, "bootstrap", 1)}}
    assert machine.fitted == ["codex"] * 2


def test_attempts_without_times_count_by_their_wall_seconds(measured: Machine) -> None:
    measured.worked(10, 20, started_at=None, ended_at=None)
    measured.worked(0, 20, wall_sec=0)
    measured.worked(0, 20, started_at="yesterday")
    assert measured.rates() == {"codex": {"5h": Rate(10 / 30, "history", 2)}}


def test_an_attempt_whose_time_nobody_knows_leaves_its_pairs_out(measured: Machine) -> None:
    measured.worked(12, 18, wall_sec=None)
    measured.read(30, 26)
    measured.worked(20, 30)
    assert measured.rates() == {"codex": {"5h": Rate(0.5, "history", 2)}}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"schemaVersion": "bullswarm.rates.v1"}',
        '{"schemaVersion": "bullswarm.rates.v9", "pools": {}}',
        '{"schemaVersion": "bullswarm.rates.v1", "pools": {"codex": 7}}',
        '{"schemaVersion": "bullswarm.rates.v1", "pools": {"codex": {"marks": 1, "decision": 1, "until": 1, "begun": [],'
        ' "rates": {}}}}',
        '{"schemaVersion": "bullswarm.rates.v1", "pools": {"codex": {"marks": [], "decision": "x", "until": null,'
        ' "begun": [], "rates": {"5h": [NaN, "history", 1]}}}}',
    ],
)
def test_a_damaged_cache_is_an_empty_one(measured: Machine, content: str) -> None:
    measured.home.cache_dir.mkdir()
    (measured.home.cache_dir / "rates.json").write_text(content)
    assert measured.rates() == {"codex": HALF}
    assert measured.rates() == {"codex": HALF}
    assert measured.fitted == ["codex"]


def test_a_rate_that_the_cache_can_not_mean_is_fitted_anew(measured: Machine) -> None:
    measured.rates()
    path = measured.home.cache_dir / "rates.json"
    for told in ([-1, "history", 2], [0.1, "guess", 2], [0.1, "history"], "x"):
        document = json.loads(path.read_text())
        document["pools"]["codex"]["rates"]["5h"] = told
        path.write_text(json.dumps(document))
        assert measured.rates() == {"codex": HALF}


def test_a_log_that_starts_anew_is_noticed(measured: Machine) -> None:
    measured.worked(-200, -190)
    assert measured.rates() == {"codex": HALF}
    measured.connection.execute("DELETE FROM decisions WHERE id = 2")
    assert measured.rates() == {"codex": HALF}
    assert measured.fitted == ["codex"] * 2


def test_a_cache_that_can_not_be_written_and_a_log_that_can_not_be_read_fail_nobody(measured: Machine) -> None:
    measured.home.cache_dir.write_text("a file in the place of the folder")
    assert measured.rates() == {"codex": HALF}
    measured.connection.execute("DROP TABLE decisions")
    assert measured.rates() == {}
    assert isinstance(measured.connection, sqlite3.Connection)


def test_pools_that_this_process_does_not_see_stay_in_the_cache(measured: Machine) -> None:
    measured.read(0, 1, pool="grok")
    measured.rates("codex", "grok")
    measured.read(30, 21)
    measured.rates("codex")
    measured.rates("grok")
    assert measured.fitted == ["codex", "grok", "codex"]
