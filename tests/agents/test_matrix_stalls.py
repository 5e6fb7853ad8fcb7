"""A model that goes silent, a worker that gets nowhere, a limit of time, and a task too long for a command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.machine import Machine, Outcome
from tests.agents.scripted_model.scenario import Turn, hang_before_headers, hang_mid_stream, later, say
from tests.agents.setups import Setup

pytestmark = pytest.mark.real_cli

# Longer than the CLI needs to ask its model on two busy cores, and much shorter than any of them waits for an answer.
# OpenCode says nothing before the first answer is complete, so that its clock runs from the start.
CLOCK_SEC = {"opencode": 45}
USUAL_CLOCK_SEC = 15
NO_PROGRESS_SEC = {"opencode": 25}
USUAL_NO_PROGRESS_SEC = 10
# The others write a text into their stream only when it is complete.
STREAM_AS_THEY_GO = {"command-code", "grok"}
BEGINNING = "The parser begins with the header line"
PROMPT_BYTES = 400_000


def outcome_of(machine: Machine, process: Any) -> Outcome:
    out, err = process.communicate(timeout=240)
    return Outcome(process.returncode, json.loads(out), err)


def assert_ended(machine: Machine, outcome: Outcome, kind: str, words: str) -> None:
    """The verdict has this kind and names the clock, no worker is left, and the model had the task."""
    meta = outcome.verdict["meta"]
    assert (outcome.code, outcome.kind) == (1, kind), outcome
    assert words in outcome.verdict["why"]
    assert (meta["stalled"], meta["timedOut"]) == (kind == "stalled", kind == "timeout")
    left = {pid: line for pid, line in machine.processes().items() if "bullswarm_server.kernel" not in line}
    assert left == {}, "the whole tree is gone before the verdict is told"
    assert machine.model.prompts(), "the model had the task"


def test_a_silent_model_is_ended_by_the_clock_that_it_runs_into(make_machine: MachineMaker, setup: Setup) -> None:
    seconds = CLOCK_SEC.get(setup.name, USUAL_CLOCK_SEC)
    silence = {"BULLSWARM_WORKER_SILENCE_SEC": str(seconds)}

    def begin(turn: Turn, *options: str, **environ: str) -> tuple[Machine, Any]:
        machine = make_machine(setup, [turn])
        return machine, machine.start_run(*options, environ=environ)

    # All three at once: nearly all of their time is waiting.
    nothing = begin(hang_before_headers(), **silence)
    stopped = begin(hang_mid_stream(BEGINNING), **silence)
    limited = begin(hang_mid_stream(BEGINNING), "--timeout", str(seconds))

    assert_ended(nothing[0], outcome_of(*nothing), "stalled", f"no output for {seconds} s")
    partial = outcome_of(*stopped)
    assert_ended(stopped[0], partial, "stalled", f"no output for {seconds} s")
    if setup.name in STREAM_AS_THEY_GO:
        assert BEGINNING in Path(partial.verdict["meta"]["streamFile"]).read_text(), "what came is kept"
    assert_ended(limited[0], outcome_of(*limited), "timeout", f"not done after {seconds} s")


def test_a_worker_that_is_busy_and_changes_no_file_is_stalled(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [])
    machine.turns[:] = [later(0.5, setup.run_shell(f"echo round {turn}")) for turn in range(200)]
    seconds = NO_PROGRESS_SEC.get(setup.name, USUAL_NO_PROGRESS_SEC)
    outcome = machine.run(lane="build", environ={"BULLSWARM_WORKER_NO_PROGRESS_SEC": str(seconds)})
    assert_ended(machine, outcome, "stalled", f"no file change for {seconds} s")


def test_a_prompt_of_400_kb_arrives_whole(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [say("I have read every line of the task that you sent.")])
    lines = [f"{number:06} “Grüße” <tag> $HOME `id` {{x}}" for number in range(PROMPT_BYTES // 40)]
    prompt = "\n".join(["BEGIN OF THE TASK", *lines, "END OF THE TASK"])
    assert len(prompt.encode()) >= PROMPT_BYTES
    outcome = machine.run(prompt)
    assert outcome.verdict["ok"], outcome
    arrived = [request.prompt for request in machine.model.prompts()]
    if setup.name == "grok":
        # Above about 80 kB Grok sends an excerpt, saves the whole request, and tells its model where to read it.
        assert any("Full request offloaded to file" in text for text in arrived)
        arrived = [file.read_text() for file in machine.home.glob(".grok/sessions/*/*/prompts/*.txt")]
    assert any(prompt in text for text in arrived), "the whole prompt did not arrive"
