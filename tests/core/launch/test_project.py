"""What a project decides: its instructions, bounded and never from elsewhere; of its settings what the person allowed."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.core.launch.test_plan import plan, profile

from bullswarm_core.errors import WorkerStartError
from bullswarm_core.launch.project import ProjectGrant
from bullswarm_core.launch.project_instructions import LARGEST_BYTES, read_instructions
from bullswarm_core.launch.project_settings import UNREADABLE, found_settings, is_allowed, repository_root, unlike
from bullswarm_core.pools.connector import PoolProfile

NAMES = [["RULES.md", ".agent/rules/", "RULES.local.md"], ["OTHER.md"]]
FILES = [".agent/settings*.json", "agent.json", ".agent/plugins/"]
PART: dict[str, Any] = {
    "files": FILES,
    "refused": [".agent/evil.json"],
    "refusedIf": ["agent.json"],
    "refusedText": "plugins",
    "arguments": ["--persons-only"],
    "environment": {"NO_PROJECT": "1"},
    "instructions": NAMES,
    "instructionArguments": ["--told", "{instructionsFile}"],
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "around" / "repo"
    make_repository(root)
    (root / "pkg").mkdir()
    return root


def make_repository(root: Path) -> None:
    """Lay down as much of a repository as Git asks for before it takes a folder for one."""
    for name in ("objects", "refs"):
        (root / ".git" / name).mkdir(parents=True)
    write(root / ".git" / "HEAD", "ref: refs/heads/main\n")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def agent() -> PoolProfile:
    return profile({"project": PART})


def started(repository: Path, **more: Any) -> Any:
    return plan(agent(), cwd=str(repository), instructions_file="/r/instructions.md", **more)


def grant(repository: Path) -> ProjectGrant:
    patterns = (*FILES, *PART["refused"], *PART["refusedIf"])
    return ProjectGrant(str(repository), found_settings(str(repository), patterns))


# --- settings


def test_settings_are_looked_for_up_to_the_repositorys_root_and_not_beyond(repository: Path) -> None:
    write(repository.parent / "agent.json", "{}")
    write(repository / "agent.json", "{}")
    write(repository / "pkg" / ".agent" / "settings.local.json", "{}")
    write(repository / ".agent" / "plugins" / "deep" / "a.js", "")
    assert repository_root(str(repository / "pkg")) == str(repository)
    assert sorted(found_settings(str(repository / "pkg"), FILES)) == [
        ".agent/plugins/deep/a.js", "agent.json", "pkg/.agent/settings.local.json",
    ]  # fmt: skip
    assert sorted(found_settings(str(repository), FILES)) == [".agent/plugins/deep/a.js", "agent.json"]


FAKES = ["empty folder", "empty file", "HEAD alone", "link to nowhere"]


def fake_repository(folder: Path, kind: str) -> None:
    if kind == "empty file":
        write(folder / ".git", "")
    elif kind == "link to nowhere":
        write(folder / ".git", "gitdir: /no/such/folder\n")
    else:
        (folder / ".git").mkdir()
        if kind == "HEAD alone":
            write(folder / ".git" / "HEAD", "ref: refs/heads/main\n")


@pytest.mark.parametrize("kind", FAKES)
def test_what_git_would_not_take_for_a_repository_ends_no_search(repository: Path, kind: str) -> None:
    fake_repository(repository / "pkg", kind)
    write(repository / ".agent" / "plugins" / "a.js", "")
    assert list(found_settings(str(repository / "pkg"), FILES)) == ["../.agent/plugins/a.js"]
    made = started(repository / "pkg")
    assert any("../.agent/plugins/a.js of the project decides nothing here" in note for note in made.notes)


@pytest.mark.parametrize("kind", ["a repository", *FAKES])
def test_a_file_that_a_cli_would_obey_is_looked_for_above_every_repository(repository: Path, kind: str) -> None:
    if kind == "a repository":
        make_repository(repository / "pkg")
    else:
        fake_repository(repository / "pkg", kind)
    write(repository / ".agent" / "evil.json", "{}")
    with pytest.raises(WorkerStartError, match=r"would obey the project's \.\./\.agent/evil\.json"):
        started(repository / "pkg")


def test_what_lies_in_the_home_folder_or_around_it_is_the_persons_own(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(repository.parent))
    write(repository.parent / ".agent" / "evil.json", "{}")
    write(repository.parent.parent / ".agent" / "evil.json", "{}")
    assert started(repository).argv


def test_a_linked_work_tree_is_a_repository(repository: Path, tmp_path: Path) -> None:
    write(repository / ".git" / "worktrees" / "a" / "HEAD", f"{'0' * 40}\n")
    write(repository / ".git" / "worktrees" / "a" / "commondir", "../..\n")
    write(tmp_path / "trees" / "a" / ".git", f"gitdir: {repository}/.git/worktrees/a\n")
    write(tmp_path / "trees" / "agent.json", "{}")
    assert found_settings(str(tmp_path / "trees" / "a"), FILES) == {}


def test_the_persons_own_folder_is_no_projects(repository: Path) -> None:
    write(repository / ".agent" / "settings.json", "{}")
    assert found_settings(str(repository), FILES, besides=[str(repository / ".agent")]) == {}


@pytest.mark.parametrize(
    "kind", ["pipe", "link out", "link within", "link around", "large", "folder that is a link", "folder of thousands"]
)
def test_what_nobody_can_have_read_is_found_and_never_allowed(repository: Path, kind: str) -> None:
    file = repository / "agent.json"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "link out":
        file.symlink_to(write(repository.parent / "elsewhere.json", "{}"))
    elif kind == "link within":
        file.symlink_to(write(repository / "docs" / "a.json", "{}"))
    elif kind == "link around":
        write(repository / "docs" / "settings.json", "{}")
        (repository / ".agent").symlink_to("docs")
    elif kind == "large":
        file.write_bytes(b" " * (4 * 1024 * 1024 + 1))
    elif kind == "folder that is a link":
        (repository / ".agent").mkdir()
        (repository / ".agent" / "plugins").symlink_to(repository.parent)
    else:
        for number in range(600):
            write(repository / ".agent" / "plugins" / f"{number}.js", "")
    found = found_settings(str(repository), FILES)
    assert list(found.values()) == [UNREADABLE]
    assert not is_allowed(found, found) and unlike(found, found) == tuple(found)


def test_without_permission_the_settings_are_kept_out_and_named(repository: Path) -> None:
    write(repository / "agent.json", "{}")
    made = started(repository)
    assert "--persons-only" in made.argv and made.environment["NO_PROJECT"] == "1"
    (note,) = [note for note in made.notes if "agent.json" in note]
    assert note.endswith(f"bullswarm strategy allow-project-settings {repository}")


def test_they_are_kept_out_also_where_the_person_wants_their_own_settings_in(repository: Path) -> None:
    made = started(repository, inherit_config=True)
    assert "--persons-only" in made.argv and made.environment["NO_PROJECT"] == "1"


def test_what_was_allowed_counts_as_long_as_each_file_is_what_it_was(repository: Path) -> None:
    file = write(repository / "agent.json", "{}")
    allowed = grant(repository)
    made = started(repository, grant=allowed)
    assert "--persons-only" not in made.argv and "NO_PROJECT" not in made.environment
    assert any("in force, as you allowed" in note for note in made.notes)
    write(repository / ".agent" / "settings.json", "{}")
    made = started(repository, grant=allowed)
    assert "--persons-only" in made.argv
    assert any("(.agent/settings.json is new or changed since you allowed it)" in note for note in made.notes)
    (repository / ".agent" / "settings.json").unlink()
    file.write_text('{"a": 1}')
    assert "--persons-only" in started(repository, grant=allowed).argv


def test_a_copy_of_the_repository_is_judged_by_what_was_allowed_in_the_persons_own(
    repository: Path, tmp_path: Path
) -> None:
    write(repository / "agent.json", "{}")
    copy = tmp_path / "copy"
    write(copy / ".git", "gitdir: elsewhere")
    write(copy / "agent.json", "{}")
    assert "--persons-only" not in started(copy, grant=grant(repository)).argv
    write(copy / "agent.json", '{"a": 1}')
    made = started(copy, grant=grant(repository))
    assert "--persons-only" in made.argv and any(note.endswith(str(repository)) for note in made.notes)


@pytest.mark.parametrize("name", [".agent/evil.json", "agent.json"])
def test_a_cli_that_would_obey_anyway_is_not_started_until_it_is_allowed(repository: Path, name: str) -> None:
    write(repository / name, '{"plugins": []}')
    with pytest.raises(WorkerStartError, match=f"would obey the project's {name}"):
        started(repository)
    assert started(repository, grant=grant(repository)).argv


def test_an_ordinary_folder_is_its_own_root_and_needs_nothing(tmp_path: Path) -> None:
    assert repository_root(str(tmp_path)) == str(tmp_path)
    made = started(tmp_path)
    assert made.instructions is None and "--told" not in made.argv
    assert not [note for note in made.notes if "project" in note]


# --- instructions


def test_instructions_are_handed_over_outermost_first_with_what_they_import(repository: Path) -> None:
    write(repository / "RULES.md", "root rules, see @docs/style.md.\n")
    write(repository / "docs" / "style.md", "style, see @more.md\n")
    write(repository / "docs" / "more.md", "more")
    write(repository / ".agent" / "rules" / "deep" / "a.md", "a rule")
    write(repository / "pkg" / "RULES.local.md", "local")
    write(repository / "OTHER.md", "other")
    made = started(repository / "pkg")
    assert made.instructions is not None
    said = [made.instructions.index(each) for each in ("root rules", "style,", "more", "a rule", "local")]
    assert said == sorted(said) and "other" not in made.instructions.replace("another", "")
    assert made.argv[made.argv.index("--told") + 1] == "/r/instructions.md"


def test_another_names_files_count_only_where_the_first_names_have_none(repository: Path) -> None:
    write(repository / "OTHER.md", "other")
    assert "other" in read_instructions(str(repository / "pkg"), NAMES).text


def test_what_stands_above_the_repository_is_read_only_where_the_cli_does_and_imports_nothing(repository: Path) -> None:
    write(repository.parent / "RULES.md", "above, see @secret.md")
    write(repository.parent / "secret.md", "secret")
    assert read_instructions(str(repository), NAMES).text == ""
    text = read_instructions(str(repository), NAMES, above_repository=True).text
    assert "above" in text and "Contents of" in text and "\nsecret" not in text


@pytest.mark.parametrize("name", ["/etc/hostname", "../secret.md", "link.md", "~/secret.md"])
def test_an_import_never_leads_out_of_the_repository(repository: Path, name: str) -> None:
    write(repository.parent / "secret.md", "secret words")
    (repository / "link.md").symlink_to(repository.parent / "secret.md")
    write(repository / "RULES.md", f"see @{name}")
    told = read_instructions(str(repository), NAMES)
    assert "secret words" not in told.text and told.text.count("Contents of") == 1


def test_an_instruction_file_that_is_a_link_out_or_a_pipe_is_left_out_and_named(repository: Path) -> None:
    write(repository.parent / "secret.md", "secret words")
    (repository / "RULES.md").symlink_to(repository.parent / "secret.md")
    os.mkfifo(repository / "RULES.local.md")
    told = read_instructions(str(repository), NAMES)
    assert told.text == ""
    assert [line.rpartition(": ")[2] for line in told.left_out] == [
        "it leads out of the repository", "it is no ordinary file",
    ]  # fmt: skip
    made = started(repository)
    assert any(note.startswith("instructions left out: ") for note in made.notes)


def test_imports_in_a_circle_and_in_code_end(repository: Path) -> None:
    write(repository / "RULES.md", "@b.md\n`@code.md`\n```\n@code.md\n```\n")
    write(repository / "b.md", "@RULES.md")
    write(repository / "code.md", "code words")
    told = read_instructions(str(repository), NAMES)
    assert told.text.count("Contents of") == 2 and "code words" not in told.text


def test_instructions_are_bounded_together(repository: Path) -> None:
    write(repository / "RULES.md", "first")
    write(repository / "RULES.local.md", "x" * LARGEST_BYTES)
    told = read_instructions(str(repository), NAMES)
    assert "first" in told.text and "larger than" in told.left_out[0]


# --- instructions that the CLI reads by itself

BY_ITSELF: dict[str, Any] = {"readByItself": ["RULES.md", ".agent/rules/"], "importsAnything": True}


def starts(folder: Path, part: dict[str, Any] = BY_ITSELF) -> bool:
    try:
        plan(profile({"project": part}), cwd=str(folder))
    except WorkerStartError as refusal:
        assert "leads to, out of the repository" in str(refusal)
        return False
    return True


@pytest.mark.parametrize("name", ["RULES.md", ".agent/rules/a.md", ".agent/rules", ".agent"])
def test_a_cli_that_reads_instructions_by_itself_is_not_started_at_a_link_out(repository: Path, name: str) -> None:
    outside = repository.parent / "outside"
    write(outside / "rules" / "a.md", "secret words")
    (repository / name).parent.mkdir(parents=True, exist_ok=True)
    (repository / name).symlink_to({"RULES.md": outside / "rules/a.md", ".agent/rules/a.md": outside / "rules/a.md",
                                    ".agent/rules": outside / "rules", ".agent": outside}[name])  # fmt: skip
    assert not starts(repository) and not starts(repository / "pkg")


def test_it_is_started_at_a_link_within_the_repository(repository: Path) -> None:
    (repository / "RULES.md").symlink_to(write(repository / "docs" / "rules.md", "rules"))
    assert starts(repository) and starts(repository / "pkg")


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.md", "~/secret.md", "deep.md", "link.md"])
def test_it_is_not_started_at_an_import_from_elsewhere_if_it_imports_anything(
    repository: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(repository.parent))
    write(repository.parent / "secret.md", "secret words")
    write(repository / "deep.md", "see @../secret.md")
    (repository / "link.md").symlink_to(repository.parent / "secret.md")
    write(repository / "RULES.md", f"see @{name}")
    assert not starts(repository)
    assert starts(repository, {**BY_ITSELF, "importsAnything": False})


def test_it_is_started_at_an_import_within_the_repository_and_at_what_is_no_file(repository: Path) -> None:
    write(repository / "docs" / "a.md", "see @../RULES.md")
    write(repository / "RULES.md", "see @docs/a.md and @app.route, ask @/no/such and a@b.example\n")
    assert starts(repository)
