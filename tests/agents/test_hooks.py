"""What the hooks do in the real agents: seen in the model's next request, or in what really ran."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.machine import COMMAND_LIMIT_SEC, Machine
from tests.agents.scripted_model.request import ModelRequest
from tests.agents.scripted_model.scenario import Answer, call_tool, say
from tests.agents.setups import CLAUDE, CODEX, OPENCODE, Setup
from tests.hooks.rendered import hooks_of, plugin_of
from tests.server.site import ANSWER, CONNECTOR

from bullswarm_core.store.home import write_json

pytestmark = pytest.mark.real_cli

CALLERS = {setup.name: setup for setup in (CLAUDE, CODEX, OPENCODE)}
# A worker that answers, and writes a file where it is asked to do something.
TALKER = f"""p=$(cat); case "$p" in *SUBTASK*) echo made > made.txt;; esac
echo '{ANSWER}'"""
OWN_WORDS = "The agent's own subagent says this."
NO_ERROR = "This is no error: bullswarm gave the subagent's task to another account"


@pytest.fixture(params=sorted(CALLERS))
def caller(request: pytest.FixtureRequest) -> Setup:
    """Each agent that has hooks, in turn."""
    return CALLERS[request.param]


def subagent(setup: Setup) -> Answer:
    """The call with which this agent starts a general-purpose subagent."""
    if setup is CODEX:
        return call_tool("multi_agent_v1.spawn_agent", message="SUBTASK: do it")
    if setup is OPENCODE:
        return call_tool("task", description="do it", prompt="SUBTASK: do it", subagent_type="general")
    return call_tool(
        "Agent", description="do it", prompt="SUBTASK: do it", subagent_type="general-purpose", run_in_background=False
    )


def prepare(machine: Machine, *, worker: bool = True) -> None:
    """Install the commands, one pool beside the caller's own, and the hooks where this agent looks for them."""
    commands = machine.root / "bin"
    python = f"exec {sys.executable} -c"
    note = f'echo "$1 caller=$BULLSWARM_CALLER" >> {machine.root}/calls'
    main = "import sys; from bullswarm_server.cli.main import main; sys.exit(main())"
    hook = "import sys; from bullswarm_hooks.main import main; sys.exit(main())"
    _script(commands / "bullswarm", f"{note}\n{python} '{main}' \"$@\"")
    _script(commands / "bullswarm-hook", f"{python} '{hook}' \"$@\"")
    if worker:
        _script(commands / "talker-cli", TALKER)
        write_json(
            machine.state / "providers/talker/connector.json", {**CONNECTOR, "name": "talker", "binary": "talker-cli"}
        )
    # Codex starts a login shell, and the system's profile sets a PATH of its own.
    _write(machine.home / ".bash_profile", f"export PATH='{machine.environ['PATH']}'\n")
    command = str(commands / "bullswarm-hook")
    if machine.setup is OPENCODE:
        _write(machine.home / ".config/opencode/plugin/bullswarm.js", plugin_of("opencode", command))
    elif machine.setup is CODEX:
        _write(machine.home / ".codex/hooks.json", json.dumps({"hooks": hooks_of("codex", command)}))
    else:
        _write(machine.root / "settings.json", json.dumps({"hooks": hooks_of("claude", command)}))


def session(
    machine: Machine, *options: str, trust: Sequence[str] = ("--dangerously-bypass-hook-trust",), **environ: str
) -> None:
    """Let the agent work through the script, in a session of its own."""
    words = {
        "claude-code": ["claude", "-p", "Go.", "--settings", f"{machine.root}/settings.json", *options],
        "codex": ["codex", "exec", *trust, "-s", "danger-full-access", *options, "Go."],
        "opencode": ["opencode", "run", "--title", "T", *options, "Go."],
    }[machine.setup.name]
    done = subprocess.run(
        words,
        cwd=machine.project,
        env={**machine.environ, "PWD": str(machine.project), **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_SEC,
        check=False,
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])


def requests(machine: Machine) -> list[str]:
    """The bodies of the main conversation's requests, as text, in order."""
    return [json.dumps(request.body, ensure_ascii=False) for request in machine.model.prompts() if _main(request)]


