"""A confined worker writes where it may and nowhere else, whatever it tries; an unconfined one is called so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.keeper.keeping import LONG, Keeping, clocks, wait_for

from bullswarm_core.keeper.client import read_exit, start_keeper
from bullswarm_core.process import confinement

# Never skipped in silence: a machine that runs these tests on Linux must have Landlock, as CI has.
landlock = pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux")

TRIES = """
import ctypes, json, os, subprocess, sys
inside, outside = sys.argv[1:3]
results = {}
def attempt(name, action):
    try:
        action()
        results[name] = 'done'
    except OSError as problem:
        results[name] = problem.strerror
def shell(line):
    def run():
        if subprocess.run(['/bin/sh', '-c', line], stderr=subprocess.DEVNULL).returncode:
            raise PermissionError(13, 'shell refused')
    return run
def write(path):
    return lambda: open(path, 'w').write('x')
def setsid_child():
    pid = os.fork()
    if pid == 0:
        os.setsid()
        try:
            open(outside + '/daemon', 'w')
        except OSError:
            os._exit(1)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        raise PermissionError(13, 'child refused')
def truncate():
    os.truncate(outside + '/precious', 0)
os.symlink(outside, inside + '/way-out')
for where, folder in (('in', inside), ('out', outside)):
    attempt(where + ' python', write(folder + '/python'))
    attempt(where + ' redirect', shell(f"echo x > '{folder}/redirect'"))
    attempt(where + ' append', shell(f"echo x >> '{folder}/precious'"))
    attempt(where + ' mkdir', lambda: os.mkdir(folder + '/folder'))
    attempt(where + ' symlink', lambda: os.symlink('/etc', folder + '/link'))
    attempt(where + ' fifo', lambda: os.mkfifo(folder + '/fifo'))
