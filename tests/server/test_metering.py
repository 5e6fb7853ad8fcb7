"""Readings are renewed beside the work: nobody waits for a slow meter, and everybody says how old a number is."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.core.meters.endpoint import Answer, Endpoint, endpoint
from tests.processes import until
from tests.server.metered_site import LIVE, metered
from tests.server.site import Site, tree

from bullswarm_core.pools import Window
from bullswarm_core.quota.holds import load_hold
from bullswarm_core.quota.reading import load_reading, write_reading
from bullswarm_server import meters
from bullswarm_server.ops.meters import PATIENCE_SEC, STARTING_SEC, claim

HOUR = timedelta(hours=1)


@pytest.fixture
def vendor() -> Any:
    with endpoint() as running:
        running.tells({"5h": 30, "weekly": 40})
        yield running


def row(document: dict[str, Any], pool: str = "fake") -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in document["pools"] if row["pool"] == pool)
    return found


def stored(site: Site, pool: str = "fake") -> dict[str, float | None]:
    return {one.kind: one.used_pct for one in load_reading(site.home, pool, now=datetime.now(UTC)).windows}


def test_pools_reads_what_is_due_and_then_leaves_it_alone(site: Site, vendor: Endpoint) -> None:
    metered(site, "fake", vendor.url)
    site.say("pools", environ=LIVE)
    until(lambda: stored(site), "the reading is stored")
    seen = row(site.say("pools", "--json", environ=LIVE).document)
    assert (seen["pacingUsedPct"], seen["fiveHourUsedPct"], seen["meterReadBy"]) == (40, 30, "usage endpoint")
    assert (seen["pacingSource"], seen["meterError"]) == ("live", None)
    assert len(vendor.asked) == 1
    line = next(line for line in site.say("pools", environ=LIVE).out.splitlines() if line.startswith("fake"))
    assert "weekly used 40%" in line and "[live]" in line and "5h=30%" in line
    assert len(vendor.asked) == 1


def test_a_slow_endpoint_costs_a_list_of_pools_a_second_and_the_reading_goes_on_for_the_next(
    site: Site, vendor: Endpoint
) -> None:
    metered(site, "fake", vendor.url)
    slow = vendor.answer.body
    vendor.answer = Answer(slow, before=lambda: vendor.closing.wait(3))
    started = time.monotonic()
    seen = row(site.say("pools", "--json", environ=LIVE).document)
    waited = time.monotonic() - started
    assert seen["pacingUsedPct"] is None
    quick = time.monotonic()
    site.say("pools", "--json")
    assert waited - (time.monotonic() - quick) < PATIENCE_SEC + 1, (
        "more than the patience and the work of the verb itself"
    )
    until(lambda: stored(site) == {"5h": 30, "weekly": 40}, "the reading that went on is stored")
    assert len(vendor.asked) == 1


def test_an_endpoint_that_hangs_for_30_s_does_not_delay_a_pick(site: Site, vendor: Endpoint) -> None:
    metered(site, "fake", vendor.url, "cat > /dev/null\necho 'The parser splits each line at its commas, as asked.'")
    then = datetime.now(UTC) - 2 * HOUR
    write_reading(site.home, "fake", [Window("weekly", 10, then + 30 * HOUR, captured_at=then)], captured_at=then)
    vendor.answer = Answer(before=lambda: vendor.closing.wait(30))
    done = site.run("--pool", "fake", environ=LIVE)
    assert done.code == 0, done
    started, picked = (datetime.fromisoformat(at) for at in moments(site, "kernel.started", "attempt.picked"))
    assert (picked - started).total_seconds() < PATIENCE_SEC + 6, (
        "it waited for more than its patience and a slow machine"
    )
    assert vendor.asked and stored(site)["weekly"] == 10
    until(lambda: load_hold(site.home, "fake")[0], "the failure is told", seconds=60)


def moments(site: Site, *types: str) -> list[str]:
    from bullswarm_core.runs.journal import Journal

    with site.database() as connection:
        journal = Journal(connection)
        events = {event.type: event.at for event in journal.read(journal.rows()[0].run_id)}
    return [str(events[kind]) for kind in types]


def test_many_lists_of_pools_at_once_share_one_reading(site: Site, vendor: Endpoint) -> None:
    metered(site, "fake", vendor.url)
    vendor.answer.before = lambda: vendor.closing.wait(0.2)
    calls = [site.start("pools", "--json", environ=LIVE) for _ in range(6)]
    for call in calls:
        out, err = call.communicate(timeout=60)
        assert (call.returncode, err) == (0, "") and json.loads(out)["pools"]
    until(lambda: stored(site) == {"5h": 30, "weekly": 40}, "the reading is stored")
    assert len(vendor.asked) == 1


def test_one_of_many_starts_the_reading_and_a_start_that_came_to_nothing_is_repeated(site: Site) -> None:
    assert [claim(site.home, "a:b") for _ in range(3)] == [True, False, False]
    assert claim(site.home, "other")
    (note,) = (site.home.meters_dir / "locks").glob("a*.started")
    for age in (STARTING_SEC + 1, -3600):
        os.utime(note, (time.time() - age, time.time() - age))
        assert [claim(site.home, "a:b") for _ in range(2)] == [True, False]


def test_force_waits_for_the_reading_and_says_what_failed_and_when_it_is_tried_again(
    site: Site, vendor: Endpoint
) -> None:
    metered(site, "fake", vendor.url)
    with endpoint(Answer(b"", 429, {"Retry-After": "650"})) as angry:
        metered(site, "other", angry.url)
        said = site.say("pools", "--force", environ=LIVE)
        assert "other: 127.0.0.1 answered 429 · retry in 10m" in said.err and "fake" not in said.err
        line = next(line for line in said.out.splitlines() if line.startswith("fake"))
        assert "weekly used 40%" in line
        document = site.say("pools", "--force", "--json", environ=LIVE).document
        assert [(one["pool"], one["step"]) for one in document["renewed"]] == [("fake", "live"), ("other", "failed")]
        failed = row(document, "other")
        assert failed["meterError"] == "127.0.0.1 answered 429" and failed["meterHoldUntil"]
        assert "SECRET" not in said.out + said.err + json.dumps(document)


def test_force_within_the_vendor_s_interval_says_so(site: Site, vendor: Endpoint) -> None:
    metered(site, "fake", vendor.url, interval=180)
    site.say("pools", "--force", environ=LIVE)
    asked = site.home.meters_dir / "locks"
    (note,) = asked.glob("*.asked.json")
    earlier = datetime.now(UTC) - timedelta(seconds=60)
    note.write_text(json.dumps({"polledAt": earlier.isoformat()}))
    said = site.say("pools", "--force", environ=LIVE)
    assert "fake: its vendor is asked once in 180 s at most · retry in" in said.err
    assert len(vendor.asked) == 1


def test_pools_that_are_off_or_not_signed_in_are_never_asked(site: Site, vendor: Endpoint) -> None:
    metered(site, "fake", vendor.url)
    metered(site, "out", vendor.url)
    (site.root / "home" / ".out" / "auth.json").unlink()
    site.say("strategy", "set-provider", "fake", "off", "--yes")
    for words in (["pools"], ["pools", "--force"], ["pools", "--force", "--json"]):
        said = site.say(*words, environ=LIVE)
        assert said.code == 0
    assert vendor.asked == [] and not site.home.meters_dir.exists()
    assert "no pool that is on and signed in has a meter" in site.say("pools", "--force", environ=LIVE).err
    assert "BULLSWARM_METERS turns meters off" in site.say("pools", "--force").err


def test_route_and_a_dry_run_ask_nothing_and_write_nothing(site: Site, vendor: Endpoint) -> None:
    metered(site, "fake", vendor.url)
    site.say("pools")
    before = tree(site.home.root)
    for words in (["route", "--lane", "analyze", "x"], ["run", "--dry-run", "--lane", "analyze", "x"]):
        site.say(*words, environ=LIVE)
    assert tree(site.home.root) == before and vendor.asked == []


def test_a_home_that_cannot_be_written_starts_nothing(
    site: Site, vendor: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    metered(site, "fake", vendor.url)
    monkeypatch.setattr("bullswarm_server.ops.meters.os.access", lambda *_: False)
    assert site.say("pools", environ=LIVE).code == 0
    assert vendor.asked == []


def test_a_disk_that_refuses_is_told_to_whoever_forces(site: Site, vendor: Endpoint) -> None:
    metered(site, "fake", vendor.url)
    site.home.meters_dir.write_text("no folder")
    said = site.say("pools", "--force", environ=LIVE)
    assert "fake: cannot " in said.err and said.code == 0 and vendor.asked == []


def test_the_reading_process_ends_by_itself_and_takes_what_hangs_with_it(
    site: Site, vendor: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    metered(site, "fake", vendor.url)
    vendor.answer = Answer(before=lambda: vendor.closing.wait(60))
    for name, value in {**site.environ, **LIVE}.items():
        monkeypatch.setenv(name, value)
    child = os.fork()
    if child == 0:
        os.setsid()
        meters.read(site.home, ["fake"], force=True, limit_sec=0.5)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == 9


def test_the_reading_process_keeps_nothing_of_its_starter_open(site: Site, vendor: Endpoint) -> None:
    """A caller that reads `pools` through a pipe sees its end at once, however long the meters take."""
    metered(site, "fake", vendor.url)
    vendor.answer = Answer(before=lambda: vendor.closing.wait(8))
    process = site.start("pools", "--json", environ=LIVE)
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["pools"] and not vendor.closing.is_set()
    until(lambda: vendor.asked, "the vendor is asked")
    assert any("bullswarm_server.meters" in line for line in site.processes().values()), "it is still at it"
    vendor.closing.set()


def test_a_damaged_hold_is_told_in_the_line_and_the_next_success_removes_it(site: Site, vendor: Endpoint) -> None:
    metered(site, "fake", vendor.url)
    path = site.home.meters_dir / "fake.hold.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    assert "fake.hold.json" in row(site.say("pools", "--json").document)["meterError"]
    site.say("pools", "--force", environ=LIVE)
    assert not path.exists() and row(site.say("pools", "--json").document)["meterError"] is None


def test_doctor_names_each_meter_that_fails_with_its_fix(site: Site, vendor: Endpoint) -> None:
    for name in ("fake", "fine"):
        metered(site, name, vendor.url)

    def found() -> dict[str, Any]:
        said = site.say("doctor", "--json", environ=LIVE)
        return {check["id"]: check for check in said.document["checks"] if check["id"].startswith("meter")}

    assert found() == {} and vendor.asked == []
    for status, fix in (
        (429, "nothing to do: it is asked again by itself"),
        (401, "open fake and sign in"),
        (503, "network"),
    ):
        vendor.answer = Answer(b"", status)
        (site.home.meters_dir / "fake.hold.json").unlink(missing_ok=True)
        for note in site.home.meters_dir.glob("locks/*.asked.json"):
            note.unlink()
        site.say("pools", "--force", environ=LIVE)
        check = found()["meter fake"]
        assert check["status"] == "warning" and fix in check["fix"]
        assert check["message"].startswith(f"127.0.0.1 answered {status} · never read · retry in ")
    vendor.tells({"5h": 30, "weekly": 40})
    for note in site.home.meters_dir.glob("locks/*.asked.json"):
        note.unlink()
    site.say("pools", "--force", environ=LIVE)
    assert found() == {}
    for word, told in (("passive", "files of this machine"), ("nope", "counts as off")):
        said = site.say("doctor", environ={"BULLSWARM_METERS": word})
        assert told in said.out and "unset BULLSWARM_METERS" in said.out


# --- after a usage limit

LIMIT = """cat > /dev/null
echo "You've hit your weekly limit{named}" >&2
exit 1"""
SIGNATURES = {"quota": ["hit your weekly limit"]}


def limited(site: Site, url: str, named: str = "") -> dict[str, Any]:
    metered(site, "fake", url, LIMIT.format(named=named), signatures=SIGNATURES)
    verdict = site.run("--pool", "fake", environ=LIVE).document
    assert verdict["failureKind"] == "quota", verdict
    return verdict


def test_after_a_usage_limit_the_meter_says_when_the_pool_is_back(site: Site, vendor: Endpoint) -> None:
    write_reading(
        site.home, "fake", [Window("weekly", 90)], captured_at=datetime.now(UTC), checked_at=datetime.now(UTC)
    )
    vendor.tells({"5h": 10, "weekly": 100})
    verdict = limited(site, vendor.url)
    back = datetime.fromisoformat(verdict["backAt"])
    # A reset is told in whole seconds, rounded to the nearest.
    assert timedelta(days=2) - 5 * timedelta(minutes=1) < back - datetime.now(UTC) <= timedelta(days=2, seconds=1)
    assert verdict["backAtSource"] == "measured"
    assert row(site.say("pools", "--json").document)["state"] == "burst-gated"
    assert len(vendor.asked) == 1


def test_a_limit_without_a_reset_and_without_a_meter_keeps_nobody_out(site: Site, vendor: Endpoint) -> None:
    vendor.answer = Answer(b"", 503)
    limited(site, vendor.url)
    assert row(site.say("pools", "--json").document)["state"] == "ready"


def test_a_named_reset_keeps_the_pool_out_though_the_meter_lags(site: Site, vendor: Endpoint) -> None:
    vendor.tells({"5h": 10, "weekly": 70})
    later = (datetime.now(UTC) + timedelta(hours=30)).replace(microsecond=0)
    verdict = limited(site, vendor.url, f" · resets {later:%Y-%m-%dT%H:%M:%SZ}")
    assert verdict["backAtSource"] == "named", verdict
    assert row(site.say("pools", "--json").document)["state"] == "burst-gated"
    assert load_reading(site.home, "fake", now=later).refusal is not None


def test_the_folder_of_locks_is_all_that_is_left_beside_readings(site: Site, vendor: Endpoint) -> None:
    metered(site, "fake", vendor.url)
    site.say("pools", "--force", environ=LIVE)
    names = {path.relative_to(site.home.meters_dir).parts[0] for path in site.home.meters_dir.rglob("*")}
    assert names == {"fake.json", "history", "locks"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in site.home.meters_dir.rglob("*")), "only for the person"
    assert Path(site.home.meters_dir).stat().st_mode & 0o077 == 0
