"""How loose is the optimum? The same program, but no task may be cut: ``python -m tests.benchmarks.month.whole_pieces``.

In place of ``x[task, pool, cell]`` it has ``x[task, pool, begin]``: the share of a task that begins there and runs to its end
in one piece, burning each window that it spans. A begin at which the piece alone overfills a window is none.

Few begins are enough. Between those at which the piece's begin or end crosses a reset, what it burns of each window grows or
falls linearly with the begin, so that any begin is a mixture of the two around it; where a piece just fits into a window the
stretch of begins that are allowed ends, so that those count too. Every play is still a feasible point, and so this is an upper
bound as well, never above the optimum.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from tests.benchmarks.month.families import FAMILIES, REPORTED_SEEDS
from tests.benchmarks.month.optimum import Program, optimum

from bullswarm_simulation import Limit, Month, Subscription, Task
from bullswarm_simulation.recipes import draw

_ROUNDING = 1e-7
Burnt = tuple[Limit, int, float]
"""A window by its limit and number, and what a piece burns of it in percent."""


def optimum_of_whole_pieces(month: Month) -> float:
    """Return the greatest value of a plan that cuts no task (still shared out as fractions of whole runs)."""
    return _WholePieces(month).solve()


class _WholePieces(Program):
    def add_tasks(self, subscription: Subscription, tasks: Sequence[Task], edges: Sequence[float]) -> None:
        for task in tasks:
            for burnt in _begins(subscription, task):
                column = self.column(task.minutes, 1.0)
                self.entries.append((self.row(("task", task.id), 1.0), column, 1.0))
                for limit, index, percent in burnt:
                    self.entries.append((self.window(subscription, limit, index), column, percent))


def _begins(subscription: Subscription, task: Task) -> Iterator[list[Burnt]]:
    """What the piece burns, for each begin that counts and fits."""
    for begin in sorted(_moments(subscription, task)):
        burnt = list(_burnt(subscription, task, begin))
        if all(percent <= limit.room(index) + _ROUNDING for limit, index, percent in burnt):
            yield burnt


def _moments(subscription: Subscription, task: Task) -> set[float]:
    first, last = task.arrives, task.arrives + task.patience
    moments = {first, last}
    for limit in subscription.limits:
        burn = subscription.burn[task.lane][limit.kind]
        for index in range(max(0, limit.index_at(first) - 1), limit.index_at(last + task.minutes) + 1):
            opens, resets = limit.ends(index - 1) if index else 0.0, limit.ends(index)
            filled = limit.room(index) / burn if burn else resets - opens
            near = (opens, opens - task.minutes, resets, resets - task.minutes)
            full = (opens + filled - task.minutes, resets - filled)
            moments.update(moment for moment in (*near, *full) if first < moment < last)
    return moments


def _burnt(subscription: Subscription, task: Task, begin: float) -> Iterator[Burnt]:
    end = begin + task.minutes
    for limit in subscription.limits:
        burn = subscription.burn[task.lane][limit.kind]
        at = begin
        while end - at > _ROUNDING:
            index = limit.index_at(at + _ROUNDING)
            until = min(end, limit.ends(index))
            yield limit, index, burn * (until - at)
            at = until


def main() -> int:
    """Print, month by month of those reported, what share of the optimum is left when no task may be cut."""
    shares = []
    for recipe in FAMILIES:
        for seed in REPORTED_SEEDS:
            month = draw(recipe, seed)
            shares.append(optimum_of_whole_pieces(month) / optimum(month))
            sys.stdout.write(f"{recipe.name}/{seed}: {shares[-1]:.5f}\n")
            sys.stdout.flush()
    sys.stdout.write(f"mean {sum(shares) / len(shares):.5f}, least {min(shares):.5f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
