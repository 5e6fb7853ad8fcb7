"""A worker writes where its lane allows it and nowhere else; the verdict says who held it and what was refused."""

import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agents.conftest import MachineMaker
from tests.agents.machine import SYSTEM_PATH, Machine, Outcome
from tests.agents.scripted_model.scenario import say, say_nothing
from tests.agents.setups import CLAUDE, CODEX, COMMAND_CODE, GROK, OPENCODE, SETUPS, Setup

pytestmark = pytest.mark.real_cli

ANSWER = "The parser splits the line at each comma and unquotes every field that starts with a quote."
HOLDER = {name: "cli" if name == "codex" else "bullswarm" for name in SETUPS}
# Grok ends its turn at the first call that its permissions refuse, so no answer can follow one there.
GOES_ON = [CLAUDE, CODEX, OPENCODE, COMMAND_CODE]
# Command Code says by its exit code that it got no answer; the others end as if all were well.
EXIT_WITHOUT_ANSWER = {"command-code": 9}
# Command Code runs no shell command at all without its permission to write; it reads with tools of its own.
NO_SHELL_TO_READ = ("command-code",)
# With any of these a CLI would let its own write tools through.
WRITE_PERMISSIONS = (
    "bypassPermissions", "acceptEdits", "dangerously", "--yolo", "--always-approve", "workspace-write", "danger-full-access",
)  # fmt: skip
# What a build needs to go right in its folder, each answered by a word of its own.
USEFUL_WORK = """\
set -e
echo inside > inside.txt
scratch=$(mktemp) && echo x > "$scratch" && case "$scratch" in "$TMPDIR"/*) echo private-tmp-works;; esac
git status --short | grep -q inside.txt && echo git-status-works
python3 -c 'import multiprocessing as m; m.Lock(); print("multiprocessing-works")'
python3 -m unittest -q check 2>&1 | grep -q OK && echo test-run-works
"""
TEST_FILE = (
    "import unittest\n\n\nclass Check(unittest.TestCase):\n    def test(self):\n        self.assertTrue(__name__)\n"
)


