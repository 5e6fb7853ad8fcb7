"""A machine in small for the tests of `run` and `runs`: a home, a git tree, and agent CLIs that are shell scripts."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.processes import keeper_record, processes_of
from tests.processes import until as until

from bullswarm_core.dispatch.ledger import Booking, entries
from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.pools import Lane
from bullswarm_core.runs.events import RunCreated
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.task import Task
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home, write_json
from bullswarm_server.cli.main import dispatch
from bullswarm_server.ops.launch import Origin, create_run

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
ANSWER = "The parser splits the line at each comma and unquotes every field that starts with a quote."
# Every endless worker of a test ends by itself, so that a kernel that fails at its work leaves nothing behind for long.
SAY = f"cat > /dev/null\necho '{ANSWER}'"
WAIT_FOR_GO = f"""cat > /dev/null
echo 'Looking at the parser.'
n=0; while [ ! -e go ] && [ $n -lt 2400 ]; do sleep 0.05; n=$((n+1)); done
echo '{ANSWER}'"""
WITH_GRANDCHILD = f"setsid tail -f /dev/null > /dev/null 2>&1 &\n{WAIT_FOR_GO}"

CONNECTOR: dict[str, Any] = {
    "schemaVersion": "bullswarm.connector.v1",
    "lanes": ["analyze", "build", "chore"],
    "meter": {"type": "none"},
    "launch": {
        "prompt": {"way": "stdin"},
        "lanes": {lane: {"workspace": {"confinement": "none"}} for lane in ("analyze", "build")},
    },
    "signIn": {"required": False, "fileBilling": "none"},
    "tiers": {"high": {}, "medium": {}, "low": {}},
}


@dataclass(frozen=True, slots=True)
class Said:
    """What a verb left: its exit code and its two streams."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on standard output; more than one is a failure here."""
        value: dict[str, Any] = json.loads(self.out)
        return value


