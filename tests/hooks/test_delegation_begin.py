"""A subagent's task that is handed over begins soon or not at all: then the agent's own subagent does it, and nobody else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes import until
from tests.server.site import SAY, Site, make_site

from bullswarm_core.errors import RunConflictError, StorageError
from bullswarm_core.runs.journal import Journal
from bullswarm_hooks import delegation
from bullswarm_server.delegate import claim


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    root = tmp_path / "site"
    root.mkdir()
    built = make_site(root)
    built.worker("talker", SAY)
    yield built
    built.close()


def request(site: Site, **more: Any) -> dict[str, Any]:
    words = {"prompt": "Explain the parser.", "lane": "analyze", "cwd": str(site.project), "waitSec": 60}
    return {**words, "provider": "claude-code", **more}


def give(site: Site, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Hand the task over as a hook does, and return what was told."""
    command = [sys.executable, "-P", "-m", "bullswarm_server.delegate"]
    done = subprocess.run(command, input=json.dumps(asked).encode(), env=site.environ, capture_output=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def runs(site: Site) -> int:
    with site.database() as connection:
        return len(Journal(connection).rows())


def claimed(site: Site, name: str = "give-1", *, before: float = 600.0) -> dict[str, Any]:
    site.home.ensure()
    site.home.cache_dir.mkdir(exist_ok=True)
    return request(site, claim=str(site.home.cache_dir / name), beginBefore=time.time() + before)


def test_a_task_that_is_claimed_in_time_is_done_and_by_nobody_else(site: Site) -> None:
    asked = claimed(site)
    assert [event["event"] for event in give(site, asked)] == ["created", "ended"]
    assert Path(asked["claim"]).is_dir()
    with pytest.raises(FileExistsError):
        Path(asked["claim"]).mkdir()


@pytest.mark.parametrize("how", ["withdrawn", "too late", "no place"])
def test_a_task_whose_claim_is_not_to_be_had_starts_nothing(site: Site, how: str) -> None:
    asked = claimed(site, "gone/give-1" if how == "no place" else "give-1", before=-1.0 if how == "too late" else 600.0)
    if how == "withdrawn":
        Path(asked["claim"]).mkdir()
    (told,) = give(site, asked)
    assert told["event"] == "refused" and runs(site) == 0
    assert told["why"].startswith("cannot make" if how == "no place" else "it took too long to begin")


def test_of_all_that_claim_at_once_one_gets_it(tmp_path: Path) -> None:
    asked = {"claim": str(tmp_path / "give-1"), "beginBefore": time.time() + 600}
    got: list[str] = []
    start = threading.Barrier(8)

    def race() -> None:
        start.wait()
        try:
            claim(asked)
            got.append("task")
        except RunConflictError:
            got.append("refused")

    racers = [threading.Thread(target=race) for _ in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert sorted(got) == ["refused"] * 7 + ["task"]


def test_claims_of_other_days_are_cleared_away_and_nothing_else(tmp_path: Path) -> None:
    old, new, other = tmp_path / "give-old", tmp_path / "give-new", tmp_path / "rates"
    for folder in (old, new, other):
        folder.mkdir()
    for folder in (old, other):
        os.utime(folder, (1, 1))
    claim({"claim": str(tmp_path / "give-1"), "beginBefore": time.time() + 600})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["give-1", "give-new", "rates"]
    claim({})
    with pytest.raises(StorageError):
        claim({"claim": str(tmp_path / "none/give-1"), "beginBefore": time.time() + 600})


class Called:
    """A call of the hook, as far as the handing over looks at it."""

    provider = "claude-code"

    def __init__(self, site: Site, **more: str) -> None:
        self.environ = {**site.environ, **more}
        self._cwd = str(site.project)

    def text(self, _name: str) -> str:
        return self._cwd


def told_by(site: Site, monkeypatch: pytest.MonkeyPatch, script: str, begin_sec: float) -> list[dict[str, Any]]:
    """Let the hook hand a task to a process of this kind."""
    package = site.root / "stand-in/bullswarm_server"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "delegate.py").write_text(script)
    monkeypatch.setattr(delegation, "_BEGIN_SEC", begin_sec)
    call: Any = Called(site, PYTHONPATH=f"{package.parent}:{site.environ['PYTHONPATH']}")
    try:
        return delegation._delegated(call, delegation.Task("Explain the parser.", "analyze"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_the_hook_ends_a_process_that_begins_nothing_and_says_so_soon(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = site.root / "pid"
    script = f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    began = time.monotonic()
    assert told_by(site, monkeypatch, script, 3.0) == []
    assert time.monotonic() - began < 60
    until(lambda: int(pid_file.read_text()) not in site.processes(), "the process is gone")


class Scripted:
    """A process whose times are told by a script: what it has said when time is up, None where it ended in time."""

    def __init__(self, *looks: tuple[bytes, bool]) -> None:
        self.looks = list(looks)
        self.waits: list[float | None] = []
        self.killed = False

    def communicate(self, _given: bytes | None = None, timeout: float | None = None) -> tuple[bytes, None]:
        self.waits.append(timeout)
        said, ended = self.looks.pop(0)
        if not ended:
            raise subprocess.TimeoutExpired("give", timeout or 0.0, output=said)
        return said, None

    def kill(self) -> None:
        self.killed = True


CREATED = b'{"event": "created"}\n'


@pytest.mark.parametrize(
    ("looks", "waits", "killed", "told"),
    [
        ([(CREATED, True)], [30.0], False, CREATED),
        ([(CREATED, False), (CREATED + b"{}", True)], [30.0, 530.0], False, CREATED + b"{}"),
        ([(CREATED, False), (CREATED, False), (CREATED, True)], [30.0, 530.0, None], True, CREATED),
        ([(b"", False), (b"", True)], [30.0, None], True, b""),
        # It began at the very moment that it was ended: that counts.
        ([(b"", False), (CREATED, True)], [30.0, None], True, CREATED),
    ],
)
def test_the_hook_waits_on_only_for_a_process_that_has_begun(
    looks: list[tuple[bytes, bool]], waits: list[float | None], killed: bool, told: bytes
) -> None:
    process = Scripted(*looks)
    assert delegation._told(process, b"{}", 560.0) == told
    assert (process.waits, process.killed) == (waits, killed)
