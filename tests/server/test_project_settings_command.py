"""`bullswarm strategy allow-project-settings`: shown first, allowed by --yes as the files are now, and taken back."""

import json
from pathlib import Path

import pytest
from tests.server.site import Site

from bullswarm_core.pools.settings import Settings

VERB = ("strategy", "allow-project-settings")
SETTINGS = {"env": {"ANTHROPIC_BASE_URL": "https://gateway", "KEY": "sk-secret-value"}, "model": "m"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    for name, text in {
        "opencode.json": json.dumps(SETTINGS),
        ".opencode/plugin/a.js": "sk-secret-value",
        ".gitignore": "x",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(autouse=True)
def opencode(site: Site) -> None:
    (site.root / "bin" / "opencode").write_text("#!/bin/sh\n")
    (site.root / "bin" / "opencode").chmod(0o755)


def granted(site: Site, root: Path) -> list[str]:
    return sorted(Settings.load(site.home).project_settings.get(str(root), {}))


def test_without_yes_it_shows_names_and_no_values_and_changes_nothing(site: Site, repository: Path) -> None:
    said = site.say(*VERB, str(repository))
    assert said.code == 2 and "nothing was changed · pass --yes" in said.err
    assert "opencode.json (held back): env.ANTHROPIC_BASE_URL, env.KEY, model" in said.out
    assert "sk-secret-value" not in said.out + said.err
    assert granted(site, repository) == []


def test_with_yes_the_files_count_until_they_change_and_remove_takes_it_back(site: Site, repository: Path) -> None:
    assert site.say(*VERB, str(repository), "--yes").code == 0
    assert granted(site, repository) == [".opencode/plugin/a.js", "opencode.json"]
    (repository / "opencode.json").write_text("{}")
    document = site.say(*VERB, str(repository), "--json").document
    assert {each["file"]: each["allowed"] for each in document["files"]} == {
        ".opencode/plugin/a.js": True, "opencode.json": False,
    }  # fmt: skip
    assert document["folder"] == str(repository)
    assert site.say(*VERB, str(repository), "--remove").code == 0
    assert granted(site, repository) == []


def test_a_worker_may_not_allow_anything(site: Site, repository: Path) -> None:
    said = site.say(*VERB, str(repository), "--yes", environ={"BULLSWARM_DEPTH": "1"})
    assert said.code == 2 and "this is a worker's shell" in said.err
    assert granted(site, repository) == []


def test_what_nobody_can_have_read_is_not_allowed(site: Site, repository: Path) -> None:
    (repository / ".opencode" / "plugin" / "b.js").symlink_to("/etc/hostname")
    said = site.say(*VERB, str(repository), "--yes")
    assert said.code == 2 and ".opencode/plugin/b.js" in said.err
    assert granted(site, repository) == []


def test_a_folder_without_settings_and_one_that_is_none_are_refused(site: Site, tmp_path: Path) -> None:
    assert site.say(*VERB, str(tmp_path / "none"), "--yes").code == 2
    (tmp_path / "plain").mkdir()
    assert "there is nothing to allow" in site.say(*VERB, str(tmp_path / "plain"), "--yes").err
