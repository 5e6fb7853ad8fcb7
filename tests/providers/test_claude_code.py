"""Claude Code's accounts and sign-in, from files alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.launch.plan import LaunchPlan, plan_launch
from bullswarm_core.pools import Rung
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.store.home import Home
from bullswarm_providers import registry


@pytest.fixture
def environ(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr("sys.platform", "linux")
    (tmp_path / "claude").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "claude").chmod(0o755)
    return {"HOME": str(own_home), "PATH": str(tmp_path)}


def write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")


def account(identity: str) -> dict[str, Any]:
    return {"oauthAccount": {"accountUuid": identity}}


def claude_pools(environ: dict[str, str]) -> dict[str, PoolProfile]:
    found = registry.load(Home(), environ)
    assert found.problems == ()
    return {profile.id: profile for profile in found.profiles if profile.connector.name == "claude-code"}


SIGNED_IN = {"claudeAiOauth": {"accessToken": "never-shown"}}


def test_each_account_folder_is_a_pool_and_picks_its_account(own_home: Path, environ: dict[str, str]) -> None:
    write(own_home / ".claude" / ".credentials.json", SIGNED_IN)
    write(own_home / ".claude-acme" / ".credentials.json", SIGNED_IN)
    write(own_home / ".claude-old" / "settings.json", {})
    (own_home / ".claude-empty").mkdir()
    write(own_home / "elsewhere" / "Work Account" / ".claude.json", account("w"))
    environ["CLAUDE_CONFIG_DIR"] = str(own_home / "elsewhere" / "Work Account")
    pools = claude_pools(environ)
    assert list(pools) == ["claude-code", "claude-code:acme", "claude-code:old", "claude-code:work-account"]
    assert pools["claude-code"].environment == {}
    assert "CLAUDE_CONFIG_DIR" in pools["claude-code"].withheld
    assert pools["claude-code:acme"].environment == {"CLAUDE_CONFIG_DIR": str(own_home / ".claude-acme")}
    assert pools["claude-code:acme"].signed_in is True
    assert pools["claude-code:old"].signed_in is False
    assert pools["claude-code:work-account"].account == "w"


def test_two_folders_with_one_account_id_are_one_pool(own_home: Path, environ: dict[str, str]) -> None:
    write(own_home / ".claude.json", account("same"))
    write(own_home / ".claude-copy" / ".claude.json", account("same"))
    write(own_home / ".claude-a" / ".claude.json", account("other"))
    write(own_home / ".claude-b" / ".claude.json", account("other"))
    assert list(claude_pools(environ)) == ["claude-code", "claude-code:a"]


def test_folders_without_an_account_id_are_never_merged(own_home: Path, environ: dict[str, str]) -> None:
    write(own_home / ".claude-a" / "settings.json", {})
    write(own_home / ".claude-b" / "settings.json", {})
    (own_home / ".claude-c").symlink_to(own_home / ".claude-a")
    assert list(claude_pools(environ)) == ["claude-code", "claude-code:a", "claude-code:b"]


def test_the_default_folder_named_by_the_variable_is_the_default_account(
    own_home: Path, environ: dict[str, str]
) -> None:
    write(own_home / ".claude" / ".claude.json", account("d"))
    environ["CLAUDE_CONFIG_DIR"] = str(own_home / ".claude")
    pools = claude_pools(environ)
    assert list(pools) == ["claude-code"]
    assert pools["claude-code"].environment == {"CLAUDE_CONFIG_DIR": str(own_home / ".claude")}
    assert pools["claude-code"].account == "d"


@pytest.mark.parametrize(
    ("settings", "variables", "credentials", "signed_in", "billing"),
    [
        ({}, {}, False, False, "unknown"),
        ({}, {}, True, True, "subscription"),
        ({}, {"ANTHROPIC_API_KEY": "k"}, True, True, "subscription"),
        ({}, {"ANTHROPIC_API_KEY": "k"}, False, True, "api-key"),
        ({}, {"CLAUDE_CODE_OAUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "k"}, False, True, "subscription"),
        ({}, {"CLAUDE_CODE_USE_BEDROCK": "1"}, False, None, "unknown"),
        ({"env": {"CLAUDE_CODE_USE_VERTEX": "1"}}, {}, True, None, "unknown"),
        ({"env": {"ANTHROPIC_AUTH_TOKEN": "x"}}, {}, True, True, "api-key"),
        ({"apiKeyHelper": "/bin/key"}, {}, True, True, "api-key"),
        ([], {}, False, False, "unknown"),
    ],
)
def test_sign_in_is_read_as_claude_code_reads_it(
    own_home: Path,
    environ: dict[str, str],
    settings: Any,
    variables: dict[str, str],
    credentials: bool,
    signed_in: bool | None,
    billing: str,
) -> None:
    write(own_home / ".claude" / "settings.json", settings)
    if credentials:
        write(own_home / ".claude" / ".credentials.json", SIGNED_IN)
    profile = claude_pools(environ | variables)["claude-code"]
    assert (profile.signed_in, profile.billing) == (signed_in, billing)
    assert "never-shown" not in repr(profile)


def launch(profile: PoolProfile, environ: dict[str, str], cwd: Path, **more: Any) -> LaunchPlan:
    return plan_launch(
        profile, rung=Rung(None, "max"), lane=more.pop("lane", "build"), cwd=str(cwd), prompt_file="/r/task.md",
        private_tmp="/r/tmp", environ=environ, **more,
    )  # fmt: skip


def test_a_stray_key_is_kept_from_a_subscription_and_passed_where_it_is_the_only_sign_in(
    own_home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    environ |= {"ANTHROPIC_API_KEY": "sk-1", "CLAUDE_CODE_OAUTH_TOKEN": "other-account"}
    by_token = launch(claude_pools(environ)["claude-code"], environ, tmp_path)
    assert "ANTHROPIC_API_KEY" not in by_token.environment
    assert by_token.environment["CLAUDE_CODE_OAUTH_TOKEN"] == "other-account"
    write(own_home / ".claude" / ".credentials.json", SIGNED_IN)
    by_file = launch(claude_pools(environ)["claude-code"], environ, tmp_path)
    assert not {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"} & set(by_file.environment)
    del environ["CLAUDE_CODE_OAUTH_TOKEN"]
    (own_home / ".claude" / ".credentials.json").unlink()
    by_key = launch(claude_pools(environ)["claude-code"], environ, tmp_path)
    assert by_key.environment["ANTHROPIC_API_KEY"] == "sk-1"
    assert by_key.billing == "api-key"


def test_hooks_plugins_servers_and_skills_of_the_person_are_off_and_their_settings_stay(
    own_home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    write(own_home / ".claude" / "settings.json", {"enabledPlugins": {"a@m": True, "b@m": False}})
    write(tmp_path / ".claude" / "settings.json", {"enabledPlugins": {"c@m": True}})
    profile = claude_pools(environ)["claude-code"]
    argv = launch(profile, environ, tmp_path).argv
    settings = json.loads(argv[argv.index("--settings") + 1])
    assert settings == {"disableAllHooks": True, "enabledPlugins": {"a@m": False, "c@m": False}}
    assert {"--strict-mcp-config", "--disable-slash-commands"} <= set(argv)
    assert argv[argv.index("--setting-sources") + 1] == "user"
    inherited = launch(profile, environ, tmp_path, inherit_config=True).argv
    assert not {"--settings", "--strict-mcp-config", "--disable-slash-commands"} & set(inherited)


def test_analyze_cannot_write_and_build_is_confined(environ: dict[str, str], tmp_path: Path) -> None:
    profile = claude_pools(environ)["claude-code"]
    analyze = launch(profile, environ, tmp_path, lane="analyze")
    assert analyze.argv[analyze.argv.index("--permission-mode") + 1] == "dontAsk"
    assert analyze.confinement is not None
    assert str(tmp_path) not in analyze.confinement.writable
    build = launch(profile, environ, tmp_path)
    assert build.environment["IS_SANDBOX"] == "1"
    assert build.confinement is not None
    assert {str(tmp_path), "/r/tmp", f"{profile.config_dir}/"} <= set(build.confinement.writable)
    bare = launch(profile, environ, tmp_path, can_confine=False)
    assert "bypassPermissions" not in bare.argv
    assert "IS_SANDBOX" not in bare.environment
