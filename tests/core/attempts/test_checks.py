"""Checks with real processes: what passes, what fails and why, and that nothing of them is left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.attempts.checks import Checks, end_leftovers, start_checks
from bullswarm_core.process.descendants import parents
from bullswarm_core.process.identity import ProcessIdentity, is_alive, of
from bullswarm_core.process.watched import LOG_HEAD, LOG_TAIL
from bullswarm_core.program.model import Evidence
from bullswarm_core.runs.run_files import AttemptFiles

# Far more than any of these checks takes on a loaded machine.
PATIENCE_SEC = 120.0
NUMBERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Bench:
    """A working folder, a run folder, and checks over them."""

    def __init__(self, root: Path) -> None:
        self.cwd = root / "project"
        self.run_folder = root / "home" / "workflows" / "wf-1"
        self.cwd.mkdir()
        self.run_folder.mkdir(parents=True)
        self.files = AttemptFiles(self.run_folder, "step", 2)
        self.started: list[Checks] = []

    def start(
        self, *evidence: Evidence, paths: tuple[str, ...] = (), environ: Mapping[str, str] | None = None
    ) -> Checks:
        checks = start_checks(
            evidence,
            cwd=str(self.cwd),
            environ=environ or os.environ,
            files=self.files,
            run_folder=self.run_folder,
            step_id="step",
            deliverable_paths=paths,
            left_out=(str(self.run_folder.parent.parent),),
        )
        self.started.append(checks)
        return checks

    def results(self, *evidence: Evidence, **more: Any) -> list[dict[str, Any]]:
        checks = self.start(*evidence, **more)
        assert checks.wait(PATIENCE_SEC)
        assert not self.files.checking.exists(), "the record goes with the last process"
        return checks.results()

    def git(self, *words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e@localhost", *words],
            cwd=self.cwd,
            check=True,
            capture_output=True,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for checks in made.started:
        checks.stop()
        assert checks.wait(PATIENCE_SEC)


def command(cmd: str, timeout_sec: float = PATIENCE_SEC) -> Evidence:
    return Evidence("command", cmd=cmd, timeout_sec=timeout_sec)


def schema(file: str, asked: Mapping[str, Any] = NUMBERS, **more: Any) -> Evidence:
    return Evidence("schema", file=file, schema=asked, timeout_sec=PATIENCE_SEC, **more)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SEC
    while not true():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def identity_in(path: Path) -> ProcessIdentity:
    """Return the process whose pid somebody wrote into ``path``."""
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    found = of(int(path.read_text()))
    assert found is not None
    return found


def test_a_check_sees_where_it_is_and_for_what(bench: Bench) -> None:
    dirty = {**os.environ, "CLAUDECODE": "1", "GIT_DIR": "/elsewhere", "BULLSWARM_DEPTH": "1", "SECRET_KEY": "kept"}
    names = "BULLSWARM_EVIDENCE BULLSWARM_STEP_ID BULLSWARM_STEP_OUTPUT BULLSWARM_RUN_DIR CLAUDECODE GIT_DIR"
    echo = "; ".join(f'echo "{name}=${name}"' for name in [*names.split(), "BULLSWARM_DEPTH", "SECRET_KEY", "PWD"])
    (found,) = bench.results(command(f"{echo}; pwd -P"), environ=dirty)
    assert found["status"] == "passed" and found["exit"] == 0 and found["why"] is None and "fault" not in found
    assert found["tail"].split("\n") == [
        "BULLSWARM_EVIDENCE=1", "BULLSWARM_STEP_ID=step", f"BULLSWARM_STEP_OUTPUT={bench.files.output}",
        f"BULLSWARM_RUN_DIR={bench.run_folder}", "CLAUDECODE=", "GIT_DIR=", "BULLSWARM_DEPTH=2", "SECRET_KEY=kept",
        f"PWD={bench.cwd.resolve()}", str(bench.cwd.resolve()),
    ]  # fmt: skip
    assert found["log"] == str(bench.run_folder / "evidence-step-attempt-2-1.log")
    assert Path(found["log"]).read_text().startswith("BULLSWARM_EVIDENCE=1\n") and found["durationMs"] >= 0


@pytest.mark.parametrize(
    ("cmd", "why", "code"),
    [
        ("exit 3", "exit 3", 3),
        ("kill -9 $$", "killed by SIGKILL", -9),
        ("./not-there.sh", "exit 127", 127),
        ("sh -c no-such-tool-xyz", "exit 127", 127),
    ],
)
def test_how_a_command_fails(bench: Bench, cmd: str, why: str, code: int) -> None:
    (found,) = bench.results(command(cmd))
    assert (found["status"], found["why"], found["exit"], found.get("fault")) == ("failed", why, code, None)


@pytest.mark.parametrize("cmd", ["no-such-tool-xyz --all", "cd . && no-such-tool-xyz", "true; no-such-tool-xyz"])
def test_a_command_that_is_nowhere_is_the_checks_own_fault(bench: Bench, cmd: str) -> None:
    (found,) = bench.results(command(cmd))
    assert found["status"] == "failed" and found["fault"] == "check" and found["exit"] == 127
    assert found["why"] == "could not start: no-such-tool-xyz: command not found"


def test_a_folder_that_is_gone_is_told(bench: Bench) -> None:
    bench.cwd.rmdir()
    (found,) = bench.results(command("true"))
    assert found["status"] == "failed" and found["fault"] == "check" and found["why"].startswith("could not start: ")


def test_checks_run_in_order_and_one_failure_stops_no_other(bench: Bench) -> None:
    first, second, third = bench.results(
        command("echo 1 >>order; false"),
        command("echo 2 >>order; cat order"),
        schema("order", True and {"type": "integer"}),
    )
    assert [item["status"] for item in (first, second, third)] == ["failed", "passed", "failed"]
    assert second["tail"] == "1\n2" and first["why"] == "exit 1"


def test_a_time_out_ends_the_whole_tree(bench: Bench) -> None:
    (found,) = bench.results(command("sleep 600 & echo $! >child; setsid sleep 600 & sleep 600", timeout_sec=1))
    assert (found["status"], found["why"], found["exit"]) == ("failed", "timed out after 1s", None)
    assert of(int((bench.cwd / "child").read_text())) is None and not alive_with("BULLSWARM_STEP_ID=step", bench)


def test_nothing_that_a_check_starts_outlives_it(bench: Bench) -> None:
    script = (
        "setsid sh -c 'echo $$ >daemon; exec sleep 600' >/dev/null 2>&1 & while [ ! -s daemon ]; do sleep 0.01; done"
    )
    (found,) = bench.results(command(script))
    assert found["status"] == "passed" and of(int((bench.cwd / "daemon").read_text())) is None


# Neither session nor mark nor parent tells whose it is. It says its number, and would plant a file two seconds later.
STRANGER = """env -i setsid /bin/sh -c 'echo $$ > stranger; sleep 2; touch planted' >/dev/null 2>&1 &
while ! [ -s stranger ]; do sleep 0.01; done; """


@pytest.mark.skipif(sys.platform != "linux", reason="only a subreaper takes in what has no mark")
@pytest.mark.parametrize(
    ("last", "seconds", "status"), [("true", 60, "passed"), ("exit 3", 60, "failed"), ("sleep 60", 1, "failed")]
)
def test_a_daemon_without_a_mark_is_ended_with_its_check(bench: Bench, last: str, seconds: float, status: str) -> None:
    [found] = bench.results(command(STRANGER + last, timeout_sec=seconds))
    assert found["status"] == status
    stranger = int((bench.cwd / "stranger").read_text())
    assert not Path(f"/proc/{stranger}").exists()
    time.sleep(2.2)
    assert not (bench.cwd / "planted").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only a subreaper takes in what has no mark")
def test_a_stop_ends_a_daemon_without_a_mark_too(bench: Bench) -> None:
    checks = bench.start(command(STRANGER + "sleep 60"))
    until(lambda: (bench.cwd / "stranger").exists() and (bench.cwd / "stranger").read_text().endswith("\n"))
    checks.stop()
    assert checks.wait(PATIENCE_SEC)
    assert checks.results()[0]["status"] == "not-run"
    assert not Path("/proc", (bench.cwd / "stranger").read_text().strip()).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="checks have an overseer on Linux")
def test_a_check_under_its_overseer_is_as_it_was(bench: Bench) -> None:
    """Its environment is what it was given, it leads its session and group, and no signal is ignored or blocked."""
    # The shell reads its own masks: it blocks every signal for the moment in which it starts a program that could read them.
    masks_of_shell = (
        'while read -r line; do case $line in SigBlk*|SigIgn*) echo "$line";; esac; done </proc/self/status'
    )
    cmd = f"env; ps -o pid=,pgid=,sid= -p $$ | tr -s ' '; {masks_of_shell}; kill -USR1 0"
    [found] = bench.results(command(cmd), environ={"PATH": os.environ["PATH"], "ODD": "a\udcffb"})
    lines = Path(found["log"]).read_bytes().splitlines()
    assert b"ODD=a\xffb" in lines
    assert not any(line.startswith(b"LC_CTYPE=") for line in lines)
    [ids] = [line.split() for line in lines if len(line.split()) == 3 and line.split()[0].isdigit()]
    assert len(set(ids)) == 1
    assert found["why"] == "killed by SIGUSR1"
    masks = {line.split()[0]: int(line.split()[1], 16) for line in lines if line.startswith(b"Sig")}
    assert masks == {b"SigBlk:": 0, b"SigIgn:": ignored_here()}


def ignored_here() -> int:
    """What a program that this process starts ignores: what was ignored before Python began to ignore two signals."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("SigIgn:"))
    own = sum(1 << (number - 1) for number in (signal.SIGPIPE, signal.SIGXFSZ))
    return int(line.split()[1], 16) & ~own