def _main(request: ModelRequest) -> bool:
    return "Go." in request.prompt


def test_a_session_is_told_a_pin_refused_the_caller_handed_over_the_verdict_told_and_a_subagent_delegated(
    make_machine: MachineMaker, caller: Setup
) -> None:
    machine = make_machine(caller, [])
    machine.turns[:] = [
        caller.run_shell(f"bullswarm run --lane analyze --pool {caller.name} 'Explain it'"),
        caller.run_shell("bullswarm run --lane analyze 'Explain it'"),
        subagent(caller),
        say("Thanks."),
    ]
    prepare(machine)
    assert machine.bullswarm("delegation", "on").returncode == 0
    # A permission rule of the person's still matches: in Claude Code's own shell no command needs to be changed.
    session(machine, *(["--allowedTools", "Bash(bullswarm run:*)"] if caller is CLAUDE else []))
    first, refused, told, delegated = requests(machine)
    assert "pools by surplus" in first and "talker: no meter" in first
    assert f"bullswarm: {caller.name} is the caller's own pool" in refused
    assert " on talker is ok" in told and "read it and check its claims" in told
    assert NO_ERROR in delegated and delegated.count(ANSWER) > told.count(ANSWER)
    assert (machine.project / "made.txt").exists()
    assert _calls(machine) == ["run caller=" if caller is CLAUDE else f"run caller={caller.name}"]
    assert [row["caller"] for row in machine.runs()] == [caller.name, caller.name]
    remembered = [json.loads(file.read_text()) for file in (machine.state / "cache/callers").iterdir()]
    assert [(entry["provider"], entry["pool"]) for entry in remembered] == [(caller.name, caller.name)]


def test_without_delegation_the_agents_own_subagent_works(make_machine: MachineMaker, caller: Setup) -> None:
    machine = make_machine(caller, [])
    machine.turns[:] = [_subagent_or_its_work(caller), _thanks_after_the_subtask(machine)]
    prepare(machine)
    assert machine.bullswarm("pools").returncode == 0
    session(machine)
    assert any("SUBTASK" in request.prompt for request in machine.model.prompts())
    assert machine.runs() == [] and not any(NO_ERROR in body for body in requests(machine))


def test_with_no_other_pool_the_agents_own_subagent_works_and_the_model_is_told(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [])
    machine.turns[:] = [_subagent_or_its_work(CLAUDE), say("Thanks.")]
    prepare(machine, worker=False)
    assert machine.bullswarm("delegation", "on").returncode == 0
    session(machine)
    assert any("SUBTASK" in request.prompt for request in machine.model.prompts())
    assert "bullswarm: this subagent was not delegated (" in requests(machine)[-1]
    assert machine.runs() == []


def test_claude_inside_another_agent_tells_its_commands_who_calls(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [CLAUDE.run_shell("bullswarm run --lane analyze 'Explain it'"), say("Thanks.")])
    prepare(machine)
    assert machine.bullswarm("pools").returncode == 0
    session(machine, "--dangerously-skip-permissions", CODEX_THREAD_ID="outer")
    assert _calls(machine) == ["run caller=claude-code"]
    assert [row["caller"] for row in machine.runs()] == ["claude-code"]


def test_a_bad_verdict_is_told_after_the_command_that_it_made_fail(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [CLAUDE.run_shell("bullswarm run --lane build 'Explain it'"), say("Thanks.")])
    prepare(machine)
    assert machine.bullswarm("pools").returncode == 0
    session(machine, "--allowedTools", "Bash(bullswarm run:*)")
    assert " on talker FAILED" in requests(machine)[-1] and "kind: not-produced" in requests(machine)[-1]


def test_a_changed_command_still_needs_the_persons_permission(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [CLAUDE.run_shell("bullswarm run --lane analyze 'Explain it'"), say("Thanks.")])
    prepare(machine)
    assert machine.bullswarm("pools").returncode == 0
    session(machine, CODEX_THREAD_ID="outer")
    assert _calls(machine) == [] and "requires approval" in requests(machine)[-1]


RUN_TOOLS = {"claude-code": "mcp__bullswarm__run", "codex": "mcp__bullswarm.run", "opencode": "bullswarm_run"}


