"""What failed is told as what it was: the output where the output failed, else the path and the reason."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.site import SYSTEM_PATH

from bullswarm_core.store.home import Home
from bullswarm_server.cli import main as command_line

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def answer_with(monkeypatch: pytest.MonkeyPatch, work: Callable[[], int]) -> None:
    monkeypatch.setattr(command_line, "dispatch", lambda words, **streams: work())


def failing(error: OSError) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/srv/x.json"), "/srv/x.json: Permission denied"),
        (OSError(errno.EXDEV, "Invalid cross-device link", "/a", None, "/b"), "/a, /b: Invalid cross-device link"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (OSError("odd"), "odd"),
        (OSError(), "OSError"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "Broken pipe"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", b"/srv/\xff"), "No such file or directory"),
        (PermissionError(errno.EACCES, "Permission denied", "/srv/\x1b[2J\u202ex"), "/srv/x: Permission denied"),
    ],
)
def test_a_verb_that_cannot_go_on_says_what_failed(
    error: OSError, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer_with(monkeypatch, failing(error))
    before = sys.stdout
    assert command_line.main(["pools"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("bullswarm: cannot go on: ") and said in shown and "write the answer" not in shown
    assert shown.count("\n") == 1 and sys.stdout is before


def test_what_was_printed_before_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> int:
        sys.stdout.write("the first line\n")
        raise PermissionError(errno.EACCES, "Permission denied", "/srv/x")

    answer_with(monkeypatch, work)
    assert command_line.main(["pools"]) == 1
    assert capsys.readouterr().out == "the first line\n"


class Refusing(io.StringIO):
    """A stream that takes nothing."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error

    def fileno(self) -> int:
        return self.null

    null = -1


@pytest.mark.parametrize(("error", "code"), [(FULL, 1), (BrokenPipeError(errno.EPIPE, "Broken pipe"), 0)])
def test_only_the_output_that_failed_is_told_as_such(
    error: OSError, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stream = Refusing(error)
    stream.null = os.open(tmp_path / "any", os.O_CREAT | os.O_WRONLY)
    monkeypatch.setattr(sys, "stdout", stream)
    answer_with(monkeypatch, lambda: sys.stdout.write("x"))
    assert command_line.main(["pools"]) == code
    os.close(stream.null)
    said = capsys.readouterr().err
    assert said == (
        "" if code == 0 else f"bullswarm: cannot write the answer: {FULL.strerror} · what was done stays done\n"
    )


@pytest.mark.parametrize("words", ["pools", "--help", "completion bash", "workflow plan schema", "pools --help"])
def test_a_full_disk_behind_stdout_is_said_of_short_and_of_long_answers(
    words: str, own_home: Path, tmp_path: Path
) -> None:
    environ = {
        "PATH": SYSTEM_PATH, "HOME": str(own_home), "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }  # fmt: skip
    line = f"{sys.executable} -m bullswarm_server.cli.main {words} > /dev/full"
    done = subprocess.run(["sh", "-c", line], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("bullswarm: cannot write the answer: No space left on device")


def test_a_verb_that_meets_a_loop_of_links_names_the_path(own_home: Path, tmp_path: Path) -> None:
    """A real one: the folder of runs is a link to itself."""
    home = Home(own_home / ".bullswarm").ensure()
    home.workflows_dir.symlink_to(home.workflows_dir)
    environ = {
        "PATH": SYSTEM_PATH, "HOME": str(own_home), "LANG": "C.UTF-8", "BULLSWARM_METERS": "off",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }  # fmt: skip
    command = [sys.executable, "-m", "bullswarm_server.cli.main", "run", "--lane", "analyze", "--pool", "echo", "look"]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "write the answer" not in done.stderr
    assert str(home.workflows_dir) in done.stderr, done.stderr