@pytest.mark.skipif(sys.platform != "linux", reason="checks have an overseer on Linux")
def test_a_check_that_kills_its_overseer_fails(bench: Bench) -> None:
    [found] = bench.results(command("kill -KILL $PPID; sleep 60"))
    assert (found["status"], found["why"]) == ("failed", "killed by SIGKILL")


def test_a_child_that_holds_the_pipe_does_not_hold_the_check(bench: Bench) -> None:
    begun = time.monotonic()
    (found,) = bench.results(command("echo said; sleep 600 &"))
    assert found["status"] == "passed" and found["tail"] == "said" and time.monotonic() - begun < PATIENCE_SEC / 2


def test_a_stop_ends_the_running_check_and_begins_no_other(bench: Bench) -> None:
    checks = bench.start(command("true"), command("echo $$ >pid; sleep 600", 600), command("touch never"))
    running = identity_in(bench.cwd / "pid")
    assert not checks.done
    checks.stop()
    assert checks.wait(PATIENCE_SEC) and not is_alive(running) and not (bench.cwd / "never").exists()
    assert [(item["status"], item["why"]) for item in checks.results()] == [
        ("passed", None), ("not-run", "stopped"), ("not-run", "stopped"),
    ]  # fmt: skip


def test_an_endless_output_costs_neither_memory_nor_disk(bench: Bench) -> None:
    megabytes = 64
    program = f"import sys\nfor n in range({megabytes} * 16): sys.stdout.write('x' * 65535 + chr(10))\nprint('the end')"
    (bench.cwd / "talk.py").write_text(program)
    (found,) = bench.results(command(f"{sys.executable} talk.py"))
    kept = Path(found["log"]).read_bytes()
    assert found["status"] == "passed" and found["tail"].endswith("\nthe end") and len(found["tail"]) < 5000
    assert LOG_HEAD + LOG_TAIL < len(kept) < LOG_HEAD + LOG_TAIL + 200 and kept.endswith(b"the end\n")
    assert f"… {megabytes * 1024 * 1024 + 8 - LOG_HEAD - LOG_TAIL} bytes are left out here …".encode() in kept