def test_by_mcp_a_pin_is_refused_and_the_verdict_of_a_run_is_told(make_machine: MachineMaker, caller: Setup) -> None:
    machine = make_machine(caller, [])
    task = {"lane": "analyze", "prompt": "Explain it", "cwd": str(machine.project)}
    run = RUN_TOOLS[caller.name]
    machine.turns[:] = [call_tool(run, **task, pool=caller.name), call_tool(run, **task), say("Thanks.")]
    prepare(machine)
    assert machine.bullswarm("pools").returncode == 0
    session(machine, *_with_server(machine))
    _, refused, told = requests(machine)
    assert f"bullswarm: {caller.name} is the caller's own pool (this session runs on it)" in refused
    assert " on talker is ok" in told and "read it and check its claims" in told
    assert [row["caller"] for row in machine.runs()] == [caller.name]


def _with_server(machine: Machine) -> list[str]:
    """Give the agent our MCP server; return the options that this takes."""
    command = str(machine.root / "bin/bullswarm")
    if machine.setup is CODEX:
        home = f'env = {{BULLSWARM_HOME = "{machine.state}", PYTHONPATH = "{machine.environ["PYTHONPATH"]}"}}'
        server = f'\n[mcp_servers.bullswarm]\ncommand = "{command}"\nargs = ["mcp"]\nrequired = true\n{home}\n'
        config = machine.home / ".codex/config.toml"
        config.write_text(config.read_text() + server)
        return []
    if machine.setup is OPENCODE:
        file = machine.home / ".config/opencode/opencode.json"
        server_entry = {"bullswarm": {"type": "local", "command": [command, "mcp"], "enabled": True}}
        file.write_text(json.dumps({**json.loads(file.read_text()), "mcp": server_entry}))
        return []
    write_json(machine.root / "mcp.json", {"mcpServers": {"bullswarm": {"command": command, "args": ["mcp"]}}})
    return ["--mcp-config", f"{machine.root}/mcp.json", "--allowedTools", "mcp__bullswarm__run"]


def test_codex_runs_the_hooks_that_were_trusted_by_hash(make_machine: MachineMaker) -> None:
    machine = make_machine(CODEX, [say("Thanks.")])
    prepare(machine)
    assert machine.bullswarm("pools").returncode == 0
    session(machine, trust=())
    assert "pools by surplus" not in requests(machine)[-1]
    config = machine.home / ".codex/config.toml"
    trusted = [
        f'[hooks.state."{entry["key"]}"]\ntrusted_hash = "{entry["currentHash"]}"\n' for entry in _listed(machine)
    ]
    assert len(trusted) == 4
    config.write_text(config.read_text() + "\n" + "\n".join(trusted))
    session(machine, trust=())
    assert "pools by surplus" in requests(machine)[-1]


def _listed(machine: Machine) -> list[dict[str, Any]]:
    """Ask Codex's app server which hooks it sees, with the hash of each."""
    client = {"clientInfo": {"name": "test", "title": None, "version": "0"}}
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(machine.project)]}},
    ]
    with subprocess.Popen(
        ["codex", "app-server"], cwd=machine.project, env=machine.environ, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as server:  # fmt: skip
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in asked))
        server.stdin.flush()
        answer = next(message for line in server.stdout if (message := json.loads(line)).get("id") == 2)
        server.stdin.close()
        server.terminate()
    hooks: list[dict[str, Any]] = answer["result"]["data"][0]["hooks"]
    return hooks


def _subagent_or_its_work(setup: Setup) -> Any:
    return lambda request: say(OWN_WORDS) if "SUBTASK" in request.prompt else subagent(setup)


def _thanks_after_the_subtask(machine: Machine) -> Any:
    """Codex's subagent works beside the conversation, and `codex exec` ends with the conversation, asked or not yet."""

    def answer(_: Any) -> Answer:
        machine.model.wait_for_prompt("SUBTASK")
        return say("Thanks.")

    return answer


def _calls(machine: Machine) -> list[str]:
    file = machine.root / "calls"
    return file.read_text().splitlines() if file.exists() else []


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
