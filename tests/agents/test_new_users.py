"""The three lines that README gives for each agent, followed as they stand there, and what each client says of itself."""

from __future__ import annotations

import json
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.agents import callers
from tests.agents.callers import (
    ANSWER,
    CLAUDE_CALLER,
    CODEX_CALLER,
    COMMAND_CODE_CALLER,
    GROK_CALLER,
    OPENCODE_CALLER,
    SECOND_ACCOUNT,
    WORKER_PROMPT,
    Caller,
    answers,
    furnish,
    prepare,
    script,
    session,
)
from tests.agents.conftest import MachineMaker
from tests.agents.machine import Machine
from tests.agents.scripted_model.scenario import call_tool
from tests.agents.setups import CLAUDE
from tests.agents.test_integrate import ask, integrate
from tests.core.pools.test_caller import HANDSHAKES

from bullswarm_server.integrate.sources import claude_mod

pytestmark = pytest.mark.real_cli

README = Path(__file__).parents[2] / "README.md"
COMMAND = Path(sys.executable).parent / "bullswarm"
# Nobody sits at these terminals: the two that open a screen are started as README says for that.
WITHOUT_A_PERSON = {"claude": 'claude -p "…" --allowedTools mcp__bullswarm', "codex": 'codex exec "…"'}
CALLERS = {
    "Claude Code": CLAUDE_CALLER,
    "Codex": replace(CODEX_CALLER, worker=CLAUDE),
    "OpenCode": OPENCODE_CALLER,
    "Grok": GROK_CALLER,
}


def lines_of(title: str) -> list[list[str]]:
    """The command lines in README's row of this agent."""
    text = README.read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {title} \| (`bullswarm integrate .*) \|$", text, re.MULTILINE)
    return [shlex.split(command) for command in re.findall(r"`([^`]+)`", row)]


def test_readme_says_how_to_start_the_clients_without_a_person() -> None:
    text = README.read_text(encoding="utf-8")
    assert all(f"`{command}`" in text for command in WITHOUT_A_PERSON.values())
    assert all(len(lines_of(title)) == 3 for title in CALLERS)


@pytest.mark.parametrize("title", CALLERS)
def test_the_three_lines_of_readme_lead_to_a_verdict(
    make_machine: MachineMaker, monkeypatch: pytest.MonkeyPatch, title: str
) -> None:
    caller = CALLERS[title]
    machine = make_machine(caller.setup, [])
    furnish(machine, caller)
    machine.environ["PATH"] = f"{COMMAND.parent}:{machine.environ['PATH']}"
    install, listing, delegate = lines_of(title)

    done = ask(machine, *install, "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    listed = ask(machine, *listing)
    assert listed.returncode == 0, listed.stdout + listed.stderr
    assert str(COMMAND) in listed.stdout and "✗" not in listed.stdout

    prompt = delegate[-1]
    monkeypatch.setattr(callers, "CALLER_PROMPT", prompt)
    pool = SECOND_ACCOUNT if caller.worker is CLAUDE else caller.worker.name
    task = {"lane": "analyze", "cwd": str(machine.project)}
    script(machine, caller, [("route", task), ("run", {**task, "prompt": WORKER_PROMPT, "pool": pool})])
    alone = WITHOUT_A_PERSON.get(delegate[0])
    done = ask(machine, *(shlex.split(alone.replace("…", prompt)) if alone else delegate))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Thanks." in done.stdout
    route, verdict = answers(machine, caller)
    assert pool in route and ANSWER in verdict
    (row,) = machine.runs()
    assert (row["caller"], row["pool"], row["ok"]) == (caller.setup.name, pool, True)


def test_claude_code_with_the_plugin_runs_unattended_by_the_name_that_integrate_says(
    make_machine: MachineMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = make_machine(CLAUDE, [])
    furnish(machine, CLAUDE_CALLER)
    machine.environ["PATH"] = f"{COMMAND.parent}:{machine.environ['PATH']}"
    for words in (("marketplace", "add", claude_mod()), ("install", "bullswarm@bullswarm")):
        done = ask(machine, "claude", "plugin", *words)
        assert done.returncode == 0, done.stdout + done.stderr
    (agent,) = integrate(machine, "install", "--yes", "--agents", "claude")["agents"]
    prompt = "Delegate this: explain the parser"
    monkeypatch.setattr(callers, "CALLER_PROMPT", prompt)
    server = "mcp__plugin_bullswarm_bullswarm"
    caller = replace(
        CLAUDE_CALLER,
        call=lambda tool, arguments: call_tool(f"{server}__{tool}", **arguments),
        first=(call_tool("ToolSearch", query=f"select:{server}__pools"),),
    )
    script(machine, caller, [("pools", {})])
    done = ask(machine, *shlex.split(agent["hint"].partition(": ")[2].replace("…", prompt)))
    assert done.returncode == 0, done.stdout + done.stderr
    (pools,) = answers(machine, caller)
    assert SECOND_ACCOUNT in pools


@pytest.mark.parametrize(
    "caller", [CLAUDE_CALLER, CODEX_CALLER, OPENCODE_CALLER, GROK_CALLER, COMMAND_CODE_CALLER], ids=lambda c: c.name
)
def test_each_client_still_introduces_itself_as_it_was_recorded(make_machine: MachineMaker, caller: Caller) -> None:
    machine = make_machine(caller.setup, [])
    said = overheard(machine, caller)
    script(machine, caller, [("pools", {})])
    (pools,) = session(machine, caller)
    assert caller.setup.name in pools
    messages = [json.loads(line) for line in said.read_text(encoding="utf-8").splitlines()]
    methods = {message.get("method") for message in messages}
    assert {"tools/list", "tools/call"} < methods
    # The newer protocol has no handshake: every request says whose it is.
    assert ("initialize" in methods) is not (caller is CLAUDE_CALLER)
    recorded = [client for client, _, provider in HANDSHAKES if provider == caller.setup.name]
    introduced = [client for client in map(client_of, messages) if client is not None]
    assert introduced
    for client in introduced:
        assert any(client["name"] == known["name"] and client["version"] == known["version"] for known in recorded)


def client_of(message: dict[str, Any]) -> dict[str, str] | None:
    """What a message says of the client, in either era of the protocol."""
    params = message.get("params", {})
    client: dict[str, str] | None = params.get("clientInfo")
    return client or params.get("_meta", {}).get("io.modelcontextprotocol/clientInfo")


def overheard(machine: Machine, caller: Caller) -> Path:
    """Put a listener between the client and the server; return where it writes what the client says, a message a line."""
    said = machine.root / "said.jsonl"
    listener = machine.root / "listener" / "bullswarm"
    listener.parent.mkdir()
    listener.write_text(f"#!/bin/sh\ntee -a '{said}' | '{COMMAND}' \"$@\"\n", encoding="utf-8")
    listener.chmod(0o755)
    if caller is COMMAND_CODE_CALLER:
        furnish(machine, caller)
        settings = machine.home / ".commandcode" / "mcp.json"
        servers = {"mcpServers": {"bullswarm": {"command": str(listener), "args": ["mcp"]}}}
        settings.write_text(json.dumps(servers), encoding="utf-8")
        return said
    prepare(machine, caller)
    changed = 0
    for file in machine.home.rglob("*"):
        if file.name in (".claude.json", "config.toml", "opencode.json"):
            text = file.read_text(encoding="utf-8")
            changed += f'"{COMMAND}"' in text
            file.write_text(text.replace(f'"{COMMAND}"', f'"{listener}"'), encoding="utf-8")
    assert changed == 1
    return said
