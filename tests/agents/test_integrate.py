"""After `bullswarm integrate install` the real clients start, connect to the server, and put it before their model."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.machine import COMMAND_LIMIT_SEC, Machine
from tests.agents.scripted_model.scenario import say
from tests.agents.setups import CLAUDE, CODEX, GROK, OPENCODE, Setup
from tests.server.site import tree

from bullswarm_server.integrate.sources import claude_mod

pytestmark = pytest.mark.real_cli

COMMAND = Path(sys.executable).parent / "bullswarm"
AWARENESS = "Delegating with bullswarm"
SKILL = "Hand a bounded coding task to another agent account"


@dataclass(frozen=True, slots=True)
class Client:
    """One agent as a caller: its name for integrate, how it lists servers, how it asks its model one question."""

    setup: Setup
    name: str
    listing: tuple[str, ...]
    connected: Callable[[str], bool]
    question: tuple[str, ...]
    tool: str


def _codex_lists(text: str) -> bool:
    servers = {server["name"]: server for server in json.loads(text)}
    found = servers["bullswarm"]
    return bool(found["enabled"] and found["transport"]["command"] == str(COMMAND))


CLIENTS = (
    Client(
        CLAUDE, "claude", ("claude", "mcp", "list"), lambda text: f"bullswarm: {COMMAND} mcp - ✔ Connected" in text,
        ("claude", "-p", "--model", "claude-sonnet-5"), "mcp__bullswarm__run",
    ),
    Client(
        CODEX, "codex", ("codex", "mcp", "list", "--json"), _codex_lists,
        ("codex", "exec", "--json", "-"), "mcp__bullswarm",
    ),
    Client(
        OPENCODE, "opencode", ("opencode", "mcp", "list"), lambda text: "✓ bullswarm" in text and "connected" in text,
        ("opencode", "run", "--format", "json", "--title", "t", "-m", "stub/stub-model"), "bullswarm_run",
    ),
    # Grok tells its model of no server: it has to search for tools.
    Client(
        GROK, "grok", ("grok", "mcp", "doctor"), lambda text: "bullswarm" in text and "✗" not in text,
        ("grok", "-m", "stub-model", "--output-format", "json", "-p", "Say hello."), "search_tool",
    ),
)  # fmt: skip


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    """Each client in turn."""
    found: Client = request.param
    return found


def ask(machine: Machine, *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words, cwd=machine.project, env=machine.environ, input=text, capture_output=True, text=True,
        timeout=COMMAND_LIMIT_SEC, check=False,
    )  # fmt: skip


def model_hears(machine: Machine, client: Client) -> str:
    """Start a session of the client with one question; return the whole first request that its model got."""
    earlier = len(machine.model.prompts())
    done = ask(machine, *client.question, text="" if client.name == "grok" else "Say hello.")
    assert done.returncode == 0, done.stdout + done.stderr
    # The test's own folders have bullswarm in their names.
    text = json.dumps(machine.model.prompts()[earlier].body)
    return text.replace(str(machine.root), "")


def integrate(machine: Machine, *words: str) -> dict[str, Any]:
    done = machine.bullswarm("integrate", *words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def settings_of(home: Path) -> dict[str, tuple[int, bytes]]:
    """The files that people write: not the state that the agents keep beside them, and rewrite when they like."""
    names = ("config.toml", "hooks.json", "settings.json", "opencode.json", "CLAUDE.md", "AGENTS.md", "SKILL.md")
    return {name: found for name, found in tree(home).items() if name.endswith(names) and "/skills/.system" not in name}


def test_the_client_starts_with_it_and_its_model_learns_of_it(client: Client, make_machine: MachineMaker) -> None:
    machine = make_machine(client.setup, [say("Hello there.")])
    # Some clients write into their own settings when they first run; and their model knows nothing of bullswarm yet.
    assert "bullswarm" not in model_hears(machine, client)
    before = settings_of(machine.home)
    document = integrate(machine, "install", "--yes", "--agents", client.name)
    assert document["command"] == str(COMMAND)
    integrate(machine, "status", "--agents", client.name)

    listed = ask(machine, *client.listing)
    assert client.connected(listed.stdout), listed.stdout + listed.stderr

    heard = model_hears(machine, client)
    assert AWARENESS in heard
    assert SKILL in heard
    assert client.tool in heard

    # The client has been at its own files meanwhile.
    integrate(machine, "status", "--agents", client.name)
    again = integrate(machine, "install", "--yes", "--agents", client.name)
    assert again["agents"][0]["changes"] == []
    integrate(machine, "remove", "--yes", "--agents", client.name)
    assert settings_of(machine.home) == before
    assert "bullswarm" not in ask(machine, *client.listing).stdout


@pytest.mark.parametrize("named", [True, False], ids=["CODEX_HOME", "the usual folder"])
def test_codex_trusts_the_hooks_when_it_was_told_to_and_not_before(make_machine: MachineMaker, named: bool) -> None:
    machine = make_machine(CODEX, [])
    # Behind a link, as people keep their dotfiles: Codex names the hooks by the one path or by the other.
    kept = machine.home / "dotfiles"
    (machine.home / ".codex").rename(kept)
    (machine.home / ".codex").symlink_to(kept)
    if not named:
        del machine.environ["CODEX_HOME"]
    integrate(machine, "install", "--yes", "--agents", "codex")
    assert {hook["trustStatus"] for hook in codex_hooks(machine)} == {"untrusted"}
    integrate(machine, "install", "--yes", "--agents", "codex", "--trust-hooks")
    hooks = codex_hooks(machine)
    assert {hook["trustStatus"] for hook in hooks} == {"trusted"}
    assert {hook["eventName"] for hook in hooks} == {"sessionStart", "preToolUse", "postToolUse"}
    assert all(hook["command"].startswith(f"{COMMAND}-hook codex ") for hook in hooks)
    assert all(0 < hook["timeoutSec"] <= 600 for hook in hooks)


def test_claude_code_as_a_plugin_takes_the_other_form_out(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [say("Hello there.")])
    machine.environ["PATH"] = f"{COMMAND.parent}:{machine.environ['PATH']}"
    integrate(machine, "install", "--yes", "--agents", "claude")
    for words in (("marketplace", "add", claude_mod()), ("install", "bullswarm@bullswarm")):
        done = ask(machine, "claude", "plugin", *words)
        assert done.returncode == 0, done.stdout + done.stderr
    assert machine.bullswarm("integrate", "status", "--agents", "claude").returncode == 1
    integrate(machine, "install", "--yes", "--agents", "claude")
    listed = ask(machine, "claude", "mcp", "list").stdout
    assert "plugin:bullswarm:bullswarm: bullswarm mcp - ✔ Connected" in listed
    assert listed.count("bullswarm mcp") == 1
    assert "hooks" not in json.loads((machine.home / ".claude" / "settings.json").read_text(encoding="utf-8"))

    heard = model_hears(machine, CLIENTS[0])
    assert AWARENESS in heard
    assert heard.count(SKILL) == 1
    assert "mcp__plugin_bullswarm_bullswarm__run" in heard


def test_the_plugin_is_valid_for_claude_code(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [])
    done = ask(machine, "claude", "plugin", "validate", claude_mod())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Validation passed" in done.stdout


def codex_hooks(machine: Machine) -> list[dict[str, Any]]:
    """The hooks as Codex itself sees them, with its trust in each."""
    with app_server(machine) as asked:
        asked("initialize", {"clientInfo": {"name": "test", "version": "1"}})
        (found,) = asked("hooks/list", {"cwds": [str(machine.project)]})["data"]
    assert not found["errors"]
    hooks: list[dict[str, Any]] = found["hooks"]
    return hooks


@contextmanager
def app_server(machine: Machine) -> Iterator[Callable[[str, dict[str, Any]], Any]]:
    with subprocess.Popen(
        ["codex", "app-server"], cwd=machine.project, env=machine.environ, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def asked(method: str, params: dict[str, Any]) -> Any:
            stdin.write(json.dumps({"id": method, "method": method, "params": params}) + "\n")
            stdin.flush()
            answers = (json.loads(line) for line in stdout)
            return next(answer["result"] for answer in answers if answer.get("id") == method)

        try:
            yield asked
        finally:
            process.kill()