def test_binary_output_is_shown_harmless_and_kept_as_it_was(bench: Bench) -> None:
    (found,) = bench.results(command(r"printf '\033[31mred\033[0m\377\000 end\n10%%\r20%%\r\n'; exit 1"))
    assert found["tail"] == "red\ufffd end\n20%" and Path(found["log"]).read_bytes().startswith(b"\x1b[31mred")
    json.dumps(found)


def test_a_check_that_changes_the_deliverable_fails_and_ends_the_series(bench: Bench) -> None:
    (bench.cwd / "a.py").write_text("a\n")
    (bench.cwd / "b.py").write_text("b\n")
    paths = ("a.py", "b.py", "missing.py")
    first, second, third = bench.results(
        command("touch a.py; echo b >b.py"),
        command("echo c >>a.py; rm b.py; echo >missing.py"),
        command("true"),
        paths=paths,
    )
    assert first["status"] == "passed", "the same bytes are no change"
    assert second["status"] == "failed" and second["why"] == "changed the deliverable: a.py, b.py, missing.py"
    assert (third["status"], third["why"]) == ("not-run", "not run: an earlier item changed the deliverable")


def test_a_deliverable_behind_a_link_is_looked_at_too(bench: Bench) -> None:
    (bench.cwd / "real.txt").write_text("a")
    (bench.cwd / "link.txt").symlink_to("real.txt")
    (found,) = bench.results(command("echo b >link.txt"), paths=("link.txt",))
    assert found["why"] == "changed the deliverable: real.txt"


