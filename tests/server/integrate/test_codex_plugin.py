"""Codex by one plug-in: the one form takes the other out, each to the byte, and a plug-in of the person's own stays."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest
from tests.server.integrate.conftest import COMMANDS, PersonsHome
from tests.server.integrate.furnished import CONFIG, furnish

from bullswarm_server.integrate import sources
from bullswarm_server.integrate.codex import server_entry
from bullswarm_server.integrate.sources import claude_mod, find_sources

PACKAGED = Path(claude_mod())
CACHE = ".codex/plugins/cache/bullswarm"
PLUGIN = f"{CACHE}/bullswarm/local"
TABLES = f"""
[marketplaces.bullswarm]
source_type = "local"
source = "{PACKAGED}"

[plugins."bullswarm@bullswarm"]
enabled = true
"""


def config(persons: PersonsHome) -> dict[str, object]:
    return tomllib.loads(persons.read(".codex/config.toml"))


def states(persons: PersonsHome) -> dict[str, str]:
    (agent,) = persons.say("status", "--agents", "codex", "--json").document["agents"]
    return {part["part"]: part["state"] for part in agent["parts"]}


def add_packaged(persons: PersonsHome) -> None:
    """What `codex plugin marketplace add` and `codex plugin add` leave of the packaged folder."""
    shutil.copytree(PACKAGED, persons.root / PLUGIN)
    persons.write(".codex/config.toml", CONFIG + TABLES)


def test_the_packaged_plugin_says_what_integrate_writes() -> None:
    manifest = json.loads((PACKAGED / ".codex-plugin" / "plugin.json").read_text(encoding="utf-8"))
    other = json.loads((PACKAGED / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8"))
    # What the mod needs concerns Claude Code alone.
    shared = set(other) - {"version", "types", "userConfig"}
    assert {key: manifest[key] for key in shared} == {key: other[key] for key in shared}
    # With a version in it Codex would keep each one's files in another folder.
    assert "version" not in manifest
    servers = json.loads((PACKAGED / manifest["mcpServers"]).read_text(encoding="utf-8"))
    assert servers == {"mcpServers": {"bullswarm": server_entry("bullswarm")}}
    template = find_sources({"PATH": "/nowhere"}).templates["codex.json"]
    assert json.loads((PACKAGED / manifest["hooks"]).read_text(encoding="utf-8")) == json.loads(template)
    assert (PACKAGED / manifest["skills"] / "delegate" / "SKILL.md").is_file()


def test_the_plugin_has_the_absolute_commands_and_nothing_stands_beside_it(persons: PersonsHome) -> None:
    furnish(persons)
    said = persons.install("--agents", "codex", "--codex-plugin")
    assert said.code == 0, said.out
    assert config(persons) == {
        **tomllib.loads(CONFIG),
        "marketplaces": {"bullswarm": {"source_type": "local", "source": str(PACKAGED)}},
        "plugins": {"bullswarm@bullswarm": {"enabled": True}},
    }
    servers = json.loads(persons.read(f"{PLUGIN}/.codex-plugin/mcp.json"))
    assert servers == {"mcpServers": {"bullswarm": server_entry(COMMANDS["bullswarm"])}}
    hooks = json.loads(persons.read(f"{PLUGIN}/.codex-plugin/hooks.json"))["hooks"]
    commands = [hook["command"] for groups in hooks.values() for group in groups for hook in group["hooks"]]
    assert all(command.startswith(f"{COMMANDS['bullswarm-hook']} codex ") for command in commands)
    assert "name: delegate" in persons.read(f"{PLUGIN}/skills/delegate/SKILL.md")
    for name in (".codex/hooks.json", ".codex/skills"):
        assert not (persons.root / name).exists()
    assert states(persons) == {
        "plug-in": "installed", "marketplace": "installed", "plug-in entry": "installed", "plug-in hook trust": "missing",
        "instructions": "installed",
    }  # fmt: skip
    assert persons.say("status", "--agents", "codex").code == 0


def test_the_form_stays_until_another_is_asked_for_and_all_of_it_goes_to_the_byte(persons: PersonsHome) -> None:
    furnish(persons)
    before = persons.tree()
    persons.install("--agents", "codex", "--trust-hooks")
    plain = persons.tree()
    persons.install("--agents", "codex", "--codex-plugin", "--trust-hooks")
    assert "mcp_servers" not in persons.read(".codex/config.toml").replace("mcp_servers.other", "")
    assert not (persons.root / ".codex/hooks.json").exists()
    as_plugin = persons.tree()
    assert persons.install("--agents", "codex").code == 0
    assert persons.tree() == as_plugin
    trusted = config(persons)["hooks"]
    assert isinstance(trusted, dict)
    assert all(key.startswith("bullswarm@bullswarm:.codex-plugin/hooks.json:") for key in trusted["state"])
    assert len(trusted["state"]) == 4
    persons.install("--agents", "codex", "--no-codex-plugin", "--trust-hooks")
    assert persons.tree() == plain
    assert persons.install("--agents", "codex", "--codex-plugin").code == 0
    assert persons.remove("--agents", "codex").code == 0
    assert persons.tree() == before
    assert persons.backups() == []


@pytest.mark.parametrize("words", [("--codex-plugin",), ("--no-codex-plugin",), ("--codex-plugin", "--trust-hooks")])
def test_from_nothing_to_nothing(persons: PersonsHome, words: tuple[str, ...]) -> None:
    persons.install("--agents", "codex", "--no-codex-plugin")
    persons.install("--agents", "codex", *words)
    persons.remove("--agents", "codex")
    assert persons.tree() == {}
    assert list(persons.root.iterdir()) == []


def test_without_a_record_the_plugin_still_goes(persons: PersonsHome, tmp_path: Path) -> None:
    furnish(persons)
    persons.install("--agents", "codex", "--codex-plugin")
    (tmp_path / "state" / "integrations.json").unlink()
    assert persons.remove("--agents", "codex").code == 0
    assert config(persons) == tomllib.loads(CONFIG)
    assert not (persons.root / CACHE).exists()


def test_another_installation_and_what_lies_about_in_the_cache_are_brought_up_to_date(
    persons: PersonsHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    persons.install("--agents", "codex", "--codex-plugin")
    persons.write(f"{CACHE}/bullswarm/0.0.9/README.md", "old")
    persons.write(f"{PLUGIN}/skills/other/SKILL.md", "old")
    moved = persons.read(".codex/config.toml").replace(str(PACKAGED), "/old/venv/bullswarm_server/_claude_mod")
    persons.write(".codex/config.toml", moved.replace("enabled = true", "enabled = false"))
    monkeypatch.setattr(sources, "installed_command", lambda name, environ: f"/new/bin/{name}")
    assert persons.install("--agents", "codex", "--codex-plugin").code == 0
    assert persons.say("status", "--agents", "codex").code == 0
    assert "/new/bin/bullswarm" in persons.read(f"{PLUGIN}/.codex-plugin/mcp.json")
    assert config(persons)["plugins"] == {"bullswarm@bullswarm": {"enabled": True}}
    assert not (persons.root / CACHE / "bullswarm" / "0.0.9").exists()
    assert not (persons.root / PLUGIN / "skills" / "other").exists()
    persons.remove("--agents", "codex")
    # Of the settings that were edited by hand there is a copy.
    (left,) = (path for path in persons.root.rglob("*") if path.is_file())
    assert left.name.startswith("config.toml.bullswarm-backup-")


def test_a_plugin_that_the_person_turned_off_gives_way_to_the_settings(persons: PersonsHome) -> None:
    persons.install("--agents", "codex", "--codex-plugin")
    persons.write(".codex/config.toml", persons.read(".codex/config.toml").replace("true", "false"))
    assert persons.install("--agents", "codex").code == 0
    assert "plugins" not in config(persons)
    assert "mcp_servers" in config(persons)
    assert not (persons.root / CACHE).exists()


def test_the_packaged_plugin_that_a_person_added_stays_theirs(persons: PersonsHome) -> None:
    add_packaged(persons)
    added = persons.tree()
    said = persons.install("--agents", "codex")
    assert said.code == 0, said.out
    assert states(persons) == {"plug-in hook trust": "missing", "instructions": "installed"}
    (agent,) = persons.say("status", "--json", "--agents", "codex").document["agents"]
    assert agent["form"] == "the plug-in bullswarm@bullswarm"
    assert "mcp_servers.bullswarm" not in persons.read(".codex/config.toml")
    persons.install("--agents", "codex", "--trust-hooks")
    assert persons.read(".codex/config.toml").count("trusted_hash") == 4
    persons.remove("--agents", "codex")
    assert persons.tree() == added
    # Asked for it in so many words, integrate takes it over, and takes it out.
    persons.install("--agents", "codex", "--codex-plugin")
    assert COMMANDS["bullswarm"] in persons.read(f"{PLUGIN}/.codex-plugin/mcp.json")
    assert not (persons.root / PLUGIN / "README.md").exists()
    persons.install("--agents", "codex", "--no-codex-plugin")
    persons.remove("--agents", "codex")
    assert config(persons) == tomllib.loads(CONFIG)
    assert not (persons.root / CACHE).exists()


def test_a_plugin_from_elsewhere_takes_the_settings_out_and_stays(persons: PersonsHome) -> None:
    persons.install("--agents", "codex")
    elsewhere = '\n[plugins."bullswarm@company"]\nenabled = true\n'
    persons.write(".codex/config.toml", persons.read(".codex/config.toml") + elsewhere)
    assert "the plug-in bullswarm@company brings it too" in persons.say("status", "--agents", "codex").out
    assert persons.install("--agents", "codex", "--codex-plugin").code == 0
    assert config(persons) == {"plugins": {"bullswarm@company": {"enabled": True}}}
    assert not (persons.root / ".codex/hooks.json").exists()
    assert persons.say("status", "--agents", "codex").code == 0


def test_a_marketplace_of_that_name_that_is_not_ours_is_left_alone(persons: PersonsHome) -> None:
    text = '[marketplaces.bullswarm]\nsource_type = "git"\nsource = "https://example.org/x.git"\n'
    persons.write(".codex/config.toml", text)
    before = persons.tree()
    said = persons.install("--agents", "codex", "--codex-plugin")
    assert said.code == 1
    assert "the marketplace named bullswarm is somebody else's" in said.out
    assert persons.tree() == before
    # The settings need none.
    assert persons.install("--agents", "codex").code == 0
    persons.remove("--agents", "codex")
    assert persons.tree() == before
