"""`bullswarm integrate` while something goes wrong: nothing of anybody's is lost, and nothing is left half done."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.integrate.conftest import COMMANDS, PersonsHome
from tests.server.integrate.furnished import furnish

from bullswarm_core.errors import StorageError
from bullswarm_server.integrate import apply, sources
from bullswarm_server.integrate.person import PersonsFile, replace_file
from bullswarm_server.integrate.record import Record


def test_a_file_that_changed_meanwhile_is_left_alone(persons: PersonsHome, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(persons)
    check = apply._check_unchanged

    def claude_writes(file: object) -> None:
        persons.write(".claude.json", '{"numStartups": 9}')
        check(file)  # type: ignore[arg-type]

    monkeypatch.setattr(apply, "_check_unchanged", claude_writes)
    said = persons.install("--agents", "claude")
    assert said.code == 1
    assert ".claude.json was changed by another program just now" in said.out
    assert persons.read(".claude.json") == '{"numStartups": 9}'
    assert not (persons.root / ".claude" / "skills").exists()


@pytest.mark.parametrize("failing", ["config.toml", "hooks.json", "SKILL.md", "AGENTS.md", "integrations.json"])
def test_what_was_written_of_an_agent_is_taken_back_when_the_disk_refuses(
    persons: PersonsHome, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    furnish(persons)
    before = persons.tree()
    save = Record.save

    def refuse(file: PersonsFile, data: bytes) -> list[Path]:
        if file.path.name == failing and ".codex" in file.path.parts and data != file.data:
            raise StorageError(f"cannot write {file.path}: No space left on device")
        return replace_file(file, data)

    def refuse_record(record: Record) -> None:
        if failing == "integrations.json":
            raise StorageError("cannot write integrations.json: No space left on device")
        save(record)

    monkeypatch.setattr(apply, "replace_file", refuse)
    monkeypatch.setattr(Record, "save", refuse_record)
    said = persons.install("--agents", "codex,claude" if failing != "integrations.json" else "codex")
    assert said.code == 1
    assert "Codex: failed" in said.out
    assert "No space left" in said.out
    monkeypatch.undo()
    monkeypatch.setattr(sources, "installed_command", lambda name, environ: COMMANDS[name])
    if failing != "integrations.json":
        assert "Claude Code: set up" in said.out
        persons.remove("--agents", "claude")
    assert persons.tree() == before
    assert persons.backups() == []