def test_by_products_and_a_moved_head_are_facts(bench: Bench) -> None:
    bench.git("init", "-q")
    (bench.cwd / "a.py").write_text("a\n")
    bench.git("add", ".")
    bench.git("commit", "-qm", "one")
    commit = "git -c user.name=n -c user.email=e@localhost commit -q --allow-empty -m two"
    first, second, third = bench.results(
        command("mkdir out; echo x >out/report.xml"), command(commit), command("true"), paths=("a.py",)
    )
    assert [(item["status"], item["touched"], item["headMoved"]) for item in (first, second, third)] == [
        ("passed", ["out/report.xml"], False), ("passed", [], True), ("passed", [], False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "more", "why", "errors"),
    [
        ("d.json", b'{"n": 1}', {}, None, []),
        ("d.json", b'\xef\xbb\xbf{"n": 1}', {}, None, []),
        ("d.json", b'{"n": "x"}', {}, "not valid: 1 error", [("#/n", "'x' is not of type 'integer'")]),
        ("d.json", b"{", {}, "d.json: it is not JSON: ", []),
        ("d.json", b"", {}, "d.json: it is empty", []),
        ("d.json", b"\xff\xfe", {}, "d.json: it is not UTF-8 (byte 0)", []),
        ("d.json", None, {}, "d.json: it is missing", []),
        ("d.jsonl", b'{"n": 1}\n\n{"n": 2}', {"format": "jsonl"}, None, []),
        ("d.jsonl", b"\n \n", {"format": "jsonl"}, "no records", []),
        (
            "d.jsonl", b'{"n": 1}\n{}\n{"n"\n', {"format": "jsonl"}, "not valid: 2 errors",
            [("line 2 #", "'n' is a required property"), ("line 3", "it is not JSON: ")],
        ),
    ],
)  # fmt: skip
def test_data(
    bench: Bench, name: str, content: bytes | None, more: dict[str, Any], why: str | None, errors: list[tuple[str, str]]
) -> None:
    if content is not None:
        (bench.cwd / name).write_bytes(content)
    (found,) = bench.results(schema(name, **more))
    assert found["status"] == ("failed" if why else "passed") and "fault" not in found and found["file"] == name
    assert (found["why"] or "").startswith(why or "") and found["errorCount"] == len(errors)
    for error, (path, problem) in zip(found["errors"], errors, strict=True):
        assert error["path"] == path and error["problem"].startswith(problem)
    assert Path(found["log"]).exists()


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ('{"n": 1}', None),
        ('Here it is:\n```json\n{"n": 1}\n```\nDone.', None),
        ("Here it is.", "the final reply: it is not JSON"),
        ('```\n{"n": 1}\n```\n```\n{"n": 2}\n```', "the final reply: it has 2 code fences"),
        (None, "the final reply: it is missing"),
    ],
)
def test_the_final_reply_as_data(bench: Bench, reply: str | None, why: str | None) -> None:
    if reply is not None:
        bench.files.output.write_text(reply)
    (found,) = bench.results(schema("$output"))
    assert found["status"] == ("failed" if why else "passed") and (found["why"] or "").startswith(why or "")


