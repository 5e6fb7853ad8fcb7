"""Homes as people really have them: odd line ends, links, comments, broken files, things that aren't ours."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from tests.server.integrate.conftest import COMMANDS, PersonsHome

BOM = b"\xef\xbb\xbf"
ENTRY = {"command": "/usr/bin/other", "args": []}


# --- odd, and kept as it is


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (".claude.json", b""),
        (".claude.json", b"\n"),
        (".claude.json", b"{}"),
        (".claude.json", BOM + b'{\r\n\t"a": 1\r\n}\r\n'),
        (".claude.json", b'{"a":1}'),
        (".claude/settings.json", b'{"hooks":{}}'),
        (".claude/settings.json", b'{\n  "hooks": {\n    "SessionStart": []\n  }\n}'),
        (".claude/CLAUDE.md", b""),
        (".claude/CLAUDE.md", BOM + b"# Mine\r\n\r\nlast line"),
        (".codex/config.toml", b""),
        (".codex/config.toml", BOM + b'model = "x" # mine\r\n\r\n[a]\r\nb = 1'),
        (".codex/config.toml", b'mcp_servers = { other = { command = "a" } }\n'),
        (".codex/hooks.json", b'{"description": "mine", "hooks": {"Stop": []}}\n'),
        (".config/opencode/opencode.json", BOM + b'{\n  // mine\n  "theme": "x", /* y */\n}\n'),
        (".config/opencode/opencode.jsonc", b"{\n  /* nothing yet */\n}"),
        (".grok/config.toml", b"# only a comment"),
    ],
)
def test_every_byte_comes_back(persons: PersonsHome, name: str, data: bytes) -> None:
    persons.write(name, data)
    before = persons.tree()
    assert persons.install().code == 0
    after = (persons.root / name).read_bytes()
    assert after != data
    assert after.startswith(BOM) == data.startswith(BOM)
    if b"\r\n" in data:
        assert b"\n" not in after.replace(b"\r\n", b"")
    assert persons.say("status").code == 0
    assert persons.remove().code == 0
    assert persons.tree() == before


def test_files_kept_elsewhere_in_the_home_behind_links_are_written_there(persons: PersonsHome) -> None:
    for name, kept in ((".claude/CLAUDE.md", "dotfiles/CLAUDE.md"), (".codex/config.toml", "dotfiles/codex.toml")):
        persons.write(kept, "# mine\n")
        (persons.root / name).parent.mkdir(parents=True, exist_ok=True)
        (persons.root / name).symlink_to(persons.root / kept)
    before = persons.tree()
    assert persons.install().code == 0
    assert (persons.root / ".codex/config.toml").is_symlink()
    assert "bullswarm" in persons.read("dotfiles/codex.toml")
    assert "bullswarm" in persons.read("dotfiles/CLAUDE.md")
    persons.remove()
    assert persons.tree() == before


def test_a_link_to_a_file_that_is_not_there_yet_stays_a_link(persons: PersonsHome) -> None:
    persons.write("dotfiles/keep", "")
    persons.write(".codex/keep", "")
    (persons.root / ".codex/AGENTS.md").symlink_to(persons.root / "dotfiles/AGENTS.md")
    before = persons.tree()
    assert persons.install("--agents", "codex").code == 0
    assert "bullswarm" in persons.read("dotfiles/AGENTS.md")
    persons.remove("--agents", "codex")
    assert persons.tree() == before


# --- refused, with the reason, and nothing written for that agent


def refused(persons: PersonsHome, agent: str, *words: str) -> str:
    """Install for all agents: this one is refused and untouched, the others are set up. Returns its message."""
    folder = {"claude": ".claude", "codex": ".codex", "opencode": ".config/opencode", "grok": ".grok"}[agent]

    def of_agent() -> dict[str, bytes]:
        place = str(persons.root / folder)
        return {name: data for name, (_, data) in persons.tree().items() if name.startswith(place)}

    before = of_agent()
    document = persons.say("install", "--yes", "--json", *words)
    assert document.code == 1
    entries = {entry["agent"]: entry for entry in document.document["agents"]}
    assert of_agent() == before
    assert not entries[agent]["written"]
    assert [name for name, entry in entries.items() if entry["written"]] == [name for name in entries if name != agent]
    problems = entries[agent]["problems"]
    assert len(problems) == len(set(problems)) > 0
    assert persons.say("status", "--agents", agent).code == 1
    return "\n".join(problems)


@pytest.mark.parametrize(
    ("agent", "name", "text", "line", "message"),
    [
        ("claude", ".claude.json", '{\n  "a": 1\n  "b": 2\n}', 3, 'expected ","'),
        ("claude", ".claude/settings.json", "{\n  // mine\n}", 2, "expected a name"),
        ("claude", ".claude.json", "[1]", 1, "the file is not an object"),
        ("claude", ".claude.json", '{\n  "mcpServers": 3\n}', 2, "mcpServers is not an object"),
        ("claude", ".claude/settings.json", '{"hooks": {"PreToolUse": {}}}', 1, "hooks.PreToolUse is not an array"),
        ("claude", ".claude/CLAUDE.md", "x\n<!-- bullswarm:begin v1 -->\n", 2, "not one pair"),
        ("codex", ".codex/config.toml", "a = 1\nb =\n", 2, "Invalid value"),
        ("codex", ".codex/config.toml", "mcp_servers = 1\n", None, "mcp_servers is not a table"),
        ("codex", ".codex/hooks.json", "{", 1, "expected a name"),
        ("opencode", ".config/opencode/opencode.json", '{\n"a": tru\n}', 2, "Expecting value"),
        ("grok", ".grok/config.toml", "[x\n", 1, "Expected"),
    ],
)
def test_a_broken_file_is_named_with_its_line(
    persons: PersonsHome, agent: str, name: str, text: str, line: int | None, message: str
) -> None:
    persons.write(name, text)
    problem = refused(persons, agent)
    assert str(persons.root / name) + ("" if line is None else f" line {line}:") in problem
    assert message in problem
    assert "nothing was written" in problem


def test_bytes_that_are_no_text_are_named_with_their_line(persons: PersonsHome) -> None:
    persons.write(".codex/AGENTS.md", b"# Mine\nna\xefve\n")
    assert "AGENTS.md line 2: bytes that are not UTF-8" in refused(persons, "codex")


def test_a_read_only_file_is_left_alone(persons: PersonsHome) -> None:
    persons.write(".claude/CLAUDE.md", "# Mine\n", mode=0o444)
    assert "is read-only · chmod u+w" in refused(persons, "claude")


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_out_of_the_home_is_not_followed(persons: PersonsHome, tmp_path: Path, what: str) -> None:
    outside = tmp_path / "store"
    outside.mkdir()
    (outside / "config.toml").write_text("# generated\n", encoding="utf-8")
    if what == "folder":
        (persons.root / ".codex").symlink_to(outside)
    else:
        persons.write(".codex/keep", "")
        (persons.root / ".codex/config.toml").symlink_to(outside / "config.toml")
    assert "outside your home" in refused(persons, "codex")
    assert (outside / "config.toml").read_text(encoding="utf-8") == "# generated\n"
    assert len(list(outside.iterdir())) == 1


def test_a_link_out_of_a_folder_that_the_environment_names_is_not_followed(
    persons: PersonsHome, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "skills").symlink_to(tmp_path / "elsewhere")
    said = persons.install("--agents", "codex", CODEX_HOME=str(tmp_path / "named"))
    assert said.code == 1
    assert "outside your home" in said.out
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert len(list((tmp_path / "named").iterdir())) == 1


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("claude", ".claude.json", json.dumps({"mcpServers": {"bullswarm": ENTRY}})),
        ("claude", ".claude.json", json.dumps({"mcpServers": {"bullswarm": {"type": "http", "url": "http://x"}}})),
        ("codex", ".codex/config.toml", '[mcp_servers.bullswarm]\ncommand = "uvx"\nargs = ["bullswarm", "mcp"]\n'),
        ("grok", ".grok/config.toml", '[mcp_servers.bullswarm]\nurl = "http://x"\n'),
        ("opencode", ".config/opencode/opencode.json", '{"mcp": {"bullswarm": {"type": "remote", "url": "http://x"}}}'),
        ("claude", ".claude/skills/delegate/SKILL.md", "---\nname: delegate\n---\nmine\n"),
        ("codex", ".codex/skills/delegate/notes.md", "mine\n"),
        ("opencode", ".config/opencode/plugin/bullswarm.js", "export const Mine = async () => ({})\n"),
    ],
)
def test_what_has_our_name_and_is_not_ours_is_left_alone(
    persons: PersonsHome, agent: str, name: str, text: str
) -> None:
    persons.write(name, text)
    assert "changes nothing that it doesn't own" in refused(persons, agent)
    assert persons.remove().code == 0
    assert persons.read(name) == text


def test_a_worker_changes_no_settings(persons: PersonsHome) -> None:
    said = persons.install(BULLSWARM_DEPTH="1")
    assert said.code == 2
    assert "BULLSWARM_DEPTH is set" in said.err
    assert persons.remove(BULLSWARM_DEPTH="1").code == 2
    assert persons.say("status", BULLSWARM_DEPTH="1").code == 1
    assert persons.install(BULLSWARM_DEPTH="0").code == 0


# --- brought up to date


def test_a_bullswarm_that_moved_is_seen_and_followed(persons: PersonsHome, monkeypatch: pytest.MonkeyPatch) -> None:
    persons.write(".codex/config.toml", "# mine\n")
    before = persons.tree()
    persons.install("--trust-hooks")
    mine = persons.read(".codex/config.toml").replace("tool_timeout_sec = 600", "tool_timeout_sec = 900 # patience")
    persons.write(".codex/config.toml", mine)
    moved = {name: f"/new/bin/{name}" for name in COMMANDS}
    monkeypatch.setattr("bullswarm_server.integrate.sources.installed_command", lambda name, environ: moved[name])
    said = persons.say("status")
    assert said.code == 1
    assert f"it starts {COMMANDS['bullswarm']}, this bullswarm is /new/bin/bullswarm" in said.out
    assert persons.install("--trust-hooks").code == 0
    assert persons.say("status").code == 0
    server = tomllib.loads(persons.read(".codex/config.toml"))["mcp_servers"]["bullswarm"]
    assert (server["command"], server["tool_timeout_sec"]) == ("/new/bin/bullswarm", 900)
    assert "# patience" in persons.read(".codex/config.toml")
    for name in (".claude.json", ".claude/settings.json", ".codex/hooks.json", ".config/opencode/plugin/bullswarm.js"):
        assert "/opt/" not in persons.read(name)
    persons.remove()
    assert persons.tree() == before


def test_what_an_older_version_wrote_is_renewed_in_its_place(persons: PersonsHome) -> None:
    old = "# Mine\n\n<!-- bullswarm:begin v0 -->\nold words\n<!-- bullswarm:end -->\n\nmore of mine\n"
    persons.write(".claude/CLAUDE.md", old)
    persons.write(".claude/skills/delegate/SKILL.md", "---\nname: delegate\n---\nold words\n<!-- bullswarm:skill -->\n")
    persons.write(
        ".codex/config.toml", '[mcp_servers.bullswarm]\ncommand = "/opt/bullswarm/bin/bullswarm"\nargs = ["mcp"]\n'
    )
    said = persons.say("status")
    assert "its text is another version's" in said.out
    assert "it lacks env_vars" in said.out
    assert persons.install().code == 0
    text = persons.read(".claude/CLAUDE.md")
    assert text.startswith("# Mine\n\n<!-- bullswarm:begin v1 -->\n")
    assert text.endswith("<!-- bullswarm:end -->\n\nmore of mine\n")
    assert "old words" not in persons.read(".claude/skills/delegate/SKILL.md")
    assert "env_vars" in persons.read(".codex/config.toml")


def test_an_entry_that_is_turned_off_is_turned_on(persons: PersonsHome) -> None:
    persons.install("--agents", "grok")
    text = persons.read(".grok/config.toml")
    persons.write(".grok/config.toml", text.replace("enabled = true", "enabled = false"))
    assert "turned off" in persons.say("status", "--agents", "grok").out
    persons.install("--agents", "grok")
    assert persons.read(".grok/config.toml") == text


# --- Claude Code's two forms


def plugin_by_settings(persons: PersonsHome) -> None:
    persons.write(".claude/settings.json", '{"enabledPlugins": {"bullswarm@bullswarm": true}}')


def plugin_by_folder(persons: PersonsHome) -> None:
    persons.write(".claude/skills/bullswarm/.claude-plugin/plugin.json", '{"name": "bullswarm"}')


@pytest.mark.parametrize("turn_on", [plugin_by_settings, plugin_by_folder])
def test_with_the_plugin_only_the_instructions_are_written(persons: PersonsHome, turn_on: object) -> None:
    turn_on(persons)  # type: ignore[operator]
    said = persons.install("--agents", "claude")
    assert said.code == 0
    assert not (persons.root / ".claude.json").exists()
    assert not (persons.root / ".claude/skills/delegate").exists()
    assert "bullswarm:begin" in persons.read(".claude/CLAUDE.md")
    said = persons.say("status", "--agents", "claude")
    assert said.code == 0
    assert "the plugin bullswarm@" in said.out


def test_a_plugin_that_comes_later_replaces_what_was_written(persons: PersonsHome) -> None:
    persons.write(".claude/settings.json", '{"enabledPlugins": {"bullswarm@bullswarm": false}}')
    persons.install("--agents", "claude")
    assert "bullswarm" in persons.read(".claude.json")
    text = persons.read(".claude/settings.json")
    persons.write(".claude/settings.json", text.replace("false", "true"))
    said = persons.say("status", "--agents", "claude")
    assert said.code == 1
    assert "brings it too; install takes this one out" in said.out
    assert persons.install("--agents", "claude").code == 0
    assert persons.read(".claude/settings.json") == '{"enabledPlugins": {"bullswarm@bullswarm": true}}'
    assert not (persons.root / ".claude.json").exists()
    assert persons.say("status", "--agents", "claude").code == 0
