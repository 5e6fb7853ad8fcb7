"""What a kernel costs while its worker is quiet (design budget: at most 1 % of a processor and 60 MB)."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.server.fake_worker import install_fake_worker

WATCHED_SEC = 8.0
CPU_BUDGET = 0.01
MEMORY_BUDGET_KB = 60 * 1024


def test_a_quiet_kernel_costs_next_to_nothing(own_home: Path, tmp_path: Path) -> None:
    environ = install_fake_worker(own_home, tmp_path / "bin", "sleep 30; echo done")
    command = [sys.executable, "-m", "bullswarm_server.cli.main", "run", "--lane", "analyze", "--pool", "fake", "wait"]
    caller = subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        pid = kernel_of(own_home)
        time.sleep(2)
        before = cpu_seconds(pid)
        time.sleep(WATCHED_SEC)
        share = (cpu_seconds(pid) - before) / WATCHED_SEC
        memory = resident_kb(pid)
        sys.stderr.write(f"kernel, worker quiet: {share:.2%} of a processor, {memory / 1024:.1f} MB resident\n")
        assert share <= CPU_BUDGET * 1.5  # a tick of the scheduler's clock is 10 ms: 0.1 % of what is watched
        assert memory <= MEMORY_BUDGET_KB
    finally:
        subprocess.run([*command[:3], "runs", "stop", "last"], env=environ, capture_output=True, check=False)
        caller.wait(timeout=30)


def kernel_of(home: Path) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for place in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (place / "cmdline").read_bytes().split(b"\0") if place.name.isdigit() else []
                if b"bullswarm_server.kernel" in words and str(home).encode() in (place / "environ").read_bytes():
                    return int(place.name)
        time.sleep(0.1)
    raise AssertionError("no kernel was started")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1])