def test_links_are_followed_inside_of_the_folder_only(bench: Bench, tmp_path: Path) -> None:
    (bench.cwd / "data").mkdir()
    (bench.cwd / "data" / "real.json").write_text('{"n": 1}')
    (tmp_path / "outside.json").write_text('{"n": 1}')
    (bench.cwd / "in.json").symlink_to("data/real.json")
    (bench.cwd / "out.json").symlink_to(tmp_path / "outside.json")
    (bench.cwd / "round.json").symlink_to("round.json")
    os.mkfifo(bench.cwd / "pipe.json")
    found = bench.results(*(schema(name) for name in ("in.json", "out.json", "round.json", "pipe.json", "data")))
    assert [item["why"] for item in found] == [
        None,
        "out.json: it is a link that leads out of the working folder",
        "round.json: it is a link that leads to itself",
        "pipe.json: it is no regular file",
        "data: it is no regular file",
    ]


def test_a_bad_schema_is_the_checks_own_fault(bench: Bench) -> None:
    (bench.cwd / "d.json").write_text('"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"')
    unknown, endless = bench.results(
        schema("d.json", {"patternProperties": {}}),
        Evidence("schema", file="d.json", schema={"pattern": "^(a+)+$"}, timeout_sec=2),
    )
    assert unknown["fault"] == endless["fault"] == "check"
    assert unknown["why"].startswith('check could not run: its schema: unsupported keyword "patternProperties"')
    assert endless["why"] == "check could not run: it took more than 2 s"


def test_large_data_is_hashed_and_checked_in_bounds(bench: Bench) -> None:
    size = 256 * 1024 * 1024
    line = b'{"n": 1, "text": "' + b"x" * (1024 * 1024) + b'"}\n'
    with (bench.cwd / "lines.jsonl").open("wb") as file:
        for _ in range(64):
            file.write(line)
    with (bench.cwd / "one.json").open("wb") as file:
        file.truncate(size)
    lines, one, changing = bench.results(
        schema("lines.jsonl", format="jsonl"),
        schema("one.json"),
        command("printf y | dd of=one.json bs=1 seek=200000000 conv=notrunc 2>/dev/null"),
        paths=("lines.jsonl", "one.json"),
    )
    assert lines["status"] == "passed"
    assert one["fault"] == "check" and f"it has {size} bytes, and one value may have" in one["why"]
    assert changing["why"] == "changed the deliverable: one.json"


