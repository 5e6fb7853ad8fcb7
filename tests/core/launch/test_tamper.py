"""What a worker does to the person's own settings is seen."""

import json
import os
from pathlib import Path

import pytest
from tests.alarms import nobody_waits

from bullswarm_core.fast.tree import remove_tree
from bullswarm_core.launch.tamper import MISSING, changed, fingerprints


def test_nothing_changed_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin" / "mine.js").write_text("export {}")
    before = fingerprints([str(tmp_path / name) for name in ("settings.json", "plugin", "CLAUDE.md")])
    assert before[str(tmp_path / "CLAUDE.md")] == MISSING
    assert changed(before) == ()


@pytest.mark.parametrize("name", ["settings.json", "CLAUDE.md", "plugin/evil.js", "plugin/deep/evil.js"])
def test_each_kind_of_change_is_seen(tmp_path: Path, name: str) -> None:
    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / "plugin" / "deep").mkdir(parents=True)
    before = fingerprints([str(tmp_path / part) for part in ("settings.json", "plugin", "CLAUDE.md")])
    (tmp_path / name).write_text('{"hooks": {}}')
    assert changed(before) == (str(tmp_path / name.split("/")[0]),)


def test_what_is_taken_away_or_cannot_be_read_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")
    before = fingerprints([str(file)])
    file.unlink()
    assert changed(before) == (str(file),)
    file.symlink_to(file)
    assert changed(before) == (str(file),)
    assert changed({}) == ()


def test_a_change_that_keeps_size_and_time_is_seen_in_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "hooks" / "mine.sh"
    file.parent.mkdir()
    file.write_text("echo good")
    facts = file.stat()
    before = fingerprints([str(tmp_path / "hooks")])
    file.write_text("echo evil")
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert changed(before) == (str(tmp_path / "hooks"),)


def test_a_folder_that_was_only_touched_is_what_it_was(tmp_path: Path) -> None:
    (tmp_path / "mine.sh").write_text("echo good")
    before = fingerprints([str(tmp_path)])
    os.utime(tmp_path / "mine.sh", ns=(1, 1))
    assert changed(before) == ()


@pytest.mark.parametrize("name", ["hooks.json", "cache/a/hooks/hooks.json", "cache/.a/hooks.json"])
def test_of_a_pattern_only_what_fits_counts(tmp_path: Path, name: str) -> None:
    pattern = str(tmp_path / "plugins" / "**" / "hooks.json")
    before = fingerprints([pattern])
    file = tmp_path / "plugins" / name
    file.parent.mkdir(parents=True)
    (file.parent / "known.json").write_text("{}")
    assert changed(before) == ()
    file.write_text("{}")
    assert changed(before) == (pattern,)
    before = fingerprints([pattern])
    file.write_text("[]")
    assert changed(before) == (pattern,)


def test_of_a_file_that_the_cli_keeps_writing_only_the_named_part_counts(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    parts = [f"{file}#mcpServers", f"{file}#projects.*.mcpServers"]
    mine = {"a": {"command": "a"}}
    file.write_text(json.dumps({"starts": 1, "mcpServers": mine}))
    before = fingerprints(parts)
    file.write_text(json.dumps({"starts": 2, "projects": {"/p": {"mcpServers": {}, "seen": 1}}, "mcpServers": mine}))
    assert changed(before) == ()
    file.write_text(json.dumps({"mcpServers": mine, "projects": {"/p": {"mcpServers": mine}}}))
    assert changed(before) == (parts[1],)
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "evil"}}}))
    assert changed(before) == (parts[0],)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"mcpServers": 1}', "[" * 100_000])
def test_a_part_of_what_is_no_such_json_is_no_traceback(tmp_path: Path, content: str) -> None:
    file = tmp_path / "state.json"
    file.write_text(content)
    assert changed(fingerprints([f"{file}#mcpServers", f"{file}#projects.*.mcpServers"])) == ()


def test_a_file_that_the_first_start_makes_is_no_change_of_a_part_that_it_lacks(tmp_path: Path) -> None:
    file = tmp_path / ".claude.json"
    before = fingerprints([f"{file}#mcpServers", f"{file}#projects.*.mcpServers"])
    file.write_text('{"numStartups": 1, "projects": {"/p": {"mcpServers": {}}}}')
    assert changed(before) == ()
    file.write_text('{"mcpServers": {"evil": {"command": "sh"}}}')
    assert changed(before) == (f"{file}#mcpServers",)


