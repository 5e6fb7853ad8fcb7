"""A confined worker has terminals and shared memory of its own, and reaches nobody else's, as root and as anybody else."""

from __future__ import annotations

import ctypes
import json
import os
import pty
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.core.keeper.keeping import Keeping

from bullswarm_core.launch.plan import SHARED_MEMORY
from bullswarm_core.process import confinement, private_mounts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mount namespaces are Linux")

NOBODY = 65534
SET_DUMPABLE = 4
# Of System V: make and fail where there is one; take away.
MAKE, REMOVE = 0o3000, 0
TRIES = """
import ctypes, fcntl, glob, json, os, subprocess, sys, termios
terminal, kept, key = sys.argv[1:4]
libc = ctypes.CDLL(None, use_errno=True)
found = {}
def attempt(name, action):
    try:
        found[name] = action()
    except OSError as problem:
        found[name] = problem.strerror
def write(path):
    return lambda: os.write(os.open(path, os.O_WRONLY | os.O_NOCTTY), b'forged')
def types(path):
    return lambda: fcntl.ioctl(os.open(path, os.O_RDONLY | os.O_NOCTTY), termios.TIOCSTI, b'x')
def spawned():
    import pty
    return pty.spawn([sys.executable, '-I', '-S', '-c', 'import os; os.get_terminal_size(1); print(os.ttyname(1))'])
def locked():
    import multiprocessing
    with multiprocessing.Lock():
        return 'done'
attempt('write', write(terminal))
attempt('type', types(terminal))
for pid in ('1', str(os.getppid())):
    attempt(f'write by {pid}', write(f'/proc/{pid}/root{terminal}'))
    attempt(f'type by {pid}', types(f'/proc/{pid}/root{terminal}'))
def shared(call, *more):
    def run():
        number = call(int(key), *more)
        if number < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return number
    return run
attempt('segment', shared(libc.shmget, 0, 0))
attempt('semaphores', shared(libc.semget, 0, 0))
attempt('queue', shared(libc.msgget, 0))
attempt('remove', lambda: os.unlink(kept))
attempt('spawn', spawned)
attempt('lock', locked)
found['powers'] = [line.split()[1] for line in open('/proc/self/status') if line.startswith(('CapEff', 'CapBnd'))]
print()
print(json.dumps(found))
"""


@pytest.fixture
def terminal() -> Iterator[tuple[int, str]]:
    """A terminal of somebody else's: the end at which its owner reads, and its path."""
    ours, theirs = pty.openpty()
    path = os.ttyname(theirs)
    # Whoever the worker runs as, only what holds it may be in its way.
    Path(path).chmod(0o666)
    os.set_blocking(ours, False)
    yield ours, path
    os.close(ours)
    os.close(theirs)


@pytest.fixture
def kept() -> Iterator[Path]:
    """Shared memory of another program's."""
    path = Path(SHARED_MEMORY, f"bullswarm-test-{uuid.uuid4().hex}")
    path.write_text("theirs")
    path.chmod(0o666)
    yield path
    path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Shared:
    """Memory, semaphores and a message queue of another program's under one key; where the memory lies here."""

    key: int
    address: int


@pytest.fixture
def shared() -> Iterator[Shared]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    key = int.from_bytes(os.urandom(4)) >> 1 | 1
    segment, semaphores = libc.shmget(key, 4096, MAKE | 0o666), libc.semget(key, 1, MAKE | 0o666)
    queue = libc.msgget(key, MAKE | 0o666)
    assert min(segment, semaphores, queue) >= 0
    address = libc.shmat(segment, None, 0)
    ctypes.memmove(address, b"theirs", 6)
    yield Shared(key, address)
    libc.shmdt(ctypes.c_void_p(address))
    libc.shmctl(segment, REMOVE, None)
    libc.semctl(semaphores, 0, REMOVE)
    libc.msgctl(queue, REMOVE, None)