@dataclass(slots=True)
class Site:
    """Everything is below `root`; `environ` is what the verbs are called with."""

    root: Path
    environ: dict[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def home(self) -> Home:
        return Home(self.root / "state")

    @property
    def project(self) -> Path:
        return self.root / "project"

    def worker(self, name: str, script: str, **changes: Any) -> None:
        """Put an agent CLI on PATH that is this shell script, with a provider of its own."""
        binary = self.root / "bin" / f"{name}-cli"
        binary.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        binary.chmod(0o755)
        connector = {**CONNECTOR, "name": name, "binary": binary.name, **changes}
        write_json(self.home.providers_dir / name / "connector.json", connector)

    def say(self, *words: str, environ: Mapping[str, str] | None = None) -> Said:
        """Call a verb in this process, to its end."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stderr(err):
            code = dispatch(list(words), environ={**self.environ, **(environ or {})}, out=out, err=err)
        return Said(code, out.getvalue(), err.getvalue())

    def run(self, *options: str, lane: str = "analyze", environ: Mapping[str, str] | None = None) -> Said:
        """Run one task in the project, to its verdict."""
        words = ("--lane", lane, "--add-dir", str(self.project), "--json", *options)
        return self.say("run", *words, "Explain the parser.", environ=environ)

    def start(self, *words: str, environ: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Call a verb in a process and session of its own; whatever is left of it is ended with the test."""
        process = subprocess.Popen(
            [sys.executable, "-m", "bullswarm_server.cli.main", *words],
            cwd=self.project,
            env={**self.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def start_run(
        self, *options: str, lane: str = "analyze", environ: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start one task in the project and return at once."""
        return self.start("run", "--json", "--lane", lane, *options, "Explain the parser.", environ=environ)

    def create(self, *, lane: Lane = "analyze", environ: Mapping[str, str] | None = None) -> RunCreated:
        """Record a run that no kernel has seen yet."""
        task = Task(prompt="Explain the parser.", lane=lane, cwd=str(self.project))
        with self.database() as connection:
            return create_run(
                self.home, connection, task, environ={**self.environ, **(environ or {})}, origin=Origin(), now=utc_now()
            )

    def kernel_that_dies_at(self, moment: str, run_id: str) -> None:
        """Drive a run with a kernel that is killed the moment it calls ``moment`` (``module:Class.method``)."""
        module, _, path = moment.partition(":")
        owner, _, name = path.rpartition(".")
        script = (
            f"import importlib, os, signal, sys\nfrom bullswarm_server.kernel import main\n"
            f"owner = importlib.import_module({module!r})\n"
            f"owner = getattr(owner, {owner!r}) if {owner!r} else owner\n"
            f"setattr(owner, {name!r}, lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL))\n"
            f"sys.exit(main([{run_id!r}]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], env=self.environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == -signal.SIGKILL, done

    def go(self) -> None:
        """Let the workers that wait for it end."""
        (self.project / "go").touch()

    def events(self, run_id: str | None = None) -> list[str]:
        """The types of the events of a run (of the only one when it is not named)."""
        with self.database() as connection:
            run_id = run_id or Journal(connection).rows()[0].run_id
            return [event.type for event in Journal(connection).read(run_id)]

    def happened(self, kind: str) -> None:
        """Wait until the newest run has an event of this type."""

        def there() -> bool:
            log = next(iter(self.home.workflows_dir.glob("*/kernel.log")), None)
            assert log is None or "Traceback" not in log.read_text(), log and log.read_text()
            return self.home.database_file.exists() and kind in self.newest_events()

        until(there, f"an event {kind}")

    def newest_events(self) -> list[str]:
        """The types of the events of the newest run; nothing before there is one."""
        with self.database() as connection:
            rows = Journal(connection).rows()
            return [event.type for event in Journal(connection).read(rows[0].run_id)] if rows else []

    def state_of(self, run_id: str) -> RunState:
        with self.database() as connection:
            return Journal(connection).state(run_id)

    @contextlib.contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        connection = open_database(self.home)
        try:
            yield connection
        finally:
            connection.close()

    def in_flight(self) -> list[Booking]:
        if not self.home.database_file.exists():
            return []
        with self.database() as connection:
            return entries(connection, now=utc_now())

    def decisions(self) -> list[sqlite3.Row]:
        with self.database() as connection:
            connection.row_factory = sqlite3.Row
            return list(connection.execute("SELECT * FROM decisions ORDER BY id"))

    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        """Send a signal and, after KILL, wait until that process is gone."""
        os.kill(pid, number)
        if number == signal.SIGKILL:
            until(lambda: pid not in self.processes(), f"process {pid} is gone")

    def kill_launcher(self, process: subprocess.Popen[str]) -> None:
        """Kill a command that waits for a run; with it gone nobody starts another kernel."""
        process.kill()
        process.communicate()

    def run_folder(self) -> Path:
        """The folder of the only run."""
        (folder,) = self.home.workflows_dir.iterdir()
        return folder

    def keeper(self) -> int:
        """The pid of the only attempt's keeper, once its worker runs."""
        return int(keeper_record(self.run_folder)["keeper"]["pid"])

    def worker_pid(self) -> int:
        return int(keeper_record(self.run_folder)["worker"]["pid"])

    def kernel(self) -> int:
        """The pid of the kernel that drives the only run."""

        def pid() -> int | None:
            mark = "-m bullswarm_server.kernel "
            return next((pid for pid, line in self.processes().items() if mark in line), None)

        return until(pid, "a kernel is running")

    def processes(self) -> dict[int, str]:
        """Every living process that was started below this site."""
        return processes_of(self.home.root)

    def close(self) -> None:
        """Check that nothing of the test is still running; the commands that it started are ended first."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        try:
            until(lambda: not self.processes(), "every process of the test has ended")
        finally:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def make_site(root: Path) -> Site:
    """Make a site with nothing in it but the packaged providers, of which only echo has a binary."""
    for name in ("home", "project", "bin", "tmp"):
        (root / name).mkdir()
    environ = {
        "PATH": f"{root / 'bin'}:{SYSTEM_PATH}",
        "HOME": str(root / "home"),
        "BULLSWARM_HOME": str(root / "state"),
        "TMPDIR": str(root / "tmp"),
        "LANG": "C.UTF-8",
        "BULLSWARM_METERS": "off",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    subprocess.run(["git", "init", "--quiet", str(root / "project")], check=True, env=environ)
    return Site(root, environ)


def tree(*folders: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below these folders, to compare before and after: names, modes and contents.

    SQLite's -shm file is memory that processes share; reading after a kill builds it anew.
    """
    found: dict[str, tuple[int, bytes]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            found[str(path)] = (
                path.lstat().st_mode,
                path.read_bytes() if path.is_file() and path.suffix != ".db-shm" else b"",
            )
    return found
