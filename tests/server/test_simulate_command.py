"""`bullswarm simulate` on a home with written histories: what it says, what it refuses, and that it writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.server.site import Site

from bullswarm_core.pools import Window
from bullswarm_core.quota.history import append_history
from bullswarm_core.quota.observation import Observation
from bullswarm_core.store.home import write_json
from bullswarm_core.wire import iso, stamp
from bullswarm_simulation import RIVALS, known_policies

DAYS, RATE, LENGTH = 6.0, 0.1, 30
WEEK = timedelta(days=7)
Span = tuple[datetime, datetime]


class Written:
    """Two accounts whose weeks began eight days ago; each task burns RATE percent a minute, and so does the person."""

    def __init__(self, site: Site, *, tasks: int = 30, days: float = DAYS, own: float = 0.0) -> None:
        self.site = site
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.begins = self.now - timedelta(days=days)
        self.days = days
        for name in ("first", "second"):
            site.worker(name, "cat > /dev/null")
        step = timedelta(days=days) / max(1, tasks)
        self.tasks = [
            (
                ("first", "second")[place % 2],
                self.begins + step * place,
                self.begins + step * place + timedelta(minutes=LENGTH),
            )
            for place in range(tasks)
        ]
        self.own: list[Span] = [(self.begins, self.begins + timedelta(minutes=own))] if own else []
        self._log()
        self._read()

    def _log(self) -> None:
        for pool, begun, ended in self.tasks:
            self.attempt(pool, begun, ended)

    def attempt(self, pool: str, begun: datetime, ended: datetime, failure: str | None = None) -> None:
        with self.site.database() as connection:
            connection.execute(
                "INSERT INTO decisions (at, lane, effort, picked, ok, failure_kind, wall_sec, started_at, ended_at)"
                " VALUES (?, 'build', 'medium', ?, ?, ?, ?, ?, ?)",
                (
                    stamp(ended),
                    pool,
                    failure is None,
                    failure,
                    (ended - begun).total_seconds(),
                    stamp(begun),
                    stamp(ended),
                ),
            )

    def _read(self) -> None:
        resets = self.begins + timedelta(days=6.5)
        for hour in range(int(self.days * 24) + 1):
            at = self.begins + timedelta(hours=hour)
            for pool in ("first", "second"):
                spans = [(begun, ended) for name, begun, ended in self.tasks if name == pool]
                spans += self.own if pool == "first" else []
                minutes = sum(max(0.0, (min(at, ended) - begun).total_seconds() / 60) for begun, ended in spans)
                window = Window("weekly", min(100.0, minutes * RATE), resets, reset_source="provider")
                append_history(self.site.home, pool, Observation(at, (window,)), now=self.now)

    def history(self, pool: str) -> Path:
        return self.site.home.meter_history_file(pool)


def tree(root: Path) -> dict[str, bytes]:
    """Every file below ``root``, but for what SQLite keeps beside an open database."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


@pytest.fixture
def written(site: Site) -> Iterator[Written]:
    yield Written(site, own=300)


def test_each_policy_and_rival_is_played_and_nothing_is_written(written: Written) -> None:
    before = tree(written.site.root)
    said = written.site.say("simulate", "--json")
    assert (said.code, said.err) == (0, "")
    document = said.document
    assert document["schemaVersion"] == "bullswarm.simulation.v1"
    assert (document["enough"], document["tasks"], document["policyInForce"]) == (True, 30, "pace")
    assert document["days"] == pytest.approx(DAYS, abs=0.01)
    assert {row["policy"] for row in document["policies"]} == set(known_policies())
    assert [row["policy"] for row in document["policies"] if row["inForce"]] == ["pace"]
    assert {row["policy"] for row in document["policies"] if not row["choosable"]} == set(RIVALS)
    for row in document["policies"]:
        assert row["completedMinutes"] + row["givenUpMinutes"] == pytest.approx(30 * LENGTH)
        assert sum(row["picks"].values()) >= row["completedTasks"]
    assert document["recorded"] == {
        "tasks": 30, "minutes": 30 * LENGTH, "walls": 0, "lost": 0, "givenUp": 0, "expiredPct": None,
    }  # fmt: skip
    first, second = document["pools"]
    # The rate is fitted with the person's own use in it (a worker was there at the time), so that a little of it is missing.
    assert 150 < first["ownUseMinutes"] <= 301
    assert second["ownUseMinutes"] == pytest.approx(0, abs=1)
    assert second["windows"][0]["pctPerMinute"] == pytest.approx(RATE, rel=0.1)
    assert second["windows"][0]["firstResetMinutes"] == pytest.approx(6.5 * 1440, abs=1)
    assert tree(written.site.root) == before


