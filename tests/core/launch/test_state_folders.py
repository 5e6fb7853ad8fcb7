"""Whatever a worker adds, changes, removes or puts back in a state folder of its CLI is found, but for what is volatile."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.alarms import nobody_waits

from bullswarm_core.fast.tree import remove_tree
from bullswarm_core.launch.state_folders import Findings, StateFolders, findings, listing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder in use: settings, a plug-in, sessions and a token."""
    root = tmp_path / ".agent"
    (root / "plugins" / "mine").mkdir(parents=True)
    (root / "sessions" / "a").mkdir(parents=True)
    (root / "settings.json").write_text("{}")
    (root / "plugins" / "mine" / "run.sh").write_text("echo good")
    (root / "sessions" / "a" / "log.jsonl").write_text("{}")
    (root / ".credentials.json").write_text("{}")
    return root


def state(folder: Path) -> StateFolders:
    return StateFolders(
        (f"{folder}/",),
        tuple(f"{folder}/{name}" for name in ("sessions/", ".credentials.json", "*.sqlite*", "tmp/**/x")),
    )


def before(folder: Path) -> dict[str, object]:
    """A listing as it comes back from the file in which it is kept."""
    found: dict[str, object] = json.loads(json.dumps(listing(state(folder), home=str(folder.parent))))
    return found


def test_nothing_changed_is_nothing(folder: Path) -> None:
    assert findings(before(folder)) == Findings()


def test_what_the_cli_keeps_writing_is_nothing(folder: Path) -> None:
    then = before(folder)
    (folder / "sessions" / "b").mkdir()
    (folder / "sessions" / "b" / "log.jsonl").write_text("{}")
    (folder / ".credentials.json").write_text('{"renewed": true}')
    (folder / "state.sqlite-wal").write_text("x")
    (folder / "tmp" / "a" / "b").mkdir(parents=True)
    (folder / "tmp" / "a" / "b" / "x").write_text("x")
    assert findings(then) == Findings()


@pytest.mark.parametrize(
    "name",
    ["settings.json", "remote-settings.json", "plugins/mine/run.sh", "plugins/new/deep/run.sh", "bin/agent", ".x"],
)
def test_each_file_that_is_written_is_named(folder: Path, name: str) -> None:
    then = before(folder)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("echo evil")
    assert findings(then) == Findings(changed=(str(folder / name),))


@pytest.mark.parametrize(
    "name", ["skills/tidy.lock/SKILL.md", "a.sqlite/run.sh", ".credentials.json.d/x", "tidy.lock/x"]
)
def test_a_pattern_without_a_slash_covers_no_folder(folder: Path, name: str) -> None:
    patterns = tuple(f"{folder}/{word}" for word in ("*.lock", "**/*.lock", "*.sqlite*", ".credentials.json*"))
    then = listing(StateFolders((f"{folder}/",), patterns), home="/")
    (folder / name).parent.mkdir(parents=True)
    (folder / "real.lock").write_text("")
    (folder / name).write_text("echo evil")
    assert findings(then) == Findings(changed=(str(folder / name),))


def test_a_second_name_of_a_file_is_a_finding_and_so_is_what_is_written_through_it(
    folder: Path, tmp_path: Path
) -> None:
    settings, second = folder / "settings.json", tmp_path / "second"
    then = before(folder)
    os.link(settings, second)
    assert findings(then).changed == (str(settings),)
    then = before(folder)
    assert findings(then) == Findings()
    second.write_text("[]")
    assert findings(then).changed == (str(settings),)
    then = before(folder)
    (tmp_path / "third").write_text("[]")
    os.link(tmp_path / "third", tmp_path / "fourth")
    (tmp_path / "third").replace(settings)
    assert findings(then).changed == (str(settings),), "another inode with the same content and as many names"


def test_a_removed_file_is_named(folder: Path) -> None:
    then = before(folder)
    (folder / "settings.json").unlink()
    assert findings(then).changed == (str(folder / "settings.json"),)


