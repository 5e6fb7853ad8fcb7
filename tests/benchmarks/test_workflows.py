"""What long workflows cost: scheduling 500 steps, reading 5,000 events, following and showing such a run, a quiet kernel.

Costs are compared with a plain piece of work on the same data and the same machine; absolute times are only printed
(``pytest -s``).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from graphlib import TopologicalSorter
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from tests.benchmarks.test_kernel import CPU_BUDGET, MEMORY_BUDGET_KB, cpu_seconds, resident_kb
from tests.core.runs.journals import Written, document
from tests.processes import until
from tests.server.site import Site, make_site
from tests.server.workflows import begin

from bullswarm_core._dataclasses import replace
from bullswarm_core.reports.notices import tell
from bullswarm_core.reports.watch import Teller
from bullswarm_core.runs.events import AttemptPicked, Event, RunCreated, StepReset, encode
from bullswarm_core.runs.fold import fold
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.scheduler import next_actions
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home

STEPS, EVENTS = 500, 5_000
# One row of a decision has about so many bytes, and a machine eight pools.
DECISION = {"rows": [{"pool": f"pool-{number}", "why": "x" * 200} for number in range(8)]}
WATCHED_SEC = 8.0
QUIET_STEPS = 20


def program() -> dict[str, Any]:
    """500 steps, each waiting for five of those before it; every third writes a file of its own."""
    steps: list[dict[str, Any]] = []
    for number in range(STEPS):
        before = [f"s{other}" for other in range(max(0, number - 10), max(0, number - 5))]
        step: dict[str, Any] = {"id": f"s{number}", "dependsOn": before}
        steps.append(step | ({"lane": "build", "files": [f"f{number}.txt"]} if number % 3 == 0 else {}))
    return document(*steps)


@pytest.fixture(scope="module")
def written() -> Written:
    """A run of 5,000 events: three tries of each step failed, and the fourth came well; some steps were given back first."""
    made = Written(program(), retryAttempts=3)
    for number in range(STEPS):
        made.run(f"s{number}", "process")
        if number % 20 == 0:
            made.run(f"s{number}", "quota", retry_how="another-pool")
            made.write(StepReset(f"s{number}", why="rerun", by="me"))
        for kind in ("process", "process", None):
            made.run(f"s{number}", kind, retry_how="another-pool")
            if len(made.events) >= EVENTS:
                return made
    raise AssertionError("the program has too few steps")


@pytest.fixture(scope="module")
def events(written: Written) -> list[Event]:
    """The same events with decisions as large as real ones."""
    return [
        replace(event, payload=replace(event.payload, decision=DECISION))
        if isinstance(event.payload, AttemptPicked)
        else event
        for event in written.events
    ]


@pytest.fixture(scope="module")
def home(events: list[Event], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, str]]:
    """A home whose database has the run."""
    home = Home(tmp_path_factory.mktemp("long") / "state")
    first, *rest = events
    assert isinstance(first.payload, RunCreated)
    connection = open_database(home)
    journal = Journal(connection)
    short_id = journal.create(replace(first.payload, cwd=str(home.root.parent)), at=first.at).short_id
    connection.execute("BEGIN IMMEDIATE")
    for event in rest:
        assert event.payload is not None
        journal.append("wf-1", [event.payload], at=event.at)
    connection.commit()
    connection.close()
    yield home, short_id


def best_of(work: Callable[[], object], *, repeats: int = 5) -> float:
    """The shortest CPU time of one call, in milliseconds: the one that the rest of the machine disturbed least."""
    times = []
    for _ in range(repeats):
        start = process_time()
        work()
        times.append((process_time() - start) * 1000)
    return min(times)


def report(what: str, found: float, peer: float, most: float) -> None:
    """Print a measurement beside its peer, and hold it against the most that it may be."""
    sys.stderr.write(f"{what}: {found:.2f} ms, {found / peer:.1f} times the peer ({peer:.2f} ms, at most {most:g})\n")
    assert found <= peer * most


def test_scheduling_costs_a_small_multiple_of_sorting_the_same_steps(written: Written) -> None:
    graph = {step["id"]: step["dependsOn"] for step in program()["steps"]}
    peer = best_of(lambda: list(TopologicalSorter(graph).static_order()), repeats=20)
    fresh = Written(program()).state
    report("schedule, 500 steps to do", best_of(lambda: next_actions(fresh, now=written.now), repeats=20), peer, 5)
    halfway = written.state
    found = best_of(lambda: next_actions(halfway, now=written.now + timedelta(days=1)), repeats=20)
    report("schedule, most of 500 steps done", found, peer, 10)


def test_folding_costs_a_small_multiple_of_parsing_the_same_events(events: list[Event]) -> None:
    lines = [json.dumps(encode(event.payload)) for event in events if event.payload is not None]
    peer = best_of(lambda: [json.loads(line) for line in lines])
    report("fold of 5,000 events", best_of(lambda: fold(events)), peer, 8)


def test_a_long_run_is_read_and_followed_for_little(home: tuple[Home, str], events: list[Event]) -> None:
    connection = open_database(home[0])
    journal = Journal(connection)
    try:
        lines = [json.dumps(encode(event.payload)) for event in events if event.payload is not None]
        parsing = best_of(lambda: [json.loads(line) for line in lines])
        state = journal.state("wf-1")
        report("read and fold of 5,000 events", best_of(lambda: journal.state("wf-1"), repeats=3), parsing, 14)
        # A kernel, a watcher and whoever waits ask this several times a second.
        again = best_of(lambda: journal.read_on(state), repeats=50)
        report("a look that finds nothing new", again, parsing, 0.02)

        def told() -> Teller:
            teller = Teller(folder=RunFolder.of(home[0], "wf-1"), telling=tell)
            teller.take(events[:-1])
            return teller

        report("5,000 events told to a watcher", best_of(told, repeats=2), parsing, 60)
        ready = told()
        started = process_time()
        ready.take(events[-1:])
        report("the newest event told", (process_time() - started) * 1000, parsing, 0.3)
    finally:
        connection.close()


@pytest.mark.parametrize(("words", "most"), [(("runs", "show"), 60), (("workflow", "watch", "--once"), 120)])
def test_a_command_on_a_long_run_answers_soon(home: tuple[Home, str], words: tuple[str, ...], most: float) -> None:
    place, short_id = home
    environ = {**os.environ, "BULLSWARM_HOME": str(place.root), "BULLSWARM_METERS": "off"}
    environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-m", "bullswarm_server.cli.main", *words, short_id]
    bare = min(_child_ms([sys.executable, "-c", "pass"], environ) for _ in range(5))
    report(" ".join(command[3:]), min(_child_ms(command, environ) for _ in range(2)), bare, most)


def _child_ms(command: list[str], environ: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Traceback" not in done.stderr, done.stderr
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    built = make_site(tmp_path)
    built.worker("quiet", "sleep 120; echo done")
    yield built
    built.close()


def test_a_kernel_with_twenty_quiet_workers_costs_next_to_nothing(site: Site) -> None:
    steps = [{"id": f"s{number}"} for number in range(QUIET_STEPS)]
    run_id = begin(site, document(*steps), concurrency=QUIET_STEPS)
    try:
        until(lambda: site.events(run_id).count("attempt.launched") == QUIET_STEPS, "all are at work", seconds=120)
        pid = site.kernel()
        time.sleep(2)
        before = cpu_seconds(pid)
        time.sleep(WATCHED_SEC)
        share, memory = (cpu_seconds(pid) - before) / WATCHED_SEC, resident_kb(pid)
        sys.stderr.write(f"kernel, 20 workers quiet: {share:.2%} of a processor, {memory / 1024:.1f} MB resident\n")
        assert share <= CPU_BUDGET * 1.5  # a tick of the scheduler's clock is 10 ms: 0.1 % of what is watched
        assert memory <= MEMORY_BUDGET_KB
    finally:
        site.say("runs", "stop", run_id)
