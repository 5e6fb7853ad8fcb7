"""Real agents call bullswarm's tools, and another real CLI does the work: pools, pick, label and verdict reach the model."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.agents.callers import (
    ANSWER,
    CALLERS,
    CLAUDE_CALLER,
    CODEX_CALLER,
    SECOND_ACCOUNT,
    WORKER_PROMPT,
    Caller,
    asked,
    prepare,
    script,
    session,
    short_id,
)
from tests.agents.conftest import MachineMaker
from tests.agents.scripted_model.request import ModelRequest
from tests.agents.setups import CLAUDE, CODEX, OPENCODE

pytestmark = pytest.mark.real_cli

FIRST_LINE = "Delegate a bounded coding task (review, research, tests, a contained change)"
OWN_POOL = "is the caller's own pool"
TOOLS = {"label", "pools", "route", "run", "runs", "workflow_goal"}


@pytest.fixture(params=CALLERS)
def caller(request: pytest.FixtureRequest) -> Caller:
    """Each client in turn; Codex with a model it doesn't know, one that searches for tools, one that scripts them."""
    return CALLERS[request.param]


def offered(caller: Caller, request: ModelRequest) -> bool:
    """Whether a request puts our tools before the model, in the way of this client."""
    if caller.setup is OPENCODE:
        return {f"bullswarm_{name}" for name in TOOLS} <= set(request.tools)
    text = json.dumps(request.body, ensure_ascii=False)
    if caller.setup is CLAUDE:
        return all(f"mcp__bullswarm__{name}" in text for name in TOOLS)
    if caller is CODEX_CALLER:
        (namespace,) = (tool for tool in request.body["tools"] if tool.get("name") == "mcp__bullswarm")
        return {tool["name"] for tool in namespace["tools"]} == TOOLS
    return f"- mcp__bullswarm: {FIRST_LINE}" in text


def test_a_client_sees_the_tools_at_once_and_gets_pools_pick_label_and_verdict(
    make_machine: MachineMaker, caller: Caller
) -> None:
    machine = make_machine(caller.setup, [])
    prepare(machine, caller)
    task = {"lane": "analyze", "cwd": str(machine.project)}
    worker = caller.worker.name
    own = caller.setup.name
    calls = [
        ("pools", {}),
        ("route", task),
        ("label", {"pool": worker, "label": "helper"}),
        ("run", {**task, "prompt": WORKER_PROMPT, "pool": own}),
        ("run", {**task, "prompt": WORKER_PROMPT, "pool": "helper"}),
    ]
    script(machine, caller, calls)
    pools, route, label, pinned, verdict = session(machine, caller)

    first = asked(machine)[0]
    assert offered(caller, first)
    assert FIRST_LINE in json.dumps(first.body)

    assert all(name in pools for name in (own, worker, SECOND_ACCOUNT))
    assert OWN_POOL in route
    candidates = _candidates(route)
    assert worker in candidates and SECOND_ACCOUNT in candidates and own not in candidates
    assert "helper" in label
    # By the hook where the agent has run it, by the server where it hasn't.
    assert own in pinned and (OWN_POOL in pinned or "is your own" in pinned)
    assert ANSWER in verdict and "worker-output" in verdict

    (row,) = machine.runs()
    assert row["caller"] == own and row["pool"] == worker and row["ok"] is True
    assert row["shortId"] == short_id(verdict)
    (worked,) = (request for request in machine.model.prompts() if WORKER_PROMPT in request.prompt)
    assert {CODEX: "/v1/responses", OPENCODE: "/v1/chat/completions", CLAUDE: "/v1/messages"}[
        caller.worker
    ] == worked.path


def test_the_other_account_of_the_same_agent_does_the_work(make_machine: MachineMaker) -> None:
    caller = replace(CLAUDE_CALLER, worker=CLAUDE)
    machine = make_machine(CLAUDE, [])
    prepare(machine, caller)
    task = {"lane": "analyze", "cwd": str(machine.project), "prompt": WORKER_PROMPT, "use_providers": ["claude-code"]}
    script(machine, caller, [("run", task)])
    (verdict,) = session(machine, caller)
    assert ANSWER in verdict and f'"pool":"{SECOND_ACCOUNT}"' in verdict
    assert list((machine.home / ".claude-second/projects").rglob("*.jsonl")), "the session is in the account's folder"


@pytest.mark.parametrize(("mode", "ran"), [("auto", 4), ("writes", 2)])
def test_codex_exec_lets_tools_run_by_what_their_annotations_say(
    make_machine: MachineMaker, mode: str, ran: int
) -> None:
    # With `writes` Codex would ask before a tool that is not read-only, and in `exec` there is nobody to ask.
    machine = make_machine(CODEX, [])
    prepare(machine, CODEX_CALLER)
    task = {"lane": "analyze", "cwd": str(machine.project), "prompt": WORKER_PROMPT, "pool": "echo"}
    script(machine, CODEX_CALLER, [("pools", {}), ("route", {"lane": "analyze"}), ("label", {}), ("run", task)])
    told = session(machine, CODEX_CALLER, "-c", f'mcp_servers.bullswarm.default_tools_approval_mode="{mode}"')
    assert ["requires approval" not in answer for answer in told] == [True] * ran + [False] * (4 - ran)
    assert len(machine.runs()) == (1 if mode == "auto" else 0)


def test_claude_code_asks_its_person_before_any_tool_that_was_not_allowed(make_machine: MachineMaker) -> None:
    caller = replace(CLAUDE_CALLER, command=("claude", "-p", "--model", "claude-sonnet-5"))
    machine = make_machine(CLAUDE, [])
    prepare(machine, caller)
    task = {"lane": "analyze", "cwd": str(machine.project), "prompt": WORKER_PROMPT, "pool": "echo"}
    script(machine, caller, [("pools", {}), ("run", task)])
    assert all("you haven't granted it yet" in answer for answer in session(machine, caller))
    assert machine.runs() == []


def _candidates(route: str) -> set[str]:
    """The names of the pools that were compared, from either form of the answer."""
    if '"candidates":' in route:
        start = route.index('"candidates":') + len('"candidates":')
        rows, _ = json.JSONDecoder().raw_decode(route[start:])
        return {row["pool"] for row in rows}
    lines = route.splitlines()
    return {line.split()[0] for line in lines[lines.index("candidates:") + 1 : lines.index("left out:")]}
