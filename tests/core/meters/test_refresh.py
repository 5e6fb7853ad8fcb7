"""One pool's turn: passive first, then live once for all; what goes wrong is held, told, and costs no other pool anything."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.core.meters.endpoint import Answer, Endpoint, endpoint
from tests.core.meters.fake_reader import HOUR, MINUTE, SECRET, START, Clock, profile, refresher

from bullswarm_core.errors import MeterError, WorkerStartError
from bullswarm_core.meters.due import is_due, mode_of, why_not_read
from bullswarm_core.meters.refresh import Outcome, Refresher, reader_environment
from bullswarm_core.pools import Window
from bullswarm_core.pools.connector import Connector, Meter, PoolProfile
from bullswarm_core.quota.history import read_history
from bullswarm_core.quota.holds import hold_file, identity_of, load_hold
from bullswarm_core.quota.observation import MeterContext, Observation
from bullswarm_core.quota.reading import Refusal, load_reading, record_refusal, write_reading
from bullswarm_core.store.home import Home, write_json


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def vendor() -> Iterator[Endpoint]:
    with endpoint() as running:
        running.tells({"5h": 30, "weekly": 40})
        yield running


def used(home: Home, clock: Clock) -> dict[str, float | None]:
    return {window.kind: window.used_pct for window in load_reading(home, "fake", now=clock.now).windows}


def test_a_live_reading_is_stored_kept_in_the_history_and_fresh_for_five_minutes(
    home: Home, clock: Clock, vendor: Endpoint
) -> None:
    turn, pool = refresher(home, clock), profile(vendor.url)
    assert is_due(load_reading(home, "fake", now=clock.now), pool, now=clock.now)
    assert turn.refresh(pool) == Outcome("fake", "live")
    reading = load_reading(home, "fake", now=clock.now)
    assert used(home, clock) == {"5h": 30, "weekly": 40}
    assert (reading.read_by, reading.plan, reading.overage, reading.checked_at) == (
        "usage endpoint",
        "pro",
        None,
        START,
    )
    assert [item.captured_at for item in read_history(home, "fake").observations] == [START]
    assert not is_due(reading, pool, now=clock.now)
    clock.now += 4 * MINUTE
    assert turn.refresh(pool).step == "fresh" and len(vendor.asked) == 1
    clock.now += 2 * MINUTE
    vendor.tells({"weekly": 41, "overage": True})
    assert turn.refresh(pool).step == "live" and len(vendor.asked) == 2
    # What it no longer tells is kept, as old as it is.
    reading = load_reading(home, "fake", now=clock.now)
    assert {(one.kind, one.used_pct, one.captured_at) for one in reading.windows} == {
        ("5h", 30, START),
        ("weekly", 41, clock.now),
    }
    assert reading.overage is True


def test_a_question_that_was_never_sent_makes_nobody_wait_for_the_vendor(
    home: Home, clock: Clock, vendor: Endpoint
) -> None:
    def expired(context: MeterContext) -> Observation:
        raise MeterError("the stored sign-in has expired", kind="sign-in", hint="open the CLI")

    turn = refresher(home, clock)
    mended, broken = profile(vendor.url, interval=180), profile(vendor.url, interval=180, live_reading=expired)
    assert turn.refresh(broken, force=True).why == "the stored sign-in has expired"
    clock.now += timedelta(seconds=2)
    assert turn.refresh(mended, force=True).step == "live"
    # The interval since the last real question holds on.
    clock.now += 2 * MINUTE
    assert turn.refresh(broken, force=True).step == "waits"
    clock.now += 2 * MINUTE
    assert turn.refresh(broken, force=True).step == "failed"
    clock.now += timedelta(seconds=20)
    assert turn.refresh(mended, force=True).step == "live" and len(vendor.asked) == 2


def test_a_reading_of_another_way_to_pay_takes_nothing_over(home: Home, clock: Clock, vendor: Endpoint) -> None:
    turn, pool = refresher(home, clock), profile(vendor.url)
    vendor.tells({"5h": 100, "weekly": 40})
    turn.refresh(replace(pool, billing="subscription"))
    clock.now += 6 * MINUTE
    vendor.tells({"weekly": 7})
    turn.refresh(replace(pool, billing="api-key"))
    assert used(home, clock) == {"weekly": 7}
    assert load_reading(home, "fake", now=clock.now).billing == "api-key"


def test_a_full_window_that_the_vendor_closed_early_keeps_nobody_out_after_the_second_answer(
    home: Home, clock: Clock, vendor: Endpoint
) -> None:
    turn, pool = refresher(home, clock), profile(vendor.url)
    vendor.tells({"5h": 100, "weekly": 40})
    turn.refresh(pool)
    vendor.tells({"weekly": 40})
    for expected in ({"5h": 100, "weekly": 40}, {"weekly": 40}):
        clock.now += 6 * MINUTE
        assert turn.refresh(pool).step == "live"
        assert used(home, clock) == expected


def test_an_answer_that_could_not_be_understood_in_part_closes_no_window(
    home: Home, clock: Clock, vendor: Endpoint
) -> None:
    turn, pool = refresher(home, clock), profile(vendor.url)
    vendor.tells({"5h": 100, "weekly": 40})
    turn.refresh(pool)
    vendor.tells({"weekly": 40, "partial": True})
    for _ in range(3):
        clock.now += 6 * MINUTE
        assert turn.refresh(pool).step == "live"
        assert used(home, clock) == {"5h": 100, "weekly": 40}


@pytest.mark.parametrize("partial", [False, True])
def test_an_answer_that_lacks_the_refused_window_refutes_the_refusal_only_when_it_was_understood(
    home: Home, clock: Clock, vendor: Endpoint, partial: bool
) -> None:
    record_refusal(home, "fake", Refusal("5h", START, START + 3 * HOUR, "named"), now=START)
    clock.now += 6 * MINUTE
    vendor.tells({"weekly": 40, "partial": partial})
    assert refresher(home, clock).refresh(profile(vendor.url)).step == "live"
    assert (load_reading(home, "fake", now=clock.now).refusal is not None) is partial


@pytest.mark.parametrize(
    ("headers", "pauses"),
    [
        ({}, [5, 10, 20, 30, 30]),
        ({"Retry-After": "0"}, [5, 10, 20, 30, 30]),
        ({"Retry-After": "900"}, [15, 15, 20, 30, 30]),
        ({"Retry-After": "7200"}, [120, 120, 120, 120, 120]),
    ],
)
def test_a_429_holds_the_meter_for_longer_each_time_also_after_a_restart(
    home: Home, clock: Clock, vendor: Endpoint, headers: Mapping[str, str], pauses: list[float]
) -> None:
    refresher(home, clock).refresh(profile(vendor.url))
    for number, pause in enumerate(pauses, 1):
        vendor.answer = Answer(b"", 429, headers)
        clock.now += 6 * MINUTE if number == 1 else timedelta(0)
        done = refresher(home, clock).refresh(profile(vendor.url))
        assert (done.step, done.why, done.retry_at) == ("failed", "127.0.0.1 answered 429", clock.now + pause * MINUTE)
        clock.now += (pause - 0.1) * MINUTE
        assert refresher(home, clock).refresh(profile(vendor.url)).step == "held"
        assert len(vendor.asked) == 1 + number
        reading = load_reading(home, "fake", now=clock.now)
        assert (reading.trouble, reading.held_until(clock.now)) == ("127.0.0.1 answered 429", clock.now + 0.1 * MINUTE)
        # The last good numbers stay, and say that they are old.
        assert {one.source for one in reading.windows} <= {"stale"}
        clock.now += 0.1 * MINUTE
    vendor.tells({"5h": 1, "weekly": 2})
    assert refresher(home, clock).refresh(profile(vendor.url)).step == "live"
    assert load_hold(home, "fake") == (None, None) and load_reading(home, "fake", now=clock.now).trouble is None


def test_a_date_in_retry_after_is_honoured(home: Home, vendor: Endpoint) -> None:
    at = (datetime.now(UTC) + timedelta(minutes=40)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    vendor.answer = Answer(b"", 429, {"Retry-After": at})
    done = Refresher(home, {}).refresh(profile(vendor.url))
    assert done.retry_at is not None
    assert timedelta(minutes=38) < done.retry_at - datetime.now(UTC) <= timedelta(minutes=40)


def test_force_goes_past_freshness_and_hold_and_never_below_the_vendor_s_interval(
    home: Home, clock: Clock, vendor: Endpoint
) -> None:
    turn, pool = refresher(home, clock), profile(vendor.url, interval=180)
    assert turn.refresh(pool).step == "live"
    clock.now += MINUTE
    done = turn.refresh(pool, force=True)
    assert (done.step, done.retry_at) == ("waits", START + 3 * MINUTE) and "180 s" in done.why
    clock.now += 2 * MINUTE
    vendor.answer = Answer(b"", 429)
    assert turn.refresh(pool, force=True).step == "failed"
    clock.now += 4 * MINUTE
    assert turn.refresh(pool).step == "held"
    vendor.tells({"5h": 5, "weekly": 6})
    assert turn.refresh(pool, force=True).step == "live"
    assert len(vendor.asked) == 3


def test_two_forced_readings_at_once_are_one(home: Home, clock: Clock, vendor: Endpoint) -> None:
    begun = threading.Event()

    def wait() -> None:
        begun.set()
        vendor.closing.wait(0.5)

    vendor.answer.before = wait
    outcomes: list[Outcome] = []
    threads = [
        threading.Thread(
            target=lambda: outcomes.append(refresher(home, clock).refresh(profile(vendor.url), force=True, wait_sec=20))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(20)
    assert refresher(home, clock).refresh(profile(vendor.url)).step == "busy"
    for thread in threads:
        thread.join()
    assert [one.step for one in outcomes] == ["live"] * 4 and len(vendor.asked) == 1


def test_passive_readings_come_first_and_spare_the_vendor(home: Home, clock: Clock, vendor: Endpoint) -> None:
    def passive(context: MeterContext) -> list[Observation]:
        older = Observation(
            START - HOUR, (Window("5h", 90, START + HOUR), Window("weekly", 10, START + HOUR)), "rollout"
        )
        newer = Observation(START - MINUTE, (Window("5h", 95, START + HOUR),), "stream")
        return [newer, older]

    pool = profile(vendor.url, passive_readings=passive)
    assert refresher(home, clock, BULLSWARM_METERS="passive").refresh(pool).step == "passive"
    assert used(home, clock) == {"5h": 95, "weekly": 10} and vendor.asked == []
    assert {one.kind: one.captured_at for one in load_reading(home, "fake", now=clock.now).windows} == {
        "5h": START - MINUTE, "weekly": START - HOUR,
    }  # fmt: skip
    assert refresher(home, clock).refresh(pool).step == "live"
    assert used(home, clock) == {"5h": 30, "weekly": 40}
    # Read again, the old ones change nothing.
    assert refresher(home, clock).refresh(pool).step == "fresh"
    assert used(home, clock) == {"5h": 30, "weekly": 40}
    assert len(read_history(home, "fake").observations) == 3


def test_turned_off_nothing_is_read_and_nothing_written(home: Home, clock: Clock, vendor: Endpoint) -> None:
    for word in ("off", "none", "OFF"):
        assert refresher(home, clock, BULLSWARM_METERS=word).refresh(profile(vendor.url), force=True).step == "off"
    assert vendor.asked == [] and not home.root.exists()
    assert [mode_of({"BULLSWARM_METERS": word}) for word in ("", "live", "Passive ", "x")] == [
        "live",
        "live",
        "passive",
        "off",
    ]
    assert mode_of({}) == "live"


@pytest.mark.parametrize(
    ("error", "why", "kind"),
    [
        (RuntimeError(f"bad {SECRET}"), "the reader failed (RuntimeError)", "unreadable"),
        (KeyError(SECRET), "the reader failed (KeyError)", "unreadable"),
        (RecursionError(), "the reader failed (RecursionError)", "unreadable"),
        (SystemExit(3), "the reader failed (SystemExit)", "unreadable"),
        (MeterError("no sign-in", kind="sign-in", hint="open it"), "no sign-in", "sign-in"),
        (WorkerStartError("the CLI could not be started"), "the CLI could not be started", "unreachable"),
        (None, "Fake's reader gave no reading", "unreadable"),
    ],
)
def test_whatever_a_reader_raises_is_a_hold_of_that_pool_alone(
    home: Home, clock: Clock, error: BaseException | None, why: str, kind: str
) -> None:
    def hook(context: MeterContext) -> Any:
        if error is not None:
            raise error
        return {"windows": []}

    pool = profile(live_reading=hook)
    done = refresher(home, clock).refresh(pool)
    assert (done.step, done.why) == ("failed", why)
    hold, _ = load_hold(home, "fake")
    assert hold is not None and (hold.kind, hold.reason) == (kind, why)
    assert SECRET not in hold_file(home, "fake").read_text()
    passive = profile(passive_readings=hook, live_reading=None)
    assert refresher(home, clock).refresh(passive) == Outcome("fake", "failed", why)


def test_a_reader_cannot_send_a_token_anywhere_but_to_its_endpoints(home: Home, clock: Clock, vendor: Endpoint) -> None:
    with endpoint() as thief:

        def hook(context: MeterContext) -> Observation:
            context.fetch(f"{thief.url}/x", {"Authorization": SECRET})
            raise AssertionError

        done = refresher(home, clock).refresh(profile(vendor.url, live_reading=hook))
        assert done.step == "failed" and "is no endpoint" in done.why and thief.asked == []


def test_an_endpoint_of_the_person_s_own_wins_and_a_bad_one_is_named(
    home: Home, clock: Clock, vendor: Endpoint
) -> None:
    write_json(home.providers_file, {"endpoints": {"fake": {"usage": f"{vendor.url}/mine"}}})
    assert refresher(home, clock).refresh(profile()).step == "live"
    assert [one.path for one in vendor.asked] == ["/mine"]
    for bad in ("http://gateway.example/usage", 3, "nonsense"):
        write_json(home.providers_file, {"endpoints": {"fake": {"usage": bad}}})
        clock.now += HOUR
        done = refresher(home, clock).refresh(profile())
        assert done.step == "failed" and "endpoints.fake.usage" in done.why


def test_stamps_of_a_wrong_clock_never_silence_a_meter(home: Home, clock: Clock, vendor: Endpoint) -> None:
    pool = profile(vendor.url, interval=180)
    clock.now = START + timedelta(days=400)
    vendor.answer = Answer(b"", 429)
    assert refresher(home, clock).refresh(pool).step == "failed"
    clock.now += HOUR
    vendor.tells({"5h": 99, "weekly": 99})
    assert refresher(home, clock).refresh(pool).step == "live"
    clock.now += 6 * MINUTE
    vendor.answer = Answer(b"", 429)
    assert refresher(home, clock).refresh(pool).step == "failed"
    # The clock is set right, and hold, reading and last poll all lie a year ahead.
    clock.now = START
    vendor.tells({"5h": 10, "weekly": 20})
    assert refresher(home, clock).refresh(pool).step == "live"
    found = load_reading(home, "fake", now=clock.now)
    assert (found.captured_at, found.checked_at, used(home, clock)) == (START, START, {"5h": 10, "weekly": 20})


def test_a_later_live_reading_replaces_a_refusal_and_one_right_after_it_does_not(
    home: Home, clock: Clock, vendor: Endpoint
) -> None:
    record_refusal(home, "fake", Refusal("weekly", START, START + 2 * HOUR, "named"), now=START)
    clock.now = START + MINUTE
    assert refresher(home, clock).refresh(profile(vendor.url)).step == "live"
    reading = load_reading(home, "fake", now=clock.now)
    assert [one.used_pct for one in reading.windows if one.source == "refusal"] == [100.0]
    clock.now = START + 7 * MINUTE
    assert refresher(home, clock).refresh(profile(vendor.url)).step == "live"
    assert load_reading(home, "fake", now=clock.now).refusal is None


def test_what_the_status_line_kept_reaches_the_history(home: Home, clock: Clock, vendor: Endpoint) -> None:
    windows = [Window("5h", 12, START + HOUR, captured_at=START - 9 * MINUTE)]
    write_reading(home, "fake", windows, captured_at=START - 9 * MINUTE, read_by="status line")
    refresher(home, clock).refresh(profile(vendor.url))
    found = [(item.captured_at, item.read_by) for item in read_history(home, "fake").observations]
    assert found == [(START - 9 * MINUTE, "status line"), (START, "usage endpoint")]


def test_which_pools_are_never_asked() -> None:
    pool = profile()
    assert why_not_read(pool, enabled=True) is None
    assert why_not_read(pool, enabled=False) == "you turned the pool off"
    for unknown in (None, False):
        assert why_not_read(
            PoolProfile("x", pool.connector, None, signed_in=unknown, provider=pool.provider), enabled=True
        )
    for kind in ("none", "declared"):
        other = PoolProfile(
            "x", Connector("x", "X", "x", meter=Meter(kind)), None, signed_in=True, provider=pool.provider
        )
        assert why_not_read(other, enabled=True) == "its usage can't be read"
    assert why_not_read(PoolProfile("x", pool.connector, None, signed_in=True, provider=None), enabled=True)


def test_the_reader_s_environment_is_the_account_s(home: Home) -> None:
    pool = PoolProfile("x", Connector("x", "X", "x"), None, environment={"CONF": "/a"}, withheld=("API_KEY",))
    found = reader_environment({"API_KEY": SECRET, "CLAUDECODE": "1", "PATH": "/bin", "CONF": "/b"}, pool, home)
    assert found == {"PATH": "/bin", "CONF": "/a", "BULLSWARM_HOME": str(home.root)}


def test_one_account_is_one_identity() -> None:
    connector = Connector("fake", "Fake", "fake")
    first = PoolProfile("fake", connector, None, config_dir="/a", account="acct-1")
    assert identity_of(first) == identity_of(PoolProfile("fake:b", connector, None, config_dir="/b", account="acct-1"))
    assert identity_of(first) != identity_of(PoolProfile("fake:c", connector, None, config_dir="/a", account="acct-2"))
    assert "acct" not in identity_of(first)
