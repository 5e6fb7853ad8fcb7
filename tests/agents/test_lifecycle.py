"""A real CLI is at work, its tool runs a grandchild, and somebody is killed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.machine import Machine
from tests.agents.scripted_model.scenario import say
from tests.agents.setups import Setup
from tests.processes import until

pytestmark = pytest.mark.real_cli

ANSWER = "I waited for the signal, and the parser splits the line at each comma."
ENDLESS = "tail -f /dev/null"
WAIT_FOR_GO = "while [ ! -e go ]; do sleep 0.2; done; echo it is there > seen.txt"


def begin(make_machine: MachineMaker, setup: Setup, command: str) -> tuple[Machine, Any]:
    """Start a run and return once the CLI's own tool runs the command."""
    machine = make_machine(setup, [])
    machine.turns[:] = [setup.run_shell(command), say(ANSWER)]
    process = machine.start_run(lane="build")
    tool = command.split(";")[0].strip()
    until(
        lambda: any(tool in line for line in machine.processes().values()),
        f"the tool of {setup.name} runs {tool}",
        seconds=90,
    )
    return machine, process


def kernel_of(machine: Machine) -> int:
    return until(
        lambda: next((pid for pid, line in machine.processes().items() if "-m bullswarm_server.kernel" in line), None),
        "a kernel is running",
    )


def kill(machine: Machine, pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until(lambda: pid not in machine.processes(), f"process {pid} is gone")


def assert_interrupted_and_gone(machine: Machine, verdict: dict[str, Any]) -> None:
    assert verdict["failureKind"] == "interrupted", verdict["why"]
    assert Path(verdict["meta"]["streamFile"]).exists(), "what the worker had written is kept"
    until(lambda: not machine.processes(), "nothing is left running", seconds=15)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["TERM", "KILL"])
def test_a_killed_worker_is_interrupted_and_its_grandchild_does_not_survive_it(
    make_machine: MachineMaker, setup: Setup, number: signal.Signals
) -> None:
    machine, process = begin(make_machine, setup, ENDLESS)
    os.kill(machine.keeper_record()["worker"]["pid"], number)
    assert_interrupted_and_gone(machine, json.loads(process.communicate(timeout=90)[0]))


def test_with_its_keeper_killed_nothing_of_the_worker_is_left(make_machine: MachineMaker, setup: Setup) -> None:
    machine, process = begin(make_machine, setup, ENDLESS)
    kill(machine, machine.keeper_record()["keeper"]["pid"])
    assert_interrupted_and_gone(machine, json.loads(process.communicate(timeout=90)[0]))


def test_launcher_and_kernel_are_killed_and_resume_goes_on_with_the_living_worker(
    make_machine: MachineMaker, setup: Setup
) -> None:
    machine, process = begin(make_machine, setup, WAIT_FOR_GO)
    process.kill()
    kill(machine, kernel_of(machine))
    (row,) = machine.runs()
    assert row["why"] == f"kernel gone · next: bullswarm runs resume {row['shortId']}"
    resumed = machine.start("runs", "resume", row["shortId"], "--json")
    kernel_of(machine)
    (machine.project / "go").touch()
    verdict = json.loads(resumed.communicate(timeout=120)[0])
    # In this lane the changed file is the deliverable; the answer shows that the whole stream was read again.
    assert (verdict["ok"], verdict["excerpt"].strip()) == (True, ANSWER), verdict["why"]
    assert verdict["takenOver"] in ("re-attached", "harvested")


def test_a_worker_that_ended_without_a_kernel_is_harvested(make_machine: MachineMaker, setup: Setup) -> None:
    machine, process = begin(make_machine, setup, WAIT_FOR_GO)
    process.kill()
    kill(machine, kernel_of(machine))
    (machine.project / "go").touch()
    until(lambda: not machine.processes(), "the worker and its keeper have ended", seconds=90)
    done = machine.bullswarm("runs", "resume", "last", "--json")
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["ok"], verdict["takenOver"]) == (0, True, "harvested"), verdict["why"]
    assert verdict["excerpt"].strip() == ANSWER
