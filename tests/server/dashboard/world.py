"""A home as people have it, for the tests of the dashboard: pools with meters and history, runs of every kind."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.core.runs.journals import document
from tests.server.site import CONNECTOR

from bullswarm_core.kernel.outcome import finished_event
from bullswarm_core.pools import Window
from bullswarm_core.pools.labels import set_label
from bullswarm_core.quota.history import append_history
from bullswarm_core.quota.observation import Observation
from bullswarm_core.quota.reading import write_reading
from bullswarm_core.runs.attempt_result import JudgementRecord, LaunchRecord, MetaRecord
from bullswarm_core.runs.events import (
    AttemptFinished,
    AttemptLaunched,
    AttemptPicked,
    GateWaiting,
    Payload,
    RunCreated,
    RunParked,
)
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home, write_json

# Whatever a worker wrote must show as text: control sequences, markup of the screen's library, letters that turn writing.
NASTY = "\x1b[2J\x1b]0;owned\x07[red]not markup[/red] [@click=app.quit]click[/] \u202egnp.exe"
SHOWN_NASTY = "[red]not markup[/red] [@click=app.quit]click[/]"
ALPHA, BETA, GAMMA = "alpha", "beta", "gamma"
LABELS = {ALPHA: "work", BETA: "night-shift"}


@dataclass(slots=True)
class World:
    """The home, what verbs are called with, and the locks of the kernels that seem to live."""

    root: Path
    locks: list[int] = field(default_factory=list)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    said: str = NASTY
    project: str = "/home/me/project"

    @property
    def home(self) -> Home:
        return Home(self.root / "state")

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": f"{self.root / 'bin'}:/usr/bin:/bin", "HOME": str(self.root), "LANG": "C.UTF-8", "TERM": "xterm-256color",
            "BULLSWARM_HOME": str(self.home.root), "BULLSWARM_METERS": "off", "BULLSWARM_NO_PACKAGED_PROVIDERS": "1",
        }  # fmt: skip

    def close(self) -> None:
        for handle in self.locks:
            os.close(handle)

    def pool(self, name: str, *, used: float, five: float, history: int = 6) -> None:
        """Add a pool with a meter, and readings of the last day."""
        folder = self.root / "bin"
        folder.mkdir(exist_ok=True)
        binary = folder / f"{name}-cli"
        binary.write_text("#!/bin/sh\ncat > /dev/null\n")
        binary.chmod(0o755)
        connector = {
            **CONNECTOR, "name": name, "binary": binary.name, "meter": {"type": "reader", "windows": ["weekly", "5h"]},
            "tiers": {"high": {"model": f"{name}-large", "reasoning": "high"}, "medium": {}, "low": {}},
        }  # fmt: skip
        write_json(self.home.providers_dir / name / "connector.json", connector)
        for hour in range(history, -1, -1):
            at = self.now - timedelta(hours=hour)
            windows = self.windows(used - 3 * hour, five if hour == 0 else 1.0)
            append_history(self.home, name, Observation(at, windows, "status line"), now=self.now)
        write_reading(self.home, name, self.windows(used, five), captured_at=self.now)

    def windows(self, used: float, five: float) -> tuple[Window, ...]:
        return (
            Window("weekly", max(0.0, used), self.now + timedelta(days=2, hours=5)),
            Window("5h", five, self.now + timedelta(hours=2)),
        )

    def create(self, goal: str, program: dict[str, Any], *, kind: str = "workflow", ago: float = 30.0) -> RunCreated:
        """Record a run that was asked for ``ago`` minutes ago."""
        with self.journal() as journal:
            count = len(journal.rows())
            run = RunCreated(
                run_id=f"wf-test-{count:05}", short_id="", kind=kind, goal=goal, cwd=self.project,
                program=program,
            )  # fmt: skip
            created = journal.create(run, at=self.now - timedelta(minutes=ago))
        folder = RunFolder.of(self.home, created.run_id)
        folder.path.mkdir(parents=True)
        write_json(folder.marker, {})
        return created

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        connection = open_database(self.home)
        try:
            yield Journal(connection)
        finally:
            connection.close()

    def write(self, run_id: str, *payloads: Payload, ago: float = 0.0) -> RunState:
        with self.journal() as journal:
            journal.append(run_id, payloads, at=self.now - timedelta(minutes=ago))
            return journal.state(run_id)

    def start(self, run_id: str, step: str, *, pool: str = ALPHA, ago: float = 5.0, **more: Any) -> None:
        """Write the pick and the launch of a step's next attempt."""
        with self.journal() as journal:
            ordinal = len(journal.state(run_id).steps[step].attempts) + 1
        others = {"candidates": [{"pool": name} for name in (ALPHA, BETA, GAMMA)]}
        picked = AttemptPicked(
            step=step, ordinal=ordinal, pool=pool, provider=pool, model=f"{pool}-large", reasoning="high",
            lane=more.pop("lane", "analyze"), effort="medium", reason=f"{pool} has most surplus", booking=1,
            tree=str(self.root), expected_minutes=12.0, decision=others, **more,
        )  # fmt: skip
        self.write(
            run_id, picked, AttemptLaunched(step=step, ordinal=ordinal, keeper={}, launch=LaunchRecord()), ago=ago
        )
        files = RunFolder.of(self.home, run_id).attempt(step, ordinal)
        files.task.write_text(f"# Task of {step}\n\nExplain the parser. {self.said}\n", encoding="utf-8")
        files.stdout.write_text(f"Looking at the parser of {step}.\n", encoding="utf-8")

    def end(self, run_id: str, step: str, kind: str | None = None, *, ago: float = 1.0, **judgement: Any) -> RunState:
        """Write the end of the step's running attempt."""
        with self.journal() as journal:
            running = journal.state(run_id).steps[step].running
        assert running is not None
        files = RunFolder.of(self.home, run_id).attempt(step, running.picked.ordinal)
        files.output.write_text(f"The parser splits at commas.\n{self.said}\n", encoding="utf-8")
        why = f"the parser of {running.picked.pool} is wrong {self.said}" if kind else "done"
        finished = AttemptFinished(
            step=step, ordinal=running.picked.ordinal, ok=kind is None, why=why, failure_kind=kind,
            judgement=JudgementRecord.from_wire(judgement),
            meta=MetaRecord.from_wire({"wallSec": 75.0}), output_file=str(files.output),
        )  # fmt: skip
        return self.write(run_id, finished, ago=ago)

    def finish(self, run_id: str, *, ago: float = 1.0) -> None:
        """Write the end of a run."""
        with self.journal() as journal:
            state = journal.state(run_id)
        at = self.now - timedelta(minutes=ago)
        event = finished_event(state, folder=RunFolder.of(self.home, run_id), label=lambda pool: pool, now=at)
        self.write(run_id, event, ago=ago)

    def alive(self, run_id: str) -> None:
        """Hold the lock of the run's kernel, as a living one does."""
        path = RunFolder.of(self.home, run_id).kernel_lock
        handle = os.open(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(handle, fcntl.LOCK_EX)
        self.locks.append(handle)


@dataclass(slots=True)
class Runs:
    """The run ids of the world that most tests look at."""

    running: str
    broken: str
    gated: str
    single: str


def furnished(world: World) -> Runs:
    """Fill the home: three pools, two of them with labels; a run under way, one broken, one at a gate, some that ended."""
    world.pool(ALPHA, used=31.0, five=12.0)
    world.pool(BETA, used=83.0, five=64.0)
    world.pool(GAMMA, used=2.0, five=0.0)
    for pool, label in LABELS.items():
        set_label(world.home, pool, label, (ALPHA, BETA, GAMMA))
    write_json(world.home.state_file, {"version": 1, "pools": {}})
    for number in range(3):
        ended_single(world, f"Question {number} about the lexer", ago=600 - number)
    single = ended_single(world, f"Explain the parser {world.said}", ago=90)
    return Runs(running=running(world), broken=broken(world), gated=gated(world), single=single)


def ended_single(world: World, goal: str, *, ago: float) -> str:
    run = world.create(goal, document({"id": "run", "lane": "analyze"}), kind="run", ago=ago)
    world.start(run.run_id, "run", ago=ago)
    world.end(run.run_id, "run", ago=ago - 2)
    world.finish(run.run_id, ago=ago - 2)
    return run.run_id


def running(world: World) -> str:
    program = document(
        {"id": "survey", "phase": "Look", "lane": "analyze"},
        {"id": "parser", "phase": "Build", "lane": "build", "dependsOn": ["survey"]},
        {"id": "lexer", "phase": "Build", "lane": "build", "dependsOn": ["survey"]},
        {"id": "review", "phase": "Check", "lane": "analyze", "dependsOn": ["parser", "lexer"]},
    )
    run = world.create("Rewrite the parser", program, ago=20)
    world.alive(run.run_id)
    world.start(run.run_id, "survey", ago=19)
    world.end(run.run_id, "survey", ago=15)
    world.start(run.run_id, "parser", pool=BETA, ago=14, lane="build")
    world.start(run.run_id, "lexer", pool=GAMMA, ago=3, lane="build")
    return run.run_id


def broken(world: World) -> str:
    program = document({"id": "mend", "lane": "analyze"}, {"id": "tell", "lane": "analyze", "dependsOn": ["mend"]})
    run = world.create("Mend the tests", program, ago=50)
    tries = ((ALPHA, None), (ALPHA, "same-pool"), (BETA, "another-pool"))
    for ordinal, (pool, how) in enumerate(tries):
        world.start(run.run_id, "mend", pool=pool, ago=49 - 3 * ordinal, retry_how=how)
        world.end(run.run_id, "mend", "failed-evidence", ago=47 - 3 * ordinal, evidenceResults=[failed_check(world)])
    world.finish(run.run_id, ago=40)
    return run.run_id


def failed_check(world: World) -> dict[str, Any]:
    log = world.root / "evidence.log"
    log.write_text("collected 3 items\nFAILED tests/test_parser.py::test_commas\n")
    return {"cmd": "pytest -q", "status": "failed", "why": "exit 1", "exit": 1, "log": str(log), "tail": ["1 failed"]}


def gated(world: World) -> str:
    gates = [{"id": "look", "dependsOn": ["draft"], "note": "read the draft before it is sent"}]
    program = document({"id": "draft", "lane": "analyze"}, {"id": "send", "dependsOn": ["look"]}, gates=gates)
    run = world.create("Write to the users", program, ago=70)
    world.start(run.run_id, "draft", ago=69)
    world.end(run.run_id, "draft", ago=61)
    world.write(run.run_id, GateWaiting("look"), RunParked("waiting", ("look",)), ago=60)
    return run.run_id


def many_runs(world: World, count: int) -> None:
    """Fill the history with runs that ended, straight into the tables."""
    connection = open_database(world.home)
    created = RunCreated(
        run_id="x", short_id="x", kind="run", goal="g", cwd="/p", program=document({"id": "run", "lane": "analyze"})
    )
    try:
        connection.execute("BEGIN IMMEDIATE")
        for number in range(count):
            at = (world.now - timedelta(hours=1, minutes=number)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            run_id = f"old-{number:06}"
            connection.execute(
                "INSERT INTO runs (id, short_id, created_at, cwd, goal, kind, root, state, finished_at)"
                " VALUES (?, ?, ?, '/project', ?, 'run', ?, ?, ?)",
                (run_id, f"o{number:05}", at, f"Task number {number}", run_id, ("completed", "quota")[number % 2], at),
            )
            connection.execute(
                "INSERT INTO events (run, seq, at, type, version, payload) VALUES (?, 1, ?, 'run.created', 1, ?)",
                (run_id, at, json.dumps({"runId": run_id, "goal": created.goal})),
            )
        connection.execute("COMMIT")
    finally:
        connection.close()
