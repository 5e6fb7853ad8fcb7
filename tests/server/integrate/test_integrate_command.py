"""`bullswarm integrate`: shown first, written once, taken out to the byte, and nothing of anybody else's touched."""

from __future__ import annotations

import io
import json
import tomllib
from pathlib import Path

import pytest
from tests.server.integrate.conftest import COMMANDS, PersonsHome
from tests.server.integrate.furnished import CLAUDE_JSON, CONFIG, RULES, SETTINGS, furnish

from bullswarm_server.integrate import sources
from bullswarm_server.integrate.blocks import BEGIN, END

# --- showing and agreeing


def test_without_yes_and_without_a_terminal_it_shows_and_writes_nothing(persons: PersonsHome, tmp_path: Path) -> None:
    furnish(persons)
    before = persons.tree()
    said = persons.say("install")
    assert said.code == 1
    assert "pass --yes to approve" in said.err
    assert "+++ ~/.codex/config.toml" in said.out
    assert f'+command = "{COMMANDS["bullswarm"]}"' in said.out
    assert persons.tree() == before
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("yes\n", 0), ("\n", 1), ("n\n", 1), ("", 1)])
def test_on_a_terminal_it_asks(persons: PersonsHome, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    terminal = io.StringIO(answer)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    said = persons.say("install")
    assert said.code == code
    assert "Write this? [y/N]" in said.out
    asked = said.out[: said.out.index("Write this?")].splitlines()
    files = [line.strip() for line in asked[asked.index("Files:") + 1 :] if line]
    # The many files of the mod are one folder.
    assert ("~/.claude.json" in files, len(files)) == (True, 16)
    assert (persons.root / ".claude.json").exists() is (code == 0)


def test_no_secret_is_shown(persons: PersonsHome) -> None:
    key, token = "sk-ant-0123456789abcdefghij", "ghp_0123456789abcdefghij0123"
    persons.write(
        ".claude.json", f'{{"mcpServers":{{"x":{{"command":"a","args":["{token}"],"env":{{"API_KEY":"{key}"}}}}}}}}'
    )
    persons.write(
        ".codex/config.toml",
        f'mcp_servers = {{ x = {{ command = "a", args = ["{token}"], env = {{ API_KEY = "{key}" }} }} }}',
    )
    persons.write(
        ".config/opencode/opencode.json", f'{{\n  "provider": {{"a": {{"apiKey": "{key}", "x": "{token}"}}}}\n}}'
    )
    for words in (("install",), ("install", "--json"), ("install", "--yes"), ("status",), ("remove",)):
        said = persons.say(*words)
        assert key not in said.out + said.err
        assert token not in said.out + said.err
        assert said.out


def test_the_same_text_for_several_agents_is_shown_once(persons: PersonsHome) -> None:
    said = persons.say("install")
    assert said.out.count("# Delegate with bullswarm") == 1
    assert "the same text as ~/.claude/skills/delegate/SKILL.md" in said.out


# --- what is written


def test_install_writes_what_each_agent_needs_and_status_agrees(persons: PersonsHome) -> None:
    furnish(persons)
    assert persons.say("status").code == 1
    assert persons.install().code == 0
    assert persons.say("status").code == 0
    claude = json.loads(persons.read(".claude.json"))
    assert claude["mcpServers"]["bullswarm"] == {
        "type": "stdio", "command": COMMANDS["bullswarm"], "args": ["mcp"], "env": {},
    }  # fmt: skip
    codex = tomllib.loads(persons.read(".codex/config.toml"))
    assert codex["mcp_servers"]["bullswarm"] == {
        "command": COMMANDS["bullswarm"],
        "args": ["mcp"],
        "env_vars": ["BULLSWARM_HOME", "BULLSWARM_DEPTH", "BULLSWARM_ROOT", "BULLSWARM_CALLER", "CODEX_HOME"],
        "startup_timeout_sec": 30,
        "tool_timeout_sec": 600,
        "default_tools_approval_mode": "approve",
    }
    assert '"bullswarm": {\n' in persons.read(".config/opencode/opencode.jsonc")
    assert "// keep" in persons.read(".config/opencode/opencode.jsonc")
    assert tomllib.loads(persons.read(".grok/config.toml"))["mcp_servers"]["bullswarm"]["enabled"] is True
    for folder in (".claude", ".codex", ".config/opencode", ".grok"):
        assert "name: delegate" in persons.read(f"{folder}/skills/delegate/SKILL.md")
    for file in (".claude/CLAUDE.md", ".codex/AGENTS.md", ".config/opencode/AGENTS.md", ".grok/AGENTS.md"):
        assert BEGIN in persons.read(file)
        assert END in persons.read(file)
    assert persons.read(".claude/CLAUDE.md").startswith(RULES)


def test_hooks_run_the_absolute_command_beside_the_persons_own_with_limits_in_seconds(persons: PersonsHome) -> None:
    furnish(persons)
    persons.install()
    for file, agent in ((".claude/settings.json", "claude"), (".codex/hooks.json", "codex")):
        hooks = json.loads(persons.read(file))["hooks"]
        ours = [hook for groups in hooks.values() for group in groups for hook in group["hooks"]]
        ours = [hook for hook in ours if hook["command"] != "/mine/guard.sh"]
        assert len(ours) >= 4
        assert all(hook["command"].startswith(f"{COMMANDS['bullswarm-hook']} {agent} ") for hook in ours)
        assert all(0 < hook["timeout"] <= 600 for hook in ours)  # seconds, not milliseconds
    first = json.loads(persons.read(".claude/settings.json"))["hooks"]["PreToolUse"][0]
    assert first["hooks"][0]["command"] == "/mine/guard.sh"
    assert f'"{COMMANDS["bullswarm-hook"]}"' in persons.read(".config/opencode/plugin/bullswarm.js")


def test_a_second_install_changes_nothing(persons: PersonsHome) -> None:
    furnish(persons)
    persons.install("--trust-hooks")
    before, backups = persons.tree(), persons.backups()
    said = persons.install("--trust-hooks")
    assert said.code == 0
    assert said.out.count("nothing to do") == 4
    assert persons.tree() == before
    assert persons.backups() == backups


def test_each_changed_file_is_backed_up_once_and_keeps_its_mode(persons: PersonsHome) -> None:
    furnish(persons)
    originals = {name: data for name, (_, data) in persons.tree().items()}
    modes = {name: mode for name, (mode, _) in persons.tree().items()}
    persons.install()
    backups = persons.backups()
    assert len(backups) == 7
    for backup in backups:
        original = str(backup).partition(".bullswarm-backup-")[0]
        assert backup.read_bytes() == originals[original]
    now = persons.tree()
    assert all(now[name][0] == mode for name, mode in modes.items())
    assert {f"{backup.lstat().st_mode:o}" for backup in backups} == {"100600", "100640", "100644"}


# --- taking out


@pytest.mark.parametrize("trusting", [False, True])
def test_remove_gives_every_byte_back(persons: PersonsHome, trusting: bool) -> None:
    furnish(persons)
    before = persons.tree()
    persons.install(*(["--trust-hooks"] if trusting else []))
    assert persons.remove().code == 0
    assert persons.tree() == before
    assert persons.backups() == []


def test_remove_leaves_an_empty_home_empty(persons: PersonsHome) -> None:
    persons.install("--trust-hooks")
    persons.remove()
    assert persons.tree() == {}


def test_remove_takes_ours_out_of_what_others_wrote_since(persons: PersonsHome) -> None:
    furnish(persons)
    persons.install()
    claude = json.loads(persons.read(".claude.json"))
    persons.write(".claude.json", json.dumps({**claude, "numStartups": 8}, indent=2))  # as Claude Code rewrites it
    persons.write(".codex/config.toml", persons.read(".codex/config.toml") + '\n[mcp_servers.new]\ncommand = "n"\n')
    persons.write(".claude/CLAUDE.md", persons.read(".claude/CLAUDE.md") + "\n- and brief\n")
    settings = json.loads(persons.read(".claude/settings.json"))
    settings["hooks"]["Stop"] = [{"hooks": [{"type": "command", "command": "/mine/bell.sh"}]}]
    persons.write(".claude/settings.json", json.dumps(settings, indent=4))
    persons.remove()
    assert json.loads(persons.read(".claude.json")) == {**json.loads(CLAUDE_JSON), "numStartups": 8}
    assert persons.read(".codex/config.toml") == CONFIG + '\n[mcp_servers.new]\ncommand = "n"\n'
    assert persons.read(".claude/CLAUDE.md") == f"{RULES}\n\n- and brief\n"
    left = json.loads(persons.read(".claude/settings.json"))
    assert left == {
        **json.loads(SETTINGS),
        "hooks": {**json.loads(SETTINGS)["hooks"], "Stop": settings["hooks"]["Stop"]},
    }
    assert len(persons.backups()) >= 3  # what the person wrote is kept as it was before the removal, too


def test_without_its_record_remove_still_takes_ours_out(persons: PersonsHome, tmp_path: Path) -> None:
    furnish(persons)
    persons.install()
    (tmp_path / "state" / "integrations.json").unlink()
    assert persons.remove().code == 0
    assert json.loads(persons.read(".claude.json")) == json.loads(CLAUDE_JSON)
    assert persons.read(".codex/config.toml") == CONFIG
    assert "bullswarm" not in persons.read(".claude/CLAUDE.md")
    assert not (persons.root / ".grok/skills/delegate/SKILL.md").exists()


def test_remove_needs_no_agent_on_path(persons: PersonsHome) -> None:
    persons.install()
    persons.with_agents([])
    assert persons.remove("--agents", "codex,claude").code == 0
    assert not (persons.root / ".codex").exists()
    assert persons.remove().code == 0
    assert persons.tree() == {}


def test_install_says_what_no_setting_can_settle(persons: PersonsHome) -> None:
    said = persons.install()
    assert 'claude -p "…" --allowedTools mcp__bullswarm\n' in said.out
    assert 'grok --allow mcp__bullswarm -p "…"\n' in said.out
    assert "with nobody to ask" not in persons.install().out
    persons.write(".claude/settings.json", '{"enabledPlugins": {"bullswarm@bullswarm": true}}')
    assert "--allowedTools mcp__plugin_bullswarm_bullswarm\n" in persons.install("--agents", "claude").out


# --- which agents


def test_an_agent_that_is_not_here_is_reported_and_is_an_error_only_when_named(persons: PersonsHome) -> None:
    persons.with_agents(["codex"])
    said = persons.install()
    assert said.code == 0
    assert "Claude Code: claude is not on PATH, left out" in said.out
    assert persons.say("status").code == 0
    assert not (persons.root / ".claude.json").exists()
    assert persons.install("--agents", "claude").code == 1
    assert persons.say("status", "--agents", "claude,codex").code == 1
    assert not (persons.root / ".claude.json").exists()


def test_with_no_agent_at_all_status_is_not_complete(persons: PersonsHome) -> None:
    persons.with_agents([])
    assert persons.say("status").code == 1
    assert persons.install().code == 0


@pytest.mark.parametrize("names", ["cursor", "claude,cursor", ",", ""])
def test_an_unknown_agent_is_a_wrong_call(persons: PersonsHome, names: str) -> None:
    said = persons.say("install", "--agents", names)
    assert said.code == 2
    assert "claude,codex,opencode,grok" in said.err


def test_folders_that_the_environment_names_are_used(persons: PersonsHome, tmp_path: Path) -> None:
    folders = {
        "CLAUDE_CONFIG_DIR": str(tmp_path / "c"), "CODEX_HOME": str(tmp_path / "x"),
        "XDG_CONFIG_HOME": str(tmp_path / "g"), "GROK_HOME": str(tmp_path / "k"),
    }  # fmt: skip
    assert persons.install(**folders).code == 0
    assert persons.tree() == {}
    assert (tmp_path / "c" / ".claude.json").exists()
    assert (tmp_path / "x" / "config.toml").exists()
    assert (tmp_path / "g" / "opencode" / "opencode.json").exists()
    assert (tmp_path / "k" / "config.toml").exists()
    assert persons.say("status", **folders).code == 0
    assert persons.remove(**folders).code == 0
    assert not any((tmp_path / name).exists() for name in "cxgk")


def test_the_document(persons: PersonsHome) -> None:
    document = persons.say("install", "--yes", "--json").document
    assert document["schemaVersion"] == "bullswarm.integrate.v1"
    assert [entry["agent"] for entry in document["agents"]] == ["claude", "codex", "opencode", "grok"]
    assert all(entry["written"] and not entry["problems"] for entry in document["agents"])
    document = persons.say("status", "--json").document
    parts = {part["part"]: part["state"] for part in document["agents"][1]["parts"]}
    assert parts == {
        "mcp": "installed", "hooks": "installed", "hook trust": "missing", "skill": "installed",
        "instructions": "installed",
    }  # fmt: skip
    assert document["agents"][1]["complete"] is True
    assert Path(document["claudePluginFolder"], ".claude-plugin", "plugin.json").is_file()


# --- what is written only for those who ask


def test_the_status_line_comes_when_it_is_asked_for_and_goes_again(
    persons: PersonsHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(persons)
    before = persons.tree()
    persons.install()
    assert "statusLine" not in persons.read(".claude/settings.json")
    assert "status line: integrate install with --statusline" in persons.remove().out + persons.install().out
    assert persons.install("--statusline").code == 0
    line = json.loads(persons.read(".claude/settings.json"))["statusLine"]
    assert line == {"type": "command", "command": f"{COMMANDS['bullswarm']} statusline"}
    monkeypatch.setattr(sources, "installed_command", lambda name, environ: f"/new/bin/{name}")
    persons.install()
    assert json.loads(persons.read(".claude/settings.json"))["statusLine"]["command"] == "/new/bin/bullswarm statusline"
    persons.remove()
    assert persons.tree() == before


def test_a_status_line_of_the_persons_own_stays(persons: PersonsHome) -> None:
    own = '{\n  "statusLine": {"type": "command", "command": "~/mine.sh"}\n}\n'
    persons.write(".claude/settings.json", own)
    assert persons.install("--agents", "claude").code == 0
    assert persons.say("status", "--agents", "claude").code == 0
    said = persons.install("--agents", "claude", "--statusline")
    assert said.code == 1
    assert "you have a status line of your own" in said.out
    persons.remove()
    assert persons.read(".claude/settings.json") == own


def test_trust_in_new_hooks_is_never_given_unasked(persons: PersonsHome) -> None:
    persons.install("--agents", "codex", "--trust-hooks")
    trusted = tomllib.loads(persons.read(".codex/config.toml"))["hooks"]["state"]
    assert len(trusted) == 4
    assert all(entry["trusted_hash"].startswith("sha256:") for entry in trusted.values())
    before = persons.read(".codex/config.toml").replace(next(iter(trusted.values()))["trusted_hash"], "sha256:0")
    persons.write(".codex/config.toml", before)
    assert "for some hooks only" in persons.say("status", "--agents", "codex").out
    persons.install("--agents", "codex")
    assert persons.read(".codex/config.toml") == before
    persons.install("--agents", "codex", "--trust-hooks")
    assert tomllib.loads(persons.read(".codex/config.toml"))["hooks"]["state"] == trusted
