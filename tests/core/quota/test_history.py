"""A pool's history keeps every reading that was new, whoever wrote it, and is read whatever happened to the file."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.errors import StorageError
from bullswarm_core.pools import Window
from bullswarm_core.quota.history import (
    KEPT_LINES,
    LARGEST_BYTES,
    REWRITE_AT_LINES,
    History,
    append_history,
    read_history,
)
from bullswarm_core.quota.observation import Observation
from bullswarm_core.store.home import Home

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RESET = NOW + timedelta(hours=3)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def told(at: datetime, *used: float, **more: object) -> Observation:
    windows = tuple(Window("5h", number, RESET, captured_at=at, reset_source="provider", **more) for number in used)  # type: ignore[arg-type]
    return Observation(at, windows, "usage endpoint")


def test_a_reading_comes_back_as_it_was_told(home: Home) -> None:
    account = Window(
        "weekly", 41.5, RESET, source="live", captured_at=NOW, length=timedelta(days=7), reset_source="provider"
    )
    opus = Window(
        "weekly", 80, RESET, source="live", captured_at=NOW, reset_source="provider", scope="opus", unstable=True
    )
    carried = Window("monthly", 3, source="live", captured_at=NOW - MINUTE)
    observation = Observation(NOW, (account, opus, carried), "status line")
    assert append_history(home, "claude-code:acme", observation, now=NOW)
    assert read_history(home, "claude-code:acme") == History((observation,))
    assert home.meter_history_file("claude-code:acme").stat().st_mode & 0o777 == 0o600


def test_a_capture_time_that_is_there_is_no_second_observation(home: Home) -> None:
    assert append_history(home, "codex", told(NOW, 10), now=NOW)
    assert append_history(home, "codex", told(NOW + MINUTE, 11), now=NOW + MINUTE)
    before = home.meter_history_file("codex").read_bytes()
    assert not append_history(home, "codex", told(NOW, 99), now=NOW + MINUTE)
    assert home.meter_history_file("codex").read_bytes() == before


@pytest.mark.parametrize(
    "observation",
    [
        Observation(NOW),
        Observation(NOW, (Window("5h", None, RESET),)),
        Observation(NOW, (Window("5h", 100, RESET, source="refusal", reset_source="named"),)),
        told(NOW + timedelta(minutes=6), 10),
    ],
    ids=["no window", "no number", "a refusal", "a clock ahead"],
)
def test_what_was_not_read_is_not_kept(home: Home, observation: Observation) -> None:
    assert not append_history(home, "codex", observation, now=NOW)
    assert not home.meter_history_file("codex").exists()


def test_resets_are_kept_to_the_whole_second(home: Home) -> None:
    for minutes, wobble in ((0, -400), (1, 0), (2, 499)):
        at, reset = NOW + minutes * MINUTE, RESET + timedelta(milliseconds=wobble)
        append_history(home, "codex", Observation(at, (Window("5h", 10, reset),)), now=at)
    assert {found.windows[0].resets_at for found in read_history(home, "codex").observations} == {RESET}


def test_readings_come_oldest_first_however_they_were_written(home: Home) -> None:
    for minutes in (3, 1, 2):
        append_history(home, "codex", told(NOW + minutes * MINUTE, minutes), now=NOW + 9 * MINUTE)
    found = read_history(home, "codex").observations
    assert [item.windows[0].used_pct for item in found] == [1, 2, 3]


def test_the_file_is_rewritten_to_its_newest_500_lines_at_600(home: Home) -> None:
    path = home.meter_history_file("codex")
    for number in range(REWRITE_AT_LINES - 1):
        append_history(home, "codex", told(NOW + number * MINUTE, number % 100), now=NOW + number * MINUTE)
    assert path.read_bytes().count(b"\n") == REWRITE_AT_LINES - 1
    last = NOW + timedelta(days=1)
    append_history(home, "codex", told(last, 7), now=last)
    found = read_history(home, "codex").observations
    assert len(found) == KEPT_LINES
    assert found[-1].captured_at == last
    assert found[0].captured_at == NOW + (REWRITE_AT_LINES - KEPT_LINES) * MINUTE
    assert path.stat().st_mode & 0o777 == 0o600
    assert [item.name for item in path.parent.iterdir() if item.name.startswith(".")] == []


def test_a_rewrite_drops_damage_and_what_a_wrong_clock_stamped(home: Home) -> None:
    path = home.meter_history_file("codex")
    append_history(home, "codex", told(NOW + timedelta(days=9), 1), now=NOW + timedelta(days=9))
    with path.open("ab") as file:
        file.write(b"torn\n" * (REWRITE_AT_LINES - 2))
    append_history(home, "codex", told(NOW, 2), now=NOW)
    assert read_history(home, "codex") == History((told(NOW, 2),))


FOREIGN = [
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"capturedAt": 7, "windows": []}',
    b'{"capturedAt": "2026-03-10T12:00:00Z"}',
    b'{"capturedAt": "2026-03-10T12:00:00Z", "windows": [{"kind": "yearly", "usedPct": 1}]}',
    b'{"capturedAt": "2026-03-10T12:00:00Z", "windows": [{"kind": "5h", "usedPct": NaN}]}',
    b'{"capturedAt": "2026-03-10T12:00:00Z", "windows": [{"kind": "5h", "usedPct": true}]}',
    b'{"capturedAt": "2026-03-10T12:00:00Z", "windows": [{"kind": "5h", "usedPct": -1}]}',
    b'{"capturedAt": "2026-03-10T12:00:00Z", "windows": [{"kind": "5h", "usedPct": 1, "lengthSec": 1e300}]}',
    b'{"capturedAt": "2026-03-10T12:00:00Z", "windows": [{"kind": "5h", "usedPct": 1, "resetsAt": "soon"}]}',
]


@pytest.mark.parametrize("line", FOREIGN, ids=range(len(FOREIGN)))
def test_a_line_that_cannot_be_understood_is_skipped_and_counted(home: Home, line: bytes) -> None:
    path = home.meter_history_file("codex")
    append_history(home, "codex", told(NOW - MINUTE, 10), now=NOW)
    with path.open("ab") as file:
        file.write(line + b"\n")
    append_history(home, "codex", told(NOW + MINUTE, 12), now=NOW + MINUTE)
    assert read_history(home, "codex") == History((told(NOW - MINUTE, 10), told(NOW + MINUTE, 12)), 1)


def test_a_line_that_a_killed_process_left_open_costs_only_itself(home: Home) -> None:
    path = home.meter_history_file("codex")
    append_history(home, "codex", told(NOW, 10), now=NOW)
    append_history(home, "codex", told(NOW + MINUTE, 11), now=NOW + MINUTE)
    os.truncate(path, path.stat().st_size - 9)
    append_history(home, "codex", told(NOW + 2 * MINUTE, 12), now=NOW + 2 * MINUTE)
    assert read_history(home, "codex") == History((told(NOW, 10), told(NOW + 2 * MINUTE, 12)), 1)


def test_of_a_giant_file_the_end_is_read(home: Home) -> None:
    path = home.meter_history_file("codex")
    append_history(home, "codex", told(NOW, 10), now=NOW)
    first = path.read_bytes()
    path.write_bytes(b"x" * LARGEST_BYTES + b"\n" + first)
    assert read_history(home, "codex") == History((told(NOW, 10),), 1)


def test_no_file_is_no_reading_and_a_folder_or_a_pipe_in_its_place_fails_nobody(home: Home) -> None:
    path = home.meter_history_file("codex")
    assert read_history(home, "codex") == History()
    path.mkdir(parents=True)
    assert read_history(home, "codex") == History()
    with pytest.raises(StorageError):
        append_history(home, "codex", told(NOW, 10), now=NOW)
    path.rmdir()
    os.mkfifo(path)
    assert read_history(home, "codex") == History()
    with pytest.raises(StorageError):
        append_history(home, "codex", told(NOW, 10), now=NOW)


def test_a_disk_that_refuses_leaves_the_file_as_it_was(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    append_history(home, "codex", told(NOW, 10), now=NOW)
    before = home.meter_history_file("codex").read_bytes()
    code = (
        "import resource, signal, sys\n"
        "from datetime import timedelta\n"
        "from bullswarm_core.store.home import Home\n"
        "from bullswarm_core.quota.history import append_history\n"
        "from tests.core.quota.test_history import NOW, MINUTE, told\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) + 5}, {len(before) + 5}))\n"
        "append_history(Home(sys.argv[1]), 'codex', told(NOW + MINUTE, 11), now=NOW + MINUTE)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[3])])}
    done = subprocess.run(
        [sys.executable, "-c", code, str(home.root)], capture_output=True, text=True, check=False, env=environment
    )
    assert "cannot add a reading to" in done.stderr
    assert home.meter_history_file("codex").read_bytes() == before


WRITER = """
import sys
from bullswarm_core.store.home import Home
from bullswarm_core.quota.history import append_history
from tests.core.quota.test_history import NOW, MINUTE, told

