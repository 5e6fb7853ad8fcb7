"""Codex with bullswarm as one plug-in: by `integrate`, and by Codex's own commands from the packaged folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.agents.callers import (
    ANSWER,
    CODEX_CALLER,
    CODEX_SCRIPTING,
    SECOND_ACCOUNT,
    WORKER_PROMPT,
    Caller,
    asked,
    prepare,
    script,
    session,
)
from tests.agents.conftest import MachineMaker
from tests.agents.machine import Machine
from tests.agents.scripted_model.scenario import say
from tests.agents.setups import CLAUDE, CODEX
from tests.agents.test_integrate import AWARENESS, COMMAND, SKILL, ask, codex_hooks, integrate
from tests.server.site import tree

from bullswarm_server.integrate.sources import claude_mod

pytestmark = pytest.mark.real_cli

PLUGIN = "bullswarm@bullswarm"


def codex(machine: Machine, *words: str) -> str:
    done = ask(machine, "codex", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def document(machine: Machine, *words: str) -> Any:
    return json.loads(codex(machine, *words, "--json"))


def add_packaged(machine: Machine) -> None:
    """What README says for those who want Codex itself to add the plug-in; `bullswarm` is found by PATH then."""
    machine.environ["PATH"] = f"{COMMAND.parent}:{machine.environ['PATH']}"
    codex(machine, "plugin", "marketplace", "add", claude_mod())
    codex(machine, "plugin", "add", PLUGIN)


def servers(machine: Machine) -> list[tuple[str, str]]:
    return [(server["name"], server["transport"]["command"]) for server in document(machine, "mcp", "list")]


def ours_of(home: Path) -> dict[str, tuple[int, bytes]]:
    """The person's settings and the plug-ins, without the state that Codex keeps beside them."""
    kept = ("config.toml", "hooks.json", "AGENTS.md", "SKILL.md", "mcp.json", "plugin.json")
    return {name: found for name, found in tree(home).items() if name.endswith(kept) and "/skills/.system" not in name}


def call_route_and_run(machine: Machine, caller: Caller, *options: str) -> Sequence[str]:
    task = {"lane": "analyze", "cwd": str(machine.project)}
    script(machine, caller, [("route", task), ("run", {**task, "prompt": WORKER_PROMPT, "pool": SECOND_ACCOUNT})])
    return session(machine, caller, *options)


def test_integrate_leaves_codex_as_its_own_commands_do(make_machine: MachineMaker) -> None:
    machine = make_machine(CODEX, [])
    before = ours_of(machine.home)
    integrate(machine, "install", "--yes", "--agents", "codex", "--codex-plugin")
    by_integrate = (machine.home / ".codex/config.toml").read_text(encoding="utf-8")
    (listed,) = document(machine, "plugin", "list")["installed"]
    assert (listed["pluginId"], listed["enabled"], listed["version"]) == (PLUGIN, True, "local")
    assert servers(machine) == [("bullswarm", str(COMMAND))]
    integrate(machine, "status", "--agents", "codex")
    integrate(machine, "remove", "--yes", "--agents", "codex")
    assert ours_of(machine.home) == before
    assert document(machine, "plugin", "list")["installed"] == []
    assert servers(machine) == []

    add_packaged(machine)
    by_codex = (machine.home / ".codex/config.toml").read_text(encoding="utf-8")
    assert by_codex == by_integrate
    assert servers(machine) == [("bullswarm", "bullswarm")]
    # The marketplace's folder is where Codex finds it again after `integrate` has set it up.
    integrate(machine, "install", "--yes", "--agents", "codex", "--codex-plugin")
    codex(machine, "plugin", "remove", PLUGIN)
    codex(machine, "plugin", "add", PLUGIN)
    assert servers(machine) == [("bullswarm", "bullswarm")]


@pytest.mark.parametrize("caller", [CODEX_CALLER, CODEX_SCRIPTING], ids=["tools", "code-mode"])
def test_the_model_is_offered_the_plugins_tools_and_its_calls_run(make_machine: MachineMaker, caller: Caller) -> None:
    caller = replace(caller, worker=CLAUDE)
    machine = make_machine(CODEX, [])
    prepare(machine, caller)
    integrate(machine, "install", "--yes", "--agents", "codex", "--codex-plugin", "--trust-hooks")
    # The servers that a plug-in brings have no table in the settings that an option could add to.
    command = tuple(word for word in caller.command if word != "-c" and "mcp_servers.bullswarm.env" not in word)
    route, verdict = call_route_and_run(machine, replace(caller, command=command))
    assert SECOND_ACCOUNT in route
    assert ANSWER in verdict
    heard = json.dumps(asked(machine)[0].body).replace(str(machine.root), "")
    assert "mcp__bullswarm" in heard and AWARENESS in heard
    assert heard.count(SKILL) == 1
    (row,) = machine.runs()
    assert (row["caller"], row["pool"], row["ok"]) == ("codex", SECOND_ACCOUNT, True)


def test_the_tools_run_in_exec_by_what_the_plugin_itself_approves(make_machine: MachineMaker) -> None:
    caller = replace(CODEX_CALLER, worker=CLAUDE, command=("codex", "exec", "--json", "-"))
    machine = make_machine(CODEX, [])
    prepare(machine, caller)
    integrate(machine, "install", "--yes", "--agents", "codex", "--codex-plugin")
    (servers_file,) = (machine.home / ".codex/plugins/cache").rglob("mcp.json")
    text = servers_file.read_text(encoding="utf-8")
    servers_file.write_text(text.replace('"approve"', '"prompt"'), encoding="utf-8")
    assert all("requires approval" in answer for answer in call_route_and_run(machine, caller))
    servers_file.write_text(text, encoding="utf-8")
    assert not any("requires approval" in answer for answer in call_route_and_run(machine, caller))


def test_codex_trusts_the_plugins_hooks_when_it_was_told_to_and_not_before(make_machine: MachineMaker) -> None:
    machine = make_machine(CODEX, [])
    for words, status in (((), {"untrusted"}), (("--trust-hooks",), {"trusted"})):
        integrate(machine, "install", "--yes", "--agents", "codex", "--codex-plugin", *words)
        hooks = codex_hooks(machine)
        assert {hook["trustStatus"] for hook in hooks} == status
        assert len(hooks) == 4
        assert all(hook["pluginId"] == PLUGIN and hook["command"].startswith(f"{COMMAND}-hook ") for hook in hooks)


def test_the_plugin_and_the_settings_are_never_there_at_once(make_machine: MachineMaker) -> None:
    machine = make_machine(CODEX, [say("Hello there.")])
    integrate(machine, "install", "--yes", "--agents", "codex", "--trust-hooks")
    plain = ours_of(machine.home)
    add_packaged(machine)
    assert machine.bullswarm("integrate", "status", "--agents", "codex").returncode == 1
    integrate(machine, "install", "--yes", "--agents", "codex", "--trust-hooks")
    integrate(machine, "status", "--agents", "codex")
    assert servers(machine) == [("bullswarm", "bullswarm")]
    hooks = codex_hooks(machine)
    assert {(hook["pluginId"], hook["trustStatus"]) for hook in hooks} == {(PLUGIN, "trusted")}
    integrate(machine, "install", "--yes", "--agents", "codex", "--no-codex-plugin", "--trust-hooks")
    assert servers(machine) == [("bullswarm", str(COMMAND))]
    # Codex itself takes the settings from everybody else's eyes when it writes them.
    texts = ({name: text for name, (_, text) in found.items()} for found in (ours_of(machine.home), plain))
    assert next(texts) == next(texts)
