"""The ``classic`` policy on a whole machine: quarantines that failures leave, `pools resume`, incumbents, the caller."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.server.site import SAY, Site
from tests.server.workflows import begin, ended

from bullswarm_core.dispatch.quarantines import in_force, record
from bullswarm_core.pools import Window
from bullswarm_core.pools.labels import set_label
from bullswarm_core.quota.reading import write_reading
from bullswarm_core.routing.quarantine import Quarantine
from bullswarm_core.store.home import write_json
from bullswarm_core.wire import iso

SPENT = "You've hit your usage limit."
REFUSED = "cat > /dev/null\necho 'Error: 401 Invalid API key provided' >&2\nexit 1"
GROUP: dict[str, Any] = {"credentialGroup": "relay"}


@pytest.fixture
def classic(site: Site) -> Site:
    write_json(site.home.state_file, {"version": 1, "config": {"routingPolicy": "classic"}})
    return site


def refusing(notice: str) -> str:
    return f'cat > /dev/null\necho "{notice}" >&2\nexit 1'


def held(site: Site) -> dict[str, Quarantine]:
    with site.database() as connection:
        return in_force(connection, now=datetime.now(UTC))


def minutes_left(entry: Quarantine) -> float:
    return (entry.until - datetime.now(UTC)) / timedelta(minutes=1)


def pool_line(site: Site, name: str) -> str:
    return next(line for line in site.say("pools").out.splitlines() if line.startswith(name))


def pool_row(site: Site, pool: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = site.say("pools", "--json").document["pools"]
    return next(row for row in rows if row["pool"] == pool)


def test_a_usage_limit_without_a_reset_quarantines_for_half_an_hour_and_resume_ends_it(classic: Site) -> None:
    site = classic
    site.worker("alpha", refusing(SPENT))
    site.worker("beta", SAY)
    set_label(site.home, "alpha", "first", ["alpha", "beta"])
    said = site.run("--pool", "alpha")
    # The failure rule is the same as ever: one attempt, nothing is sent elsewhere.
    assert (said.code, said.document["failureKind"]) == (1, "quota")
    assert [row["picked"] for row in site.decisions()] == ["alpha"]
    (entry,) = held(site).values()
    assert (entry.pool, entry.kind, entry.why) == ("alpha", "quota", SPENT)
    assert 28 < minutes_left(entry) <= 30.1

    assert f"QUARANTINED until {iso(entry.until)} ({SPENT})" in pool_line(site, "first")
    row = pool_row(site, "alpha")
    assert (row["state"], row["backAt"]) == ("quarantined", iso(entry.until))
    assert row["quarantine"] == {"kind": "quota", "until": iso(entry.until), "why": SPENT}
    route = site.say("route", "--lane", "analyze", "--json").document
    left_out = {each["pool"]: each for each in route["excluded"]}
    assert (route["pool"], left_out["alpha"]["kind"], left_out["alpha"]["until"]) == (
        "beta",
        "quota_quarantine",
        iso(entry.until),
    )

    ended_ = site.say("pools", "resume", "first", "--json").document
    assert ended_["schemaVersion"] == "bullswarm.pools-resume.v1"
    assert (ended_["pool"], ended_["poolLabel"], ended_["ended"]["why"]) == ("alpha", "first", SPENT)
    assert held(site) == {}
    assert pool_row(site, "alpha")["quarantine"] is None
    again = site.say("pools", "resume", "alpha")
    assert (again.code, again.out) == (0, "nothing to do: first is not quarantined\n")
    assert site.say("pools", "resume", "nobody").code == 2


def test_a_named_reset_and_else_that_of_the_5_hour_reading_end_it(classic: Site) -> None:
    site, reset = classic, (datetime.now(UTC) + timedelta(hours=2)).replace(microsecond=0)
    site.worker("alpha", refusing(f"{SPENT} Try again at {iso(reset)}."), meter={"type": "declared"})
    site.worker("beta", refusing(SPENT), meter={"type": "declared"})
    write_reading(site.home, "beta", [Window("5h", 40, reset, reset_source="provider")], captured_at=datetime.now(UTC))
    for name in ("alpha", "beta"):
        assert site.run("--pool", name).document["failureKind"] == "quota"
    assert {name: entry.until for name, entry in held(site).items()} == {"alpha": reset, "beta": reset}
    # The same notice marks the 5-hour window as used up: ending the quarantine does not hide that.
    said = site.say("pools", "resume", "alpha")
    assert (
        said.out == f"alpha is quarantined no longer (it was until {iso(reset)}, {SPENT} Try again at {iso(reset)}.)\n"
    )
    assert said.err.startswith(f"alpha stays out: its 5-hour window counts as used up until {iso(reset)}")


def test_a_refused_sign_in_benches_every_name_of_its_credential_for_ten_minutes(classic: Site) -> None:
    site = classic
    for name in ("first", "second", "third"):
        site.worker(name, REFUSED, **GROUP)
    site.worker("other", SAY, costRank=9)
    later = (datetime.now(UTC) + timedelta(hours=3)).replace(microsecond=0)
    with site.database() as connection:
        record(connection, [Quarantine("third", "quota", later, SPENT)], at=datetime.now(UTC))
    assert site.run("--pool", "first").document["failureKind"] == "auth"
    found = held(site)
    assert {name: entry.kind for name, entry in found.items()} == {"first": "auth", "second": "auth", "third": "quota"}
    assert found["second"].why == f"sibling of first: {found['first'].why}"
    assert 8 < minutes_left(found["first"]) <= 10.1
    assert found["second"].until == found["first"].until
    assert found["third"].until == later
    assert site.run().code == 0
    assert [row["picked"] for row in site.decisions()] == ["first", "other"]


def test_a_usage_limit_spreads_to_no_sibling(classic: Site) -> None:
    site = classic
    site.worker("first", refusing(SPENT), **GROUP)
    site.worker("second", SAY, **GROUP)
    assert site.run("--pool", "first").document["failureKind"] == "quota"
    assert set(held(site)) == {"first"}


def test_the_limit_of_one_model_leaves_no_quarantine(classic: Site) -> None:
    classic.worker("alpha", refusing("You've reached your Opus limit."))
    assert classic.run("--pool", "alpha").document["failureKind"] == "quota"
    assert held(classic) == {}


def test_pace_neither_records_nor_honours_nor_shows_one(site: Site) -> None:
    site.worker("alpha", refusing(SPENT))
    assert site.run("--pool", "alpha").document["failureKind"] == "quota"
    assert held(site) == {}
    with site.database() as connection:
        until = datetime.now(UTC) + timedelta(hours=1)
        record(connection, [Quarantine("alpha", "quota", until, SPENT)], at=datetime.now(UTC))
    assert "QUARANTINED" not in site.say("pools").out
    assert site.say("route", "--lane", "analyze", "--json").document["pool"] == "alpha"


def test_what_ran_well_here_keeps_such_work(classic: Site) -> None:
    site = classic
    for name in ("alpha", "beta"):
        site.worker(name, SAY)
    assert site.run("--pool", "beta").code == 0
    here = ("--add-dir", str(site.project), "--json")
    assert (
        "incumbent: beta did the last analyze work here"
        in site.say("route", "--lane", "analyze", *here).document["reason"]
    )
    assert site.say("route", "--lane", "build", *here).document["pool"] == "alpha"
    elsewhere = site.root / "elsewhere"
    elsewhere.mkdir()
    assert site.say("route", "--lane", "analyze", "--add-dir", str(elsewhere), "--json").document["pool"] == "alpha"
    # A step of a workflow in the same folder goes to it, too.
    state = ended(site, begin(site, document({"id": "s", "prompt": "Explain it.", "lane": "analyze"})))
    assert [attempt.picked.pool for attempt in state.steps["s"].attempts] == ["beta"]


def test_the_caller_keeps_the_task_when_nothing_else_is_eligible(classic: Site) -> None:
    classic.worker("alpha", SAY)
    said = classic.run(environ={"BULLSWARM_CALLER": "alpha"})
    assert (said.code, said.document["failureKind"]) == (1, "unavailable")
    assert said.document["why"].startswith("nothing else is eligible: the caller keeps the task")


def test_a_home_of_the_former_schema_is_read_as_it_is_and_brought_up_to_date_by_who_writes(classic: Site) -> None:
    site = classic
    site.worker("alpha", SAY)
    with site.database() as connection:
        connection.execute("DROP TABLE quarantines")
        connection.execute("PRAGMA user_version = 1")
    assert site.say("pools", "resume", "alpha").out == "nothing to do: alpha is not quarantined\n"
    assert site.say("route", "--lane", "analyze", "--json").document["pool"] == "alpha"
    assert site.run().code == 0
    with site.database() as connection:
        assert connection.execute("SELECT count(*) FROM quarantines").fetchone()[0] == 0


def test_set_policy_is_written_shown_and_checked(site: Site) -> None:
    said = site.say("strategy", "set-policy", "classic")
    assert (said.code, said.out.splitlines()[0]) == (0, "pools are picked by the classic policy now")
    assert "policy classic: the pool that did the last such work here keeps it" in said.out
    assert site.say("strategy", "set-policy", "classic").out.startswith(
        "nothing to do: pools are picked by the classic"
    )
    shown = site.say("strategy", "set-policy", "pace", "--json")
    assert shown.document["config"]["routingPolicy"] == "pace"
    wrong = site.say("strategy", "set-policy", "cheapest")
    assert wrong.code == 2
    assert "invalid choice: 'cheapest'" in wrong.err
    assert "classic" in wrong.err


def test_a_damaged_quarantine_keeps_nobody_out(classic: Site) -> None:
    classic.worker("alpha", SAY)
    with classic.database() as connection:
        for pool, kind, until in (("alpha", "quota", "soon"), ("beta", "odd", "2999-01-01T00:00:00Z")):
            connection.execute("INSERT INTO quarantines VALUES (?, ?, ?, 'why', 'at')", (pool, kind, until))
        assert in_force(connection, now=datetime.now(UTC)) == {}
        entry = Quarantine("alpha", "quota", datetime(2999, 1, 1, tzinfo=UTC), SPENT)
        record(connection, [entry], at=datetime.now(UTC))
        assert in_force(connection, now=datetime.now(UTC)) == {"alpha": entry}