KERNEL = """
import os, sys
from pathlib import Path
from bullswarm_core.program.model import Evidence
from bullswarm_core.attempts.checks import start_checks
from bullswarm_core.runs.run_files import AttemptFiles
cwd, run_folder = sys.argv[1:]
script = "echo once >>rounds; setsid sh -c 'echo $$ >daemon; exec sleep 600' & echo $$ >shell; sleep 600"
checks = start_checks([Evidence("command", cmd="true"), Evidence("command", cmd=script, timeout_sec=600)], cwd=cwd,
                      environ=os.environ, files=AttemptFiles(Path(run_folder), "step", 2), run_folder=Path(run_folder),
                      step_id="step")
checks.wait(600)
"""


def test_the_next_kernel_ends_what_a_killed_one_left_and_begins_again(bench: Bench) -> None:
    kernel = subprocess.Popen([sys.executable, "-c", KERNEL, str(bench.cwd), str(bench.run_folder)])
    try:
        shell, daemon = identity_in(bench.cwd / "shell"), identity_in(bench.cwd / "daemon")
        until(lambda: "worker" in json.loads(bench.files.checking.read_text()))
        if sys.platform == "linux":
            # With its overseer, which would end all at once.
            kernel.send_signal(signal.SIGSTOP)
            os.kill(parents()[shell.pid], signal.SIGKILL)
    finally:
        kernel.kill()
        kernel.wait()
    assert is_alive(daemon) and (sys.platform == "linux" or is_alive(shell))
    alone = "import sys; from bullswarm_core.process.identity import of; sys.exit(any(of(int(pid)) for pid in sys.argv[1:]))"
    (found,) = bench.results(command(f"{sys.executable} -c '{alone}' {shell.pid} {daemon.pid} && cat rounds"))
    assert found["status"] == "passed" and found["tail"] == "once", "nothing of the old ones ran beside the new ones"
    assert not is_alive(shell) and not is_alive(daemon)


@pytest.mark.skipif(sys.platform != "linux", reason="checks have an overseer on Linux")
def test_a_killed_kernel_takes_its_check_along(bench: Bench) -> None:
    script = KERNEL.replace("& echo", "& env -i setsid sh -c 'echo $$ >stranger; exec sleep 600' & echo")
    kernel = subprocess.Popen([sys.executable, "-c", script, str(bench.cwd), str(bench.run_folder)])
    try:
        all_of_it = [identity_in(bench.cwd / name) for name in ("shell", "daemon")]
        all_of_it.append(identity_in(bench.cwd / "stranger"))
    finally:
        kernel.kill()
        kernel.wait()
    until(lambda: not any(is_alive(process) for process in all_of_it))


def test_the_checks_of_a_living_kernel_are_left_alone(bench: Bench) -> None:
    checks = bench.start(command("echo $$ >pid; sleep 600", 600))
    running = identity_in(bench.cwd / "pid")
    until(bench.files.checking.exists)
    record = bench.files.checking.read_bytes()
    assert end_leftovers(bench.files, mark=f"{bench.run_folder.resolve()}/step-2/evidence") == 0 and is_alive(running)
    bench.files.checking.write_bytes(record)
    checks.stop()


def test_a_spoiled_record_is_no_obstacle(bench: Bench) -> None:
    bench.files.checking.write_text("{")
    assert bench.results(command("true"))[0]["status"] == "passed"


def test_what_kept_bullswarm_from_checking_is_raised(bench: Bench) -> None:
    bench.files.checking.mkdir()
    checks = bench.start(command("true"))
    assert checks.wait(PATIENCE_SEC)
    with pytest.raises(OSError):
        checks.results()


def alive_with(setting: str, bench: Bench) -> list[int]:
    """Return the processes of this bench's checks that still run, by what stands in their environment (Linux)."""
    if sys.platform != "linux":
        return []
    found = []
    for entry in Path("/proc").iterdir():
        try:
            environ = (entry / "environ").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if setting.encode() in environ and f"BULLSWARM_RUN_DIR={bench.run_folder}".encode() in environ:
            found.append(int(entry.name))
    return [pid for pid in found if of(pid) is not None]