def test_people_read_a_table_what_it_rests_on_and_what_switching_means(written: Written) -> None:
    written.site.say("label", "second", "work")
    said = written.site.say("simulate")
    lines = said.out.splitlines()
    assert lines[0].startswith("30 recorded tasks of 6 days (") and lines[0].endswith(
        "15h00m of work, played again with each policy"
    )
    assert lines[2].split() == ["policy", "worked", "share", "lost", "walls", "expired", "given", "up"]
    (marked,) = [line for line in lines if line.startswith("pace (in force)")]
    assert marked.split()[3:5] == ["15h00m", "100.0%"]
    assert [line.split()[0] for line in lines if line.startswith("what happened")] == ["what"]
    assert "work: your own use 0m, weekly 0.1%/min" in said.out
    assert lines[-1] == (
        "pace would have done all of it without a wall: on these 30 tasks of 6 days, no policy could do better."
    )


def test_only_the_named_ones_are_played_beside_the_one_in_force(written: Written) -> None:
    write_json(written.site.home.state_file, {"version": 1, "config": {"routingPolicy": "classic"}})
    document = written.site.say("simulate", "--json", "--policy", "round-robin", "--policy", "pace").document
    assert {row["policy"] for row in document["policies"]} == {"round-robin", "pace", "classic"}
    assert document["policyInForce"] == "classic"


def test_a_tier_that_a_pool_lacks_is_told(written: Written) -> None:
    state = {"version": 1, "strategy": {"rungs": {"second": {"high": {"model": "big"}}}}}
    write_json(written.site.home.state_file, state)
    said = written.site.say("simulate", "--policy", "pace")
    assert said.code == 0, said
    (line,) = [line for line in said.out.splitlines() if line.startswith("second:")]
    assert line.endswith("played as if it had a model on every tier (30 tasks of one that it lacks)")


def test_damage_is_skipped_and_counted(written: Written) -> None:
    with written.history("first").open("ab") as file:
        file.write(b'{"capturedAt": "2026-\n\xff\xfe\n[]\n')
        ahead = {"capturedAt": iso(written.now + timedelta(days=900)), "windows": [], "readBy": ""}
        file.write(json.dumps(ahead).encode() + b"\n")
    with written.site.database() as connection:
        connection.execute(
            "INSERT INTO decisions (at, lane, effort, picked) VALUES (?, 'dance', 'high', 'first')",
            (stamp(written.now),),
        )
        connection.execute(
            "INSERT INTO decisions (at, lane, effort, picked, wall_sec, started_at)"
            " VALUES (?, 'build', 'high', 'first', 9, 'noon')",
            (stamp(written.now),),
        )
    document = written.site.say("simulate", "--json", "--policy", "pace").document
    assert (document["skippedLines"], document["skippedRows"], document["tasks"]) == (4, 2, 30)
    assert "skipped as damaged: 4 lines of the readings' history and 2 rows of the database" in (
        written.site.say("simulate", "--policy", "pace").out
    )


