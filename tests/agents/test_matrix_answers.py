"""What comes of the model's words: an answer, a written file, an empty promise, nothing."""

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.scripted_model.scenario import say, say_nothing
from tests.agents.setups import Setup

pytestmark = pytest.mark.real_cli

ANSWER = "The parser splits the line at each comma and unquotes every field that starts with a quote."


def test_an_answer_in_text_is_ok(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [say(ANSWER)])
    outcome = machine.run("Explain the parser.")
    assert (outcome.code, outcome.kind, outcome.verdict["ok"]) == (0, None, True), outcome
    assert outcome.answer.strip() == ANSWER
    usage = outcome.verdict["meta"]["usage"]
    # Counts are disjoint: a vendor that tells its reasoning apart has it beside the output, not in it.
    assert (usage["input"], usage["cacheRead"], usage["output"] + (usage["reasoning"] or 0)) == (70, 30, 40)
    assert any("Explain the parser." in request.prompt for request in machine.model.prompts())


def test_a_file_written_in_the_build_lane_is_named(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [])
    target = machine.project / "made.txt"
    machine.turns[:] = [setup.write_file(str(target), "made by a worker\n"), say("I wrote made.txt.")]
    outcome = machine.run("Write made.txt.", lane="build")
    assert outcome.verdict["ok"], outcome
    assert target.read_text() == "made by a worker\n"
    assert outcome.verdict["changedFiles"] == ["made.txt"]


def test_done_without_a_change_is_not_done(make_machine: MachineMaker, setup: Setup) -> None:
    outcome = make_machine(setup, [say("Done. I implemented everything you asked for.")]).run(lane="build")
    assert (outcome.code, outcome.kind) == (1, "not-produced"), outcome


def test_an_empty_answer_is_not_ok(make_machine: MachineMaker, setup: Setup) -> None:
    outcome = make_machine(setup, [say_nothing()]).run()
    assert outcome.code == 1 and not outcome.verdict["ok"], outcome
