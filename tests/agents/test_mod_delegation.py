"""The Claude Mod and the tools of the real Claude Code: a subagent's task on a real Codex, and the verdict after a run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.machine import Machine
from tests.agents.mod_sessions import claude, furnish, say
from tests.agents.scripted_model import Answer, ModelRequest, Turn, call_tool
from tests.agents.scripted_model import say as answer
from tests.agents.setups import CLAUDE, CODEX

pytestmark = pytest.mark.real_cli

SUBTASK = "SUBTASK: write down how the parser works."
ANSWER = "The parser splits each line at its commas, then takes the quotes off every field."
OWN_WORDS = "Claude's own subagent says this."
RUN = "bullswarm run --lane analyze 'SUBTASK by hand: explain it.'"
HAND_OVER, BY_HAND = "Hand it over.", "Run it by hand."


def agent_call() -> Answer:
    """As models call it: without a word on the background."""
    return call_tool("Agent", description="explain it", prompt=SUBTASK, subagent_type="general-purpose")


def model(request: ModelRequest) -> Turn:
    """Codex and a subagent of Claude Code's own answer the task; the session's model calls the tool that it was told to."""
    if request.path == "/v1/responses":
        write = request.turn == 0 and SUBTASK in request.prompt
        return CODEX.write_file("made.txt", "made") if write else answer(ANSWER)
    messages = request.body["messages"]
    if SUBTASK in json.dumps(messages[0]) and HAND_OVER not in json.dumps(messages):
        return answer(OWN_WORDS)
    asked = max((place for place, message in enumerate(messages) if message["role"] == "assistant"), default=-1) + 1
    new = json.dumps(messages[asked:])
    if "tool_result" not in new and HAND_OVER in new:
        return agent_call()
    return CLAUDE.run_shell(RUN) if "tool_result" not in new and BY_HAND in new else answer("Thanks for that.")


@pytest.fixture
def machine(make_machine: MachineMaker) -> Machine:
    made = make_machine(CLAUDE, [])
    made.turns[:] = [model] * 12
    return made


def heard(machine: Machine) -> str:
    """The whole conversation of the session as its model got it last."""
    asked = [
        json.dumps(one.body["messages"], ensure_ascii=False)
        for one in machine.model.prompts()
        if "messages" in one.body
    ]
    return [body for body in asked if HAND_OVER in body][-1]


def own_subagent_worked(machine: Machine) -> bool:
    return any(
        request.path == "/v1/messages" and SUBTASK in json.dumps(request.body["messages"][0])
        for request in machine.model.prompts()
    )


def test_a_subagents_task_runs_on_codex_and_the_hooks_say_nothing_twice(machine: Machine) -> None:
    mod = furnish(machine)
    assert machine.bullswarm("delegation", "on").returncode == 0
    with claude(machine, "--plugin-dir", str(mod), "--allowedTools", "Bash(bullswarm run:*)") as session:
        session.wait(r"(?m)^codex ")
        say(session, HAND_OVER)
        session.wait("Thanks for that.")
        say(session, BY_HAND)
        session.wait(r"(?s)Thanks for that\..*Thanks for that\.")
        say(session, "/bullswarm off")
        session.wait("delegation is off")
    text = heard(machine)
    assert "bullswarm gave this task to another account, and here is its result." in text
    assert ANSWER in text and "worker-output-" in text and "changed files: made.txt" in text
    assert "use SendMessage" not in text and "This is no error" not in text
    assert (machine.project / "made.txt").exists() and not own_subagent_worked(machine)
    # Once in the subagent's result, once after the command: the shell hook for it said nothing.
    assert text.count("read it and check its claims") == 2
    assert {(row["pool"], row["caller"], row["lane"]) for row in machine.runs()} == {
        ("codex", "claude-code", "build"),
        ("codex", "claude-code", "analyze"),
    }
    settings: dict[str, Any] = json.loads((machine.state / "state.json").read_text())
    assert settings["config"]["delegation"] is False


def test_with_no_other_pool_claudes_own_subagent_works_and_the_model_is_told(machine: Machine) -> None:
    mod = furnish(machine)
    assert machine.bullswarm("delegation", "on").returncode == 0
    assert machine.bullswarm("strategy", "set-provider", "codex", "off", "--yes").returncode == 0
    with claude(machine, "--plugin-dir", str(mod)) as session:
        say(session, HAND_OVER)
        session.wait("Thanks for that.")
        machine.model.wait_for_prompt(SUBTASK)
    assert own_subagent_worked(machine)
    assert "bullswarm: this subagent was not delegated (" in heard(machine)
    assert machine.runs() == []
