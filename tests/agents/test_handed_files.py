"""A step's task names the outputs of earlier steps by their place in bullswarm's home: every CLI's worker can read them."""

import json

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.scripted_model.scenario import say
from tests.agents.setups import Setup

pytestmark = pytest.mark.real_cli

ANSWER = "The parser splits the line at each comma and unquotes every field that starts with a quote."


@pytest.mark.parametrize("lane", ["analyze", "build"])
def test_a_worker_reads_the_files_of_its_run(make_machine: MachineMaker, setup: Setup, lane: str) -> None:
    machine = make_machine(setup, [])
    output = machine.state / "workflows" / "wf-earlier" / "out-first-attempt-1.md"
    output.parent.mkdir(parents=True)
    output.write_text("what the first step found\n", encoding="utf-8")
    machine.turns[:] = [setup.read_file(str(output)), say(ANSWER)]
    outcome = machine.run(lane=lane)
    assert outcome.verdict["denied"] == [], outcome
    assert outcome.answer.strip() == ANSWER, outcome
    told = json.dumps([prompt.body for prompt in machine.model.prompts()])
    assert "what the first step found" in told, told[-3000:]
