"""Meters under a full disk, in a home that can't be written, and with many processes at them at once."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.core.meters.endpoint import Answer, Endpoint, endpoint
from tests.core.meters.fake_reader import HOUR, START, Clock, profile, refresher

from bullswarm_core.errors import StorageError
from bullswarm_core.meters.refresh import Refresher, keep
from bullswarm_core.pools import Window
from bullswarm_core.quota.history import read_history
from bullswarm_core.quota.holds import identity_of, lease, note_poll, polled_at
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.reading import load_reading
from bullswarm_core.store.home import Home

ROOT = Path(__file__).parents[3]


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


# --- the disk, and other processes


def test_a_read_only_home_is_said_and_nothing_is_asked(home: Home, clock: Clock, vendor: Endpoint) -> None:
    home.ensure()
    home.meters_dir.write_text("a file where the folder should be")
    with pytest.raises(StorageError):
        refresher(home, clock).refresh(profile(vendor.url), force=True)
    assert vendor.asked == []


def test_a_full_disk_asks_nobody_and_keeps_what_was_known(home: Home, clock: Clock, vendor: Endpoint) -> None:
    pool = profile(vendor.url)
    refresher(home, clock).refresh(pool)
    before = home.meter_file("fake").read_bytes()
    clock.now += HOUR
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, hard))
    try:
        with pytest.raises(StorageError):
            refresher(home, clock).refresh(pool, force=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert len(vendor.asked) == 1 and home.meter_file("fake").read_bytes() == before
    assert refresher(home, clock).refresh(pool).step == "live"


CHILD = """
import sys
from bullswarm_core.store.home import Home
from bullswarm_core.meters.refresh import Refresher
from tests.core.meters.fake_reader import profile
sys.stdin.readline()
turn, pool = Refresher(Home(sys.argv[1]), {}), profile(sys.argv[2], interval=180)
print(turn.refresh(pool, force=sys.argv[3] == "force", wait_sec=60).step)
"""


def start(home: Home, url: str, how: str = "force") -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(home.root), url, how],
        env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("how", ["force", "due"])
def test_sixteen_processes_at_once_poll_once_and_lose_nothing(home: Home, vendor: Endpoint, how: str) -> None:
    keep(
        home,
        "fake",
        [Observation(datetime.now(UTC) - HOUR, (Window("monthly", 7, datetime.now(UTC) + HOUR),))],
        now=datetime.now(UTC),
    )
    children = [start(home, vendor.url, how) for _ in range(16)]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    steps = [child.communicate(timeout=120)[0].strip() for child in children]
    assert len(vendor.asked) == 1, steps
    assert steps.count("live") >= 1 and set(steps) <= ({"live"} if how == "force" else {"live", "fresh", "busy"})
    now = datetime.now(UTC)
    assert {one.kind: one.used_pct for one in load_reading(home, "fake", now=now).windows} == {
        "monthly": 7,
        "5h": 30,
        "weekly": 40,
    }
    assert len(read_history(home, "fake").observations) == 2


def test_a_process_killed_in_the_middle_leaves_no_lease_and_no_half_file(home: Home, vendor: Endpoint) -> None:
    vendor.answer = Answer(before=lambda: vendor.closing.wait(60))
    child = start(home, vendor.url)
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()
    deadline = time.monotonic() + 60
    while not vendor.asked and time.monotonic() < deadline:
        time.sleep(0.01)
    assert vendor.asked
    with lease(home, identity_of(profile())) as alone:
        assert not alone
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=60)
    with lease(home, identity_of(profile())) as alone:
        assert alone
    vendor.tells({"5h": 30, "weekly": 40})
    assert Refresher(home, {}).refresh(profile(vendor.url)).step == "live"
    assert json.loads(home.meter_file("fake").read_text())["pool"] == "fake"


def test_when_the_vendor_was_asked_survives_and_a_damaged_note_is_none(home: Home) -> None:
    assert polled_at(home, "a") is None
    note_poll(home, "a", now=START)
    assert polled_at(home, "a") == START
    for text in ("", "[]", "{}", '{"polledAt": 3}', '{"polledAt": "soon"}'):
        (home.meters_dir / "locks" / "a.asked.json").write_text(text)
        assert polled_at(home, "a") is None