home, number = Home(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
late = NOW + 600 * MINUTE
for round in range(20):
    # Each reading is written by two processes, as two that read one status line would.
    at = NOW + (20 * (number // 2) + round) * MINUTE
    append_history(home, "codex", told(at, number // 2), now=late)
"""


def test_sixteen_processes_lose_no_reading_and_write_none_twice(home: Home) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[3])])}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(home.root), str(number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )
        for number in range(16)
    ]  # fmt: skip
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    assert [(child.communicate(timeout=120), child.returncode)[1] for child in children] == [0] * 16
    found = read_history(home, "codex")
    assert [item.captured_at for item in found.observations] == [NOW + minute * MINUTE for minute in range(160)]
    assert found.skipped == 0
    assert home.meter_history_file("codex").read_bytes().count(b"\n") == 160


@given(st.lists(st.binary(max_size=40) | st.sampled_from(FOREIGN), max_size=8))
def test_no_content_of_a_history_ever_fails(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    home = Home(tmp_path_factory.mktemp("history"))
    path = home.meter_history_file("codex")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\n".join(lines))
    assert read_history(home, "codex").observations == ()
    assert append_history(home, "codex", told(NOW, 1), now=NOW)
    assert read_history(home, "codex").observations == (told(NOW, 1),)


def test_a_line_is_plain_json(home: Home) -> None:
    append_history(home, "codex", told(NOW, 10), now=NOW)
    assert json.loads(home.meter_history_file("codex").read_text()) == {
        "capturedAt": "2026-03-10T12:00:00Z",
        "windows": [
            {
                "kind": "5h",
                "usedPct": 10,
                "resetsAt": "2026-03-10T15:00:00Z",
                "source": "cache",
                "resetSource": "provider",
            }
        ],
        "readBy": "usage endpoint",
    }
