"""What a keeper costs: CPU while it drains a flood, CPU while its worker is quiet, memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.core.keeper.keeping import LONG, Keeping, clocks, wait_for

from bullswarm_core.keeper.client import request_stop
from bullswarm_core.keeper.spec import CaptureLimits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

MEBIBYTE = 1024 * 1024
FLOOD_BYTES = 200 * MEBIBYTE
# JSON lines as an agent writes them: the terminal event must be looked for in each.
LINE = b'{"type":"item.completed","item":{"id":"item_12","type":"command_execution","text":"' + b"w" * 900 + b'"}}\n'
FLOOD = (
    f"import os\nb = {LINE!r} * 64\nleft = {FLOOD_BYTES}\n"
    "while left > 0:\n    left -= os.write(1, b[: min(left, len(b))])\n"
)
# The keeper does what cat does and looks for the terminal event too. Measured: 1.1 to 1.3 on a busy two-core machine.
FLOOD_RATIO = 3.0
IDLE_SHARE = 0.01
IDLE_SEC = 3.0
RESIDENT_KIB = 20 * 1024


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Keeping]:
    keeping = Keeping(tmp_path)
    yield keeping
    keeping.close()


def say(**numbers: float) -> None:
    """Leave the numbers in the test's output (``pytest -rP`` shows it)."""
    sys.stdout.write("".join(f"{name} {value}\n" for name, value in numbers.items()))


def cpu_sec(pid: int) -> float:
    """Return the CPU seconds that a process has used itself, to the nanosecond."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def status_kib(pid: int, name: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split(f"{name}:")[1].split()[0])


def cat_cpu_sec(folder: Path) -> float:
    """Return the CPU seconds of ``cat`` for the same flood through a pipe into a file."""
    with (folder / "cat.out").open("wb") as file:
        writer = subprocess.Popen([sys.executable, "-I", "-S", "-c", FLOOD], stdout=subprocess.PIPE)
        cat = subprocess.Popen(["cat"], stdin=writer.stdout, stdout=file)
        assert writer.stdout is not None
        writer.stdout.close()
        assert writer.wait(60) == 0
        _, status, used = os.wait4(cat.pid, 0)
        cat.returncode = status
    assert (folder / "cat.out").stat().st_size == FLOOD_BYTES
    (folder / "cat.out").unlink()
    return used.ru_utime + used.ru_stime


def keeper_cpu_sec(keeping: Keeping) -> tuple[float, int]:
    """Return the CPU seconds and the peak memory (KiB) of a keeper that writes the whole flood to disk."""
    kept = keeping.start(
        FLOOD + LONG,
        capture=CaptureLimits(head_bytes=FLOOD_BYTES),
        terminal=({"path": "type", "equals": ["turn.completed"]},),
        clocks=clocks(silence_sec=30),
    )
    out = Path(kept.spec.stdout_file)
    wait_for(lambda: out.exists() and out.stat().st_size == FLOOD_BYTES, seconds=60)
    used, peak = cpu_sec(kept.keeper.pid), status_kib(kept.keeper.pid, "VmHWM")
    request_stop(kept.spec.stop_file, "stopped", "")
    kept.end()
    out.unlink()
    return used, peak


def test_a_flood_costs_little_more_than_cat(place: Keeping) -> None:
    start = keeper_start_cpu(place)
    ratios, peaks, seconds = [], [], []
    for _ in range(3):
        used, peak = keeper_cpu_sec(place)
        ratios.append((used - start) / cat_cpu_sec(place.folder))
        peaks.append(peak)
        seconds.append(used - start)
    say(keeper_flood_cpu_ratio_to_cat=round(min(ratios), 2))
    say(keeper_flood_cpu_sec=round(statistics.median(seconds), 3))
    say(keeper_flood_peak_kib=max(peaks))
    assert min(ratios) < FLOOD_RATIO, ratios
    assert max(peaks) < RESIDENT_KIB


def keeper_start_cpu(keeping: Keeping) -> float:
    """Return the CPU seconds that a keeper needs to get ready."""
    kept = keeping.start(LONG)
    kept.record()
    used = cpu_sec(kept.keeper.pid)
    request_stop(kept.spec.stop_file, "stopped", "")
    kept.end()
    return used


def test_a_quiet_worker_costs_nothing(place: Keeping) -> None:
    tree = place.folder / "tree"
    for number in range(300):
        (tree / str(number)).mkdir(parents=True)
    kept = place.start(LONG, watch_tree=str(tree), clocks=clocks(silence_sec=600, no_progress_sec=600, wall_sec=600))
    kept.record()
    time.sleep(0.5)
    before = cpu_sec(kept.keeper.pid)
    time.sleep(IDLE_SEC)
    share = (cpu_sec(kept.keeper.pid) - before) / IDLE_SEC
    resident = status_kib(kept.keeper.pid, "VmRSS")
    request_stop(kept.spec.stop_file, "stopped", "")
    kept.end()
    say(keeper_idle_cpu_share=round(share, 4))
    say(keeper_resident_kib=resident)
    assert share <= IDLE_SHARE
    assert resident < RESIDENT_KIB
