"""The true state of one account while a month is played: what each window holds, and who is burning it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.pools.model import WindowKind
from bullswarm_simulation.scoring import WindowUse
from bullswarm_simulation.world import FULL_PCT, Limit, OwnUse, Subscription, Task

_HAIR = 1e-7
"""Two sums of the same burn in another order differ by less than this; a window this near to 100 % is full."""

Instance = tuple[WindowKind, int]


@dataclass(slots=True)
class Attempt:
    """A task at work on a pool; ``burnt`` is what it took of each window so far, ``since`` from when it is not yet in."""

    task: Task
    pool: str
    begun: float
    expected_minutes: float
    since: dict[WindowKind, float] = field(default_factory=dict)
    burnt: dict[Instance, float] = field(default_factory=dict)

    @property
    def would_end(self) -> float:
        """When it ends if no wall comes before."""
        return self.begun + self.task.minutes


@dataclass(slots=True)
class _Parts:
    """What became of one window so far."""

    completed: float = 0.0
    lost: float = 0.0
    own: float = 0.0


class Account:
    """One subscription at work: moved on by :meth:`advance`, which must stop at each reset, wall and change of load."""

    __slots__ = ("at", "index", "own_use", "parts", "refused", "running", "subscription", "used", "version")

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.at = 0.0
        self.used: dict[WindowKind, float] = {limit.kind: limit.used_pct for limit in subscription.limits}
        self.index: dict[WindowKind, int] = dict.fromkeys(self.used, 0)
        self.running: dict[str, Attempt] = {}
        self.own_use: OwnUse | None = None
        self.refused = 0.0
        self.parts: dict[Instance, _Parts] = {}
        self.version = 0

    @property
    def full(self) -> bool:
        """Whether a window of it is spent, so that nothing works on it."""
        return any(used >= FULL_PCT - _HAIR for used in self.used.values())

    def burn(self, kind: WindowKind) -> float:
        """Percent of the window that everyone together burns in a minute."""
        burn = self.subscription.burn
        work = sum(burn[attempt.task.lane][kind] for attempt in self.running.values())
        return work + self._own_burn(kind)

    def _own_burn(self, kind: WindowKind) -> float:
        own = self.own_use
        return 0.0 if own is None else own.workers * self.subscription.burn[own.lane][kind]

    def advance(self, to: float) -> None:
        """Burn what is burnt until minute ``to``; a full account burns nothing, and refuses the person."""
        minutes, self.at = to - self.at, to
        if minutes <= 0:
            return
        if self.full:
            self.refused += 0.0 if self.own_use is None else self.own_use.workers * minutes
            return
        for kind in self.used:
            self.used[kind] = min(FULL_PCT, self.used[kind] + self.burn(kind) * minutes)
            if self.own_use is not None:
                self._part(kind, self.index[kind]).own += self._own_burn(kind) * minutes

    def next_wall(self) -> float:
        """When the first window is full if the load stays as it is; infinite where that is never, or already now."""
        if self.full:
            return math.inf
        walls = [
            self.at + (FULL_PCT - used) / burn for kind, used in self.used.items() if (burn := self.burn(kind)) > 0
        ]
        return min(walls, default=math.inf)

    def fill_at_wall(self) -> None:
        """Set the window that the present wall is of to full, which a sum may miss by a hair."""
        kind = max(self.used, key=lambda kind: self.used[kind])
        self.used[kind] = FULL_PCT

    def begin(self, attempt: Attempt) -> None:
        """Put an attempt to work now."""
        attempt.since = dict.fromkeys(self.used, self.at)
        self.running[attempt.task.id] = attempt

    def end(self, attempt: Attempt, *, completed: bool) -> None:
        """Take an attempt off the pool, and book what it burnt as completed or lost."""
        del self.running[attempt.task.id]
        for kind in self.used:
            self._attribute(attempt, kind)
        for (kind, index), burnt in attempt.burnt.items():
            part = self._part(kind, index)
            if completed:
                part.completed += burnt
            else:
                part.lost += burnt

    def reset(self, limit: Limit) -> None:
        """Begin the next window of this kind, with nothing used."""
        for attempt in self.running.values():
            self._attribute(attempt, limit.kind)
        self._part(limit.kind, self.index[limit.kind])
        self.index[limit.kind] += 1
        self.used[limit.kind] = 0.0

    def window_uses(self, month_minutes: float) -> Iterator[WindowUse]:
        """Where the quota of each window went, by kind and in order; ask when nothing is at work any more."""
        for limit in self.subscription.limits:
            for index in range(self.index[limit.kind] + 1):
                part = self._part(limit.kind, index)
                yield WindowUse(
                    self.subscription.pool,
                    limit.kind,
                    index,
                    limit.ends(index),
                    completed=part.completed,
                    lost=part.lost,
                    own=part.own,
                    before=0.0 if index else limit.used_pct,
                    ended=limit.ends(index) <= month_minutes,
                )

    def _attribute(self, attempt: Attempt, kind: WindowKind) -> None:
        minutes = self.at - attempt.since[kind]
        attempt.since[kind] = self.at
        instance = (kind, self.index[kind])
        burnt = minutes * self.subscription.burn[attempt.task.lane][kind]
        attempt.burnt[instance] = attempt.burnt.get(instance, 0.0) + burnt

    def _part(self, kind: WindowKind, index: int) -> _Parts:
        return self.parts.setdefault((kind, index), _Parts())
