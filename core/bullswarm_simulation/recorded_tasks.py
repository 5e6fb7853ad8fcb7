"""The tasks of a recorded time, and what became of them: read from the decision log's attempts.

An attempt that came to an end of its own is a task of that length. One that its quota ended is the beginning of the attempt
that its step made next: together they are one task, which came when the first of them began. All else has no known length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.pools.model import DEFAULT_EFFORT, Effort, Lane
from bullswarm_core.quota.durations import RECENT_DECISIONS
from bullswarm_core.quota.rates import Work
from bullswarm_core.quota.windows import MINUTE
from bullswarm_simulation.world import Task

PATIENCE_MINUTES = 300.0
"""How long a task waits for a pool: until the shortest window has surely reset, since a person asks again then. A recorded
one that waited longer for its next attempt waits as long here.
"""
STOPPED = frozenset({"cancelled", "interrupted", "paused", "restarted", "superseded"})
REFUSED = frozenset({"auth", "throttle", "model-not-in-plan", "unavailable", "ownership-conflict"})
"""Failures before any work: what they took is not the length of a task."""

LeftOut = Literal["stopped", "stalled", "refused", "wall", "unmeasured", "before", "pool"]
"""``wall``: its quota ended it for good. ``before``: it came before there were readings. ``pool``: its pool isn't played."""


@dataclass(frozen=True, slots=True)
class RecordedAttempt:
    """One row of the decision log: when it began, and its ``work`` (None where it did none).

    ``step`` names run and step, so that a further attempt of the same task is known; None is a task of its own.
    """

    id: str
    pool: str
    lane: Lane
    effort: Effort
    begun: datetime
    work: Work | None
    step: str | None = None
    failure_kind: str | None = None
    stalled: bool = False

    @property
    def met_wall(self) -> bool:
        """Whether its pool's quota ended it."""
        return self.failure_kind == "quota"

    @property
    def minutes(self) -> float:
        """How long it worked; 0 where nobody knows."""
        measured = self.work is not None and self.work.measured
        return (self.work.ended_at - self.work.started_at) / MINUTE if self.work and measured else 0.0

    def no_length(self) -> LeftOut | None:
        """Say why its time is not the length of a task; None when it is."""
        if self.failure_kind in REFUSED:
            return "refused"
        if self.failure_kind in STOPPED:
            return "stopped"
        if self.stalled:
            return "stalled"
        return None if self.minutes else "unmeasured"


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """The attempts that were made of one task, in order; those before the last one met a wall.

    ``left_out`` says why it can't be played; None when it can.
    """

    attempts: tuple[RecordedAttempt, ...]
    left_out: LeftOut | None = None

    @property
    def came(self) -> datetime:
        """When its first attempt began."""
        return self.attempts[0].begun

    def as_task(self, begins: datetime) -> Task:
        """The task as it is played in a month that begins at ``begins``."""
        last = self.attempts[-1]
        waited = (last.begun - self.came) / MINUTE
        return Task(
            last.id,
            (self.came - begins) / MINUTE,
            last.minutes,
            last.lane,
            last.effort,
            max(PATIENCE_MINUTES, waited),
        )


@dataclass(frozen=True, slots=True)
class TaskLog:
    """The recorded tasks from a moment on: those that can be ``played``, those that a wall ended for good, and the rest.

    ``left_out`` counts those that can't be played, by reason. ``known_minutes`` are the lengths of earlier ones, by lane.
    """

    played: tuple[RecordedTask, ...]
    given_up: tuple[RecordedTask, ...] = ()
    left_out: Mapping[LeftOut, int] = field(default_factory=dict)
    known_minutes: Mapping[Lane, tuple[float, ...]] = field(default_factory=dict)

    @property
    def walls(self) -> tuple[RecordedAttempt, ...]:
        """The attempts that quota ended."""
        return tuple(each for task in (*self.played, *self.given_up) for each in task.attempts if each.met_wall)

    def work_on(self, pool: str) -> list[Work]:
        """What a policy would have placed differently of the work on this pool: of the tasks played, and lost at walls."""
        attempts = (each for task in (*self.played, *self.given_up) for each in task.attempts)
        return [each.work for each in attempts if each.pool == pool and each.work and each.work.measured]


def task_log(
    attempts: Iterable[RecordedAttempt], *, since: datetime, begins: datetime, until: datetime, pools: Iterable[str]
) -> TaskLog:
    """Return the tasks that came from ``begins`` to ``until`` and ran on one of ``pools``.

    Those from ``since`` to ``begins`` are left out and counted; older ones only tell lengths.
    """
    among = frozenset(pools)
    found = sorted(_tasks(attempts), key=lambda task: (task.came, task.attempts[-1].id))
    asked = [task for task in found if since <= task.came < until]
    reasons = {id(task): _why_out(task, begins, among) for task in asked}
    return TaskLog(
        played=tuple(task for task in asked if reasons[id(task)] is None),
        given_up=tuple(task for task in asked if reasons[id(task)] == "wall"),
        left_out=Counter(reason for reason in reasons.values() if reason is not None),
        known_minutes=_lengths(found, before=begins),
    )


def _why_out(task: RecordedTask, begins: datetime, pools: frozenset[str]) -> LeftOut | None:
    if task.came < begins:
        return "before"
    if task.attempts[-1].pool not in pools:
        return "pool"
    return task.left_out


def _tasks(attempts: Iterable[RecordedAttempt]) -> Iterator[RecordedTask]:
    """Put the attempts of each task together; every attempt is in one task, whether it can be played or not."""
    steps: dict[str, list[RecordedAttempt]] = {}
    for attempt in sorted(attempts, key=lambda attempt: (attempt.begun, attempt.id)):
        key = f"attempt {attempt.id}" if attempt.step is None else f"step {attempt.step}"
        steps.setdefault(key, []).append(attempt)
    for made in steps.values():
        walls: list[RecordedAttempt] = []
        for attempt in made:
            if attempt.met_wall:
                walls.append(attempt)
            elif reason := attempt.no_length():
                yield RecordedTask((attempt,), reason)
            else:
                yield RecordedTask((*walls, attempt))
                walls = []
        if walls:
            yield RecordedTask(tuple(walls), "wall")


def _lengths(tasks: Iterable[RecordedTask], *, before: datetime) -> dict[Lane, tuple[float, ...]]:
    """The latest lengths by lane of what had ended, of the lane's customary tier, of which lengths are learned."""
    lengths: dict[Lane, list[float]] = {}
    for task in tasks:
        last = task.attempts[-1]
        ended = last.work is not None and last.work.ended_at <= before
        if task.left_out is None and ended and last.effort == DEFAULT_EFFORT[last.lane]:
            lengths.setdefault(last.lane, []).append(last.minutes)
    return {lane: tuple(minutes[-RECENT_DECISIONS:]) for lane, minutes in lengths.items()}
