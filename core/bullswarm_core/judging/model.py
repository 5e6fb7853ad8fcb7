"""The vocabulary of a verdict: what goes into it, and the closed lists of what can come out."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.answers.answer import AnswerCheck
from bullswarm_core.judging.expected import Wanted
from bullswarm_core.pools.model import Lane, Window
from bullswarm_core.quota.notice import Notice
from bullswarm_core.streams.facts import ExitFacts, StreamFacts
from bullswarm_core.trees.snapshot import DeliverableFacts

# The closed list of docs/design/judging.md, "Failure kinds".
FailureKind = Literal[
    "quota", "throttle", "auth", "provider", "process", "stalled", "interrupted", "model-not-in-plan", "not-produced",
    "failed-evidence", "schema", "semantic", "ownership", "ownership-conflict", "runtime", "unavailable", "cancelled",
    "paused", "restarted", "superseded", "denied", "timeout", "needs-input",
]  # fmt: skip
# What it meant that a worker was stopped. "interrupted": nobody had asked for it, a signal reached its keeper.
StopKind = Literal["cancelled", "paused", "restarted", "superseded", "interrupted"]
BackAtSource = Literal["named", "measured"]
NoteKind = Literal[
    "recovered-stream-error", "denied", "forced_exit", "no-last-word", "no-output", "analyze-changed-files",
    "leftovers-killed", "capture-cut", "answer-before-tools", "doubtful-answer", "attribution-shared", "tree-not-all-seen",
    "limit-noticed", "idle-cpu", "folder-gone", "only-ignored-files", "worktree-kept", "survivors",
    "weaker-confinement", "settings-rewritten", "first-start-files",
    "settings-not-all-compared",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a reader of the verdict should know, and that did not decide it."""

    kind: NoteKind
    text: str


@dataclass(frozen=True, slots=True)
class WorkerClocks:
    """The clocks under which the worker ran, in seconds; None for one that was off or is not known."""

    startup_sec: float | None = None
    silence_sec: float | None = None
    no_progress_sec: float | None = None
    wall_sec: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeInput:
    """Everything that a verdict is made from.

    ``deliverable`` None means that the tree was not compared: a build or chore then never passes. ``windows`` is the
    pool's last reading; ``now`` decides which of them still run. ``free``: the rung costs nothing. ``stop`` says what a
    stop meant. ``confined``: something held the worker, so that a "permission denied" of the system is a denial.
    ``pool`` is named in the way out, where there is one. ``meddled`` are settings of the person's that are not what they
    were before the worker started; ``rewritten`` were written again with the same content, and ``first_files`` appeared in a
    state folder of the CLI that was empty before; ``not_compared`` held too much before to be compared.
    ``answer`` is what came of a typed answer, None where none was asked for;
    ``answer_given_up``: the CLI itself ended because the worker gave none that fits. ``wanted`` is the deliverable of a
    workflow's step; None judges by the lane alone. ``by_key``: the worker signed in with an API key, not with an account.
    """

    lane: Lane
    exit: ExitFacts
    stream: StreamFacts
    now: datetime
    deliverable: DeliverableFacts | None = None
    notice: Notice | None = None
    windows: tuple[Window, ...] = ()
    model: str | None = None
    free: bool = False
    stop: StopKind = "cancelled"
    clocks: WorkerClocks = WorkerClocks()
    confined: bool = False
    pool: str | None = None
    meddled: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    first_files: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    answer: AnswerCheck | None = None
    answer_given_up: bool = False
    wanted: Wanted | None = None
    by_key: bool = False
