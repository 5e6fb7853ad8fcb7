"""A stall tells an idle worker from a busy one: the CPU time stands beside the silence."""

from __future__ import annotations

from tests.core.keeper.keeping import Keeping

from bullswarm_core.keeper.clocks import Clocks

SILENT = "import time; time.sleep(60)"
# It says something as it goes, so that on a loaded machine its work isn't taken for silence.
BUSY = (
    "import time\n"
    "for n in range(1, 13):\n"
    "    while time.process_time() < n * 0.05: pass\n"
    "    print(n, flush=True)\n"
    "time.sleep(60)"
)
CLOCKS = Clocks(
    startup_sec=0.0, silence_sec=2.5, no_progress_sec=0.0, wall_sec=None, terminal_grace_sec=0.5, term_grace_sec=0.5
)


def test_the_cpu_time_of_a_silent_worker_is_kept(keeping: Keeping) -> None:
    busy, idle = keeping.run(BUSY, clocks=CLOCKS), keeping.run(SILENT, clocks=CLOCKS)
    assert (busy.reason, idle.reason) == ("silence", "silence")
    assert busy.cpu_sec is not None and idle.cpu_sec is not None
    assert busy.cpu_sec >= 0.5 > idle.cpu_sec