attempt('through symlink', write(inside + '/way-out/through'))
attempt('rename out', lambda: os.rename(inside + '/python', outside + '/renamed'))
attempt('rename in', lambda: os.rename(outside + '/precious', inside + '/stolen'))
attempt('link in', lambda: os.link(outside + '/precious', inside + '/linked'))
attempt('rename inside', lambda: os.rename(inside + '/python', inside + '/folder/python'))
attempt('remove', lambda: os.unlink(outside + '/precious'))
attempt('truncate', truncate)
attempt('overwrite', write(outside + '/precious'))
attempt('setsid', setsid_child)
attempt('by fd', shell(f"cd '{outside}' && echo x > here"))
attempt('null', shell('echo x > /dev/null'))
attempt('stdout', shell('echo x > /dev/stdout'))
attempt('pty', lambda: os.close(os.open(os.ttyname(__import__('pty').openpty()[1]), os.O_RDWR)))
attempt('read', lambda: open(outside + '/precious').read())
attempt('execute', lambda: subprocess.run([sys.executable, '-c', 'pass'], check=True))
print(json.dumps(results))
"""


SIGNALS = """
(kill -CONT $PPID) 2>/dev/null && echo 'CONT to the keeper'
(kill -STOP $PPID) 2>/dev/null && echo 'STOP to the keeper'
(kill -9 $PPID) 2>/dev/null && echo 'KILL to the keeper'
(kill -9 $1) 2>/dev/null && echo 'KILL to a stranger'
sleep 20 & kill $! && wait $!
echo "child $?"
timeout 0.1 sleep 20
echo "timeout $?"
setsid sleep 20 & sleep 0.1; kill -9 $!; wait $!
echo "daemon $?"
"""


def run_confined(keeping: Keeping, code: str, inside: Path, outside: Path, **options: Any) -> tuple[Any, bytes]:
    spec = keeping.spec(code)
    kept = keeping.start(code, argv=(*spec.argv, str(inside), str(outside)), **options)
    return kept.end(), kept.stdout()


@landlock
def test_everything_inside_works_and_everything_outside_is_refused(keeping: Keeping, tmp_path: Path) -> None:
    assert confinement.problem() == ""
    inside, outside = tmp_path / "in side", tmp_path / "out side"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "precious").write_text("precious")
    facts, said = run_confined(keeping, TRIES, inside, outside, writable=(str(inside),))
    assert facts.exit_code == 0, facts.stderr_tail
    results = json.loads(said.splitlines()[-1])
    allowed = {name for name, result in results.items() if result == "done"}
    assert allowed == {
        "in python", "in redirect", "in append", "in mkdir", "in symlink", "in fifo", "rename inside",
        "null", "stdout", "pty", "read", "execute",
    }  # fmt: skip
    assert [path.name for path in outside.iterdir()] == ["precious"]
    assert (outside / "precious").read_text() == "precious"
    assert not (inside / "linked").exists()
    assert (facts.confinement, facts.confinement_why) == ("bullswarm", "")


@landlock
def test_the_analyze_lane_may_write_nothing_in_the_target(keeping: Keeping, tmp_path: Path) -> None:
    target, private = tmp_path / "target", tmp_path / "private"
    target.mkdir()
    private.mkdir()
    code = "import sys; open(sys.argv[2] + '/tmp', 'w').close(); open(sys.argv[1] + '/file', 'w')"
    facts, _ = run_confined(keeping, code, target, private, writable=(str(private),))
    assert facts.exit_code == 1
    assert "Permission denied" in facts.stderr_tail
    assert list(target.iterdir()) == []
    assert (private / "tmp").exists()


@landlock
def test_a_single_file_may_be_made_writable(keeping: Keeping, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("old")
    code = "import sys; open(sys.argv[1] + '/state.json', 'w').write('new'); open(sys.argv[1] + '/other', 'w')"
    facts, _ = run_confined(keeping, code, tmp_path, tmp_path, writable=(str(tmp_path / "state.json"),))
    assert "other" in facts.stderr_tail
    assert (tmp_path / "state.json").read_text() == "new"
    assert not (tmp_path / "other").exists()


@landlock
def test_a_folder_marked_by_a_slash_is_made_and_another_missing_path_is_left_out(
    keeping: Keeping, tmp_path: Path
) -> None:
    made, missing = tmp_path / "a" / "made", tmp_path / "missing"
    code = "import sys; open(sys.argv[1] + '/file', 'w')"
    facts, _ = run_confined(keeping, code, made, tmp_path, writable=(f"{made}/", str(missing)))
    assert facts.exit_code == 0, facts.stderr_tail
    assert (made / "file").exists()
    assert not missing.exists()
    log = Path(keeping.kept[0].spec.keeper_file).with_name("keeper.log").read_text()
    assert f"not writable, since it does not exist: {missing}" in log


@landlock
def test_a_set_uid_program_gains_nothing(keeping: Keeping, tmp_path: Path) -> None:
    code = "print([line for line in open('/proc/self/status') if 'NoNewPrivs' in line][0].split()[1])"
    _, said = run_confined(keeping, code, tmp_path, tmp_path, writable=(str(tmp_path),))
    assert said == b"1\n"


@landlock
def test_a_confined_worker_signals_its_own_and_nobody_else(keeping: Keeping, tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-I", "-S", "-c", LONG])
    try:
        kept = keeping.start(argv=("/bin/sh", "-c", SIGNALS, "sh", str(stranger.pid)), writable=(str(tmp_path),))
        facts = kept.end()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
    assert (facts.reason, facts.confinement, facts.confinement_why) == ("exited", "bullswarm", "")
    assert kept.stdout().decode().splitlines() == ["child 143", "timeout 124", "daemon 137"]


@landlock
def test_the_keeper_still_ends_a_confined_worker_and_its_daemons(keeping: Keeping, tmp_path: Path) -> None:
    line = "trap '' TERM; setsid sleep 60 & echo up; while :; do sleep 1; done"
    kept = keeping.start(argv=("/bin/sh", "-c", line), writable=(str(tmp_path),), clocks=clocks(wall_sec=0.5))
    assert kept.end().reason == "wall"
    assert kept.stdout() == b"up\n"
    assert kept.survivors() == set()


@landlock
@pytest.mark.parametrize(
    ("abi", "words"),
    [
        (7, ""),
        (6, ""),
        (5, "this kernel (Landlock 5) cannot stop signals to processes outside"),
        (2, "this kernel (Landlock 2) cannot stop truncate() outside and signals to processes outside"),
    ],
)
def test_what_an_older_kernel_lacks_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, abi: int, words: str
) -> None:
    monkeypatch.setattr("landlockpy._syscall.abi_version", lambda: abi)
    prepared = confinement.prepare((str(tmp_path),))
    assert (prepared.kind, prepared.why) == ("bullswarm", words)


def test_without_a_confinement_it_is_none_and_nothing_is_said(keeping: Keeping, tmp_path: Path) -> None:
    facts, _ = run_confined(keeping, "import sys; open(sys.argv[1] + '/file', 'w')", tmp_path, tmp_path)
    assert (facts.exit_code, facts.confinement, facts.confinement_why) == (0, "none", "")


@landlock
def test_where_confinement_is_not_to_be_had_that_is_reported(keeping: Keeping, tmp_path: Path) -> None:
    facts, _ = run_confined(
        keeping,
        "import sys; open(sys.argv[1] + '/file', 'w')",
        tmp_path,
        tmp_path,
        writable=("/var",),
        library="/nowhere",
    )
    assert facts.exit_code == 0
    assert facts.confinement == "none"
    assert "landlockpy cannot be imported" in facts.confinement_why


def test_a_folder_that_cannot_be_made_stops_the_start(keeping: Keeping, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    spec = keeping.spec("open('ran', 'w')", writable=(f"{tmp_path}/file/folder/",))
    start_keeper(spec, dict(os.environ))
    facts = wait_for(lambda: read_exit(spec.exit_file))
    assert facts.reason == "never-started"
    assert "file/folder" in facts.start_error
    assert not Path(spec.cwd, "ran").exists()


@pytest.mark.parametrize(
    ("platform", "words"),
    [("win32", "no confinement is known for win32"), ("darwin", "/usr/bin/sandbox-exec is missing")],
)
def test_other_systems_say_why(monkeypatch: pytest.MonkeyPatch, platform: str, words: str) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(confinement, "SANDBOX_EXEC", "/nowhere/sandbox-exec")
    assert not confinement.can_confine()
    prepared = confinement.prepare(("/tmp",))
    assert prepared.kind == "none"
    assert prepared.why == words.replace("/usr/bin", "/nowhere")
    assert prepared.prefix == ()


def test_on_macos_the_command_is_wrapped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(confinement, "SANDBOX_EXEC", "/bin/sh")
    prepared = confinement.prepare((str(tmp_path),))
    assert prepared.prefix[:2] == ("/bin/sh", "-p")
    assert f'(subpath "{tmp_path}")' in prepared.prefix[2]
    assert '(subpath "/dev/null")' in prepared.prefix[2]
    assert prepared.restrict is None


def test_the_profile_allows_reading_and_names_real_paths(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    profile = confinement.seatbelt_profile((str(tmp_path / "link"), '/a "quoted" \\ path'))
    assert profile.startswith('(version 1)\n(allow default)\n(deny file-write* (subpath "/"))\n(allow file-write*\n')
    assert f'(subpath "{tmp_path}/real")' in profile
    assert str(tmp_path / "link") not in profile
    assert '(subpath "/a \\"quoted\\" \\\\ path")' in profile


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")).map(lambda t: "/" + t)))
def test_no_path_breaks_out_of_the_profile(paths: list[str]) -> None:
    profile = confinement.seatbelt_profile(paths)
    bare, quoted, depth, index = 0, False, 0, 0
    while index < len(profile):
        mark = profile[index]
        if quoted and mark == "\\":
            index += 1
        elif mark == '"':
            quoted = not quoted
        elif not quoted:
            depth += {"(": 1, ")": -1}.get(mark, 0)
            bare += 1
        index += 1
    assert (quoted, depth) == (False, 0)
