"""`bullswarm provider`: list, validate, scaffold, probe, enable, disable."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.errors import NoPoolError, UnknownNameError, UsageError
from bullswarm_core.store.home import Home
from bullswarm_providers.registry import OPTIONAL, load
from bullswarm_server.cli import provider
from bullswarm_server.cli.context import CommandContext

ANSWER = """#!/bin/sh
cat > "$HOME/seen"
env > "$HOME/env"
printf '%s\\n' '{"type":"thread.started","thread_id":"t"}' '{"type":"turn.started"}'
printf '%s\\n' '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"PONG"}}'
printf '%s\\n' '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
"""


@pytest.fixture
def context(own_home: Path, tmp_path: Path) -> CommandContext:
    environ = {"HOME": str(own_home), "PATH": f"{tmp_path}:{os.defpath}", "CODEX_API_KEY": "sk-1234567890"}
    return CommandContext(Home(), environ, io.StringIO(), io.StringIO())


def codex(tmp_path: Path, script: str) -> None:
    (tmp_path / "codex").write_text(script, encoding="utf-8")
    (tmp_path / "codex").chmod(0o755)


def run(context: CommandContext, *arguments: str, code: int = 0) -> str:
    context = CommandContext(context.home, context.environ, io.StringIO(), io.StringIO())
    assert provider.run(list(arguments), context) == code
    assert isinstance(context.out, io.StringIO)
    assert isinstance(context.err, io.StringIO)
    return context.out.getvalue() + context.err.getvalue()


def run_json(context: CommandContext, *arguments: str, code: int = 0) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run(context, *arguments, "--json", code=code))
    return document


PROVIDERS = ["claude-code", "codex", "grok", "command-code", "opencode", "echo"]


def test_the_list_names_every_provider_and_what_it_offers(context: CommandContext) -> None:
    document = run_json(context, "list")
    entries = {entry["name"]: entry for entry in document["providers"]}
    assert set(entries) == {*PROVIDERS, *OPTIONAL}
    assert {name for name, entry in entries.items() if entry["enabled"]} == set(PROVIDERS)
    assert entries["echo"]["pools"] == ["echo"]
    assert "no grok on PATH" in run(context, "list")


def test_an_optional_provider_is_off_until_it_is_turned_on_by_name(context: CommandContext, tmp_path: Path) -> None:
    (tmp_path / "gemini").write_text(ANSWER, encoding="utf-8")
    (tmp_path / "gemini").chmod(0o755)
    assert "off · bullswarm provider enable gemini" in run(context, "list")
    assert run_json(context, "list")["problems"] == []
    run(context, "enable", "gemini")
    entries = {entry["name"]: entry for entry in run_json(context, "list")["providers"]}
    assert (entries["gemini"]["enabled"], entries["gemini"]["pools"]) == (True, ["gemini"])
    assert json.loads(context.home.providers_file.read_text(encoding="utf-8")) == {
        "disabled": [],
        "enabled": ["gemini"],
    }
    run(context, "disable", "gemini")
    entries = {entry["name"]: entry for entry in run_json(context, "list")["providers"]}
    assert (entries["gemini"]["enabled"], entries["gemini"]["pools"]) == (False, [])
    assert json.loads(context.home.providers_file.read_text(encoding="utf-8")) == {"disabled": [], "enabled": []}


def test_a_provider_of_the_persons_own_keeps_the_name_of_an_optional_one(context: CommandContext) -> None:
    own = context.home.providers_dir / "gemini" / "connector.json"
    run(context, "scaffold", "other")
    own.parent.mkdir()
    data = json.loads((context.home.providers_dir / "other" / "connector.json").read_text(encoding="utf-8"))
    own.write_text(json.dumps(data | {"name": "gemini"}), encoding="utf-8")
    entries = {entry["name"]: entry for entry in run_json(context, "list")["providers"]}
    assert entries["gemini"]["origin"] == "local"
    run(context, "disable", "gemini")
    run(context, "enable", "gemini")
    assert json.loads(context.home.providers_file.read_text(encoding="utf-8")) == {"disabled": []}


@pytest.mark.parametrize("name", [*PROVIDERS, *OPTIONAL])
def test_every_packaged_provider_is_valid(context: CommandContext, name: str) -> None:
    assert run(context, "validate", name).endswith(": good\n")


@pytest.mark.parametrize("source", [*PROVIDERS, *OPTIONAL])
def test_a_scaffold_is_valid_and_takes_no_work_by_accident(
    context: CommandContext, own_home: Path, tmp_path: Path, source: str
) -> None:
    """Neither with the CLI that it was copied from, signed in, nor with one of its own name that nobody described."""
    for name in ("claude", "codex", "grok", "command-code", "opencode", "mine"):
        (tmp_path / name).write_text(ANSWER, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    for folder in (".claude", ".codex", ".grok", ".commandcode"):
        (own_home / folder).mkdir()
    (own_home / ".claude" / ".credentials.json").write_text('{"claudeAiOauth": {}}', encoding="utf-8")
    signed_in = CommandContext(
        context.home, {**context.environ, "ANTHROPIC_API_KEY": "sk-1", "XAI_API_KEY": "xai-1"}, context.out, context.err
    )
    text = run(signed_in, "scaffold", "mine", "--from", source)
    assert "takes no work until you say how mine is run and signed in to" in text
    entries = {entry["name"]: entry for entry in run_json(signed_in, "list")["providers"]}
    assert (entries["mine"]["origin"], entries["mine"]["binary"]) == ("local", "mine")
    (profile,) = [p for p in load(signed_in.home, signed_in.environ).profiles if p.id == "mine"]
    assert profile.why_not() == "not signed in · say in signIn of its connector.json where its sign-in is"
    assert "mine: good, and takes no work yet: not signed in" in run(signed_in, "validate", "mine")
    (tmp_path / "mine").unlink()
    assert "mine: good, and takes no work yet: mine was not found on PATH" in run(signed_in, "validate", "mine")
    assert "no mine on PATH" in run(signed_in, "list")
    with pytest.raises(UsageError, match="taken"):
        run(signed_in, "scaffold", "mine")


def test_a_scaffold_that_was_filled_in_is_a_pool(context: CommandContext, tmp_path: Path) -> None:
    run(context, "scaffold", "mine", "--from", "codex")
    file = context.home.providers_dir / "mine" / "connector.json"
    data = json.loads(file.read_text(encoding="utf-8")) | {"signIn": {"required": False}}
    file.write_text(json.dumps(data), encoding="utf-8")
    (tmp_path / "mine").write_text(ANSWER, encoding="utf-8")
    (tmp_path / "mine").chmod(0o755)
    assert run(context, "validate", "mine").endswith("mine: good\n")
    assert run_json(context, "probe", "mine")["answer"] == "PONG"


def test_a_provider_of_an_account_that_is_a_pool_already_is_reported(context: CommandContext, tmp_path: Path) -> None:
    codex(tmp_path, ANSWER)
    run(context, "scaffold", "mine", "--from", "codex")
    file = context.home.providers_dir / "mine" / "connector.json"
    change = {"binary": "codex", "configFolder": {"variable": "CODEX_HOME", "default": "~/.codex"}}
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | change), encoding="utf-8")
    assert "takes no work yet: mine is skipped" in run(context, "validate", "mine")
    text = run(context, "list")
    assert "no pool: see below" in text and "which is the pool codex ·" in text


def test_the_list_calls_a_pool_only_what_is_found(context: CommandContext, tmp_path: Path) -> None:
    (line,) = [line for line in run(context, "list").splitlines() if line.startswith("claude-code")]
    assert line.split(None, 2)[2] == "no claude on PATH"
    (tmp_path / "claude").write_text(ANSWER, encoding="utf-8")
    (tmp_path / "claude").chmod(0o755)
    (line,) = [line for line in run(context, "list").splitlines() if line.startswith("claude-code")]
    assert line.split(None, 2)[2] == "claude-code"


def test_a_scaffold_goes_where_it_is_told_and_overwrites_nothing(context: CommandContext, tmp_path: Path) -> None:
    run(context, "scaffold", "mine", "--dir", str(tmp_path))
    file = tmp_path / "mine" / "connector.json"
    before = file.read_bytes()
    assert (tmp_path / "mine" / "stream.json").exists()
    with pytest.raises(UsageError, match="is there already"):
        run(context, "scaffold", "mine", "--dir", str(tmp_path))
    assert file.read_bytes() == before
    with pytest.raises(UsageError, match=r"name: \"Bad Name\" is not allowed"):
        run(context, "scaffold", "Bad Name", "--dir", str(tmp_path))
    assert not (tmp_path / "Bad Name").exists()


def test_validation_names_the_fault_and_exits_2(context: CommandContext) -> None:
    run(context, "scaffold", "mine")
    file = context.home.providers_dir / "mine" / "connector.json"
    data = json.loads(file.read_text(encoding="utf-8")) | {"costRank": "cheap"}
    file.write_text(json.dumps(data), encoding="utf-8")
    for target in ("mine", str(file), str(file.parent)):
        assert f'{file}: costRank: "cheap" is not allowed' in run(context, "validate", target, code=2)
    document = run_json(context, "validate", "mine", code=2)
    assert (document["ok"], len(document["problems"])) == (False, 1)
    (file.parent / "provider.py").write_text("import nothing_of_this_name", encoding="utf-8")
    assert "ModuleNotFoundError" in run(context, "validate", "mine", code=2)
    with pytest.raises(UnknownNameError):
        run(context, "validate", "no-such-thing")


def test_a_reasoning_level_that_the_cli_does_not_take_is_found_by_planning(context: CommandContext) -> None:
    run(context, "scaffold", "mine")
    file = context.home.providers_dir / "mine" / "connector.json"
    data = json.loads(file.read_text(encoding="utf-8")) | {"tiers": {"low": {"reasoning": "tiny"}}}
    file.write_text(json.dumps(data), encoding="utf-8")
    assert "reasoning level 'tiny'" in run(context, "validate", "mine", code=2)


def test_disable_and_enable_are_remembered_and_keep_other_keys(context: CommandContext) -> None:
    context.home.ensure()
    context.home.providers_file.write_text('{"theirs": true}', encoding="utf-8")
    run(context, "disable", "echo")
    entries = {entry["name"]: entry for entry in run_json(context, "list")["providers"]}
    assert (entries["echo"]["enabled"], entries["echo"]["pools"]) == (False, [])
    assert json.loads(context.home.providers_file.read_text(encoding="utf-8")) == {"theirs": True, "disabled": ["echo"]}
    run(context, "enable", "echo")
    assert json.loads(context.home.providers_file.read_text(encoding="utf-8"))["disabled"] == []
    with pytest.raises(UnknownNameError, match="nope"):
        run(context, "disable", "nope")


def test_a_probe_runs_the_cli_once_as_a_worker(context: CommandContext, own_home: Path, tmp_path: Path) -> None:
    codex(tmp_path, ANSWER)
    deep = CommandContext(context.home, {**context.environ, "BULLSWARM_DEPTH": "7"}, context.out, context.err)
    document = run_json(deep, "probe", "codex")
    assert (document["ok"], document["answer"], document["exitCode"]) == (True, "PONG", 0)
    assert "PONG" in (own_home / "seen").read_text(encoding="utf-8")
    assert "sk-1234567890" not in json.dumps(document)
    assert "BULLSWARM_DEPTH=1\n" in (own_home / "env").read_text(encoding="utf-8")
    assert "codex answered in" in run(deep, "probe", "codex")


def test_a_probe_that_fails_or_takes_too_long_says_so(context: CommandContext, tmp_path: Path) -> None:
    codex(tmp_path, '#!/bin/sh\necho "no \x1b[31mluck" >&2\nexit 3\n')
    text = run(context, "probe", "codex", code=1)
    assert "exit code 3, it answered: nothing" in text
    assert "no luck" in text
    codex(tmp_path, "#!/bin/sh\nsleep 60\n")
    document = run_json(context, "probe", "codex", "--timeout", "0.5", code=1)
    assert (document["timedOut"], document["exitCode"]) == (True, None)
    assert document["wallSec"] < 30


def test_a_probe_of_a_pool_that_is_out_starts_nothing(context: CommandContext) -> None:
    with pytest.raises(NoPoolError, match="claude was not found"):
        run(context, "probe", "claude-code")
    with pytest.raises(UnknownNameError):
        run(context, "probe", "codex")


@pytest.mark.parametrize("arguments", [[], ["lst"], ["probe", "echo", "--timeout", "0"], ["list", "--js"]])
def test_a_wrong_call_is_exit_2(context: CommandContext, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        provider.run(arguments, context)
    assert caught.value.code == 2