def as_nobody(action: Callable[[], Any]) -> Any:
    """Run ``action`` in a child without any rights, and return what it gives (as JSON)."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            ctypes.CDLL(None).prctl(SET_DUMPABLE, 1, 0, 0, 0)
            os.write(write, json.dumps(action()).encode())
        except BaseException as problem:
            os.write(write, json.dumps({"raised": repr(problem)}).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        said = file.read()
    os.waitpid(child, 0)
    return json.loads(said)


def refused(found: dict[str, Any]) -> bool:
    return all(
        found[name] in ("Permission denied", "No such file or directory", "Operation not permitted")
        for name in found
        if name.startswith(("write", "type"))
    )


def test_nobody_elses_terminal_and_memory_are_reached_and_its_own_work(
    keeping: Keeping, tmp_path: Path, terminal: tuple[int, str], kept: Path, shared: Shared
) -> None:
    ours, path = terminal
    spec = keeping.spec(TRIES)
    held = keeping.start(argv=(*spec.argv, path, str(kept), str(shared.key)), writable=(str(tmp_path), SHARED_MEMORY))
    facts = held.end()
    assert facts.exit_code == 0, facts.stderr_tail
    found = json.loads(held.stdout().splitlines()[-1])
    assert refused(found), found
    with pytest.raises(BlockingIOError):
        os.read(ours, 100)
    if not private_mounts.possible():
        assert "no private mounts" in facts.confinement_why
        return
    assert found["segment"] == found["semaphores"] == found["queue"] == "No such file or directory", found
    assert ctypes.string_at(shared.address, 6) == b"theirs"
    assert (found["remove"], kept.read_text()) == ("No such file or directory", "theirs")
    assert (found["spawn"], found["lock"]) == (0, "done")
    assert b"/dev/pts/" in held.stdout()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may open them in the first place")
def test_screens_and_lines_of_the_machine_are_not_read(keeping: Keeping, tmp_path: Path) -> None:
    there = [path for pattern in ("vcs*", "tty[0-9]*", "ttyS*", "console") for path in Path("/dev").glob(pattern)]
    if not there:
        pytest.skip("this machine has no screen and no line")
    if not private_mounts.possible():
        pytest.skip("no mounts of its own here")
    before = {path: path.stat().st_rdev for path in there}
    code = (
        "import json, os, sys\n"
        "print(json.dumps({path: os.stat(path).st_rdev for path in sys.argv[1:]}))\n"
        "for path in sys.argv[1:]:\n"
        "    assert os.read(os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK), 1) == b''\n"
    )
    spec = keeping.spec(code)
    held = keeping.start(argv=(*spec.argv, *map(str, there)), writable=(str(tmp_path),))
    facts = held.end()
    assert facts.exit_code == 0, facts.stderr_tail
    assert set(json.loads(held.stdout()).values()) == {Path("/dev/null").stat().st_rdev}
    assert {path: path.stat().st_rdev for path in there} == before, "only the worker's view changes"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has powers to give up")
def test_root_keeps_what_files_and_packages_take_and_nothing_that_reaches_others(
    keeping: Keeping, tmp_path: Path, terminal: tuple[int, str], kept: Path
) -> None:
    spec = keeping.spec(TRIES)
    held = keeping.start(argv=(*spec.argv, terminal[1], str(kept), "0"), writable=(str(tmp_path),))
    held.end()
    for powers in json.loads(held.stdout().splitlines()[-1])["powers"]:
        has = {number for number in range(64) if int(powers, 16) >> number & 1}
        # sys_module, sys_rawio, sys_ptrace, sys_admin, sys_boot, sys_time, mknod, net_admin; dac_read_search, net_raw, setfcap.
        assert not has & {16, 17, 19, 21, 22, 25, 27, 12, 2, 13, 31}
    theirs = tmp_path / "theirs"
    theirs.write_text("x")
    os.chown(theirs, NOBODY, NOBODY)
    theirs.chmod(0o600)
    code = (
        "import os, sys; p = sys.argv[1]; open(p, 'a').write('y'); os.chown(p, 1, 1); os.chmod(p, 0o640);"
        "os.setgid(5); os.setuid(5)"
    )
    spec = keeping.spec(code)
    assert keeping.run(argv=(*spec.argv, str(theirs)), writable=(str(tmp_path),)).exit_code == 0
    assert (theirs.read_text(), theirs.stat().st_uid) == ("xy", 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("private", [True, False])
def test_an_ordinary_user_is_held_the_same_way(
    monkeypatch: pytest.MonkeyPatch, terminal: tuple[int, str], kept: Path, shared: Shared, private: bool
) -> None:
    ours, path = terminal
    # A module in a folder of root's is not to be had once the child is nobody.
    assert confinement.problem() == ""
    if not private:
        monkeypatch.setattr(private_mounts, "possible", lambda: False)
    elif not as_nobody(private_mounts.possible):
        pytest.skip("this system gives an ordinary user no namespaces")

    def work() -> dict[str, str]:
        prepared = confinement.prepare((SHARED_MEMORY,))
        assert prepared.restrict is not None
        prepared.restrict()
        segment = ctypes.CDLL(None).shmget(shared.key, 0, 0)
        found = {
            "why": prepared.why,
            "segment": str(segment >= 0),
            "there": str(kept.exists()),
            "powers": Path("/proc/self/status").read_text(),
        }
        for name, flags in (("write", os.O_WRONLY), ("write read", os.O_RDWR)):
            try:
                os.write(os.open(path, flags | os.O_NOCTTY), b"forged")
                found[name] = "done"
            except OSError as problem:
                found[name] = os.strerror(problem.errno or 0)
        try:
            mine = pty.openpty()
            os.write(mine[1], b"x")
            found["own"] = os.read(mine[0], 1).decode()
        except OSError as problem:
            found["own"] = os.strerror(problem.errno or 0)
        return found

    found = as_nobody(work)
    assert refused(found), found
    with pytest.raises(BlockingIOError):
        os.read(ours, 100)
    assert found["there"] == found["segment"] == str(not private)
    assert ("no private mounts" in found["why"]) is not private
    assert (found["own"] == "x") is private


def test_mounts_of_its_own_need_the_right_to_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(private_mounts, "_capabilities", lambda libc: private_mounts._Capabilities(0, 0))
    assert not private_mounts.possible()
    monkeypatch.undo()
    before = Path("/proc/self/ns/mnt").readlink()
    private_mounts.possible()
    assert Path("/proc/self/ns/mnt").readlink() == before, "asking changes nothing here"