def named(setups: list[Setup]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("setup", setups, ids=lambda setup: setup.name)


def heard(machine: Machine) -> str:
    """Return what the model was last told, in which the outputs of its tools stand."""
    return json.dumps(machine.model.prompts()[-1].body)


def refused(outcome: Outcome) -> list[tuple[str, str]]:
    return [(denial["tool"], denial["reason"]) for denial in outcome.verdict["denied"]]


def notes(outcome: Outcome) -> list[str]:
    """Return the kinds of the notes; what the first start of the CLI made is left out, for each machine here is a new one."""
    return [note["kind"] for note in outcome.verdict["notes"] if note["kind"] != "first-start-files"]


def committed_project(machine: Machine) -> None:
    (machine.project / "seen.txt").write_text("the content of seen.txt\n", encoding="utf-8")
    (machine.project / "check.py").write_text(TEST_FILE, encoding="utf-8")
    settings = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for words in (("add", "."), (*settings, "commit", "-q", "-m", "the first commit")):
        subprocess.run(
            ["git", "-C", str(machine.project), *words],
            check=True,
            env={"PATH": SYSTEM_PATH, "HOME": str(machine.home)},
        )


@pytest.fixture
def outside() -> Iterator[Path]:
    """A file in the temp folder that everybody shares, where nothing may appear."""
    path = Path("/tmp") / f"bullswarm-escape-{uuid.uuid4().hex}"
    yield path
    path.unlink(missing_ok=True)


@named(GOES_ON)
def test_an_analysis_writes_nothing_and_says_what_was_refused(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [])
    target = machine.project / "in.txt"
    machine.turns[:] = [
        setup.write_file(str(target), "x\n"),
        setup.run_shell(f"echo x > {target}"),
        setup.run_shell(f"python3 -c \"open('{target}', 'w').write('x')\""),
        say(ANSWER),
    ]
    outcome = machine.run()
    assert not target.exists()
    assert (outcome.code, outcome.verdict["ok"], outcome.answer.strip()) == (0, True, ANSWER), outcome
    assert outcome.verdict["confinement"] == HOLDER[setup.name]
    assert len(refused(outcome)) == 3 and all(tool and reason for tool, reason in refused(outcome)), outcome
    assert notes(outcome) == ["denied"]
    assert outcome.verdict["changedFiles"] == []
    assert not [words for words in WRITE_PERMISSIONS if words in outcome.verdict["pick"]["command"]]


@pytest.mark.parametrize("way", ["tool", "redirect", "python"])
def test_grok_ends_an_analysis_that_writes(make_machine: MachineMaker, way: str) -> None:
    machine = make_machine(GROK, [])
    target = machine.project / "in.txt"
    call = {
        "tool": GROK.write_file(str(target), "x\n"),
        "redirect": GROK.run_shell(f"echo x > {target}"),
        "python": GROK.run_shell(f"python3 -c \"open('{target}', 'w').write('x')\""),
    }[way]
    machine.turns[:] = [call, say(ANSWER)]
    outcome = machine.run()
    assert not target.exists()
    assert (outcome.code, outcome.kind, outcome.verdict["confinement"]) == (1, "denied", "bullswarm"), outcome
    ((tool, reason),) = refused(outcome)
    assert tool in outcome.verdict["why"] and reason
    assert not [words for words in WRITE_PERMISSIONS if words in outcome.verdict["pick"]["command"]]


@named(GOES_ON)
def test_a_refusal_without_an_answer_is_denied(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [])
    target = machine.project / "in.txt"
    machine.turns[:] = [setup.run_shell(f"echo x > {target}"), say_nothing()]
    outcome = machine.run()
    assert not target.exists()
    assert (outcome.code, outcome.kind) == (1, "denied"), outcome
    assert outcome.verdict["meta"]["exitCode"] == EXIT_WITHOUT_ANSWER.get(setup.name, 0)
    assert refused(outcome)[0][0] in outcome.verdict["why"]


def test_an_analysis_reads_and_the_cli_keeps_its_own_state(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [])
    committed_project(machine)
    before = {path for path in machine.home.rglob("*") if path.is_file()}
    read, shell = setup.read_file(str(machine.project / "seen.txt")), setup.run_shell
    commands = [shell("git log --oneline"), shell("cat check.py")] if setup.name not in NO_SHELL_TO_READ else []
    machine.turns[:] = [read, *commands, say(ANSWER)]
    outcome = machine.run()
    assert outcome.verdict["ok"] and outcome.verdict["denied"] == [], outcome
    told = heard(machine)
    for words in ("the content of seen.txt", "the first commit", "class Check")[: 1 + len(commands)]:
        assert words in told, (words, told[-3000:])
    assert {path for path in machine.home.rglob("*") if path.is_file()} - before, "the CLI kept no session"


def test_a_build_writes_nothing_outside(make_machine: MachineMaker, setup: Setup, outside: Path) -> None:
    machine = make_machine(setup, [])
    targets = [machine.home / "redirect.txt", machine.home / "tool.txt", outside]
    machine.turns[:] = [
        setup.run_shell(f"echo x > {targets[0]}"),
        setup.write_file(str(targets[1]), "x\n"),
        setup.run_shell(f"python3 -c \"open('{outside}', 'w').write('x')\""),
        setup.write_file(str(outside), "x\n"),
        say("I could not write any of them."),
    ]
    outcome = machine.run(lane="build")
    assert [path for path in targets if path.exists()] == []
    assert (outcome.code, outcome.kind, outcome.verdict["confinement"]) == (1, "denied", HOLDER[setup.name]), outcome
    assert len(refused(outcome)) == 4 and all(tool and reason for tool, reason in refused(outcome)), outcome
    assert refused(outcome)[0][0] in outcome.verdict["why"]


def test_a_build_works_in_its_folder(make_machine: MachineMaker, setup: Setup, outside: Path) -> None:
    machine = make_machine(setup, [])
    committed_project(machine)
    (machine.root / "work.sh").write_text(USEFUL_WORK, encoding="utf-8")
    machine.turns[:] = [
        setup.run_shell(f"cd '{machine.project}' && bash {machine.root}/work.sh"),
        setup.run_shell(f"echo x > {outside}"),
        say("I wrote inside.txt and ran the check."),
    ]
    outcome = machine.run(lane="build")
    assert not outside.exists()
    told = heard(machine)
    for words in ("private-tmp-works", "git-status-works", "multiprocessing-works", "test-run-works"):
        assert words in told, (words, told[-3000:])
    assert outcome.verdict["ok"], outcome
    assert [path for path in outcome.verdict["changedFiles"] if "__pycache__" not in path] == ["inside.txt"]
    assert (len(refused(outcome)), notes(outcome)) == (1, ["denied"])


def commit_task(machine: Machine) -> Outcome:
    committed_project(machine)
    commit = "git add -A && git -c user.name=W -c user.email=w@example.org commit -q -m 'by the worker'"
    machine.turns[:] = [
        machine.setup.run_shell(f"cd '{machine.project}' && echo new > new.txt && {commit}"),
        say("I wrote new.txt."),
    ]
    return machine.run(lane="build")


def test_codex_holds_a_worker_from_committing(make_machine: MachineMaker) -> None:
    machine = make_machine(CODEX, [])
    outcome = commit_task(machine)
    assert (outcome.verdict["changedFiles"], outcome.verdict["commits"]) == (["new.txt"], []), outcome
    assert ["Read-only file system" in reason for _tool, reason in refused(outcome)] == [True]


def test_with_a_full_sandbox_a_worker_may_commit(make_machine: MachineMaker, setup: Setup) -> None:
    machine = make_machine(setup, [])
    chosen = machine.bullswarm("strategy", "set-provider", setup.name, "--sandbox", "full", "--yes")
    assert chosen.returncode == 0, chosen.stderr
    outcome = commit_task(machine)
    assert outcome.verdict["ok"] and len(outcome.verdict["commits"]) == 1, outcome
    assert outcome.verdict["confinement"] == "none"
    assert all("Don't commit" not in request.prompt for request in machine.model.prompts())


def test_a_worker_is_told_its_bounds(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [say("Done.")])
    machine.run(lane="build")
    (prompt,) = {request.prompt for request in machine.model.prompts()}
    assert "Don't commit and don't push" in prompt
    assert f"Work in {machine.project} and write nowhere else; for scratch files use $TMPDIR." in prompt


def test_the_empty_folders_that_codex_makes_are_no_work(make_machine: MachineMaker, tmp_path: Path) -> None:
    """Codex puts empty .codex, .aws and .agents folders into the folder that it guards; git is not there to hide them."""
    plain = tmp_path / "plain"
    plain.mkdir()
    machine = make_machine(CODEX, [])
    machine.turns[:] = [CODEX.run_shell("true"), say("Done.")]
    outcome = machine.run(lane="build", folder=plain)
    assert (outcome.kind, outcome.verdict["changedFiles"]) == ("not-produced", []), (outcome, list(plain.iterdir()))


def test_a_linked_worktree_shares_nothing_that_a_worker_can_write(make_machine: MachineMaker) -> None:
    """The repository of a linked worktree lies outside of it: git reads there, and no branch of the person moves."""
    machine = make_machine(CLAUDE, [])
    committed_project(machine)
    tree = machine.root / "linked tree"
    git = ["git", "-C", str(machine.project), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    environ = {"PATH": SYSTEM_PATH, "HOME": str(machine.home)}
    subprocess.run([*git, "worktree", "add", "-q", "-b", "side", str(tree)], check=True, env=environ)
    commit = "git add -A && git -c user.name=W -c user.email=w@example.org commit -q -m w"
    machine.turns[:] = [
        CLAUDE.run_shell(f"echo new > new.txt; git status --short; git log --oneline; {commit}"),
        say("I wrote new.txt."),
    ]
    outcome = machine.run(lane="build", folder=tree)
    assert outcome.verdict["ok"], outcome
    assert (outcome.verdict["changedFiles"], outcome.verdict["commits"]) == (["new.txt"], [])
    told = heard(machine)
    assert "?? new.txt" in told and "the first commit" in told
    assert [tool for tool, _reason in refused(outcome)] == ["Bash"]


def test_a_worker_that_plants_a_hook_in_the_persons_settings_is_found_out(make_machine: MachineMaker) -> None:
    machine = make_machine(CLAUDE, [])
    settings = machine.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{}")
    plant = f"echo inside > inside.txt; echo '{{\"hooks\": {{}}}}' > {settings}"
    machine.turns[:] = [CLAUDE.run_shell(plant), say("I wrote inside.txt.")]
    outcome = machine.run("Write inside.txt.", lane="build")
    assert (outcome.code, outcome.kind) == (1, "ownership"), outcome
    assert str(settings) in outcome.verdict["why"]
