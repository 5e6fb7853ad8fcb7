"""Two folders that are signed in to one account are one pool, and whoever calls from either of them calls from that pool."""

import json
from pathlib import Path

import pytest

from bullswarm_core.fast.hook_state import HookState
from bullswarm_core.pools.caller import find_caller
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.store.home import Home
from bullswarm_providers import registry
from bullswarm_server.hook_state import refresh


@pytest.fixture
def environ(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr("sys.platform", "linux")
    (tmp_path / "claude").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "claude").chmod(0o755)
    # The tokens differ, as each sign-in has its own; the account behind them is one.
    for name, identity in ((".claude", "one"), (".claude-copy", "one"), (".claude-acme", "acme")):
        folder = own_home / name
        folder.mkdir()
        (folder / ".credentials.json").write_text(json.dumps({"claudeAiOauth": {"accessToken": name}}))
        where = own_home if name == ".claude" else folder
        (where / ".claude.json").write_text(json.dumps({"oauthAccount": {"accountUuid": identity}}))
    return {"HOME": str(own_home), "PATH": str(tmp_path), "CLAUDECODE": "1"}


def profiles(environ: dict[str, str]) -> list[PoolProfile]:
    found = registry.load(Home(), environ).profiles
    return [profile for profile in found if profile.connector.name == "claude-code"]


def test_the_second_folder_is_no_pool_of_its_own(environ: dict[str, str], own_home: Path) -> None:
    pools = {profile.id: profile.other_folders for profile in profiles(environ)}
    assert pools == {"claude-code": (str(own_home / ".claude-copy"),), "claude-code:acme": ()}


@pytest.mark.parametrize(
    ("folder", "pool"),
    [
        (None, "claude-code"),
        (".claude-copy", "claude-code"),
        (".claude-copy/../.claude-copy/", "claude-code"),
        (".claude-acme", "claude-code:acme"),
        ("elsewhere", None),
    ],
)
def test_a_session_in_either_folder_calls_from_that_pool(
    environ: dict[str, str], own_home: Path, folder: str | None, pool: str | None
) -> None:
    calling = environ if folder is None else {**environ, "CLAUDE_CONFIG_DIR": str(own_home / folder)}
    assert find_caller(calling, profiles=profiles(calling)).pool_id == pool


def test_a_folder_elsewhere_that_only_the_variable_names_is_known_too(environ: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / ".claude.json").write_text(json.dumps({"oauthAccount": {"accountUuid": "acme"}}))
    calling = {**environ, "CLAUDE_CONFIG_DIR": str(folder)}
    assert find_caller(calling, profiles=profiles(calling)).pool_id == "claude-code:acme"


def test_the_hooks_know_it_too(environ: dict[str, str], own_home: Path) -> None:
    home = Home()
    home.ensure()
    refresh(home, environ)
    document = json.loads((home.cache_dir / "hook-state.json").read_bytes())
    state = HookState(document, 0.0)
    for folder, pool in ((".claude-copy", "claude-code"), (".claude-acme", "claude-code:acme")):
        own = state.own_pool("claude-code", {**environ, "CLAUDE_CONFIG_DIR": str(own_home / folder)})
        assert own is not None and own.id == pool
    assert state.own_pool("claude-code", {**environ, "CLAUDE_CONFIG_DIR": str(own_home / "elsewhere")}) is None
