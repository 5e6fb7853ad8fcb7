"""The helper for every other child: bounded in time and output, no shell, nothing left behind."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.core.keeper.keeping import LONG, wait_for

from bullswarm_core.errors import WorkerStartError
from bullswarm_core.process import identity
from bullswarm_core.process.child import ChildResult, kill_orphans, marked, run_child
from bullswarm_core.process.descendants import parents


def python(code: str, *words: str, cwd: str | Path = "/", timeout_sec: float = 10, **options: Any) -> ChildResult:
    environ = options.pop("environ", dict(os.environ))
    argv = [sys.executable, "-I", "-S", "-c", code, *words]
    return run_child(argv, cwd=cwd, environ=environ, timeout_sec=timeout_sec, **options)


def test_output_and_exit_code() -> None:
    result = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert not result.ok
    assert not result.timed_out
    assert not result.cut
    assert python("pass").ok


def test_a_child_killed_by_a_signal() -> None:
    assert python("import os; os.kill(os.getpid(), 15)").exit_code == -15


def test_no_shell_no_stdin_own_session_and_the_real_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    code = (
        "import json, os, sys; print(json.dumps([sys.argv[1:], sys.stdin.read(), os.getcwd(), os.environ['PWD'],"
        " os.getsid(0) == os.getpid(), 'HOME' in os.environ]))"
    )
    result = python(code, "$HOME; echo *", cwd=tmp_path / "link", environ={"PWD": "/elsewhere"})
    real = str(tmp_path / "real")
    assert json.loads(result.stdout) == [["$HOME; echo *"], "", real, real, True, False]


def test_input_of_any_size_goes_in_while_output_comes_out() -> None:
    data = os.urandom(3 * 1024 * 1024)
    result = python("import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)", input=data)
    assert result.stdout == data
    assert result.ok


def test_a_child_that_does_not_read_its_input() -> None:
    result = python("import os; os.close(0); print('no thanks')", input=b"x" * 1024 * 1024)
    assert (result.exit_code, result.stdout) == (0, b"no thanks\n")


def test_empty_input_is_an_end_of_file() -> None:
    assert python("import sys; print(len(sys.stdin.read()))", input=b"").stdout == b"0\n"


def test_output_is_bounded_and_the_child_is_not_stopped_by_it() -> None:
    result = python("import os\nfor _ in range(64): os.write(1, b'y' * 65536)\nprint('end')", output_limit=1000)
    assert result.ok
    assert result.stdout == b"y" * 1000
    assert result.cut


def test_the_time_limit_ends_the_whole_tree(tmp_path: Path) -> None:
    code = (
        "import os, signal, subprocess, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"start = lambda own: subprocess.Popen([sys.executable, '-c', {LONG!r}], start_new_session=own)\n"
        "open('pids', 'w').write(f'{start(True).pid} {start(False).pid}'); print('up', flush=True)\n" + LONG
    )
    begun = time.monotonic()
    result = python(code, cwd=tmp_path, timeout_sec=1.0)
    assert (result.timed_out, result.exit_code, result.stdout) == (True, None, b"up\n")
    assert time.monotonic() - begun < 4
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    wait_for(lambda: not any(identity.of(pid) for pid in pids), seconds=3)


def test_the_time_limit_covers_a_child_that_closed_its_output() -> None:
    result = python("import os; os.close(1); os.close(2);" + LONG, timeout_sec=0.5)
    assert result.timed_out
    assert result.wall_sec < 3


def test_a_grandchild_that_holds_the_pipe_does_not_hold_us(tmp_path: Path) -> None:
    code = (
        f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {LONG!r}]);"
        "open('pid', 'w').write(str(child.pid)); print('answer', flush=True)"
    )
    begun = time.monotonic()
    result = python(code, cwd=tmp_path, timeout_sec=20)
    assert (result.exit_code, result.stdout, result.timed_out) == (0, b"answer\n", False)
    assert time.monotonic() - begun < 4
    wait_for(lambda: identity.of(int((tmp_path / "pid").read_text())) is None, seconds=3)


@pytest.mark.parametrize(
    ("argv", "cwd", "words"),
    [
        (["/nowhere/git"], "/", "cannot run /nowhere/git in /: /nowhere/git: No such file or directory"),
        (["/etc/passwd"], "/", "Permission denied"),
        ([sys.executable], "/nowhere/at/all", "/nowhere/at/all: No such file or directory"),
        ([sys.executable, "a\0b"], "/", "embedded null byte"),
    ],
)
def test_what_cannot_be_run_is_named(argv: list[str], cwd: str, words: str) -> None:
    with pytest.raises(WorkerStartError, match=words):
        run_child(argv, cwd=cwd, environ={}, timeout_sec=5)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_orphans_are_known_by_the_mark_and_nobody_else_is_touched(tmp_path: Path) -> None:
    import subprocess

    def child(mark: str) -> subprocess.Popen[bytes]:
        environ = {**os.environ, "BULLSWARM_ATTEMPT": mark}
        return subprocess.Popen([sys.executable, "-c", LONG], env=environ, start_new_session=True)

    mine, other = child("wf-1/run-1"), child("wf-1/run-10")
    try:
        wait_for(lambda: marked("BULLSWARM_ATTEMPT=wf-1/run-1", parents()) == {mine.pid})
        dead = {"pid": 1, "started": "7", "boot": identity.boot_id()}
        assert kill_orphans({"attempt": "wf-1/run-1", "keeper": {**dead, "boot": "before"}, "worker": None}) == 0
        assert kill_orphans({"attempt": "wf-1/run-1", "keeper": identity.current().to_json(), "worker": None}) == 0
        assert kill_orphans({}) == 0
        assert mine.poll() is None
        assert kill_orphans({"attempt": "wf-1/run-1", "keeper": dead, "worker": dead}) == 1
        assert mine.wait(5) == -9
        assert other.poll() is None
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()
