"""The status line: its one line, and the reading that it keeps of the caller's own meter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hooks.state import hook_state_document, pool, write_state

from bullswarm_core.fast.moments import iso_of
from bullswarm_core.fast.rate_limits import merged_meter, windows_in
from bullswarm_core.pools import Window
from bullswarm_core.quota.holds import meter_lock
from bullswarm_core.quota.reading import Refusal, load_reading, reading_from, write_reading
from bullswarm_core.store.home import Home

NOW = 1_796_000_000.0


def status(
    five: Any = 41, seven: Any = 62, *, now: float = NOW, five_in: float = 3600, seven_in: float = 200_000
) -> dict[str, Any]:
    """As Claude Code 2.1.332 sent it, shortened."""
    return {
        "session_id": "s", "cwd": "/srv", "model": {"id": "claude-sonnet-5", "display_name": "Sonnet 5"}, "version": "2.1.332",
        "cost": {"total_cost_usd": 0.01}, "context_window": {"used_percentage": 0},
        "rate_limits": {
            "five_hour": {"used_percentage": five, "resets_at": now + five_in},
            "seven_day": {"used_percentage": seven, "resets_at": now + seven_in},
        },
    }  # fmt: skip


def show(given_bytes: bytes, **environ: str) -> subprocess.CompletedProcess[bytes]:
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, "-m", "bullswarm_server.cli.main", "statusline"],
        input=given_bytes, env={**os.environ, "PYTHONPATH": paths, **environ}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def home(own_home: Path) -> Home:
    write_state(own_home / ".bullswarm", hook_state_document())
    return Home(own_home / ".bullswarm")


def test_the_line_has_the_own_pool_first_with_what_the_session_says(home: Home) -> None:
    done = show(json.dumps(status(now=time.time())).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == "me 5h 41% weekly 62% · cx 5h 20% weekly 40%\n"


def test_the_reading_is_kept_for_the_account_that_the_session_uses(home: Home, own_home: Path) -> None:
    second = pool("claude-code:work", provider="claude-code", configDir=str(own_home / "work"))
    write_state(home.root, {**hook_state_document(), "pools": [pool("claude-code", configDir="~/.claude"), second]})
    show(json.dumps(status(now=time.time())).encode(), CLAUDE_CONFIG_DIR=str(own_home / "work"))
    assert not home.meter_file("claude-code").exists()
    reading = load_reading(home, "claude-code:work", now=datetime.now(UTC))
    assert reading.problem is None
    assert [(w.kind, w.used_pct, w.source, w.reset_source) for w in reading.windows] == [
        ("5h", 41.0, "live", "provider"), ("weekly", 62.0, "live", "provider"),
    ]  # fmt: skip
    assert reading.windows[0].length == timedelta(hours=5)


def test_it_is_written_only_when_it_changed_or_is_a_minute_old(home: Home) -> None:
    now = time.time()
    show(json.dumps(status(now=now)).encode())
    file = home.meter_file("claude-code")
    first = file.stat().st_mtime_ns
    show(json.dumps(status(now=now)).encode())
    assert file.stat().st_mtime_ns == first
    show(json.dumps(status(42, now=now)).encode())
    assert file.stat().st_mtime_ns != first
    second = json.loads(file.read_text())
    file.write_text(json.dumps({**second, "capturedAt": iso_of(now - 61)}))
    show(json.dumps(status(42, now=now)).encode())
    assert json.loads(file.read_text())["capturedAt"] >= second["capturedAt"]


@pytest.mark.parametrize("data", [b"", b"{", b"null", b"[]", b'{"rate_limits": 3}', b"x" * (2 << 20)])
def test_odd_input_leaves_the_line_without_the_session(home: Home, data: bytes) -> None:
    done = show(data)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == "me 5h 20% weekly 40% · cx 5h 20% weekly 40%\n"
    assert not home.meters_dir.exists()


def test_without_state_there_is_no_line(own_home: Path) -> None:
    done = show(json.dumps(status(now=time.time())).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (own_home / ".bullswarm").exists()


def test_pools_that_are_off_are_left_out_full_ones_say_so_and_age_is_told(home: Home) -> None:
    listed = [pool("codex", state="burst-gated"), pool("a", enabled=False), pool("b", state="unavailable"),
              pool("echo", lastResort=True), pool("c", windows=[])]  # fmt: skip
    write_state(home.root, {**hook_state_document(), "pools": listed, "at": iso_of(time.time() - 7300)})
    assert show(b"{}").stdout.decode() == "c - · codex 5h 20% weekly 40% FULL · 2 h old\n"


def test_a_help_page_and_no_arguments(home: Home) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-m", "bullswarm_server.cli.main", "statusline"]
    for words, code in ((["--help"], 0), (["x"], 2)):
        done = subprocess.run(
            [*command, *words], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, check=False
        )
        assert (done.returncode, b"bullswarm statusline" in done.stdout + done.stderr) == (code, True)


# --- the rule


def windows(*used: float, **options: Any) -> list[dict[str, Any]]:
    return windows_in(status(*used, **options), now=NOW)


def meter_of(told: list[dict[str, Any]], *, age: float = 0.0, **more: Any) -> dict[str, Any]:
    found = merged_meter(None, told, pool="p", now=NOW - age)
    assert found is not None
    return {**found, **more}


def used(meter: dict[str, Any] | None) -> dict[str, float] | None:
    return (
        None if meter is None else {entry["kind"]: entry["usedPct"] for entry in meter["windows"] if not entry["scope"]}
    )


@pytest.mark.parametrize(
    "entry",
    [{}, {"used_percentage": 41}, {"used_percentage": "41", "resets_at": NOW + 9},
     {"used_percentage": -1, "resets_at": NOW + 9}, {"used_percentage": True, "resets_at": NOW + 9},
     {"used_percentage": 41, "resets_at": NOW - 1},
     {"used_percentage": 41, "resets_at": NOW + 6 * 3600}, {"used_percentage": float("nan"), "resets_at": NOW + 9}, None, 3],
)  # fmt: skip
def test_a_window_that_is_not_certain_is_not_read(entry: Any) -> None:
    assert windows_in({"rate_limits": {"five_hour": entry}}, now=NOW) == []


def test_an_idle_session_does_not_bring_old_numbers_back() -> None:
    newer = meter_of(windows(80, 70), age=30)
    assert merged_meter(newer, windows(41, 62), pool="p", now=NOW) is None
    # One window may have moved on while the other is old news.
    assert used(merged_meter(newer, windows(85, 62), pool="p", now=NOW)) == {"5h": 85, "weekly": 70}


def test_after_a_reset_the_lower_number_is_the_truth() -> None:
    before = meter_of(windows(95, 70, five_in=60), age=30)
    assert used(merged_meter(before, windows(2, 71, five_in=5 * 3600), pool="p", now=NOW)) == {"5h": 2, "weekly": 71}


def test_a_window_of_before_a_reset_is_old_news() -> None:
    after = meter_of(windows(2, 71, five_in=5 * 3600), age=30)
    assert merged_meter(after, windows(95, 70, five_in=60), pool="p", now=NOW) is None


def test_other_windows_keys_and_a_refusal_stay() -> None:
    scoped = {
        "kind": "weekly",
        "usedPct": 90.0,
        "resetsAt": iso_of(NOW + 9000),
        "lengthSec": None,
        "scope": "opus",
        "source": "live",
        "resetSource": "provider",
    }
    monthly = {**scoped, "kind": "monthly", "scope": None}
    refusal = {
        "kind": "weekly",
        "capturedAt": iso_of(NOW),
        "resetsAt": iso_of(NOW + 9000),
        "resetSource": "named",
        "scope": "opus",
    }
    old = meter_of(windows(10, 20), age=100, refusal=refusal, more={"x": 1})
    old["windows"] += [scoped, monthly]
    new = merged_meter(old, windows(11, 21), pool="p", now=NOW)
    assert new is not None and new["refusal"] == refusal and new["more"] == {"x": 1}
    assert used(new) == {"5h": 11, "weekly": 21, "monthly": 90.0} and new["readBy"] == "status line"
    # What was not told again is as old as it was.
    assert new["windows"][2:] == [
        {**scoped, "capturedAt": old["capturedAt"]},
        {**monthly, "capturedAt": old["capturedAt"]},
    ]
    again = merged_meter(new, windows(12, 22), pool="p", now=NOW + 300)
    assert again is not None and again["windows"][2:] == new["windows"][2:]


def test_a_window_that_has_ended_leaves_the_file() -> None:
    old = meter_of(windows(10, 20, seven_in=60), age=100)
    told = windows(11, 5, seven_in=-1)
    assert [entry["kind"] for entry in told] == ["5h"]
    new = merged_meter(old, told, pool="p", now=NOW + 61)
    assert new is not None and [entry["kind"] for entry in new["windows"]] == ["5h"]


def test_a_writer_that_is_at_work_is_not_waited_for(home: Home) -> None:
    given_bytes = json.dumps(status(now=time.time())).encode()
    with meter_lock(home, "claude-code"):
        done = show(given_bytes)
        assert (done.returncode, done.stderr) == (0, b"") and done.stdout.startswith(b"me 5h 41%")
        assert not home.meter_file("claude-code").exists()
    show(given_bytes)
    assert home.meter_file("claude-code").exists()


def test_a_meter_file_of_the_server_is_understood(tmp_path: Path) -> None:
    home, at = Home(tmp_path), datetime.fromtimestamp(NOW, UTC)
    five = Window("5h", 41.0, at + timedelta(hours=1), source="live", captured_at=at, reset_source="provider")
    write_reading(
        home,
        "p",
        [five],
        captured_at=at - timedelta(minutes=5),
        refusal=Refusal("weekly", at, at + timedelta(days=1), "named"),
    )
    merged = merged_meter(json.loads(home.meter_file("p").read_text()), windows(50, 60), pool="p", now=NOW)
    reading = reading_from(merged, now=at)
    assert reading.problem is None and reading.captured_at == at
    assert [(w.kind, w.used_pct, w.source) for w in reading.windows] == [
        ("5h", 50.0, "live"),
        ("weekly", 60.0, "live"),
        ("weekly", 100.0, "refusal"),
    ]


percent = st.integers(0, 100)


@given(percent, percent, st.lists(st.tuples(percent, percent), max_size=5))
def test_a_window_never_empties_before_its_reset(first: int, second: int, more: list[tuple[int, int]]) -> None:
    meter = meter_of(windows(first, second), age=500)
    for told in more:
        before = used(meter)
        meter = merged_meter(meter, windows(*told), pool="p", now=NOW) or meter
        after = used(meter)
        assert before is not None and after is not None
        assert all(after[kind] == max(before[kind], value) for kind, value in zip(("5h", "weekly"), told, strict=True))


plain_values = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
key_names = st.sampled_from(["schemaVersion", "windows", "kind", "usedPct", "rate_limits", "five_hour", "scope"])
documents = st.recursive(
    plain_values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(key_names, inner, max_size=4)
)


@given(documents)
def test_any_document_is_borne(document: Any) -> None:
    assert windows_in(document, now=NOW) == []
    merged = merged_meter(document, windows(1, 2), pool="p", now=NOW)
    assert used(merged) is not None
