"""What a kernel costs while its worker is quiet (design budget: at most 1 % of a processor and 60 MB)."""

import contextlib
import os
import sys
import time
from pathlib import Path

from tests.server.site import make_site

WATCHED_SEC = 8.0
CPU_BUDGET = 0.01
MEMORY_BUDGET_KB = 60 * 1024


def test_a_quiet_kernel_costs_next_to_nothing(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    site.worker("quiet", "sleep 30; echo done")
    try:
        site.start_run("--pool", "quiet")
        pid = site.kernel()
        time.sleep(2)
        before = cpu_seconds(pid)
        time.sleep(WATCHED_SEC)
        share = (cpu_seconds(pid) - before) / WATCHED_SEC
        memory = resident_kb(pid)
        sys.stderr.write(f"kernel, worker quiet: {share:.2%} of a processor, {memory / 1024:.1f} MB resident\n")
        assert share <= CPU_BUDGET * 1.5  # a tick of the scheduler's clock is 10 ms: 0.1 % of what is watched
        assert memory <= MEMORY_BUDGET_KB
    finally:
        site.say("runs", "stop", "last")
        site.close()


def cpu_seconds(pid: int) -> float:
    """What the process has used, user and system, to the nanosecond where Linux tells it, else to the tick of 10 ms."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1])
