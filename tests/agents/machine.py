"""A machine of its own for one test: a home, a project, one real agent CLI on PATH, and a scripted model behind it."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.agents.install import BIN_FOLDER
from tests.agents.scripted_model.server import ScriptedModel
from tests.agents.setups import Setup
from tests.processes import keeper_record, processes_of
from tests.processes import until as until

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
# Short enough for a test, long enough for the slowest CLI to start on two busy cores.
COMMAND_LIMIT_SEC = 240


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `bullswarm run --json` left: its exit code, its one document, and what it said on stderr."""

    code: int
    verdict: dict[str, Any]
    stderr: str

    @property
    def kind(self) -> str | None:
        """The failure kind, None for a good verdict."""
        kind: str | None = self.verdict["failureKind"]
        return kind

    @property
    def answer(self) -> str:
        """The whole content of the output file."""
        path = self.verdict["outFile"]
        return Path(path).read_text(encoding="utf-8") if path else ""


@dataclass(slots=True)
class Machine:
    """Where one real CLI is driven by `bullswarm`; every path is below `root`. `turns` are what the model says next."""

    root: Path
    setup: Setup
    model: ScriptedModel
    environ: dict[str, str]
    turns: list[Any]
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def state(self) -> Path:
        """The home of bullswarm itself."""
        return self.root / "bullswarm"

    def command(self, *words: str) -> list[str]:
        """The command line of a bullswarm verb."""
        return [sys.executable, "-m", "bullswarm_server.cli.main", *words]

    def bullswarm(
        self, *words: str, environ: dict[str, str] | None = None, cwd: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a verb to its end."""
        return subprocess.run(
            self.command(*words),
            cwd=cwd or self.project,
            env={**self.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_LIMIT_SEC,
            check=False,
        )

    def run(
        self,
        prompt: str = "Do the task.",
        *,
        lane: str = "analyze",
        options: Sequence[str] = (),
        environ: dict[str, str] | None = None,
        folder: Path | None = None,
    ) -> Outcome:
        """Run one task on this machine's CLI and return what came of it. The prompt goes by file, however long it is."""
        task = self.root / "task.txt"
        task.write_text(prompt, encoding="utf-8")
        done = self.bullswarm(
            "run", "--json", "--lane", lane, "--pool", self.setup.name, "--add-dir", str(folder or self.project),
            "--task-file", str(task), *self.model_option(), *options, environ=environ,
        )  # fmt: skip
        assert done.stdout.strip(), f"no document on stdout, exit {done.returncode}: {done.stderr}"
        return Outcome(done.returncode, json.loads(done.stdout), done.stderr)

    def start(self, *words: str, environ: dict[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start a verb and return at once; whatever is left of it is ended with the test."""
        process = subprocess.Popen(
            self.command(*words),
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
        self, *options: str, lane: str = "analyze", environ: dict[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        """Start a task on this machine's CLI and return at once."""
        return self.start(
            "run", "--json", "--lane", lane, "--pool", self.setup.name, *self.model_option(), *options, "Do the task.",
            environ=environ,
        )  # fmt: skip

    def model_option(self) -> list[str]:
        """Only Command Code has no setting of its own that says which model is the default."""
        return ["--model", self.setup.model] if self.setup.name == "command-code" else []

    def runs(self) -> list[dict[str, Any]]:
        """The documents of `runs list`."""
        listed = json.loads(self.bullswarm("runs", "list", "--json").stdout)
        rows: list[dict[str, Any]] = listed["runs"]
        return rows

    def run_folder(self) -> Path:
        """The folder of the only run of this machine."""
        (folder,) = (self.state / "workflows").iterdir()
        return folder

    def keeper_record(self) -> dict[str, Any]:
        """Who keeps the only attempt, and which process is its worker; waits until both are known."""
        return keeper_record(self.run_folder)

    def processes(self) -> dict[int, str]:
        """Every living process that was started below this machine."""
        return processes_of(self.state)

    def close(self) -> None:
        """End what the test left running and say what that was."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@contextlib.contextmanager
def machine(root: Path, setup: Setup, script: Sequence[Any]) -> Iterator[Machine]:
    """Make a machine with exactly one agent CLI on its PATH; at the end nothing of it may still be running."""
    folders = {name: root / name for name in ("home", "project", "bullswarm", "bin", "tmp")}
    for folder in folders.values():
        folder.mkdir()
    (folders["bin"] / setup.binary).symlink_to(BIN_FOLDER / setup.binary)
    subprocess.run(
        ["git", "init", "--quiet", str(folders["project"])], check=True, env={"PATH": SYSTEM_PATH, "HOME": str(root)}
    )
    turns = list(script)
    with ScriptedModel(lambda request: turns) as model:
        environ = {
            "PATH": f"{folders['bin']}:{SYSTEM_PATH}",
            "HOME": str(folders["home"]),
            "BULLSWARM_HOME": str(folders["bullswarm"]),
            "BULLSWARM_METERS": "off",
            "TMPDIR": str(folders["tmp"]),
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            **setup.prepare(folders["home"], model.url),
        }
        if setup.by_key:
            allowed = {"version": 1, "pools": {setup.name: {"allowBilling": True}}}
            (folders["bullswarm"] / "state.json").write_text(json.dumps(allowed), encoding="utf-8")
        built = Machine(root=root, setup=setup, model=model, environ=environ, turns=turns)
        try:
            yield built
        finally:
            built.close()
        left = until(lambda: built.processes() == {} or None, "every process of the test has ended", seconds=15)
        assert left
