"""The Claude Mod and the tools of the real Claude Code: a subagent's task on a real Codex, and the verdict after a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.machine import Machine
from tests.agents.mod_sessions import claude, furnish, say, script
from tests.agents.scripted_model.request import ModelRequest
from tests.agents.scripted_model.scenario import Answer, Turn, call_tool
from tests.agents.scripted_model.scenario import say as answer
from tests.agents.setups import CLAUDE, CODEX

pytestmark = pytest.mark.real_cli

SUBTASK = "SUBTASK: write down how the parser works."
ANSWER = "The parser splits each line at its commas, then takes the quotes off every field."
OWN_WORDS = "Claude's own subagent says this."
RUN = "bullswarm run --lane analyze 'SUBTASK by hand: explain it.'"
HAND_OVER, BY_HAND, BY_TOOL = "Hand it over.", "Run it by hand.", "Run it by the tool."
RUN_TOOL = "mcp__plugin_bullswarm_bullswarm__run"


def agent_call() -> Answer:
    """As models call it: without a word on the background."""
    return call_tool("Agent", description="explain it", prompt=SUBTASK, subagent_type="general-purpose")


class Model:
    """Codex and a subagent of Claude Code's own answer the task; the session's model calls the tool that it was told to."""

    def __init__(self) -> None:
        self.machine: Machine | None = None
        self.release = Event()
        self.release.set()

    def __call__(self, request: ModelRequest) -> Turn:
        if request.path == "/v1/responses":
            assert self.release.wait(180)
            write = request.turn == 0 and SUBTASK in request.prompt
            return CODEX.write_file("made.txt", "made") if write else answer(ANSWER)
        messages = request.body["messages"]
        if SUBTASK in json.dumps(messages[0]) and HAND_OVER not in json.dumps(messages):
            return answer(OWN_WORDS)
        said = max((place for place, message in enumerate(messages) if message["role"] == "assistant"), default=-1) + 1
        return self.reply(json.dumps(messages[said:]))

    def reply(self, new: str) -> Turn:
        if "tool_result" in new:
            return answer("Thanks for that.")
        if HAND_OVER in new:
            return agent_call()
        if BY_HAND in new:
            return CLAUDE.run_shell(RUN)
        if BY_TOOL in new:
            assert self.machine is not None
            return call_tool(RUN_TOOL, lane="analyze", prompt="Explain it.", cwd=str(self.machine.project))
        return answer("Thanks for that.")


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    yield made
    made.release.set()


@pytest.fixture
def machine(make_machine: MachineMaker, model: Model) -> Machine:
    made = make_machine(CLAUDE, [])
    made.turns[:] = [model] * 12
    model.machine = made
    return made


def heard(machine: Machine) -> str:
    """The whole conversation of the session as its model got it last; side requests hold less of it."""
    asked = [
        json.dumps(one.body["messages"], ensure_ascii=False)
        for one in machine.model.prompts()
        if "messages" in one.body
    ]
    return max((body for body in asked if HAND_OVER in body), key=len)


def own_subagent_worked(machine: Machine) -> bool:
    return any(
        request.path == "/v1/messages" and SUBTASK in json.dumps(request.body["messages"][0])
        for request in machine.model.prompts()
    )


def test_a_subagents_task_runs_on_codex_and_the_hooks_say_nothing_twice(machine: Machine) -> None:
    mod = furnish(machine)
    assert machine.bullswarm("delegation", "on").returncode == 0
    with claude(machine, "--plugin-dir", str(mod), "--allowedTools", "Bash(bullswarm run:*)", RUN_TOOL) as session:
        session.wait(r"(?m)^codex ")
        say(session, HAND_OVER)
        session.wait("Thanks for that.")
        say(session, BY_HAND)
        session.wait(r"(?s)Thanks for that\..*Thanks for that\.")
        say(session, BY_TOOL)
        session.wait(r"(?s)(Thanks for that\..*){3}")
        say(session, "/bullswarm off")
        session.wait("delegation is off")
    text = heard(machine)
    given = "bullswarm gave this task to another account, and here is its result."
    assert given in text, text[text.find("tool_use_id") :][:3000]
    assert ANSWER in text and "worker-output-" in text and "changed files: made.txt" in text
    assert "use SendMessage" not in text and "This is no error" not in text
    assert (machine.project / "made.txt").exists() and not own_subagent_worked(machine)
    # In the subagent's result, after the command and after the tool, once each: the shell hooks for them said nothing.
    assert text.count("read it and check its claims") == 3
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


HANGING = """case "$1 $2" in
"mod-state "*) while kill -0 $PPID 2>/dev/null; do sleep 0.2; done; exit 1;;
esac"""


def test_a_bullswarm_that_hangs_leaves_the_task_to_claudes_own_subagent(machine: Machine) -> None:
    """Nobody knows whether delegation is on then: nothing is started, and the model is told within seconds."""
    mod = furnish(machine)
    command = machine.root / "bin" / "bullswarm"
    good = command.read_text(encoding="utf-8").split("\n", 1)[1]
    script(command, f"{HANGING}\n{good}")
    with claude(machine, "--plugin-dir", str(mod)) as session:
        say(session, HAND_OVER)
        # Far less than the minute for which a call of bullswarm may last.
        session.wait("Thanks for that.", seconds=45)
        assert machine.model.wait_for_prompt(SUBTASK)
    assert own_subagent_worked(machine)
    assert "bullswarm: this subagent was not delegated (bullswarm did not answer within 5 s" in heard(machine)
    assert machine.runs() == []


def test_work_that_takes_too_long_is_told_by_its_run_and_goes_on(machine: Machine, model: Model) -> None:
    mod = furnish(machine)
    assert machine.bullswarm("delegation", "on").returncode == 0
    machine.environ["BULLSWARM_DELEGATION_WAIT_SEC"] = "2"
    model.release.clear()
    with claude(machine, "--plugin-dir", str(mod)) as session:
        say(session, HAND_OVER)
        session.wait("Thanks for that.")
        (run,) = machine.runs()
        assert f"it is still at work (run {run['shortId']}" in heard(machine)
        assert not own_subagent_worked(machine)
        model.release.set()
        assert machine.bullswarm("runs", "wait", run["shortId"]).returncode == 0
