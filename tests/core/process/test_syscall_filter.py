"""A confined worker sets its own limits and nobody else's; where the filter can't be had that is said."""

from __future__ import annotations

import errno
import json
import os
import resource
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.keeper.keeping import LONG, Keeping

from bullswarm_core.process import confinement, syscall_filter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux")
filtered = pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="no filter for this machine")

ALLOW, ERROR = 0x7FFF0000, 0x00050000
X86_64, I386 = 0xC000003E, 0x40000003

TRIES = """
import json, os, resource, sys, threading
found = {}
def attempt(name, action):
    try:
        found[name] = action() or 'done'
    except OSError as problem:
        found[name] = problem.strerror
for name, pid in (('keeper', os.getppid()), ('stranger', int(sys.argv[1]))):
    attempt(name + ' cpu', lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (0, 0)) and None)
    attempt(name + ' files', lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3)) and None)
    attempt(name + ' read', lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE) and None)
attempt('own', lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300)))
attempt('own by 0', lambda: resource.prlimit(0, resource.RLIMIT_NOFILE, (150, 300)) and None)
attempt('child', lambda: os.system('ulimit -n 100 && test $(ulimit -n) = 100'))
attempt('affinity', lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
attempt('nice', lambda: os.nice(1) and None)
def pool():
    import multiprocessing
    with multiprocessing.get_context('fork').Pool(2) as workers:
        return str(workers.map(abs, [-1, -2]))
attempt('pool', pool)
found['limit'] = resource.getrlimit(resource.RLIMIT_NOFILE)
found['mode'] = [line.split()[1] for line in open('/proc/self/status') if line.startswith('Seccomp:')][0]
print(json.dumps(found))
"""


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", LONG], stdin=subprocess.DEVNULL)
    yield process
    process.kill()
    process.wait()


@filtered
def test_a_worker_limits_itself_and_nobody_else(
    keeping: Keeping, tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    before = resource.prlimit(stranger.pid, resource.RLIMIT_NOFILE)
    spec = keeping.spec(TRIES)
    kept = keeping.start(argv=(*spec.argv, str(stranger.pid)), writable=(str(tmp_path), "/dev/shm"))
    facts = kept.end()
    assert (facts.reason, facts.exit_code) == ("exited", 0), facts
    found = json.loads(kept.stdout())
    refused = {name for name, result in found.items() if result == "Operation not permitted"}
    assert refused == {"keeper cpu", "keeper files", "stranger cpu", "stranger files"}
    done = {name for name, result in found.items() if result == "done"}
    assert done == {"keeper read", "stranger read", "own", "own by 0", "child", "affinity", "nice"}
    assert (found["pool"], found["limit"], found["mode"]) == ("[1, 2]", [150, 300], "2")
    assert resource.prlimit(stranger.pid, resource.RLIMIT_NOFILE) == before
    assert stranger.poll() is None
    assert syscall_filter.problem() == ""
    assert "limits of other processes" not in facts.confinement_why


def test_where_no_filter_is_known_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(syscall_filter, "_MACHINES", {})
    why = f"bullswarm knows no system calls of {os.uname().machine}: a worker can lower the limits of other processes"
    assert syscall_filter.prepare() is None
    assert why in confinement.weakness()
    prepared = confinement.prepare((str(tmp_path),))
    assert prepared.kind == "bullswarm"
    assert why in prepared.why


def verdict(program: bytes, *, number: int, architecture: int, arguments: tuple[int, ...] = (0, 0, 0)) -> int:
    """Run the filter as the kernel does, which checks the program when it is set."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *([0] * (6 - len(arguments))))
    at, word = 0, 0
    while True:
        code, yes, no, value = struct.unpack_from("=HBBI", program, at * 8)
        at += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            [word] = struct.unpack_from("<I", data, value)
        else:
            at += yes if (word == value if code == 0x15 else word >= value) else no


@given(
    number=st.sampled_from([0, 160, 302, 340, 261, 302 | 0x40000000, 0xFFFFFFFF]),
    architecture=st.sampled_from([X86_64, I386, 0xC00000B7]),
    pid=st.sampled_from([0, 1, 77, 1 << 32, (1 << 32) + 1]),
    limit=st.sampled_from([0, 1, 1 << 32, 0x7FFF00000000]),
)
def test_the_filter_refuses_limits_of_others_in_every_form(
    number: int, architecture: int, pid: int, limit: int
) -> None:
    program = syscall_filter.build({X86_64: 302, I386: 340}, has_x32=True)
    result = verdict(program, number=number, architecture=architecture, arguments=(pid, 7, limit))
    if architecture not in (X86_64, I386) or number >= 0x40000000:
        expected = ERROR | errno.ENOSYS
    elif number == {X86_64: 302, I386: 340}[architecture] and pid & 0xFFFFFFFF and limit:
        expected = ERROR | errno.EPERM
    else:
        expected = ALLOW
    assert result == expected
