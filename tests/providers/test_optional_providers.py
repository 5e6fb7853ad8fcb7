"""The optional providers: their sign-in from files, and what a launch of each looks like."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.providers.metering import enable, profile, with_binaries, write

from bullswarm_core.launch.plan import LaunchPlan, plan_launch, shown_command
from bullswarm_core.pools import LANES, Lane, Rung
from bullswarm_core.store.home import Home
from bullswarm_providers import registry

KEY = "secret-key-4711"
FOLDER = Path(registry.__file__).parent


@pytest.fixture
def environ(tmp_path: Path, own_home: Path) -> dict[str, str]:
    enable(*registry.OPTIONAL)
    return with_binaries(tmp_path / "bin", "gemini", "copilot", "qwen", "claude")


def launch(pool_id: str, environ: dict[str, str], lane: Lane = "build", **more: Any) -> LaunchPlan:
    options: dict[str, Any] = {"rung": Rung(), "cwd": "/w", "prompt_file": "/r/task.md", "private_tmp": "/r/tmp"} | more
    return plan_launch(profile(pool_id, environ), lane=lane, environ=environ, **options)


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("pool_id", registry.OPTIONAL)
def test_a_worker_is_confined_and_gets_its_prompt_on_stdin(pool_id: str, lane: Lane, environ: dict[str, str]) -> None:
    made = launch(pool_id, environ, lane)
    assert made.stdin_file == "/r/task.md" and "/r/task.md" not in made.argv
    assert made.confinement_kind == "bullswarm" and made.confinement is not None
    assert ("/w" in made.confinement.writable) == (lane != "analyze")


@pytest.mark.parametrize(
    ("pool_id", "words"),
    [("gemini", "yolo"), ("copilot", "--allow-all-tools"), ("qwen", "yolo"), ("kimi", "bypassPermissions")],
)
def test_only_a_lane_that_writes_skips_the_clis_permissions(pool_id: str, words: str, environ: dict[str, str]) -> None:
    assert words not in launch(pool_id, environ, "analyze").argv
    assert words in launch(pool_id, environ).argv


@pytest.mark.parametrize("pool_id", ["gemini", "qwen"])
def test_extensions_and_mcp_servers_are_left_out(pool_id: str, environ: dict[str, str]) -> None:
    assert "--allowed-mcp-server-names" in launch(pool_id, environ).argv
    assert "--allowed-mcp-server-names" not in launch(pool_id, environ, inherit_config=True).argv


def test_copilots_servers_are_left_out_one_by_one(own_home: Path, environ: dict[str, str]) -> None:
    write(own_home / ".copilot" / "mcp-config.json", {"mcpServers": {"b c": {}, "a": {}}})
    argv = launch("copilot", environ).argv
    assert [argv[i + 1] for i, word in enumerate(argv) if word == "--disable-mcp-server"] == ["a", "b c"]
    assert "--disable-mcp-server" not in launch("copilot", environ, inherit_config=True).argv


@pytest.mark.parametrize(
    ("pool_id", "files", "variables", "signed_in", "billing"),
    [
        ("gemini", {}, {}, False, "unknown"),
        ("gemini", {".gemini/oauth_creds.json": {"access_token": KEY}}, {"GEMINI_API_KEY": KEY}, True, "subscription"),
        ("gemini", {".gemini/settings.json": {"security": {"auth": {"selectedType": "gemini-api-key"}}}}, {}, None, "api-key"),
        ("gemini", {".gemini/settings.json": {"security": {"auth": {"selectedType": "gemini-api-key"}}},
                    ".gemini/oauth_creds.json": {"access_token": KEY}}, {"GEMINI_API_KEY": KEY}, True, "api-key"),
        ("gemini", {".gemini/settings.json": {"security": {"auth": {"selectedType": "vertex-ai"}}}}, {}, None, "unknown"),
        ("copilot", {}, {}, None, "unknown"),
        ("copilot", {".copilot/config.json": {"lastLoggedInUser": {"login": "me"}}}, {}, True, "subscription"),
        ("copilot", {}, {"GH_TOKEN": KEY}, True, "subscription"),
        ("copilot", {}, {"COPILOT_PROVIDER_BASE_URL": "http://x"}, None, "unknown"),
        ("qwen", {}, {}, False, "unknown"),
        ("qwen", {".qwen/oauth_creds.json": {"access_token": KEY}}, {"OPENAI_API_KEY": KEY}, True, "subscription"),
        ("qwen", {".qwen/settings.json": {"security": {"auth": {"selectedType": "openai"}}}}, {}, None, "api-key"),
        ("qwen", {}, {"OPENAI_API_KEY": KEY}, True, "api-key"),
        ("kimi", {}, {"ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_BASE_URL": "https://api.kimi.com/coding/"}, False, "unknown"),
        ("kimi", {".kimi-claude/settings.json": {"env": {"ANTHROPIC_BASE_URL": "https://x"}}}, {}, False, "unknown"),
        ("kimi", {".kimi-claude/settings.json": {"env": {"ANTHROPIC_BASE_URL": "https://x", "ANTHROPIC_API_KEY": KEY}}}, {},
         True, "subscription"),
        ("glm", {".glm-claude/settings.json": "{"}, {}, False, "unknown"),
    ],
)  # fmt: skip
def test_sign_in(
    own_home: Path,
    environ: dict[str, str],
    pool_id: str,
    files: dict[str, Any],
    variables: dict[str, str],
    signed_in: bool | None,
    billing: str,
) -> None:
    for name, content in files.items():
        write(own_home / name, content)
    found = profile(pool_id, environ | variables)
    assert (found.signed_in, found.billing) == (signed_in, billing)
    assert KEY not in repr(found)
    if found.billing == "subscription":
        assert {"GEMINI_API_KEY", "OPENAI_API_KEY"} & set(variables) <= set(found.withheld)


def test_a_plan_over_claude_code_runs_in_a_folder_of_its_own_and_sends_its_key_nowhere_else(
    own_home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    address = "https://api.z.ai/api/anthropic"
    own = own_home / ".glm-claude"
    write(own / "settings.json", {"env": {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_AUTH_TOKEN": KEY}})
    project = tmp_path / "project"
    write(project / ".claude" / "settings.json", {"env": {"ANTHROPIC_BASE_URL": "https://elsewhere.example"}})
    others = {"ANTHROPIC_BASE_URL": "https://elsewhere.example", "ANTHROPIC_API_KEY": KEY, "CLAUDE_CONFIG_DIR": "/x"}
    for inherit in (False, True):
        made = launch("glm", environ | others, cwd=str(project), inherit_config=inherit)
        settings = json.loads(made.argv[made.argv.index("--settings") + 1])
        assert made.argv.count("--settings") == 1
        assert settings["env"] == {"ANTHROPIC_BASE_URL": address}
        assert settings.get("disableAllHooks") is (None if inherit else True)
        assert made.environment["CLAUDE_CONFIG_DIR"] == str(own)
        assert not {"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"} & set(made.environment)
        assert KEY not in shown_command(made)


def test_a_plan_over_claude_code_is_a_pool_beside_claude_codes_own(own_home: Path, environ: dict[str, str]) -> None:
    found = registry.load(Home(), environ)
    assert {"claude-code", "kimi", "glm"} <= found.pool_ids() and found.problems == ()
    assert not any(pool.startswith("claude-code:") for pool in found.pool_ids())


@pytest.mark.parametrize("name", ["kimi", "glm"])
def test_a_plan_over_claude_code_is_launched_and_read_as_claude_code_is(name: str) -> None:
    theirs, ours = (json.loads((FOLDER / each / "connector.json").read_text()) for each in ("claude_code", name))
    assert ours["launch"] == theirs["launch"]
    assert (FOLDER / name / "stream.json").read_bytes() == (FOLDER / "claude_code" / "stream.json").read_bytes()
