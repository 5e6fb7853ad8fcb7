"""Codex, Grok, OpenCode, Command Code and echo: their sign-in from files, and what a launch of each looks like."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

from bullswarm_core.launch.plan import LaunchPlan, plan_launch
from bullswarm_core.pools import EFFORTS, LANES, Effort, Lane, Rung
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.store.home import Home
from bullswarm_providers import registry

JWT = "header.payload.signature"
CHATGPT = {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": {"access_token": JWT}}
STUB = 'model_provider = "stub"\n[model_providers.stub]\nname = "stub"\nenv_key = "STUB_KEY"\n'


@pytest.fixture
def environ(own_home: Path, tmp_path: Path) -> dict[str, str]:
    for name in ("codex", "grok", "opencode", "command-code"):
        (tmp_path / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    return {"HOME": str(own_home), "PATH": str(tmp_path)}


def profile(pool_id: str, environ: dict[str, str]) -> PoolProfile:
    found = registry.load(Home(), environ)
    assert found.problems == ()
    return found.profile(pool_id)


def launch(pool_id: str, environ: dict[str, str], lane: Lane = "build", **more: Any) -> LaunchPlan:
    options: dict[str, Any] = {"rung": Rung(), "cwd": "/w", "prompt_file": "/r/task.md", "private_tmp": "/r/tmp"} | more
    return plan_launch(profile(pool_id, environ), lane=lane, environ=environ, **options)


def write(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("pool_id", ["codex", "grok", "opencode", "command-code", "echo"])
def test_no_prompt_ever_stands_in_the_command(pool_id: str, lane: Lane, environ: dict[str, str]) -> None:
    made = launch(pool_id, environ, lane)
    assert made.stdin_file == "/r/task.md" or "/r/task.md" in made.argv
    assert not any("{" in word and "}" in word and "=" not in word and '"' not in word for word in made.argv)
    assert made.confinement_kind in ("cli", "bullswarm")
    assert (made.confinement is not None) == (made.confinement_kind == "bullswarm")


@pytest.mark.parametrize(
    ("auth", "config", "variables", "signed_in", "billing"),
    [
        (None, None, {}, False, "unknown"),
        (CHATGPT, None, {}, True, "subscription"),
        (CHATGPT, None, {"OPENAI_API_KEY": "sk"}, True, "subscription"),
        ({"OPENAI_API_KEY": "sk"}, None, {}, True, "api-key"),
        (None, None, {"CODEX_API_KEY": "sk"}, None, "api-key"),
        (None, STUB, {}, None, "api-key"),
        (CHATGPT, STUB, {}, None, "api-key"),
        (None, 'cli_auth_credentials_store = "keyring"', {}, None, "unknown"),
        (None, "not toml at all [", {}, None, "unknown"),
        ("{", None, {}, False, "unknown"),
    ],
)
def test_codex_sign_in(
    own_home: Path,
    environ: dict[str, str],
    auth: Any,
    config: str | None,
    variables: dict[str, str],
    signed_in: bool | None,
    billing: str,
) -> None:
    if auth is not None:
        write(own_home / ".codex" / "auth.json", auth)
    if config is not None:
        write(own_home / ".codex" / "config.toml", config)
    found = profile("codex", environ | variables)
    assert (found.signed_in, found.billing) == (signed_in, billing)
    assert JWT not in repr(found)


def test_codex_gets_a_sandbox_that_holds(environ: dict[str, str]) -> None:
    analyze = launch("codex", environ, "analyze").argv
    assert analyze[analyze.index("-s") + 1] == "read-only"
    build = launch("codex", environ)
    argv = build.argv
    assert argv[argv.index("-s") + 1] == "workspace-write"
    for setting in ("network_access", "exclude_slash_tmp", "exclude_tmpdir_env_var"):
        assert f"sandbox_workspace_write.{setting}=true" in argv
    assert argv[argv.index("--add-dir") + 1] == "/r/tmp"
    assert argv[argv.index("-C") + 1] == "/w"
    assert argv[-1] == "-"
    assert build.environment["TZ"] == "UTC"
    assert build.confinement_kind == "cli"
    network = launch("codex", environ, "analyze", sandbox="network")
    assert network.confinement is not None
    assert "/w" not in network.confinement.writable


def test_codex_servers_and_skills_are_turned_off_one_by_one_whatever_their_names(
    own_home: Path, environ: dict[str, str]
) -> None:
    write(
        own_home / ".codex" / "config.toml",
        STUB + '[mcp_servers."a b"]\ncommand="x"\n[mcp_servers."c.d\\"e"]\ncommand="y"\n',
    )
    write(own_home / ".codex" / "skills" / "plan" / "SKILL.md", "x")
    write(own_home / ".agents" / "skills" / "it's" / "SKILL.md", "x")
    settings = config_of(launch("codex", environ))
    assert settings["mcp_servers"] == {"a b": {"enabled": False}, 'c.d"e': {"enabled": False}}
    assert settings["model_providers"]["stub"]["request_max_retries"] < 5
    paths = [entry["path"] for entry in settings["skills"]["config"]]
    assert [Path(path).parent.name for path in paths] == ["it's", "plan"]
    assert all(entry["enabled"] is False for entry in settings["skills"]["config"])
    inherited = config_of(launch("codex", environ, inherit_config=True))
    assert "mcp_servers" not in inherited
    assert "model_providers" in inherited


def test_codex_gets_no_server_of_a_project_that_the_person_trusts(
    own_home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    project = tmp_path / "a project"
    write(project / ".codex" / "config.toml", '[mcp_servers.theirs]\ncommand = "x"\n')
    (project / "sub").mkdir()
    for level in ("trusted", "untrusted"):
        write(own_home / ".codex" / "config.toml", f'[projects."{project}"]\ntrust_level = "{level}"\n')
        for cwd in (project, project / "sub"):
            settings = config_of(launch("codex", environ, cwd=str(cwd)))
            # An untrusted project's settings are not read, so there is no server that could be turned off.
            assert settings["projects"][str(cwd)] == {"trust_level": "untrusted"}
            assert "mcp_servers" not in settings


def test_codex_names_no_server_or_provider_that_is_not_configured(own_home: Path, environ: dict[str, str]) -> None:
    # Codex refuses to start when it is told about one that it doesn't know, or about a built-in provider.
    write(own_home / ".codex" / "config.toml", 'model_provider = "openai"\n')
    assert not {"mcp_servers", "model_providers", "skills"} & set(config_of(launch("codex", environ)))


def test_codex_with_an_unreadable_config_says_what_it_could_not_do(own_home: Path, environ: dict[str, str]) -> None:
    write(own_home / ".codex" / "config.toml", "[")
    assert any("config.toml" in note for note in launch("codex", environ).notes)


def config_of(plan: LaunchPlan) -> dict[str, Any]:
    """Read every `-c key=value` of a command as Codex does."""
    words = [value for flag, value in zip(plan.argv, plan.argv[1:], strict=False) if flag == "-c"]
    return tomllib.loads("\n".join(words))


@pytest.mark.parametrize(
    ("files", "variables", "signed_in", "billing"),
    [
        ({}, {}, False, "unknown"),
        ({"auth.json": {"a": {"key": "k"}}}, {"XAI_API_KEY": "k"}, True, "subscription"),
        ({"auth.json": {}}, {}, False, "unknown"),
        ({}, {"XAI_API_KEY": "k"}, True, "api-key"),
        ({"config.toml": '[model.own]\napi_key = "x"\n'}, {}, None, "unknown"),
    ],
)
def test_grok_sign_in(
    own_home: Path,
    environ: dict[str, str],
    files: dict[str, Any],
    variables: dict[str, str],
    signed_in: bool | None,
    billing: str,
) -> None:
    for name, content in files.items():
        write(own_home / ".grok" / name, content)
    found = profile("grok", environ | variables)
    assert (found.signed_in, found.billing) == (signed_in, billing)


def test_grok_may_approve_its_tools_in_lanes_that_write_only(environ: dict[str, str]) -> None:
    assert "--always-approve" not in launch("grok", environ, "analyze").argv
    build = launch("grok", environ)
    assert "--always-approve" in build.argv
    assert build.argv[-2:] == ("--prompt-file", "/r/task.md")
    assert int(build.environment["GROK_MAX_RETRIES"]) < 15


@pytest.mark.parametrize(
    ("variables", "signed_in"),
    [({}, False), ({"COMMAND_CODE_API_KEY": "k"}, True), ({"CMD_LOCAL_ONLY": "1"}, None)],
)
def test_command_code_sign_in(environ: dict[str, str], variables: dict[str, str], signed_in: bool | None) -> None:
    assert profile("command-code", environ | variables).signed_in is signed_in


def test_command_code_skips_its_permissions_in_lanes_that_write_only(environ: dict[str, str]) -> None:
    assert "--yolo" not in launch("command-code", environ, "analyze").argv
    assert "--yolo" in launch("command-code", environ).argv


def test_opencode_works_without_a_sign_in_and_is_billed_as_nobody_knows(
    own_home: Path, environ: dict[str, str]
) -> None:
    assert profile("opencode", environ).signed_in is None
    write(own_home / ".local" / "share" / "opencode" / "auth.json", {"zen": {"type": "api", "key": "k"}})
    found = profile("opencode", environ)
    assert (found.signed_in, found.billing, found.withheld) == (True, "unknown", ())


def test_opencode_loads_our_plugin_beside_what_the_person_configured(environ: dict[str, str]) -> None:
    environ["OPENCODE_CONFIG_CONTENT"] = '{"model": "a/b", "plugin": ["theirs"]}'
    made = launch("opencode", environ)
    content = json.loads(made.environment["OPENCODE_CONFIG_CONTENT"])
    assert content["model"] == "a/b"
    assert content["plugin"][0] == "theirs"
    assert Path(unquote(urlparse(content["plugin"][1]).path)).is_file()
    assert made.environment["BULLSWARM_OPENCODE_ISOLATED"] == "1"
    assert "BULLSWARM_OPENCODE_ISOLATED" not in launch("opencode", environ, inherit_config=True).environment


def test_opencode_with_a_broken_configuration_keeps_it_and_says_so(environ: dict[str, str]) -> None:
    environ["OPENCODE_CONFIG_CONTENT"] = "{broken"
    made = launch("opencode", environ)
    assert made.environment["OPENCODE_CONFIG_CONTENT"] == "{broken"
    assert any("OPENCODE_CONFIG_CONTENT" in note for note in made.notes)


def test_opencode_analyze_has_no_edit_tool_and_no_shell_where_nobody_confines_it(environ: dict[str, str]) -> None:
    confined = json.loads(launch("opencode", environ, "analyze").environment["OPENCODE_PERMISSION"])
    bare = json.loads(launch("opencode", environ, "analyze", can_confine=False).environment["OPENCODE_PERMISSION"])
    assert (confined["edit"], confined["bash"]) == ("deny", "allow")
    assert (bare["edit"], bare["bash"]) == ("deny", "deny")


# --- Command Code


@pytest.mark.parametrize("effort", EFFORTS)
def test_command_code_gets_a_reasoning_level_only_when_one_was_asked_for(
    effort: Effort, environ: dict[str, str]
) -> None:
    # It ends with exit 1 for a model that has no such level, and writes the level into the person's own settings.
    default = profile("command-code", environ).connector.tiers[effort]
    assert "--effort" not in launch("command-code", environ, rung=default).argv
    asked = launch("command-code", environ, rung=Rung(reasoning="high", source="request")).argv
    assert asked[asked.index("--effort") + 1] == "high"


# --- echo


def echo(task: bytes, lane: str = "build") -> subprocess.CompletedProcess[bytes]:
    worker = Path(registry.__file__).parent / "echo" / "worker.py"
    argv = [sys.executable, "-I", "-S", str(worker), lane]
    return subprocess.run(argv, input=task, capture_output=True, check=False, timeout=30)


def test_echo_says_that_it_is_no_model_and_what_it_was_asked(tmp_path: Path) -> None:
    done = echo("Prüfe das\nline two\n".encode())
    text = done.stdout.decode()
    assert done.returncode == 0
    assert text.startswith("This is bullswarm's echo worker. No model read this task and no work was done.")
    assert "It changes no files." in text
    assert "> Prüfe das\n> line two" in text
    assert "Task: 20 bytes, 2 lines" in text


def test_echo_bounds_what_it_repeats_and_refuses_an_empty_task() -> None:
    assert len(echo(b"x" * 500_000).stdout) < 2_000
    assert echo(b"\xff\xfe broken").returncode == 0
    assert echo(b" \n").returncode == 2
