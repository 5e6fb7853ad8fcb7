"""What a worker does to the person's own settings is seen."""

from pathlib import Path

import pytest

from bullswarm_core.workers.guarded import MISSING, changed, fingerprints


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
