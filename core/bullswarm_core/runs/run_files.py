"""The files of one run, under ``workflows/<run>/``."""

from __future__ import annotations

from pathlib import Path

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.store.home import Home

MARKER = "bullswarm-run.json"


@dataclass(frozen=True, slots=True)
class AttemptFiles:
    """Where one attempt keeps its task, its output, its stream and the records of its keeper."""

    folder: Path
    step: str
    ordinal: int

    @property
    def id(self) -> str:
        """The attempt's id within its run: ``run-1``."""
        return f"{self.step}-{self.ordinal}"

    @property
    def _stem(self) -> str:
        return f"{self.step}-attempt-{self.ordinal}"

    @property
    def task(self) -> Path:
        return self.folder / f"task-{self._stem}.md"

    @property
    def instructions(self) -> Path:
        """The project's own instructions, for a CLI that is kept from everything else of the project."""
        return self.folder / f"instructions-{self._stem}.md"

    @property
    def output(self) -> Path:
        return self.folder / f"out-{self._stem}.md"

    @property
    def stream(self) -> Path:
        """Standard output of a CLI that writes events."""
        return self.folder / f"stream-{self._stem}.jsonl"

    @property
    def stdout(self) -> Path:
        """Standard output of a CLI that writes plain text."""
        return self.folder / f"stdout-{self._stem}.log"

    @property
    def stderr(self) -> Path:
        return self.folder / f"stderr-{self._stem}.log"

    @property
    def spec(self) -> Path:
        return self.folder / f"attempt-{self.id}.spec.json"

    @property
    def launch(self) -> Path:
        """How the CLI was started, from right before its start; nothing in it is secret."""
        return self.folder / f"attempt-{self.id}.launch.json"

    @property
    def keeper(self) -> Path:
        return self.folder / f"attempt-{self.id}.keeper.json"

    @property
    def keeper_log(self) -> Path:
        return self.folder / f"attempt-{self.id}.keeper.log"

    @property
    def exit(self) -> Path:
        return self.folder / f"attempt-{self.id}.exit.json"

    @property
    def stop(self) -> Path:
        return self.folder / f"attempt-{self.id}.stop.json"

    @property
    def lock(self) -> Path:
        return self.folder / f"attempt-{self.id}.lock"

    @property
    def before(self) -> Path:
        """The snapshot of the tree from before the worker started."""
        return self.folder / f"before-{self._stem}.json"

    @property
    def state_before(self) -> Path:
        """The listing of the CLI's state folders from before the worker started."""
        return self.folder / f"state-{self._stem}.json"

    @property
    def made(self) -> Path:
        """What the attempt made, by the bytes, as it stood when it ended."""
        return self.folder / f"made-{self._stem}.json"

    @property
    def diff(self) -> Path:
        """What the attempt changed, as it stood when it ended."""
        return self.folder / f"diff-{self._stem}.patch"

    @property
    def answer(self) -> Path:
        """The typed answer as bullswarm keeps it: what was given, valid or not."""
        return self.folder / f"answer-{self._stem}.json"

    @property
    def answer_schema(self) -> Path:
        """What is asserted of the typed answer, for CLIs that take the schema as a file."""
        return self.folder / f"answer-{self._stem}.schema.json"

    @property
    def answer_draft(self) -> Path:
        """Where a worker that may write puts its typed answer: a place that every confinement lets it write to."""
        return self.private_tmp / "answer.json"

    @property
    def private_tmp(self) -> Path:
        return self.folder / f"tmp-{self._stem}"

    def evidence_log(self, number: int) -> Path:
        """What the check of this number (from 1) said."""
        return self.folder / f"evidence-{self._stem}-{number}.log"

    @property
    def concluded(self) -> Path:
        """What the attempt came to before its checks; there while they run."""
        return self.folder / f"attempt-{self.id}.concluded.json"

    @property
    def checking(self) -> Path:
        """Which process runs a check at the moment, and for which kernel."""
        return self.folder / f"attempt-{self.id}.checking.json"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @classmethod
    def of(cls, home: Home, run_id: str) -> RunFolder:
        """Name the folder of ``run_id``; nothing is created."""
        return cls(home.workflows_dir / run_id)

    @property
    def marker(self) -> Path:
        """Tells our runs from entries that another program left in the same place, which are never touched."""
        return self.path / MARKER

    @property
    def kernel_lock(self) -> Path:
        return self.path / "kernel.lock"

    @property
    def kernel_start(self) -> Path:
        """Which process was started as the run's newest kernel."""
        return self.path / "kernel-start.json"

    @property
    def kernel_log(self) -> Path:
        return self.path / "kernel.log"

    def attempt(self, step: str, ordinal: int) -> AttemptFiles:
        """Name the files of one attempt."""
        return AttemptFiles(self.path, step, ordinal)
