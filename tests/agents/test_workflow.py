"""A program of twelve steps on the real Claude Code, Codex and OpenCode, and one that a Claude Code session drives over MCP."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.agents.callers import CALLER_PROMPT, CLAUDE_CALLER, SECOND_ACCOUNT, answers, prepare, start
from tests.agents.conftest import MachineMaker, needs
from tests.agents.machine import COMMAND_LIMIT_SEC, Machine
from tests.agents.scripted_model.request import ModelRequest
from tests.agents.scripted_model.scenario import Turn, call_tool, say
from tests.agents.setups import CLAUDE, CODEX, OPENCODE
from tests.agents.workflows import BLIND_WORDS, BY_PATH, GOAL, Workers, four_steps, furnish, twelve_steps

pytestmark = pytest.mark.real_cli

# Its model looks for the tools of a workflow before it calls them; then it is as any Claude Code that delegates.
CALLER = replace(
    CLAUDE_CALLER,
    first=(
        call_tool(
            "ToolSearch", query="select:" + ",".join(f"mcp__bullswarm__{n}" for n in ("workflow_goal", "run", "runs"))
        ),
    ),
)
MOST_TURNS = 24
ONCE = ("survey", "parser", "notes", "types", "audit", "integrate", "review", "publish")
TWICE = ("lexer", "fix", "check", "docs")


def said(done: subprocess.CompletedProcess[str], code: int) -> dict[str, Any]:
    """The one document of a verb that ended with this exit code."""
    assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def waited(machine: Machine, code: int) -> dict[str, Any]:
    """How the run stands once it is over or at rest."""
    return said(machine.bullswarm("workflow", "wait", "last", "--json"), code)


def by_step(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {step["id"]: step for step in document["steps"]}


def test_twelve_steps_on_three_clis_end_well(make_machine: MachineMaker, request: pytest.FixtureRequest) -> None:
    for setup in (CODEX, OPENCODE):
        needs(setup, request.config)
    machine, program = make_machine(CLAUDE, []), twelve_steps()
    furnish(machine, CODEX, OPENCODE)
    workers = Workers(machine, program)
    machine.turns[:] = workers.turns()
    file = machine.root / "program.json"
    file.write_text(json.dumps(program), encoding="utf-8")

    started = said(machine.bullswarm("workflow", "goal", GOAL, "--program", str(file), "--json"), 0)
    assert started["stopsForYou"] == ["gate release · Look at whole.txt.", "loop polish when its 3 rounds are spent"]

    # The limit gives the one step back; whatever doesn't need it goes on, up to the gate.
    rest = waited(machine, 1)
    steps = by_step(rest)
    assert (rest["status"], rest["waitingFor"]) == ("waiting", ["release"]), rest
    assert (steps["docs"]["status"], steps["docs"]["failureKind"]) == ("failed", "quota"), steps["docs"]
    assert workers.limited in ("codex", "opencode") and steps["docs"]["pool"] == workers.limited
    assert steps["docs"]["backAt"] is not None and steps["docs"]["attempts"] == 1
    assert steps["publish"]["status"] == "blocked"

    avoid = str(workers.limited)
    said(machine.bullswarm("workflow", "step", "rerun", "last", "docs", "--avoid", avoid, "--json"), 0)
    rest = waited(machine, 1)
    assert (rest["status"], rest["waitingFor"], by_step(rest)["docs"]["status"]) == (
        "waiting",
        ["release"],
        "succeeded",
    )

    said(machine.bullswarm("workflow", "continue", "last", "release", "--json"), 0)
    result = waited(machine, 0)
    _check_result(machine, workers, result)
    _check_what_workers_were_told(machine, workers, result)


def _check_result(machine: Machine, workers: Workers, result: dict[str, Any]) -> None:
    steps = by_step(result)
    assert (result["status"], result["reason"]) == ("completed", "12 of 12 steps succeeded")
    assert {name: step["attempts"] for name, step in steps.items()} == {
        **dict.fromkeys(ONCE, 1),
        **dict.fromkeys(TWICE, 2),
    }
    assert result["gates"] == [{"id": "release", "status": "passed", "note": "Look at whole.txt.", "how": "continued"}]
    (loop,) = result["loops"]
    assert (loop["outcome"], loop["round"], loop["maxRounds"]) == ("passed", 2, 3)
    assert steps["types"]["answer"] == {"types": ["Field", "Line"]} and steps["types"]["proof"] == "answer checked"
    assert [item["status"] for item in steps["lexer"]["evidenceResults"]] == ["passed"]
    assert steps["lexer"]["proof"] == "proven by command"
    assert steps["review"]["pool"] in ("codex", "opencode"), "another provider than the integrator's"
    assert steps["docs"]["pool"] == next(name for name in ("codex", "opencode") if name != workers.limited)
    texts = {"parser.txt": "The parser.", "lexer.txt": "final", "whole.txt": "mended twice", "docs.txt": "The docs."}
    assert {name: (machine.project / name).read_text().strip() for name in texts} == texts
    assert set(texts) <= set(result["workspace"]["changedFiles"])
    assert steps["parser"]["changedFiles"] == ["parser.txt"] and steps["notes"]["changedFiles"] == []
    (row,) = machine.runs()
    assert row["shortId"] == result["shortId"]


def _check_what_workers_were_told(machine: Machine, workers: Workers, result: dict[str, Any]) -> None:
    steps, asked = by_step(result), workers.asked()
    assert {name: len(requests) for name, requests in asked.items()} == {
        name: step["attempts"] for name, step in steps.items()
    }
    for name, requests in asked.items():
        assert BY_PATH[requests[-1].path].name == steps[name]["pool"]
        assert all(GOAL not in request.prompt and "Time box: " in request.prompt for request in requests)
    told = {name: [request.prompt for request in requests] for name, requests in asked.items()}
    (integrate,), (review,), (publish,) = told["integrate"], told["review"], told["publish"]

    for name in ("parser", "lexer", "notes", "types", "audit"):
        assert f"### {name}\n" in integrate and steps[name]["outFile"] in integrate
    assert str(machine.project / "parser.txt") in integrate and '> {"types":["Field","Line"]}' in integrate
    assert "### survey" not in integrate, "only the steps that it depends on"

    assert steps["integrate"]["outFile"] in review and str(machine.project / "whole.txt") in review
    assert "### notes" not in review and BLIND_WORDS not in review and steps["notes"]["outFile"] not in review
    assert "Some results are withheld from you on purpose" in review

    first, second = told["lexer"]
    assert "## Prior attempt" not in first
    handed = second.partition("## Prior attempt on this step")[2]
    assert "- Pool: claude-code" in handed and "- Failure: failed-evidence — " in handed
    assert "exit 3" in handed and "> lexer.txt is a draft" in handed and "the one automatic retry" in handed
    assert str(machine.project / "lexer.txt") in handed

    first, second = told["fix"]
    assert "## Previous round" not in first and "## Previous round (loop polish, now round 2 of 3)" in second
    assert '> {"ok":false,"remark":"The quotes are wrong."}' in second

    assert all("## Prior attempt" not in prompt for prompt in told["docs"]), "a refusal at the start leaves nothing"
    assert steps["docs"]["outFile"] in publish and str(machine.project / "docs.txt") in publish


def test_a_claude_code_session_drives_a_program_to_its_end(
    make_machine: MachineMaker, request: pytest.FixtureRequest
) -> None:
    """The model knows nothing but what the tools answer: it waits by `last`, and calls options of needsYou as they stand."""
    needs(CODEX, request.config)
    machine, program = make_machine(CLAUDE, []), four_steps()
    prepare(machine, CALLER)
    workers, driver = Workers(machine, program), Driver(machine, program)

    def turn(number: int) -> Callable[[ModelRequest], Turn]:
        return lambda asked: driver.next(number) if CALLER_PROMPT in asked.prompt else workers.choose(asked, number)

    machine.turns[:] = [turn(number) for number in range(MOST_TURNS)]
    session = start(machine, CALLER)
    out, err = session.communicate(timeout=COMMAND_LIMIT_SEC)
    assert session.returncode == 0, out[-3000:] + err[-3000:]

    found = [json.loads(text) for text in answers(machine, CALLER)]
    assert driver.chosen == {("gate", "continue"), ("broken", "accept")}
    parked = next(document for document in found if document["state"] == "waiting")
    assert {need["id"] for need in parked["needsYou"]} == {"gate", "broken"}
    done = found[-1]
    assert (done["state"], done["ok"], done["counts"]) == ("completed", True, {"succeeded": 4})
    steps = by_step(done)
    assert steps["broken"]["accepted"] == Driver.REASON and steps["broken"]["evidence"] == ["failed"]
    assert {step["poolLabel"] for step in done["steps"]} <= {"codex", SECOND_ACCOUNT}, "never the caller's own account"
    (last,) = workers.asked()["last"]
    assert "accepted as it is by the caller's choice" in last.prompt and CALLER_PROMPT not in last.prompt
    (row,) = machine.runs()
    assert (row["caller"], row["kind"]) == ("claude-code", "workflow")


class Driver:
    """The model of the session that drives: it starts the program, waits, and takes one option for each thing that needs it."""

    REASON = "It is good enough for a test."
    WANTED = ("continue", "accept")

    def __init__(self, machine: Machine, program: dict[str, Any]) -> None:
        self.machine, self.program = machine, program
        self.chosen: set[tuple[str, str]] = set()

    def next(self, number: int) -> Turn:
        """Return the next call, by what the last one answered."""
        if number < len(CALLER.first):
            return CALLER.first[number]
        found = [json.loads(text) for text in answers(self.machine, CALLER)]
        if not found:
            given = {"goal": GOAL, "program": self.program, "cwd": str(self.machine.project), "retry_attempts": 0}
            return CALLER.call("workflow_goal", given)
        last = found[-1]
        if last["state"] == "running":
            return CALLER.call("run", {"run_id": "last"})
        for need in last.get("needsYou", ()):
            for name in self.WANTED:
                if name in need["options"] and (need["id"], name) not in self.chosen:
                    self.chosen.add((need["id"], name))
                    return self._as_it_stands(need["options"][name])
        return say("Thanks.")

    def _as_it_stands(self, option: str) -> Turn:
        tool, _, arguments = option.partition(" ")
        given = json.loads(arguments)
        # The one thing that only the caller can say.
        return CALLER.call(tool, {**given, "reason": self.REASON} if "reason" in given else given)
