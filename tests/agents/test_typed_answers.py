"""Typed answers of the real CLIs: as a file, by the CLI's own structured output, as the final reply; and a wrong one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.machine import Machine
from tests.agents.scripted_model.request import ModelRequest
from tests.agents.scripted_model.scenario import Answer, call_tool, say
from tests.agents.setups import CLAUDE, CODEX, OPENCODE, SETUPS, Setup

pytestmark = pytest.mark.real_cli

# What every vendor takes: an object, closed, with each property required.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}, "lines": {"type": "array", "items": {"type": "integer"}}},
    "required": ["passed", "lines"],
    "additionalProperties": False,
}
VALUE = {"passed": True, "lines": [3, 5]}
GOOD = json.dumps(VALUE)


@pytest.fixture(params=["claude-code", "codex", "opencode"])
def setup(request: pytest.FixtureRequest) -> Setup:
    """The CLIs that call bullswarm, as workers."""
    return SETUPS[request.param]


def typed(schema: dict[str, Any] | None = None) -> tuple[str, str]:
    return "--answer-schema", json.dumps(schema or SCHEMA)


def gives(setup: Setup, text: str, value: Any) -> Answer:
    """End the turn with this text, or, where the CLI has a tool for it, with this value."""
    return call_tool("StructuredOutput", **value) if setup is CLAUDE and value is not None else say(text)


def in_the_task(machine: Machine) -> Path:
    """The place of the answer file, as the model finds it in its task."""
    (prompt,) = {request.prompt for request in machine.model.prompts() if "into the file " in request.prompt}
    return Path(prompt.partition("into the file ")[2].partition(", and nothing")[0])


def writes_the_answer(setup: Setup, text: str) -> Callable[[ModelRequest], Answer]:
    def turn(request: ModelRequest) -> Answer:
        return setup.write_file(request.prompt.partition("into the file ")[2].partition(", and nothing")[0], text)

    return turn


def test_a_reply_in_a_fence_is_the_answer(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [say(f"```json\n{GOOD}\n```")])
    outcome = machine.run("Review the parser.", options=typed())
    assert (outcome.code, outcome.verdict["ok"], outcome.verdict["answer"]) == (0, True, VALUE), outcome
    assert outcome.verdict["answerCheck"]["source"] == "final-reply"
    assert "Your final reply is the answer" in machine.model.prompts()[0].prompt


def test_the_answer_file_of_a_writing_lane_comes_first(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [])
    target, other = machine.project / "made.txt", {"passed": False, "lines": []}
    machine.turns[:] = [
        writes_the_answer(setup, GOOD + "\n"),
        setup.write_file(str(target), "made by a worker\n"),
        gives(setup, json.dumps(other), other),
    ]
    outcome = machine.run("Write made.txt.", lane="build", options=typed())
    assert (outcome.verdict["ok"], outcome.verdict["answer"]) == (True, VALUE), outcome
    assert outcome.verdict["answerCheck"]["source"] == "answer-file"
    assert outcome.verdict["confinement"] != "none" and outcome.verdict["changedFiles"] == ["made.txt"]
    place = in_the_task(machine)
    assert place.is_relative_to(machine.run_folder()) and not place.exists()


def test_a_wrong_answer_file_is_a_failure_with_its_place(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [])
    machine.turns[:] = [
        writes_the_answer(setup, '{"passed": "yes", "lines": []}\n'),
        setup.write_file(str(machine.project / "made.txt"), "made\n"),
        gives(setup, GOOD, VALUE),
    ]
    outcome = machine.run("Write made.txt.", lane="build", options=typed())
    assert (outcome.code, outcome.kind, outcome.verdict["answer"]) == (1, "schema", None), outcome
    assert outcome.verdict["answerCheck"]["problems"][0]["path"] == "#/passed"


def test_a_reply_that_does_not_match_is_a_failure(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [say('{"passed": "yes", "lines": [1.5]}')])
    outcome = machine.run("Review the parser.", options=typed())
    assert (outcome.code, outcome.kind) == (1, "schema"), outcome
    paths = {problem["path"] for problem in outcome.verdict["answerCheck"]["problems"]}
    assert paths == {"#/passed", "#/lines/0"}


def test_prose_is_no_typed_answer(make_machine: MachineMaker, setup: Setup) -> None:
    outcome = make_machine(setup, [say("The parser is fine, nothing is wrong with it at all.")]).run(options=typed())
    assert (outcome.code, outcome.kind) == (1, "schema"), outcome
    assert "it is not JSON" in outcome.verdict["why"]


# --- the CLIs' own structured output


def test_claude_code_answers_by_its_structured_output(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [call_tool("StructuredOutput", **VALUE)])
    outcome = machine.run("Review the parser.", options=typed())
    assert (outcome.verdict["ok"], outcome.verdict["answer"]) == (True, VALUE), outcome
    assert outcome.verdict["answerCheck"]["source"] == "structured-output"
    (offered,) = [tool for tool in machine.model.prompts()[0].body["tools"] if tool["name"] == "StructuredOutput"]
    assert offered["input_schema"] == SCHEMA


def test_claude_code_that_never_fits_is_a_schema_failure(make_machine: MachineMaker) -> None:
    wrong = call_tool("StructuredOutput", passed="yes", lines=[])
    outcome = make_machine(CLAUDE, [wrong] * 8).run("Review the parser.", options=typed())
    assert (outcome.code, outcome.kind) == (1, "schema"), outcome
    assert "/passed: must be boolean" in outcome.verdict["why"]


def test_claude_code_is_spared_a_schema_that_its_vendor_refuses(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [say("[1, 2]")])
    outcome = machine.run("Count.", options=typed({"type": "array", "items": {"type": "integer"}}))
    assert (outcome.verdict["ok"], outcome.verdict["answer"]) == (True, [1, 2]), outcome
    assert "StructuredOutput" not in machine.model.prompts()[0].tools
    assert any("the schema is not given to claude-code" in note for note in outcome.verdict["launchNotes"])


def test_codex_asks_its_model_for_the_schema(make_machine: MachineMaker) -> None:
    machine = make_machine(CODEX, [say(GOOD)])
    outcome = machine.run("Review the parser.", options=typed())
    assert (outcome.verdict["ok"], outcome.verdict["answer"]) == (True, VALUE), outcome
    assert outcome.verdict["answerCheck"]["source"] == "structured-output"
    asked = machine.model.prompts()[0].body["text"]["format"]
    assert (asked["type"], asked["strict"], asked["schema"]) == ("json_schema", True, SCHEMA)


def test_codex_is_spared_a_schema_that_is_not_strict(make_machine: MachineMaker) -> None:
    machine = make_machine(CODEX, [say('{"passed": true}')])
    outcome = machine.run("Review.", options=typed({"type": "object", "properties": {"passed": {"type": "boolean"}}}))
    assert (outcome.verdict["ok"], outcome.verdict["answerCheck"]["source"]) == (True, "final-reply"), outcome
    assert "format" not in (machine.model.prompts()[0].body.get("text") or {})


def test_opencode_has_the_task_alone_to_go_by(make_machine: MachineMaker) -> None:
    machine = make_machine(OPENCODE, [say(GOOD)])
    outcome = machine.run("Review the parser.", options=typed())
    assert (outcome.verdict["ok"], outcome.verdict["answerCheck"]["source"]) == (True, "final-reply"), outcome
    assert json.dumps(SCHEMA, separators=(",", ":")) in machine.model.prompts()[0].prompt