def test_a_file_that_becomes_a_program_is_named(folder: Path) -> None:
    then = before(folder)
    (folder / "plugins" / "mine" / "run.sh").chmod(0o755)
    assert findings(then).changed == (str(folder / "plugins" / "mine" / "run.sh"),)


@pytest.mark.parametrize("way", ["write", "rename"])
def test_what_was_changed_and_put_back_is_known_by_its_inode_and_the_time_that_nobody_can_set(
    folder: Path, way: str
) -> None:
    file = folder / "settings.json"
    facts = file.stat()
    then = before(folder)
    time.sleep(0.02)
    file.write_text('{"hooks": {}}')
    if way == "write":
        file.write_text("{}")
    else:
        (folder / "sessions" / "kept").write_text("{}")
        (folder / "sessions" / "kept").replace(file)
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert findings(then) == Findings(rewritten=(str(file),))


def test_a_large_program_is_known_by_its_inode_and_times(folder: Path) -> None:
    program = folder / "bin" / "agent"
    program.parent.mkdir()
    program.write_bytes(b"x" * 2_000_000)
    facts = program.stat()
    then = before(folder)
    time.sleep(0.02)
    with program.open("r+b") as file:
        file.write(b"y")
    os.utime(program, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert findings(then).changed == (str(program),)


@pytest.mark.parametrize("target", ["sessions/a/log.jsonl", "/etc/passwd", "nowhere", "sessions"])
def test_a_planted_link_is_named(folder: Path, target: str) -> None:
    then = before(folder)
    (folder / "plugins" / "evil").symlink_to(target)
    assert findings(then).changed == (str(folder / "plugins" / "evil"),)


def test_a_change_of_what_a_link_leads_to_is_found(folder: Path) -> None:
    target = folder / "sessions" / "instructions.md"
    target.write_text("be kind")
    (folder / "AGENTS.md").symlink_to(target)
    then = before(folder)
    target.write_text("be evil")
    assert findings(then).changed == (str(folder / "AGENTS.md"),)


def test_what_a_first_start_makes_is_told_apart(tmp_path: Path) -> None:
    for folder in (tmp_path / "missing", tmp_path / "empty"):
        then = before(folder)
        folder.mkdir(exist_ok=True)
        (folder / "settings.json").write_text("{}")
        assert findings(then) == Findings(first_files=(str(folder / "settings.json"),))


@pytest.mark.parametrize("volatile", [False, True])
def test_until_its_first_start_has_left_its_mark_a_cli_may_change_its_settings(folder: Path, volatile: bool) -> None:
    mark = str(folder / "installation_id")
    marked = StateFolders((f"{folder}/",), (mark,) if volatile else (), mark)
    then = listing(marked, home="/")
    (folder / "settings.json").write_text('{"theme": "dark"}')
    (folder / "installation_id").write_text("1")
    made = (str(folder / "settings.json"),) if volatile else (mark, str(folder / "settings.json"))
    assert findings(then) == Findings(first_files=made)
    then = listing(marked, home="/")
    (folder / "installation_id").unlink()
    assert findings(then) == Findings(changed=(mark,)), "the mark can't be taken away unseen"


def test_a_state_file_without_a_folder_is_compared_too(tmp_path: Path) -> None:
    file = tmp_path / ".agentrc"
    then = json.loads(json.dumps(listing(StateFolders((str(file),)), home=str(tmp_path))))
    assert findings(then) == Findings()
    file.write_text("x")
    assert findings(then).first_files + findings(then).changed == (str(file),)


@pytest.mark.parametrize("where", ["plugins", "."])
def test_a_deep_folder_is_a_finding_once_and_never_an_exception(folder: Path, where: str) -> None:
    then = before(folder)
    make_deep(folder / where, 1500)
    (found,) = findings(then).changed
    assert found.startswith(str(folder)) and found.endswith("(too deep)")
    assert findings(before(folder)) == Findings(not_compared=(found,)), "nobody may take it for compared"


@pytest.fixture(autouse=True)
def removed_at_any_depth(tmp_path: Path) -> Iterator[None]:
    """Leave no folder that is too deep for others to remove."""
    yield
    remove_tree(tmp_path)


def make_deep(folder: Path, depth: int) -> None:
    place = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("a", dir_fd=place)
        inner = os.open("a", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)


def test_more_files_than_are_compared_are_a_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bullswarm_core.launch.state_folders._LARGEST_LISTING", 50)
    then = before(folder)
    for number in range(100):
        (folder / f"{number}.js").write_text("x")
    assert any("(too many)" in path for path in findings(then).changed)


def test_volatile_folders_cost_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bullswarm_core.launch.state_folders._LARGEST_LISTING", 50)
    for number in range(100):
        (folder / "sessions" / str(number)).mkdir()
    assert findings(before(folder)) == Findings()


def test_a_pipe_or_an_unreadable_file_makes_nobody_wait(folder: Path) -> None:
    then = before(folder)
    os.mkfifo(folder / "plugins" / "pipe")
    with nobody_waits("a pipe among the settings"):
        assert findings(then).changed == (str(folder / "plugins" / "pipe"),)


@pytest.mark.parametrize(
    "command",
    [
        '{{"hooks": {{"SessionStart": [{{"command": "{script} --fast"}}]}}}}',
        '{{"statusLine": {{"command": "bash ~/.agent/sessions/notify.sh"}}}}',
        '{{"notify": "$HOME/.agent/sessions/notify.sh"}}',
    ],
)
def test_a_script_that_the_settings_call_counts_wherever_it_lies(folder: Path, command: str) -> None:
    script = folder / "sessions" / "notify.sh"
    script.write_text("echo good")
    (folder / "settings.json").write_text(command.format(script=script))
    then = before(folder)
    script.write_text("echo evil")
    assert findings(then).changed == (str(script),)


def test_a_log_that_a_hook_writes_to_is_no_script(folder: Path) -> None:
    log = folder / "sessions" / "hooks.log"
    (folder / "settings.json").write_text(f'{{"hooks": "date >> {log}"}}')
    then = before(folder)
    log.write_text("today")
    assert findings(then) == Findings()
    then = before(folder)
    log.write_text("tomorrow")
    assert findings(then) == Findings()
    log.chmod(0o755)
    assert findings(then).changed == (str(log),)


def test_settings_that_name_strange_paths_are_read_all_the_same(folder: Path) -> None:
    (folder / "settings.json").write_text('{"a": "/", "b": "~/../../etc/passwd", "c": "/\\u0000", "d": "//x"}')
    assert findings(before(folder)) == Findings()


@pytest.fixture
def snapshots(folder: Path) -> tuple[Path, dict[str, object]]:
    """A folder in which each session keeps what it runs, with that of one session, and a listing of then."""
    one = folder / "snapshots" / "one"
    one.mkdir(parents=True)
    (one / "tool").write_text("echo good")
    state = StateFolders((f"{folder}/",), written_once=(f"{folder}/snapshots/*",))
    return one, json.loads(json.dumps(listing(state, home=str(folder.parent))))


def test_what_comes_and_goes_with_a_session_is_nothing(snapshots: tuple[Path, dict[str, object]]) -> None:
    one, then = snapshots
    (one.parent / "two").mkdir()
    (one.parent / "two" / "tool").write_text("echo good")
    assert findings(then) == Findings()
    remove_tree(one)
    assert findings(then) == Findings()


@pytest.mark.parametrize("name", ["tool", "ls"])
def test_a_change_in_what_another_session_runs_is_named(snapshots: tuple[Path, dict[str, object]], name: str) -> None:
    one, then = snapshots
    (one / name).write_text("echo evil")
    assert findings(then).changed == (str(one / name),)