@pytest.mark.parametrize("reset", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", None])
def test_a_reset_that_can_not_be_costs_nothing_else(written: Written, reset: str | None) -> None:
    with written.history("first").open("ab") as file:
        window = {"kind": "weekly", "usedPct": 3, "resetsAt": reset}
        file.write(
            json.dumps(
                {"capturedAt": iso(written.now - timedelta(minutes=5)), "windows": [window], "readBy": ""}
            ).encode()
            + b"\n"
        )
    said = written.site.say("simulate", "--json", "--policy", "pace")
    assert (said.code, said.document["tasks"]) == (0, 30), said.err


def test_what_has_no_length_and_what_met_a_wall_is_told(written: Written) -> None:
    at = written.begins + timedelta(days=2, minutes=40)
    written.attempt("first", at, at + timedelta(minutes=20), "quota")
    written.attempt("second", at, at + timedelta(minutes=5), "cancelled")
    written.attempt("gone", at, at + timedelta(minutes=5))
    document = written.site.say("simulate", "--json", "--policy", "pace").document
    assert document["tasksLeftOut"] == {"pool": 1, "stopped": 1, "wall": 1}
    recorded = document["recorded"]
    assert (recorded["walls"], recorded["lost"], recorded["givenUp"]) == (1, 20, 1)
    out = written.site.say("simulate", "--policy", "pace").out
    assert (
        "tasks left out: 1 of a pool that can't be played, 1 stopped before they ended, 1 ended by a wall for good"
        in out
    )


def test_readings_that_picks_saw_count_where_the_history_is_gone(written: Written) -> None:
    resets = iso(written.begins + timedelta(days=6.5))
    for pool in ("first", "second"):
        lines = written.history(pool).read_bytes().splitlines(keepends=True)
        written.history(pool).write_bytes(b"".join(lines[-48:]))
    assert written.site.say("simulate", "--json").document["enough"] is False
    with written.site.database() as connection:
        connection.execute(
            "INSERT INTO runs (id, short_id, created_at, kind, root) VALUES ('r', 'r', ?, 'run', 'r')",
            (stamp(written.begins),),
        )
        for number, (_, begun, _) in enumerate(written.tasks):
            rows = [
                {"pool": name, "pacingWindow": "weekly", "pacingSource": "live", "pacingResetsAt": resets,
                 "pacingUsedPct": RATE * LENGTH * sum(pool == name for pool, _, _ in written.tasks[:number])}
                for name in ("first", "second")
            ]  # fmt: skip
            rows.append({"pool": "first", "pacingSource": "stale"})
            connection.execute(
                "INSERT INTO events (run, seq, at, type, version, payload) VALUES ('r', ?, ?, 'attempt.picked', 1, ?)",
                (number, stamp(begun), json.dumps({"decision": {"candidates": rows}})),
            )
        connection.execute(
            "INSERT INTO events (run, seq, at, type, version, payload) VALUES ('r', 900, ?, 'attempt.picked', 1, ?)",
            (stamp(written.now), json.dumps({"decision": {"candidates": [{"pacingSource": "live"}]}})),
        )
    document = written.site.say("simulate", "--json", "--policy", "pace").document
    assert (document["enough"], document["tasks"], document["skippedRows"]) == (True, 30, 1)
    assert document["days"] == pytest.approx(DAYS, abs=0.01)


def test_too_little_history_says_what_is_there_and_what_is_needed(site: Site) -> None:
    said = site.say("simulate")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[0] == (
        "too little history to compare policies: 0 tasks of known length in 28 days on 0 pools; needed are 20 tasks in"
        " 3 days on 2 pools with readings and a learned rate"
    )
    document = site.say("simulate", "--json").document
    assert (document["enough"], document["policies"], document["needed"]["tasks"]) == (False, [], 20)
    assert not site.home.database_file.exists()


def test_a_shorter_time_is_too_little(written: Written) -> None:
    out = written.site.say("simulate", "--days", "2").out
    assert out.startswith("too little history to compare policies: 9 tasks of known length in 2 days on 2 pools;")
    earlier = written.site.say("simulate", "--until", iso(written.begins - timedelta(days=1)))
    assert earlier.code == 0
    assert earlier.out.startswith("too little history")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--days", "0"), "0 is not above 0"),
        (("--days", "nan"), "nan is not above 0"),
        (("--days", "many"), "invalid"),
        (("--until", "noon"), '--until "noon" is no ISO-8601 time'),
        (("--until", "0001-01-02T00:00:00Z"), "is too early"),
        (("--policy", "dice"), "invalid choice"),
    ],
)
def test_what_can_not_be_meant_is_refused(site: Site, words: tuple[str, ...], told: str) -> None:
    said = site.say("simulate", *words)
    assert said.code == 2
    assert told in said.err


def test_a_policy_in_force_that_nobody_knows_is_refused(site: Site) -> None:
    write_json(site.home.state_file, {"version": 1, "config": {"routingPolicy": "dice"}})
    said = site.say("simulate")
    assert said.code == 2
    assert "unknown routing policy dice" in said.err


def test_a_database_that_is_none_is_refused(site: Site) -> None:
    site.home.ensure()
    site.home.database_file.write_bytes(b"no database at all" * 100)
    said = site.say("simulate")
    assert said.code == 2
    assert said.out == ""
