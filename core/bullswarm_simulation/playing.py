"""Plays a month: events in the order of time, each task placed by the policy when it comes, walls that waste work.

The rules of the world: a task is placed at once where a pool is eligible, else it waits for a reset as long as its patience
lasts, and is then given up. A pool whose window is full ends everything that runs on it: what those attempts burnt is lost,
and their tasks are placed anew, from their beginning, as long as their patience lasts.
"""

from __future__ import annotations

import heapq
import math
from datetime import timedelta
from itertools import count
from typing import Any

from bullswarm_core.routing import Request, RoutingContext
from bullswarm_simulation.accounts import Account, Attempt
from bullswarm_simulation.knowledge import PoolKnowledge, TaskKnowledge
from bullswarm_simulation.rivals import Memory, pick
from bullswarm_simulation.scoring import Score, expired_share
from bullswarm_simulation.world import Limit, Month, OwnUse, Task

# What comes first of things at one minute: an attempt that ends just at a wall is complete, a reset frees before the wall.
_END, _RESET, _OWN_ENDS, _OWN_BEGINS, _WALL, _POLL, _RETRY, _GIVE_UP, _ARRIVAL = range(9)


def simulate(month: Month, policy: str, *, told_lengths: bool = False) -> Score:
    """Play ``month`` with a policy of routing, or a rival, of that name; the same month and name give the same score.

    With ``told_lengths`` it is told how long each task truly takes, to see what that knowledge alone is worth. Raises
    UsageError for an unknown name.
    """
    return _Play(month, policy, told_lengths=told_lengths).run()


