"""Budget: 16 processes times 200 ledger registrations, none lost, p99 at most 50 ms."""

import json
import os
import subprocess
import sys
from pathlib import Path

from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home

PROCESSES = 16
REGISTRATIONS = 200
P99_BUDGET_MS = 50.0
# Other work on the machine can only make a round slower, so that the best of a few is the measurement.
ROUNDS = 4

WORKER = """
import json, sys, time
from datetime import UTC, datetime
from bullswarm_core.store.database import open_database, transaction
from bullswarm_core.store.home import Home
from bullswarm_core.dispatch.ledger import Booking, book, release
from bullswarm_core.process.identity import current

connection = open_database(Home(sys.argv[1]))
kernel, now = current(), datetime.now(UTC)
print("ready", flush=True)
sys.stdin.readline()
times = []
for number in range(int(sys.argv[3])):
    entry = Booking(
        run=f"wf-{sys.argv[2]}", step="run", attempt=f"run-{number}", pool="codex", lane="build", effort="low",
        started_at=now, kernel=kernel,
    )
    begun = time.perf_counter()
    with transaction(connection):
        booked = book(connection, entry)
    times.append(time.perf_counter() - begun)
    if number % 2:
        with transaction(connection):
            release(connection, booked)
connection.close()
print(json.dumps(times))
"""


def test_sixteen_processes_lose_no_registration(tmp_path: Path) -> None:
    reports: list[str] = []
    for round_number in range(ROUNDS):
        times = sorted(register_all(Home(tmp_path / str(round_number))))
        p50, p99 = times[len(times) // 2] * 1000, times[len(times) * 99 // 100] * 1000
        reports.append(f"{len(times)} registrations, p50 {p50:.2f} ms, p99 {p99:.1f} ms, max {times[-1] * 1000:.0f} ms")
        sys.stderr.write(f"ledger: {reports[-1]}\n")
        if p99 <= P99_BUDGET_MS:
            return
    raise AssertionError(f"p99 is above {P99_BUDGET_MS:g} ms in every round: {'; '.join(reports)}")


def register_all(home: Home) -> list[float]:
    """Register from all processes at once, prove that nothing was lost, and return the seconds of each registration."""
    open_database(home).close()
    times = run_workers(home)
    connection = open_database(home)
    kept = connection.execute("SELECT count(*), count(DISTINCT run || attempt) FROM inflight").fetchone()
    issued = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'inflight'").fetchone()[0]
    connection.close()
    assert len(times) == PROCESSES * REGISTRATIONS
    assert issued == PROCESSES * REGISTRATIONS, "every registration got a number of its own"
    assert tuple(kept) == (PROCESSES * REGISTRATIONS // 2,) * 2, "what was not released is there, once"
    return times


def run_workers(home: Home) -> list[float]:
    """Start all processes, let them go at once, and return the seconds of each registration."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(home.root), str(number), str(REGISTRATIONS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )
        for number in range(PROCESSES)
    ]  # fmt: skip
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    outputs = [child.communicate(timeout=120)[0] for child in children]
    return [seconds for output in outputs for seconds in json.loads(output)]
