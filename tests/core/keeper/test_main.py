"""A keeper starts one worker, leaves one true record of its end, and lets nobody else near the attempt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.core.keeper.keeping import LONG, Keeping, clocks, wait_for

from bullswarm_core.errors import WorkerStartError
from bullswarm_core.keeper import main, start
from bullswarm_core.keeper.client import read_exit, read_keeper, request_stop, start_keeper
from bullswarm_core.keeper.spec import KeeperSpec
from bullswarm_core.process import identity
from bullswarm_core.process.child import kill_orphans
from bullswarm_core.process.descendants import parents

STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True);" + LONG


def test_a_worker_that_ends_by_itself(keeping: Keeping) -> None:
    kept = keeping.start("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    facts = kept.end()
    assert (facts.reason, facts.exit_code, facts.signal) == ("exited", 7, None)
    assert kept.stdout() == b"out\n"
    assert Path(kept.spec.stderr_file).read_bytes() == b"err\n"
    assert (facts.stderr_tail, facts.output_bytes, facts.dropped_bytes) == ("err\n", 4, 0)
    assert facts.cpu_sec is not None
    assert 0 < facts.cpu_sec < 5
    assert facts.started_at is not None
    assert facts.ended_at is not None
    assert facts.started_at <= facts.ended_at
    document = kept.document()
    assert document["keeper"] == kept.keeper.to_json()
    assert document["worker"] == kept.record().worker.to_json()  # type: ignore[union-attr]
    assert document["startedAt"].endswith("Z")
    left = {path.name for path in Path(kept.spec.cwd).iterdir()}
    assert left == {
        "stdout.out", "stderr.out", "lock.out", "keeper.json", "keeper.log", "keeper.spec.json", "exit.json",
    }  # fmt: skip


def test_a_worker_killed_by_a_signal(keeping: Keeping) -> None:
    facts = keeping.run("import os; os.kill(os.getpid(), 9)")
    assert (facts.reason, facts.exit_code, facts.signal) == ("exited", None, "SIGKILL")


def test_the_worker_has_its_own_session_default_signals_and_the_given_environment(keeping: Keeping) -> None:
    code = (
        "import os, json, signal; ignored = open('/proc/self/status').read().split('SigIgn:')[1].split()[0];"
        "print(json.dumps([os.getsid(0) == os.getpid(), os.getppid(), os.environ['WORD'], os.getcwd(),"
        " int(ignored, 16) & ~(1 << 12 | 1 << 24), sorted(os.listdir('/proc/self/fd'))]))"
    )
    kept = keeping.start(code, environment={"WORD": "secret value ü"})
    assert kept.end().exit_code == 0
    own_session, parent, word, cwd, ignored, descriptors = json.loads(kept.stdout())
    assert (own_session, parent, word, cwd, ignored) == (True, kept.keeper.pid, "secret value ü", kept.spec.cwd, 0)
    assert descriptors == ["0", "1", "2", "3"], "the worker holds a descriptor of its keeper"
    spec = Path(kept.spec.keeper_file).with_name("keeper.spec.json").read_text()
    assert "secret value" not in spec


def test_a_working_directory_with_blanks_unicode_and_a_dash(keeping: Keeping, tmp_path: Path) -> None:
    real = tmp_path / "-a b ü"
    real.mkdir()
    link = tmp_path / "link"
    link.symlink_to(real)
    kept = keeping.start("import os; print(os.getcwd())", cwd=str(link))
    assert kept.end().exit_code == 0
    assert kept.stdout().decode() == f"{real}\n"


def test_a_prompt_of_400_kb_arrives_whole(keeping: Keeping, tmp_path: Path) -> None:
    prompt = tmp_path / "task.md"
    prompt.write_bytes(b"0123456789abcdef" * 25_600)
    code = "import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    kept = keeping.start(code, stdin_file=str(prompt))
    assert kept.end().exit_code == 0
    import hashlib

    assert kept.stdout().decode().strip() == hashlib.sha256(prompt.read_bytes()).hexdigest()


def test_without_a_prompt_file_stdin_is_empty(keeping: Keeping) -> None:
    kept = keeping.start("import sys; print(repr(sys.stdin.read()))")
    kept.end()
    assert kept.stdout() == b"''\n"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda spec, _tmp: replace(spec, argv=("/nowhere/agent",)), "cannot start /nowhere/agent: No such file"),
        (lambda spec, tmp: replace(spec, argv=(str(tmp / "plain"),)), "plain: Permission denied (errno 13)"),
        (lambda spec, tmp: replace(spec, argv=(str(tmp),)), "Permission denied (errno 13)"),
        (lambda spec, tmp: replace(spec, argv=(str(tmp / "lost"),)), "the program named in its first line (#!)"),
        (lambda spec, tmp: replace(spec, argv=(str(tmp / "empty"),)), "Exec format error"),
        (lambda spec, tmp: replace(spec, cwd=str(tmp / "gone")), "gone: No such file or directory (errno 2)"),
        (lambda spec, tmp: replace(spec, cwd=str(tmp / "plain")), "cannot work in"),
        (lambda spec, tmp: replace(spec, stdin_file=str(tmp / "no-task")), "cannot read the prompt file"),
        (lambda spec, _tmp: replace(spec, argv=(*spec.argv, "x" * 140_000)), "arguments and environment are too long"),
    ],
)
def test_a_worker_that_cannot_be_started_says_why(keeping: Keeping, tmp_path: Path, make: object, words: str) -> None:
    (tmp_path / "plain").write_text("no program")
    (tmp_path / "lost").write_text("#!/nowhere/interpreter\n")
    (tmp_path / "empty").write_text("no first line")
    (tmp_path / "lost").chmod(0o755)
    (tmp_path / "empty").chmod(0o755)
    spec = make(keeping.spec("pass"), tmp_path)  # type: ignore[operator]
    start_keeper(spec, dict(os.environ))
    facts = wait_for(lambda: read_exit(spec.exit_file))
    assert facts.reason == "never-started"
    assert words in facts.start_error
    assert facts.exit_code is None


def test_a_start_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "START_SEC", 0.2)
    os.mkfifo(tmp_path / "task")
    # Children that other tests left to be waited for are none of this one's.
    others = {child.pid for child in psutil.Process().children()}
    with pytest.raises(start.StartError, match=r"still not running after 0.2 s.*task"):
        start.start_worker((sys.executable, "-c", ""), cwd="/", stdin_file=str(tmp_path / "task"))
    (own,) = {child.pid for child in psutil.Process().children()} - others
    assert os.waitpid(own, 0)[1] == signal.SIGKILL


def test_a_stop_file_ends_the_worker(keeping: Keeping) -> None:
    kept = keeping.start("print('up', flush=True);" + LONG, clocks=clocks())
    wait_for(lambda: kept.stdout() == b"up\n")
    asked = time.monotonic()
    request_stop(kept.spec.stop_file, "limit", "rate_limit_event")
    facts = kept.end()
    assert (facts.reason, facts.signal) == ("limit", "SIGTERM")
    assert kept.document()["stopDetail"] == "rate_limit_event"
    assert time.monotonic() - asked < 2


@pytest.mark.parametrize(("asked", "reason"), [("stopped", "stopped"), ("limit", "exited")])
def test_a_stop_that_a_frozen_keeper_could_not_see_holds(keeping: Keeping, asked: str, reason: str) -> None:
    code = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nopen('done', 'w')"
    kept = keeping.start(code, clocks=clocks())
    worker = kept.record().worker
    os.kill(kept.keeper.pid, signal.SIGSTOP)
    try:
        request_stop(kept.spec.stop_file, asked, "by hand")
        Path(kept.spec.cwd, "go").touch()
        wait_for(lambda: worker is not None and worker.pid not in parents())
    finally:
        os.kill(kept.keeper.pid, signal.SIGCONT)
    facts = kept.end()
    assert (facts.reason, facts.exit_code) == (reason, 0)
    assert kept.document()["stopDetail"] == ("by hand" if reason == "stopped" else "")


def test_a_stop_that_was_asked_for_before_the_start(keeping: Keeping) -> None:
    spec = keeping.spec("open('ran', 'w')")
    request_stop(spec.stop_file, "stopped", "by hand")
    start_keeper(spec, dict(os.environ))
    facts = wait_for(lambda: read_exit(spec.exit_file))
    assert facts.reason == "stopped"
    assert not Path(spec.cwd, "ran").exists()


def test_a_damaged_stop_file_is_a_stop_all_the_same(keeping: Keeping) -> None:
    kept = keeping.start(LONG, clocks=clocks())
    kept.record()
    Path(kept.spec.stop_file).write_text("{")
    assert kept.end().reason == "stopped"


def test_a_stop_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stopped or limit"):
        request_stop(tmp_path / "stop", "tired", "")
    assert not (tmp_path / "stop").exists()


def test_a_worker_that_ignores_term_is_killed(keeping: Keeping) -> None:
    kept = keeping.start(STUBBORN, clocks=clocks(term_grace_sec=0.2))
    wait_for(lambda: kept.stdout() == b"up\n")
    request_stop(kept.spec.stop_file, "stopped", "")
    facts = kept.end()
    assert (facts.reason, facts.signal) == ("stopped", "SIGKILL")


def test_a_stopped_process_is_ended_too(keeping: Keeping) -> None:
    kept = keeping.start("import os; os.kill(os.getpid(), 19)", clocks=clocks(silence_sec=0.4))
    facts = kept.end()
    assert facts.reason == "silence"
    assert facts.signal == "SIGTERM", "a worker that sleeps in SIGSTOP got no chance to end in order"


def test_term_to_the_keeper_stops_the_worker_in_order(keeping: Keeping) -> None:
    kept = keeping.start(LONG, clocks=clocks())
    kept.record()
    os.kill(kept.keeper.pid, signal.SIGTERM)
    facts = kept.end()
    assert facts.reason == "stopped"
    assert kept.document()["stopDetail"] == "the keeper received SIGTERM"
    assert kept.survivors() == set()


def test_after_kill_of_the_keeper_nothing_runs_on_and_the_output_is_kept(keeping: Keeping) -> None:
    code = (
        "import subprocess, sys; c = " + repr(LONG) + ";"
        "subprocess.Popen([sys.executable, '-c', c], start_new_session=True); print('half an answer', flush=True);"
        + LONG
    )
    kept = keeping.start(code)
    record = kept.record()
    wait_for(lambda: kept.stdout() == b"half an answer\n")
    assert kill_orphans(json.loads(Path(kept.spec.keeper_file).read_text())) == 0, "the keeper lives: hands off"
    os.kill(kept.keeper.pid, signal.SIGKILL)
    assert record.worker is not None
    worker = record.worker
    wait_for(lambda: not identity.is_alive(worker), seconds=3)
    assert len(kept.survivors()) == 1, "only the grandchild in its own session is left"
    assert kill_orphans(json.loads(Path(kept.spec.keeper_file).read_text())) == 1
    assert kept.survivors() == set()
    assert read_exit(kept.spec.exit_file) is None
    assert kept.stdout() == b"half an answer\n"


def test_a_keeper_outlives_whoever_started_it(keeping: Keeping) -> None:
    kept = keeping.start(LONG, clocks=clocks())
    stat = identity.linux_stat(kept.keeper.pid) if sys.platform == "linux" else None
    assert stat is None or int(stat[1]) != os.getpid()
    assert os.getsid(kept.keeper.pid) == kept.keeper.pid
    request_stop(kept.spec.stop_file, "stopped", "")
    kept.end()


def test_a_second_keeper_is_refused_while_the_first_lives_and_after_the_end(keeping: Keeping) -> None:
    kept = keeping.start(LONG, clocks=clocks())
    before = kept.record()
    with pytest.raises(WorkerStartError, match=r"exit code 3.*has a keeper already"):
        start_keeper(kept.spec, dict(os.environ))
    assert read_keeper(kept.spec.keeper_file) == before
    request_stop(kept.spec.stop_file, "stopped", "")
    ended = kept.end()
    with pytest.raises(WorkerStartError, match="has ended already"):
        start_keeper(kept.spec, dict(os.environ))
    assert read_exit(kept.spec.exit_file) == ended


def test_a_wrong_spec_is_refused_with_the_field(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({"schemaVersion": "bullswarm.keeper.v1", "argv": "sh"}))
    done = subprocess.run(
        [sys.executable, "-I", "-S", main.__file__, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "argv must be a list of texts, not 'sh'" in done.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schemaVersion": "bullswarm.keeper.v9"}, "schemaVersion"),
        ({"argv": []}, "argv"),
        ({"cwd": None}, "cwd"),
        ({"capture": {"headBytes": 0}}, "capture.headBytes"),
        ({"capture": 3}, "capture"),
        ({"clocks": {"wallSec": "long"}}, "clocks.wallSec"),
        ({"clocks": {"wallSec": -1}}, "clocks.wallSec"),
        ({"clocks": {"wallSec": float("nan")}}, "clocks.wallSec"),
        ({"terminal": [{"path": "type"}]}, "terminal"),
        ({"confinement": {"writable": ["relative"]}}, "confinement.writable"),
    ],
)
def test_every_wrong_field_is_named(keeping: Keeping, change: dict[str, object], words: str) -> None:
    document = {**keeping.spec("pass").to_json(), **change}
    with pytest.raises(ValueError, match=words):
        KeeperSpec.from_json(document)


def test_a_spec_survives_its_file(keeping: Keeping, tmp_path: Path) -> None:
    spec = keeping.spec(
        "pass",
        clocks=clocks(wall_sec=3.5, silence_sec=1.0),
        terminal=({"path": "a.b", "equals": ["x", 1, None]},),
        writable=("/tmp", "/var/tmp/"),
        watch_tree="/tmp",
        stdin_file="/dev/null",
    )
    spec.write(tmp_path / "spec.json")
    assert KeeperSpec.read(tmp_path / "spec.json") == spec
    assert (tmp_path / "spec.json").stat().st_mode & 0o777 == 0o600


def test_the_keeper_loads_nothing_heavy() -> None:
    code = (
        "import runpy, sys; sys.argv = ['main.py'];\n"
        "try: runpy.run_path(" + repr(main.__file__) + ", run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print(*sorted({n.split('.')[0] for n in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"subprocess", "asyncio", "logging", "pydantic", "psutil", "selectors", "threading", "anyio"}


def test_a_damaged_record_is_none(tmp_path: Path) -> None:
    path = tmp_path / "exit.json"
    assert read_exit(path) is None
    for text in ("", "{", "[]", "{}", '{"reason": "bored"}', '{"reason": "exited", "startedAt": "yesterday"}'):
        path.write_text(text)
        assert read_exit(path) is None
        assert read_keeper(path) is None