def test_a_pipe_in_place_of_a_file_is_a_change_and_nobody_waits_for_its_writer(tmp_path: Path) -> None:
    paths = [str(tmp_path / "settings.json"), f"{tmp_path / '.claude.json'}#mcpServers"]
    (tmp_path / ".claude.json").write_text('{"mcpServers": {"mine": {}}}')
    (tmp_path / "settings.json").write_text("{}")
    before = fingerprints(paths)
    for name in ("settings.json", ".claude.json"):
        (tmp_path / name).unlink()
        os.mkfifo(tmp_path / name)
    with nobody_waits("settings that are a pipe"):
        assert changed(before) == tuple(paths)


@pytest.mark.parametrize("place", ["skills/evil", "skills/deep/evil", "settings.json", "CLAUDE.md", "commands"])
def test_a_link_that_was_planted_is_seen_whatever_it_leads_to(tmp_path: Path, place: str) -> None:
    """CLIs follow links: a skill may be a link to a folder, and settings one to a file that is only written later."""
    (tmp_path / "skills/deep").mkdir(parents=True)
    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/settings.json").write_text("{}")
    paths = [str(tmp_path / name) for name in ("skills", "settings.json", "CLAUDE.md", "commands")]
    for target in ("elsewhere", "elsewhere/settings.json", "not-yet"):
        before = fingerprints(paths)
        planted = tmp_path / place
        kept = planted.read_bytes() if planted.is_file() else None
        planted.unlink(missing_ok=True)
        planted.symlink_to(tmp_path / target)
        assert changed(before) == (str(tmp_path / place.split("/")[0]),), target
        planted.unlink()
        if kept is not None:
            planted.write_bytes(kept)


def test_in_a_folder_of_thousands_of_files_each_is_looked_at(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / f"{number:04}.js").write_text("ok()")
    before = fingerprints([str(tmp_path)])
    assert changed(before) == ()
    last = tmp_path / "2999.js"
    times = last.stat()
    last.write_text("no()")
    os.utime(last, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert changed(before) == (str(tmp_path),)


@pytest.mark.parametrize("guarded", ["{}/skills", "{}/**/SKILL.md"])
def test_a_folder_of_any_depth_is_a_finding_and_holds_up_no_later_run(tmp_path: Path, guarded: str) -> None:
    (tmp_path / "skills").mkdir()
    paths = [guarded.format(tmp_path)]
    before = fingerprints(paths)
    here = os.open(tmp_path / "skills", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("a", dir_fd=here)
        below = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        assert len(changed(before)) == 1
        assert changed(fingerprints(paths)) == ()
    finally:
        remove_tree(tmp_path / "skills")


def test_a_part_of_a_toml_file_is_guarded_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    before = fingerprints([f"{file}#mcp_servers"])
    file.write_text("[cli]\nstarts = 1\nat = 2026-01-01T00:00:00Z\n")
    assert changed(before) == ()
    file.write_text('[mcp_servers.e]\ncommand = "touch"\n')
    assert changed(before) == (f"{file}#mcp_servers",)
    file.write_text("[broken")
    assert changed(before) == (f"{file}#mcp_servers",)


@pytest.mark.parametrize("name", ["settings.json", "settings.toml"])
@pytest.mark.parametrize("content", ["// mine\n{", "[broken", '{"hooks": 1,}'])
def test_a_change_of_what_cannot_be_parsed_is_a_change_of_its_parts(tmp_path: Path, name: str, content: str) -> None:
    file = tmp_path / name
    file.write_text(content)
    before = fingerprints([f"{file}#hooks"])
    assert changed(before) == ()
    file.write_text(content + " // evil")
    assert changed(before) == (f"{file}#hooks",)


@pytest.mark.parametrize("guarded", ["{}/settings.json", "{}", "{}/*.json", "{}/settings.json#hooks"])
def test_a_second_name_of_a_guarded_file_is_a_change(tmp_path: Path, guarded: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "settings.json").write_text("{}")
    paths = [guarded.format(folder)]
    before = fingerprints(paths)
    os.link(folder / "settings.json", tmp_path / "second")
    assert changed(before) == tuple(paths)
    assert changed(fingerprints(paths)) == ()


@pytest.mark.parametrize("key", ["hasTrustDialogAccepted", "enabledMcpjsonServers", "customApiKeyResponses.approved"])
def test_a_part_that_is_false_or_empty_is_as_good_as_none(tmp_path: Path, key: str) -> None:
    file = tmp_path / "state.json"
    paths = [f"{file}#projects.*.{key}", f"{file}#{key}"]
    file.write_text("{}")
    before = fingerprints(paths)
    for value, expected in ((False, ()), ([], ()), (None, ()), (True, tuple(paths)), (["evil"], tuple(paths))):
        part: object = value
        for word in reversed(key.split(".")):
            part = {word: part}
        assert isinstance(part, dict)
        file.write_text(json.dumps({"projects": {"/p": part}, **part}))
        assert changed(before) == expected, value
