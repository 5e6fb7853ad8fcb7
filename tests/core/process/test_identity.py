"""A process is known by pid, start time and boot; nothing else is taken for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.process import identity
from bullswarm_core.process.identity import ProcessIdentity


def test_the_asking_process_is_alive_and_the_same_each_time() -> None:
    me = identity.current()
    assert me.pid == os.getpid()
    assert identity.of(os.getpid()) == me
    assert identity.is_alive(me)


def test_a_child_is_alive_until_it_ends_and_a_zombie_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        found = identity.of(child.pid)
        assert found is not None
        assert identity.is_alive(found)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert Path(f"/proc/{child.pid}").exists() or sys.platform != "linux"
        assert not identity.is_alive(found), "a zombie still counts as alive"
        assert identity.of(child.pid) is None
    finally:
        child.communicate()
    assert not identity.is_alive(found)


def test_a_recycled_pid_is_somebody_else() -> None:
    assert not identity.is_alive(replace(identity.current(), started="1"))


def test_another_boot_or_host_is_dead() -> None:
    assert not identity.is_alive(replace(identity.current(), boot="another boot"))


def test_a_process_that_may_not_be_looked_at_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "of", lambda _pid: None)
    monkeypatch.setattr(identity, "linux_stat", lambda _pid: None)

    def forbidden(_pid: int, _signal: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "kill", forbidden)
    assert identity.is_alive(ProcessIdentity(pid=4242, started="1", boot=identity.boot_id()))


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 7])
def test_a_pid_that_nobody_has(pid: int) -> None:
    assert identity.of(pid) is None
    assert not identity.is_alive(ProcessIdentity(pid=pid, started="1", boot=identity.boot_id()))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_name_with_brackets_and_blanks_does_not_shift_the_fields() -> None:
    code = "import ctypes,sys; ctypes.CDLL(None).prctl(15, b') S 1 (x', 0, 0, 0); print(1, flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        before = identity.of(child.pid)
        assert child.stdout is not None
        child.stdout.readline()
        after = identity.of(child.pid)
        assert after == before
        assert after is not None
        fields = identity.linux_stat(child.pid)
        assert fields is not None
        assert int(fields[1]) == os.getpid()
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()


def test_two_processes_started_apart_differ() -> None:
    first = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    time.sleep(0.03)
    second = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        one, two = identity.of(first.pid), identity.of(second.pid)
        assert one is not None
        assert two is not None
        assert one.started != two.started
    finally:
        for child in (first, second):
            child.communicate(b"\n")


@given(st.builds(ProcessIdentity, pid=st.integers(1, 2**22), started=st.text(), boot=st.text()))
def test_json_round_trip(value: ProcessIdentity) -> None:
    assert ProcessIdentity.from_json(value.to_json()) == value


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        [],
        {},
        {"pid": "3", "started": "1", "boot": "b"},
        {"pid": True, "started": "1", "boot": "b"},
        {"pid": -3, "started": "1", "boot": "b"},
        {"pid": 3, "started": 1, "boot": "b"},
        {"pid": 3, "started": "1"},
    ],
)
def test_damaged_json_is_no_identity(value: object) -> None:
    assert ProcessIdentity.from_json(value) is None
