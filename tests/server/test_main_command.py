"""The command line itself: streams that are closed or full, words that were meant otherwise, folders that are no project."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.site import SYSTEM_PATH

COMMAND = [sys.executable, "-m", "bullswarm_server.cli.main"]


@pytest.fixture
def environ(own_home: Path) -> dict[str, str]:
    path = os.pathsep.join(path for path in sys.path if path)
    return {"PATH": SYSTEM_PATH, "HOME": str(own_home), "PYTHONPATH": path, "LANG": "C.UTF-8"}


def shell(line: str, environ: dict[str, str], cwd: Path) -> "subprocess.CompletedProcess[str]":
    script = f'run="{sys.executable} -m bullswarm_server.cli.main"; {line}'
    return subprocess.run(["sh", "-c", script], env=environ, cwd=cwd, capture_output=True, text=True, check=False)


def test_a_closed_stdout_is_no_crash(environ: dict[str, str], tmp_path: Path) -> None:
    done = shell("$run pools >&-", environ, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_behind_stdout_is_said(environ: dict[str, str], tmp_path: Path) -> None:
    done = shell("$run pools > /dev/full", environ, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("bullswarm: cannot write the answer: No space left on device")


def test_a_reader_that_leaves_is_no_crash(environ: dict[str, str], tmp_path: Path) -> None:
    done = shell("$run pools --json | head -1", environ, tmp_path)
    assert (done.stdout, done.stderr) == ("{\n", "")


def test_a_reader_that_leaves_makes_no_success_of_a_failure(environ: dict[str, str], tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as gone:
        done = subprocess.run(
            [*COMMAND, "setup"], env=environ, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=gone,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "nothing was recorded · bullswarm setup --yes records it\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], 'bullswarm: unknown verb "rnu" · did you mean run? `bullswarm --help` lists them\n'),
        (["zzz"], 'bullswarm: unknown verb "zzz" · `bullswarm --help` lists them\n'),
        *(
            (
                [*group, wrong],
                f'bullswarm {" ".join(group)}: unknown verb "{wrong}" · did you mean {meant}?'
                f" `bullswarm {' '.join(group)} --help` lists them\n",
            )
            for group, wrong, meant in (
                (["strategy"], "shwo", "show"),
                (["workflow"], "gaol", "goal"),
                (["workflow", "step"], "rerum", "rerun"),
                (["provider"], "lst", "list"),
                (["home"], "statsu", "status"),
                (["integrate"], "instal", "install"),
                (["runs"], "shwo", "show"),
            )
        ),
        (
            ["run", "--lane", "analyse", "x"],
            "bullswarm run: argument --lane: invalid choice: 'analyse' (choose from 'analyze', 'build', 'chore')"
            " · `bullswarm run --help` shows what it takes\n",
        ),
    ],
)
def test_a_wrong_word_is_answered_in_one_line(
    words: list[str], said: str, environ: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run([*COMMAND, *words], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


@pytest.mark.parametrize(
    ("group", "verbs"),
    [
        (["strategy"], ("show", "inventory", "set-rung", "apply")),
        (["home"], ("status", "prune")),
        (["workflow"], ("goal", "plan", "step", "cancel")),
        (["workflow", "plan"], ("contract", "validate", "schema")),
        (["provider"], ("list", "scaffold", "disable")),
        (["integrate"], ("install", "status", "remove")),
    ],
)
def test_a_group_without_its_verb_shows_what_there_is(
    group: list[str], verbs: tuple[str, ...], environ: dict[str, str], own_home: Path
) -> None:
    done = subprocess.run([*COMMAND, *group], env=environ, cwd=own_home, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"usage: bullswarm {' '.join(group)} ")
    assert all(f"    {verb} " in done.stderr for verb in verbs)
    assert not (own_home / ".bullswarm").exists()


def test_what_is_no_project_is_refused(environ: dict[str, str], own_home: Path) -> None:
    for lane, cwd, words, said in (
        ("analyze", Path("/"), [], "/ is the whole machine"),
        ("build", own_home, [], "is your home folder, no project"),
        ("build", own_home, ["--add-dir", "/"], "/ is the whole machine"),
    ):
        done = subprocess.run(
            [*COMMAND, "run", "--lane", lane, *words, "look"],
            env=environ, cwd=cwd, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert said in done.stderr
    assert not (own_home / ".bullswarm" / "bullswarm.db").exists()


def test_a_folder_that_is_gone_is_said(environ: dict[str, str], tmp_path: Path) -> None:
    done = shell("mkdir gone && cd gone && rmdir ../gone && $run run --lane analyze look", environ, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "has been deleted" in done.stderr and "what was done" not in done.stderr


def test_a_home_that_is_named_is_meant(environ: dict[str, str], own_home: Path, tmp_path: Path) -> None:
    command = [*COMMAND, "run", "--lane", "build", "--add-dir", "~", "--dry-run", "look"]
    elsewhere = {**environ, "BULLSWARM_HOME": str(tmp_path / "state")}
    done = subprocess.run(command, env=elsewhere, cwd=own_home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_run_says_at_once_where_it_went(environ: dict[str, str], tmp_path: Path) -> None:
    command = [*COMMAND, "run", "--lane", "analyze", "look"]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.startswith("run ") and " on echo · bullswarm runs show " in done.stderr
    again = subprocess.run([*COMMAND, "runs", "--limit", "1"], env=environ, capture_output=True, text=True, check=False)
    assert "[echo] look" in again.stdout
    stopped = subprocess.run(
        [*COMMAND, "runs", "stop", "last"], env=environ, capture_output=True, text=True, check=False
    )
    assert "there is nothing to stop" in stopped.stderr