class _Play:
    def __init__(self, month: Month, policy: str, *, told_lengths: bool) -> None:
        self.month = month
        self.policy = policy
        self.now = 0.0
        self.accounts = {item.pool: Account(item) for item in month.subscriptions}
        self.pools = {name: PoolKnowledge(account, month.begins) for name, account in self.accounts.items()}
        self.tasks = TaskKnowledge(month, told=told_lengths)
        self.memory = Memory(tuple(self.accounts))
        self.polling: set[str] = set()
        self.waiting: dict[str, Task] = {}
        self.completed: set[str] = set()
        self.dropped = self.lost = 0.0
        self.walls = 0
        self.picks = dict.fromkeys(self.accounts, 0)
        self._events: list[tuple[float, int, int, Any]] = []
        self._number = count()
        self._handlers = (
            self._on_end, self._on_reset, self._on_own_end, self._on_own_begin, self._on_wall, self._on_poll,
            self._on_retry, self._on_give_up, self._on_arrival,
        )  # fmt: skip

    def run(self) -> Score:
        self._plan()
        while self._events:
            at, kind, _, data = heapq.heappop(self._events)
            if at > self.month.minutes and not self._at_work():
                break
            self.now = at
            self._handlers[kind](data)
        return self._score()

    def _plan(self) -> None:
        for name, account in self.accounts.items():
            for limit in account.subscription.limits:
                self._at(limit.first_reset, _RESET, (name, limit))
            for own in account.subscription.own_use:
                self._at(own.begins, _OWN_BEGINS, (name, own))
            self._at(account.subscription.poll_phase, _POLL, name)
            self.polling.add(name)
        for task in sorted(self.month.tasks, key=lambda task: (task.arrives, task.id)):
            self._at(task.arrives, _ARRIVAL, task)

    def _at(self, minute: float, kind: int, data: Any) -> None:
        heapq.heappush(self._events, (minute, kind, next(self._number), data))

    def _at_work(self) -> bool:
        return bool(self.waiting) or any(account.running for account in self.accounts.values())

    def _moved(self, name: str) -> Account:
        account = self.accounts[name]
        account.advance(self.now)
        return account

    def _load_changed(self, account: Account) -> None:
        """Foresee the next wall anew; one foreseen before is void."""
        account.version += 1
        wall = account.next_wall()
        if wall < math.inf:
            self._at(wall, _WALL, (account.subscription.pool, account.version))
        self._poll_next(account)

    def _poll_next(self, account: Account) -> None:
        """Plan the next reading, if none is; between readings of a pool at rest nothing need be read."""
        name = account.subscription.pool
        if name not in self.polling:
            self.polling.add(name)
            self._at(account.subscription.poll_after(self.now), _POLL, name)

    def _on_reset(self, data: tuple[str, Limit]) -> None:
        name, limit = data
        account = self._moved(name)
        account.reset(limit)
        self._at(limit.ends(account.index[limit.kind]), _RESET, data)
        self._load_changed(account)
        if self.waiting:
            self._at(self.now, _RETRY, None)

    def _on_retry(self, _: None) -> None:
        for task in list(self.waiting.values()):
            self._place(task)

    def _on_own_begin(self, data: tuple[str, OwnUse]) -> None:
        name, own = data
        account = self._moved(name)
        account.own_use = own
        self._at(own.ends, _OWN_ENDS, name)
        self._load_changed(account)

    def _on_own_end(self, name: str) -> None:
        account = self._moved(name)
        account.own_use = None
        self._load_changed(account)

    def _on_poll(self, name: str) -> None:
        account = self._moved(name)
        self.pools[name].poll()
        self.polling.discard(name)
        if account.running or account.own_use:
            self._poll_next(account)

    def _on_end(self, attempt: Attempt) -> None:
        account = self.accounts[attempt.pool]
        if account.running.get(attempt.task.id) is not attempt:
            return  # a wall ended it before
        account.advance(self.now)
        self._finish(account, attempt, completed=True)
        self.completed.add(attempt.task.id)
        self._load_changed(account)

    def _on_wall(self, data: tuple[str, int]) -> None:
        name, version = data
        if self.accounts[name].version != version:
            return
        account = self._moved(name)
        account.fill_at_wall()
        ended = list(account.running.values())
        for attempt in ended:
            self.walls += 1
            self.lost += self.now - attempt.begun
            self._finish(account, attempt, completed=False)
        self.pools[name].poll()  # the dispatcher reads the meter at once when the provider refuses
        self._load_changed(account)
        for attempt in ended:
            self._place(attempt.task)

    def _finish(self, account: Account, attempt: Attempt, *, completed: bool) -> None:
        account.end(attempt, completed=completed)
        self.pools[attempt.pool].worked(attempt, self.now)
        self.tasks.worked(attempt, self.now, completed=completed)

    def _on_arrival(self, task: Task) -> None:
        self._place(task)

    def _on_give_up(self, task: Task) -> None:
        if self.waiting.pop(task.id, None):
            self.dropped += task.minutes

    def _place(self, task: Task) -> None:
        """Put the task to work, or let it wait, or give it up when its patience is over."""
        if self.now > task.arrives + task.patience:
            self.waiting.pop(task.id, None)
            self.dropped += task.minutes
            return
        request, context = self.tasks.asked(task)
        refused: set[str] = set()
        while (name := self._picked(request, context)) and name not in refused:
            account = self._moved(name)
            self.picks[name] += 1
            if account.full:  # its last reading was older than that: refused at once, and read anew
                self.pools[name].poll()
                refused.add(name)
                continue
            minutes = context.expected_minutes.get(name, request.candidate_minutes or 0.0)
            attempt = Attempt(task, name, self.now, minutes)
            account.begin(attempt)
            self._at(attempt.would_end, _END, attempt)
            self._load_changed(account)
            self.waiting.pop(task.id, None)
            return
        if task.id not in self.waiting:
            self.waiting[task.id] = task
            self._at(task.arrives + task.patience, _GIVE_UP, task)

    def _picked(self, request: Request, context: RoutingContext) -> str | None:
        for name, account in self.accounts.items():
            account.advance(self.now)
            if name not in self.polling:
                self.pools[name].read_without_change(account.subscription.poll_before(self.now))
        pools = [knowledge.pool() for knowledge in self.pools.values()]
        now = self.month.begins + timedelta(minutes=self.now)
        return pick(self.policy, request, pools, now=now, context=context, memory=self.memory)

    def _score(self) -> Score:
        uses = [use for account in self.accounts.values() for use in account.window_uses(self.month.minutes)]
        pacing = {
            item.pool: max(item.limits, key=lambda limit: limit.minutes).kind for item in self.month.subscriptions
        }
        minutes = {task.id: task.minutes for task in self.month.tasks}
        return Score(
            policy=self.policy,
            offered=sum(minutes.values()),
            completed=sum(minutes[task] for task in sorted(self.completed)),
            dropped=self.dropped,
            lost_at_walls=self.lost,
            walls=self.walls,
            own_use_refused=sum(account.refused for account in self.accounts.values()),
            expired_pct=expired_share(uses, pacing),
            picks=self.picks,
            windows=tuple(uses),
            completed_tasks=frozenset(self.completed),
        )
