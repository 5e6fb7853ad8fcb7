"""Two hundred processes killed at random while programs run: nothing is lost, nothing runs twice, nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.processes import until
from tests.server.site import ANSWER, Site, make_site
from tests.server.workflows import begin

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import NothingToRetryError
from bullswarm_core.runs.intents import carry_out, rerun, resume
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.status import statuses
from bullswarm_server.ops.launch import start_kernel

# What a check's shell has in its command line, so that it can be told from others.
CHECK = "sleep 0.2; test -s"
KILLS = 200
AT_ONCE = 4
# A kernel needs some tenths of a second to start: with less between kills hardly anything would ever be at work.
MOST_PAUSE_SEC = 0.4
# A fixed beginning, so that a failure can be looked at; what is killed still depends on the machine's own timing.
SEED = 20_26_11
# Long enough that a kill finds them at work, short enough that most kills hit another one.
WORKER = f"""p=$(cat); sleep 0.$(( $$ % 9 + 1 ))
case "$p" in *WRITE*) f=$(printf '%s' "$p" | sed -n 's/.*WRITE \\([a-z0-9.]*\\).*/\\1/p'); echo made >> "$f";; esac
echo '{ANSWER}'"""
# By words of their command lines: kernels, workers, launchers, keepers, and the checks of a step.
KINDS = ("bullswarm_server.kernel", "-cli", "runs wait", "keeper", CHECK)
LEAST_OF_A_KIND = 5
# In so many of a hundred kills everything that is there is killed at once, as by a machine that loses its power.
ALL_AT_ONCE = 3


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    root = tmp_path / "site"
    root.mkdir()
    built = make_site(root)
    for name in ("one", "two", "three"):
        built.worker(name, WORKER)
    yield built
    built.close()


def program(number: int) -> dict[str, Any]:
    """Six steps: two at once, two writers of different files with a check each, one that waits for all, and a last one."""

    def writer(name: str) -> dict[str, Any]:
        file = f"{name}{number}.txt"
        check = {"type": "command", "cmd": f"{CHECK} {file}"}
        return {
            "id": name,
            "dependsOn": ["a"],
            "lane": "build",
            "prompt": f"WRITE {file}",
            "files": [file],
            "evidence": [check],
        }

    return document(
        {"id": "a"},
        {"id": "b"},
        writer("c"),
        writer("d"),
        {"id": "e", "dependsOn": ["b", "c", "d"]},
        {"id": "f", "dependsOn": ["e"]},
    )


def test_two_hundred_kills_lose_nothing(site: Site) -> None:
    chance = random.Random(SEED)
    runs: list[str] = []
    killed: Counter[str] = Counter()
    while wanted := _wanted(killed):
        open_runs = [run_id for run_id in runs if _state(site, run_id).finished is None]
        while len(open_runs) < AT_ONCE:
            run_id = begin(site, program(len(runs)), retryAttempts=3, sharedTree=True)
            runs.append(run_id)
            open_runs.append(run_id)
        _wait_in_a_process(site, open_runs)
        killed.update(_kill(site, chance, wanted))
        time.sleep(chance.random() * MOST_PAUSE_SEC)
    for process in site.started:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    finished = [_driven_to_the_end(site, run_id) for run_id in runs]
    for state in finished:
        _check(site, state)
    until(lambda: not site.processes(), "no process is left", seconds=60)
    assert site.in_flight() == []
    sys.stderr.write(f"chaos: {len(runs)} runs, killed {dict(killed)}\n")
    assert len(runs) > AT_ONCE, "kills let no run end"


def _wait_in_a_process(site: Site, runs: list[str]) -> None:
    """Keep a launcher waiting on each run; it starts the run's kernel again when that is gone."""
    waiting = {process.args[-1] for process in site.started if process.poll() is None}  # type: ignore[index]
    for run_id in runs:
        if run_id not in waiting:
            site.start("runs", "wait", "--json", run_id)


def _wanted(killed: Counter[str]) -> tuple[str, ...]:
    """Return the kinds that are still to be killed: all of them, then those that were hardly ever there to be hit."""
    return KINDS if killed.total() < KILLS else tuple(kind for kind in KINDS if killed[kind] < LEAST_OF_A_KIND)


def _kill(site: Site, chance: random.Random, wanted: tuple[str, ...]) -> list[str]:
    """Kill one process of a wanted kind, or now and then every one; return the kinds of those that were killed."""
    kinds = KINDS if chance.randrange(100) < ALL_AT_ONCE else (chance.choice(wanted),)
    found = [(kind, pid) for pid, line in site.processes().items() for kind in kinds if kind in line]
    hit = found if len(kinds) > 1 else [chance.choice(found)] if found else []
    for _, pid in hit:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [kind for kind, _ in hit]


def _driven_to_the_end(site: Site, run_id: str) -> RunState:
    """Resume a run until every step has succeeded; each round only tries what failed again.

    A check that was killed has failed, which no resume tries again: such a step is begun anew, as its hand-back offers.
    """
    for _ in range(6):
        state = _settled(site, run_id)
        if state.finished is not None and state.finished.outcome == "completed":
            return state
        failed = [name for name, status in statuses(state).items() if status == "failed"]
        with site.database() as connection:
            try:
                carry_out(connection, run_id, resume(by="test"), now=utc_now())
            except NothingToRetryError:
                for name in failed:
                    carry_out(connection, run_id, rerun(name, by="test"), now=utc_now())
    raise AssertionError(f"{run_id} never completed: {_state(site, run_id).finished}")


def _settled(site: Site, run_id: str) -> RunState:
    from bullswarm_server.ops.launch import wait_for

    start_kernel(site.home, run_id, environ=site.environ)
    return wait_for(site.home, run_id, environ=site.environ, timeout_sec=120)


def _state(site: Site, run_id: str) -> RunState:
    with site.database() as connection:
        return Journal(connection).state(run_id)


def _check(site: Site, state: RunState) -> None:
    assert state.finished is not None and state.finished.outcome == "completed"
    for step in state.steps.values():
        good = [attempt for attempt in step.attempts if attempt.finished is not None and attempt.finished.ok]
        assert len(good) == 1, f"{step.id} ran on after it had succeeded"
        assert step.attempts[-1] is good[0]
        assert all(attempt.finished is not None for attempt in step.attempts)
        output = good[0].finished.output_file  # type: ignore[union-attr]
        assert output is not None and ANSWER in Path(output).read_text(), f"the output of {step.id} is lost"
    numbers = [attempt.picked.ordinal for step in state.steps.values() for attempt in step.attempts]
    assert all(number >= 1 for number in numbers)


def test_a_journal_reads_while_its_kernel_is_killed(site: Site) -> None:
    run_id = begin(site, program(0), sharedTree=True)
    for _ in range(10):
        with contextlib.suppress(AssertionError):
            os.kill(site.kernel(), signal.SIGKILL)
        assert _state(site, run_id).created.run_id == run_id
        listed = subprocess.run(
            ["python3", "-m", "bullswarm_server.cli.main", "runs", "list", "--json"],
            env=site.environ, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert run_id in listed.stdout
        start_kernel(site.home, run_id, environ=site.environ)
    assert _driven_to_the_end(site, run_id).finished is not None
