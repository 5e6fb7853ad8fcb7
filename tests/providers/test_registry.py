"""Which pools exist, and that a broken provider is a problem of its own."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.errors import UnknownNameError
from bullswarm_core.store.home import Home
from bullswarm_providers import installed, registry
from bullswarm_providers.loaded import Loaded

CONNECTOR: dict[str, Any] = {
    "schemaVersion": "bullswarm.connector.v1",
    "name": "mine",
    "binary": "mine",
    "launch": {"prompt": {"way": "stdin"}, "lanes": {"build": {"workspace": {"confinement": "none"}}}},
    "lanes": ["build", "chore"],
    "signIn": {"required": False},
}


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


@pytest.fixture
def environ(own_home: Path, binaries: Path) -> dict[str, str]:
    return {"HOME": str(own_home), "PATH": str(binaries)}


def executable(folder: Path, name: str, mode: int = 0o755) -> Path:
    file = folder / name
    file.write_text("#!/bin/sh\n", encoding="utf-8")
    file.chmod(mode)
    return file


def local(home: Home, name: str, data: Any = None, code: str | None = None) -> Path:
    folder = home.providers_dir / name
    folder.mkdir(parents=True)
    if data is not None:
        text = data if isinstance(data, str) else json.dumps(data)
        (folder / "connector.json").write_text(text, encoding="utf-8")
    if code is not None:
        (folder / "provider.py").write_text(code, encoding="utf-8")
    return folder


def ids(found: registry.Registry) -> list[str]:
    return [profile.id for profile in found.profiles]


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_with_nothing_installed_there_are_claudes_default_account_and_echo(environ: dict[str, str]) -> None:
    found = registry.load(Home(), environ)
    assert ids(found) == ["claude-code", "echo"]
    claude, echo = found.profiles
    assert claude.why_not() == "claude was not found on PATH · install Claude Code"
    assert (echo.binary, echo.signed_in, echo.billing) == (sys.executable, True, "none")
    assert echo.connector.last_resort
    assert found.problems == ()
    assert len(found.providers) == 6


def test_a_pool_exists_when_its_binary_is_found(environ: dict[str, str], binaries: Path) -> None:
    file = executable(binaries, "opencode")
    profile = registry.load(Home(), environ).profile("opencode")
    assert profile.binary == str(file)
    assert profile.signed_in is None
    assert profile.why_not() is None


def test_a_file_that_is_not_executable_is_a_pool_that_says_so(environ: dict[str, str], binaries: Path) -> None:
    file = executable(binaries, "codex", 0o644)
    if os.access(file, os.X_OK):
        pytest.fail("this file system calls every file executable")
    profile = registry.load(Home(), environ).profile("codex")
    assert profile.why_not() == f"{file} is not executable · chmod +x {file}"


def test_a_later_executable_wins_over_an_earlier_one_that_cannot_run(environ: dict[str, str], tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    first.mkdir()
    second.mkdir()
    executable(first, "grok", 0o644)
    (first / "codex").symlink_to(tmp_path / "gone")
    file = executable(second, "grok")
    found = registry.load(Home(), environ | {"PATH": f"relative::{first}:{second}", "XAI_API_KEY": "x"})
    assert found.profile("grok").binary == str(file)
    assert "which does not exist" in str(found.profile("codex").why_not())


def test_an_unknown_pool_names_the_known_ones(environ: dict[str, str]) -> None:
    with pytest.raises(UnknownNameError, match=r"there is no pool 'gemini' · pools: claude-code, echo"):
        registry.load(Home(), environ).profile("gemini")


def test_a_local_provider_is_checked_once_and_again_when_it_changed(
    environ: dict[str, str], binaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import bullswarm_core.pools.connector_schema as schema

    executable(binaries, "mine")
    home = Home()
    folder = local(home, "mine", CONNECTOR)
    calls: list[str] = []
    real = schema.validate_connector

    def counting(data: Any, *, file: str) -> dict[str, Any]:
        calls.append(file)
        return real(data, file=file)

    monkeypatch.setattr(schema, "validate_connector", counting)
    assert "mine" in ids(registry.load(home, environ))
    assert "mine" in ids(registry.load(home, environ))
    assert len(calls) == 1
    (folder / "connector.json").write_text(json.dumps(CONNECTOR | {"costRank": "x"}), encoding="utf-8")
    found = registry.load(home, environ)
    assert "mine" not in ids(found)
    assert [problem.name for problem in found.problems] == ["mine"]
    assert 'connector.json: costRank: "x" is not allowed' in found.problems[0].message


def test_a_dry_run_writes_nothing_at_all(environ: dict[str, str], own_home: Path) -> None:
    home = Home()
    local(home, "mine", CONNECTOR, "def sign_in(*args): ...\n")
    before = files_below(own_home)
    registry.load(home, environ, write_cache=False)
    assert files_below(own_home) == before
    registry.load(home, environ)
    assert any("cache" in file for file in files_below(own_home))


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        ("{", None, "line 1"),
        ("[]", None, "(the whole file)"),
        (None, None, "there is neither a connector.json nor a provider.py"),
        (CONNECTOR, "raise RuntimeError('boom')", "RuntimeError: boom"),
        (CONNECTOR, "def accounts(connector, environ): return 1 / 0", "ZeroDivisionError"),
        (CONNECTOR, "import sys\nsign_in = lambda *args: None", "AttributeError"),
        (None, "CONNECTOR = {'name': 'mine'}", "schemaVersion: is missing"),
        (CONNECTOR | {"name": "codex"}, None, "the name codex is taken: this one is skipped"),
    ],
)  # fmt: skip
def test_a_broken_provider_is_reported_on_itself_and_stops_nobody(
    environ: dict[str, str], binaries: Path, data: Any, code: str | None, message: str
) -> None:
    executable(binaries, "mine")
    executable(binaries, "codex")
    home = Home()
    folder = local(home, "broken", data, code)
    found = registry.load(home, environ)
    assert ids(found) == ["claude-code", "codex", "echo"]
    assert len(found.problems) == 1
    assert message in found.problems[0].message
    assert str(folder) in found.problems[0].where + found.problems[0].message
    assert found.profile("codex").connector.origin == "packaged"


def test_a_provider_may_be_code_alone_and_have_accounts(environ: dict[str, str], binaries: Path) -> None:
    executable(binaries, "mine")
    home = Home()
    code = (
        "from bullswarm_core.pools.connector import Account\n"
        f"CONNECTOR = {CONNECTOR!r}\n"
        "def accounts(connector, environ):\n"
        "    return [Account(), Account('work', '/w', {'WHO': 'work'}), Account('BAD NAME')]\n"
    )
    local(home, "mine", None, code)
    found = registry.load(home, environ)
    assert ids(found) == ["claude-code", "echo", "mine", "mine:work"]
    assert found.profile("mine:work").environment == {"WHO": "work"}
    assert "'BAD NAME' is no pool name" in found.problems[0].message


CLAUDE = CONNECTOR | {
    "binary": "claude",
    "configFolder": {"variable": "CLAUDE_CONFIG_DIR", "default": "~/.claude"},
}


@pytest.mark.parametrize("named", [None, ".claude-work"])
def test_one_account_is_one_pool_whoever_speaks_for_it(
    environ: dict[str, str], binaries: Path, own_home: Path, named: str | None
) -> None:
    executable(binaries, "real-claude")
    (binaries / "claude").symlink_to(binaries / "real-claude")
    (own_home / ".claude-work").mkdir()
    (own_home / ".claude-work" / "settings.json").write_text("{}", encoding="utf-8")
    chosen = {"CLAUDE_CONFIG_DIR": str(own_home / named)} if named else {}
    home = Home()
    folder = local(home, "mine", CLAUDE | {"binary": "real-claude"})
    found = registry.load(home, environ | chosen)
    first = "claude-code:work" if named else "claude-code"
    assert ids(found) == ["claude-code", "claude-code:work", "echo"]
    (problem,) = found.problems
    assert (problem.name, problem.where) == ("mine", str(folder))
    assert problem.message.startswith("mine is skipped") and f"which is the pool {first} ·" in problem.message
    assert found.why_no_pool("mine") == problem.message


@pytest.mark.parametrize("change", [{"binary": "mine"}, {"configFolder": {"default": "~/.mine"}}])
def test_another_binary_or_another_folder_is_another_pool(
    environ: dict[str, str], binaries: Path, change: dict[str, Any]
) -> None:
    executable(binaries, "claude")
    executable(binaries, "mine")
    local(Home(), "mine", CLAUDE | change)
    found = registry.load(Home(), environ)
    assert ids(found) == ["claude-code", "echo", "mine"] and found.problems == ()


def test_without_a_folder_a_cli_runs_its_default_account(environ: dict[str, str], binaries: Path) -> None:
    executable(binaries, "claude")
    local(Home(), "mine", CONNECTOR | {"binary": "claude"})
    found = registry.load(Home(), environ)
    assert ids(found) == ["claude-code", "echo"] and "with the default account" in found.problems[0].message


def test_one_interpreter_may_run_two_programs(environ: dict[str, str]) -> None:
    local(Home(), "mine", CONNECTOR | {"binary": "{python}"})
    assert ids(registry.load(Home(), environ)) == ["claude-code", "echo", "mine"]


def test_one_account_id_in_two_folders_is_one_pool(environ: dict[str, str], binaries: Path, own_home: Path) -> None:
    executable(binaries, "claude")
    (own_home / ".claude.json").write_text('{"oauthAccount": {"accountUuid": "u1"}}', encoding="utf-8")
    code = "from bullswarm_core.pools.connector import Account\ndef accounts(*_): return [Account(None, '/w', account='u1')]\n"
    local(Home(), "mine", CLAUDE, code)
    assert ids(registry.load(Home(), environ)) == ["claude-code", "echo"]


def test_the_second_takes_over_when_the_first_is_turned_off(environ: dict[str, str], binaries: Path) -> None:
    executable(binaries, "claude")
    home = Home().ensure()
    local(home, "mine", CLAUDE)
    home.providers_file.write_text('{"disabled": ["claude-code"]}', encoding="utf-8")
    found = registry.load(home, environ)
    assert ids(found) == ["echo", "mine"] and found.problems == ()


def test_a_provider_without_a_pool_says_why(environ: dict[str, str], binaries: Path) -> None:
    executable(binaries, "grok")
    home = Home().ensure()
    home.providers_file.write_text('{"disabled": ["opencode"]}', encoding="utf-8")
    found = registry.load(home, environ)
    assert found.why_no_pool("codex") == found.why_no_pool("codex:work") == "codex was not found on PATH"
    assert found.why_no_pool("opencode") == "opencode is turned off: bullswarm provider enable opencode"
    assert found.why_no_pool("grok") is None and found.why_no_pool("nobody") is None


def test_a_disabled_provider_has_no_pools_and_a_damaged_list_disables_none(environ: dict[str, str]) -> None:
    home = Home().ensure()
    home.providers_file.write_text('{"disabled": ["echo"]}', encoding="utf-8")
    found = registry.load(home, environ)
    assert ids(found) == ["claude-code"]
    assert found.disabled == {"echo"}
    home.providers_file.write_text("{", encoding="utf-8")
    found = registry.load(home, environ)
    assert "echo" in ids(found)
    assert found.problems[0].name == "providers.json"


def test_an_installed_package_brings_its_provider(
    environ: dict[str, str], binaries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(binaries, "mine")
    site = tmp_path / "site"
    package = site / "their_provider"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "connector.json").write_text(json.dumps(CONNECTOR), encoding="utf-8")
    info = site / "their_provider-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-provider\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(
        "[bullswarm.providers]\nmine = their_provider\ngone = no_such_module\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(site)
    home = Home()
    found = registry.load(home, environ)
    assert found.profile("mine").connector.origin == "installed"
    assert [problem.name for problem in found.problems] == ["gone"]
    # From the cache now: the installation is not asked again.
    monkeypatch.setattr(installed, "_ask", lambda: pytest.fail("asked again"))
    assert "mine" in ids(registry.load(home, environ))


def test_an_optional_provider_is_loaded_only_when_it_is_turned_on(
    environ: dict[str, str], binaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(binaries, "gemini")
    home = Home().ensure()
    loaded: list[str] = []
    real = registry._packaged

    def noting(folder: Path, name: str) -> Loaded:
        loaded.append(name)
        return real(folder, name)

    monkeypatch.setattr(registry, "_packaged", noting)
    found = registry.load(home, environ)
    assert not set(loaded) & set(registry.OPTIONAL)
    assert (ids(found), found.optional) == (["claude-code", "echo"], registry.OPTIONAL)
    assert found.why_no_pool("gemini") == "gemini is turned off: bullswarm provider enable gemini"
    home.providers_file.write_text('{"enabled": ["gemini", "qwen"]}', encoding="utf-8")
    found = registry.load(home, environ)
    assert ids(found) == ["claude-code", "echo", "gemini"] and found.problems == ()
    assert set(found.optional) == {"copilot", "kimi", "glm"}
    assert found.why_no_pool("gemini") is None and found.why_no_pool("qwen") == "qwen was not found on PATH"
    home.providers_file.write_text('{"enabled": ["gemini"], "disabled": ["gemini"]}', encoding="utf-8")
    assert ids(registry.load(home, environ)) == ["claude-code", "echo"]
    assert registry.load(home, environ | {registry.NO_PACKAGED: "1"}).optional == ()


def test_a_provider_says_whether_an_account_has_a_meter(environ: dict[str, str], binaries: Path) -> None:
    executable(binaries, "mine")
    code = "def has_meter(connector, account, environ):\n    return 'PLAN' in environ\n"
    local(Home(), "mine", CONNECTOR | {"meter": {"type": "reader"}}, code)
    assert registry.load(Home(), environ).profile("mine").connector.meter.type == "none"
    assert registry.load(Home(), environ | {"PLAN": "1"}).profile("mine").connector.meter.type == "reader"
