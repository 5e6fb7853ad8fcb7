"""Real agents as callers: a session of a client whose model calls bullswarm's tools, with another real CLI as the worker."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agents.install import BIN_FOLDER
from tests.agents.machine import COMMAND_LIMIT_SEC, Machine
from tests.agents.scripted_model.request import ModelRequest
from tests.agents.scripted_model.responses import FREE_TEXT
from tests.agents.scripted_model.scenario import Answer, Turn, call_tool, say
from tests.agents.setups import CLAUDE, CODEX, COMMAND_CODE, GROK, OPENCODE, Setup
from tests.processes import until

# Words by which the one scripted model tells whose request it has before it.
CALLER_PROMPT = "Delegate something."
WORKER_PROMPT = "Explain the parser to me."
ANSWER = "The parser splits each line at its commas, then takes the quotes off every field."
SECOND_ACCOUNT = "claude-code:second"
# More than any session here needs, so that a caller that never stops waiting ends all the same.
_MOST_TURNS = 16


@dataclass(frozen=True, slots=True)
class Caller:
    """One client: its name for integrate, its worker, its command line, and how its model calls one of our tools.

    ``first`` are calls that its model makes before ours: some clients show a model our tools only when it looks for them.
    """

    name: str
    setup: Setup
    worker: Setup
    command: tuple[str, ...]
    call: Callable[[str, Mapping[str, Any]], Answer]
    first: tuple[Answer, ...] = ()


def _claude_call(tool: str, arguments: Mapping[str, Any]) -> Answer:
    return call_tool(f"mcp__bullswarm__{tool}", **arguments)


def _codex_call(tool: str, arguments: Mapping[str, Any]) -> Answer:
    return call_tool(f"mcp__bullswarm.{tool}", **arguments)


def _script_call(tool: str, arguments: Mapping[str, Any]) -> Answer:
    script = f"text(JSON.stringify(await tools.mcp__bullswarm__{tool}({json.dumps(dict(arguments))})))"
    return call_tool("exec", **{FREE_TEXT: script})


def _opencode_call(tool: str, arguments: Mapping[str, Any]) -> Answer:
    return call_tool(f"bullswarm_{tool}", **arguments)


def _grok_call(tool: str, arguments: Mapping[str, Any]) -> Answer:
    return call_tool("use_tool", tool_name=f"bullswarm__{tool}", tool_input=dict(arguments))


_TOOL_NAMES = ("route", "run", "runs", "pools", "label")
CLAUDE_CALLER = Caller(
    "claude", CLAUDE, CODEX, ("claude", "-p", "--model", "claude-sonnet-5", "--allowedTools", "mcp__bullswarm"),
    _claude_call, (call_tool("ToolSearch", query="select:" + ",".join(f"mcp__bullswarm__{name}" for name in _TOOL_NAMES)),),
)  # fmt: skip
# Codex hands none of its own environment on, and OpenCode as the worker must ask nobody outside.
_CODEX = (
    "codex", "exec", "--json", "-c",
    'mcp_servers.bullswarm.env={OPENCODE_DISABLE_MODELS_FETCH="1",npm_config_offline="true"}',
)  # fmt: skip
CODEX_CALLER = Caller("codex", CODEX, OPENCODE, (*_CODEX, "-"), _codex_call)
# gpt-5.5 has to look for tools with a search, gpt-6-sol calls them from a script.
CODEX_SEARCHING = Caller(
    "codex", CODEX, OPENCODE, (*_CODEX, "-m", "gpt-5.5", "-"), _codex_call,
    (call_tool("tool_search", query="bullswarm run route pools label", limit=8),),
)  # fmt: skip
CODEX_SCRIPTING = Caller("codex", CODEX, OPENCODE, (*_CODEX, "-m", "gpt-6-sol", "-"), _script_call)
OPENCODE_CALLER = Caller(
    "opencode", OPENCODE, CLAUDE, ("opencode", "run", "--format", "json", "--title", "t", "-m", "stub/stub-model"),
    _opencode_call,
)  # fmt: skip
# Grok reads no prompt from stdin.
GROK_CALLER = Caller(
    "grok", GROK, CLAUDE, ("grok", "-m", "stub-model", "--allow", "mcp__bullswarm", "-p", CALLER_PROMPT), _grok_call
)
# `integrate` doesn't set this one up.
COMMAND_CODE_CALLER = Caller(
    "command-code", COMMAND_CODE, CLAUDE,
    ("command-code", "-m", "stub/stub-model", "--skip-onboarding", "--trust", "-p", CALLER_PROMPT), _claude_call,
)  # fmt: skip
CALLERS = {
    "claude": CLAUDE_CALLER,
    "codex": CODEX_CALLER,
    "codex-searching": CODEX_SEARCHING,
    "codex-scripting": CODEX_SCRIPTING,
    "opencode": OPENCODE_CALLER,
}


def prepare(machine: Machine, caller: Caller) -> None:
    """Furnish the home of this caller, and put bullswarm into the client."""
    furnish(machine, caller)
    done = machine.bullswarm("integrate", "install", "--yes", "--agents", caller.name)
    assert done.returncode == 0, done.stdout + done.stderr


def furnish(machine: Machine, caller: Caller) -> None:
    """Put the worker's CLI beside the caller's, and a second Claude account into the home."""
    for binary in {caller.worker.binary, CLAUDE.binary} - {caller.setup.binary}:
        (machine.root / "bin" / binary).symlink_to(BIN_FOLDER / binary)
    machine.environ |= caller.worker.prepare(machine.home, machine.model.url)
    if caller.worker.by_key:
        allowed = {"version": 1, "pools": {caller.worker.name: {"allowBilling": True}}}
        (machine.state / "state.json").write_text(json.dumps(allowed), encoding="utf-8")
    machine.environ["PWD"] = str(machine.project)
    # Signed in by its own settings: a client may keep the variables of a sign-in from the servers that it starts.
    _account(machine.home / ".claude", machine.home / ".claude.json", "one", {})
    second = machine.home / ".claude-second"
    _account(second, second / ".claude.json", "two", CLAUDE.prepare(machine.home, machine.model.url))


def _account(folder: Path, identity: Path, account: str, environ: Mapping[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"env": environ} if environ else {}), encoding="utf-8")
    identity.write_text(json.dumps({"oauthAccount": {"accountUuid": account}}), encoding="utf-8")


def script(
    machine: Machine,
    caller: Caller,
    calls: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    worker: Turn | None = None,
    worker_after: int = 0,
) -> None:
    """Let the model of the caller make these calls, (tool, arguments) each, then wait on while a run still goes on.

    ``worker`` is what the worker's model says, once the caller's model has had ``worker_after`` results of our tools: so a
    call outlasts a limit however fast or slow the machine is.
    """
    planned = [*caller.first, *(caller.call(tool, arguments) for tool, arguments in calls)]

    def turn(number: int) -> Callable[[ModelRequest], Turn]:
        def choose(request: ModelRequest) -> Turn:
            if CALLER_PROMPT not in request.prompt:
                until(lambda: len(answers(machine, caller)) >= worker_after, "the caller's model had its results")
                return worker or say(ANSWER)
            if number < len(planned):
                return planned[number]
            if any(map(unfinished, results(request)[-1:])):
                return caller.call("run", {"run_id": "last"})
            return say("Thanks.")

        return choose

    machine.turns[:] = [turn(number) for number in range(_MOST_TURNS)]


def unfinished(result: str) -> bool:
    """Whether a result of `run` calls for another: the run goes on, or the client itself gave up on the call."""
    return '"state":"running"' in result or result.startswith("RUNNING ") or "timed out" in result.lower()


def short_id(result: str) -> str:
    """The short id of the run that a result is about, in either form."""
    found = re.search(r'"shortId":"(\w+)"|^run: (\w+) \(|^RUNNING (\w+):', result, re.MULTILINE)
    assert found, result
    return next(name for name in found.groups() if name is not None)


def start(machine: Machine, caller: Caller, *options: str) -> subprocess.Popen[str]:
    """Start a session with the one prompt and return at once; whatever is left of it is ended with the test."""
    at = len(caller.command) - 1 if caller.command[-1] == "-" else len(caller.command)
    words = [*caller.command[:at], *options, *caller.command[at:]]
    process = subprocess.Popen(
        words, cwd=machine.project, env=machine.environ, text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(CALLER_PROMPT)
    process.stdin.close()
    process.stdin = None
    machine.started.append(process)
    return process


def session(machine: Machine, caller: Caller, *options: str) -> list[str]:
    """Run a whole session; return what its model got back from each tool, in order."""
    process = start(machine, caller, *options)
    out, err = process.communicate(timeout=COMMAND_LIMIT_SEC)
    assert process.returncode == 0, out[-3000:] + err[-3000:]
    return answers(machine, caller)


def answers(machine: Machine, caller: Caller) -> list[str]:
    """What our tools have answered so far, in the newest session."""
    requests = asked(machine)
    return results(requests[-1])[len(caller.first) :] if requests else []


def asked(machine: Machine) -> list[ModelRequest]:
    """The requests that the caller's model got, in order."""
    return [request for request in machine.model.prompts() if CALLER_PROMPT in request.prompt]


def results(request: ModelRequest) -> list[str]:
    """Every tool's result in a request, in order, as the model reads it."""
    return [_text(content) for content in _contents(request.body)]


def _contents(body: Mapping[str, Any]) -> Iterator[Any]:
    for item in body.get("input") or ():
        if str(item.get("type", "")).endswith("_output"):
            yield item.get("output", item.get("tools"))
    for message in body.get("messages") or ():
        if message["role"] == "tool":
            yield message["content"]
        elif message["role"] == "user" and isinstance(message["content"], list):
            yield from (block["content"] for block in message["content"] if block["type"] == "tool_result")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", block)) for block in content or ())
