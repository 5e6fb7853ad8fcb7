"""The most that anyone could have completed in a month: a linear program that knows everything beforehand.

Variables, each at least 0:

- ``x[task, pool, cell]``: the share of a task that runs on a pool within a *cell*, a stretch of time between two resets of
  that pool, so that all of it burns the same windows. A cell counts where the task can run in it at all: between its
  arrival and the latest end of a run that begins within its patience. At most the share that fits in between.
- ``r[pool, cell]``: the person's own minutes that are refused in the cell, at most all of them.

It maximises the minutes of the tasks' shares less the minutes refused, the very value that a policy is scored by, such that

- the shares of a task sum to at most 1, and
- each window holds: what was used before + shares x minutes x burn + own use not refused <= 100 %.

Any play of the month gives a feasible point of the same value (its completed tasks, by the cells that they ran in; what walls
wasted is left out), so that no policy can beat it. It is a relaxation: tasks may be split among pools and moments, a half-done
task counts half, nobody starts over, nothing is placed before it is known how long it takes, and no own use is a surprise.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from bullswarm_core.pools import WindowKind
from bullswarm_simulation import Limit, Month, Subscription, Task

_LEAST_SHARE = 1e-9


def optimum(month: Month) -> float:
    """Return the greatest value that any plan could have, in worker-minutes; raises RuntimeError if it can't be found."""
    return Program(month).solve()


class Program:
    """The linear program of one month; ``add_tasks`` says how a task may be done."""

    def __init__(self, month: Month) -> None:
        self.gains: list[float] = []
        self.most: list[float] = []
        self.rows: dict[tuple[object, ...], int] = {}
        self.room: list[float] = []
        self.entries: list[tuple[int, int, float]] = []
        self.until = max((_last_end(task) for task in month.tasks), default=0.0) + 1.0
        for subscription in month.subscriptions:
            self._add(subscription, month)

    def solve(self) -> float:
        if not self.gains:
            return 0.0
        rows, columns, values = zip(*self.entries, strict=True)
        matrix = coo_matrix((values, (rows, columns)), shape=(len(self.room), len(self.gains))).tocsr()
        bounds = np.array([(0.0, most) for most in self.most])
        result = linprog(-np.array(self.gains), A_ub=matrix, b_ub=np.array(self.room), bounds=bounds, method="highs")
        if result.status != 0:
            raise RuntimeError(f"the optimum was not found: {result.message}")
        return float(-result.fun)

    def _add(self, subscription: Subscription, month: Month) -> None:
        edges = _edges(subscription, max(self.until, month.minutes))
        self.add_tasks(subscription, [task for task in month.tasks if task.lane in subscription.burn], edges)
        for own in subscription.own_use:
            for cell, minutes in _overlaps(edges, own.begins, own.ends):
                worked = own.workers * minutes
                column = self.column(-1.0, worked)
                for kind, row in self._windows(subscription, edges[cell]):
                    burn = subscription.burn[own.lane][kind]
                    self.room[row] -= burn * worked
                    self.entries.append((row, column, -burn))

    def add_tasks(self, subscription: Subscription, tasks: Sequence[Task], edges: Sequence[float]) -> None:
        """Add what each of these tasks may do on the pool, whose cells begin at ``edges``."""
        for task in tasks:
            for cell, minutes in _overlaps(edges, task.arrives, _last_end(task)):
                share = min(1.0, minutes / task.minutes)
                column = self.column(task.minutes, share)
                self.entries.append((self.row(("task", task.id), 1.0), column, 1.0))
                self._burn(subscription, task, edges[cell], column)

    def _burn(self, subscription: Subscription, task: Task, begins: float, column: int) -> None:
        for kind, row in self._windows(subscription, begins):
            self.entries.append((row, column, task.minutes * subscription.burn[task.lane][kind]))

    def _windows(self, subscription: Subscription, begins: float) -> Iterator[tuple[WindowKind, int]]:
        """Each window of the pool that is burnt in the cell that begins so, with the row of its 100 %."""
        for limit in subscription.limits:
            yield limit.kind, self.window(subscription, limit, limit.index_at(begins + 1e-6))

    def window(self, subscription: Subscription, limit: Limit, index: int) -> int:
        """The row of a window's 100 %."""
        return self.row((subscription.pool, limit.kind, index), limit.room(index))

    def row(self, key: tuple[object, ...], room: float) -> int:
        """The row of that key, which holds ``room`` in all."""
        if key not in self.rows:
            self.rows[key] = len(self.room)
            self.room.append(room)
        return self.rows[key]

    def column(self, gain: float, most: float) -> int:
        """A new variable: what one of it is worth, and how much there may be of it."""
        self.gains.append(gain)
        self.most.append(most)
        return len(self.gains) - 1


def _last_end(task: Task) -> float:
    return task.arrives + task.patience + task.minutes


def _edges(subscription: Subscription, until: float) -> list[float]:
    """Where the cells of a pool begin: at 0 and at each reset of any of its windows."""
    edges = {0.0}
    for limit in subscription.limits:
        index = 0
        while limit.ends(index) <= until:
            edges.add(limit.ends(index))
            index += 1
    return sorted(edges)


def _overlaps(edges: Sequence[float], begins: float, ends: float) -> Iterator[tuple[int, float]]:
    """Each cell that [begins, ends] touches, with the minutes of it that lie inside."""
    cell = bisect_right(edges, begins) - 1
    for place, (left, right) in enumerate(pairwise([*edges[cell:], float("inf")]), start=cell):
        if left >= ends:
            return
        minutes = min(right, ends) - max(left, begins)
        if minutes > _LEAST_SHARE:
            yield place, minutes
