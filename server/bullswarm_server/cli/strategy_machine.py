"""What the views of `bullswarm strategy` look at: the pools of this machine with meters, load and rates, all of one moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from bullswarm_core.attempts.pick import View, choose, look
from bullswarm_core.dispatch import ledger
from bullswarm_core.pools import Effort, Lane, Pool
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.model_catalog import ModelList, ask_models, keep_model_lists, load_model_lists
from bullswarm_core.quota.durations import expectations
from bullswarm_core.routing import Decision
from bullswarm_core.runs.task import Task
from bullswarm_core.store.database import open_database
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.ops.services import services_for
from bullswarm_server.ops.tasks import ANY_TASK

# Each CLI that is asked is a process of 100 to 300 MB.
_ASKED_AT_ONCE = 4


class Machine:
    """The pools of this machine at one moment; nothing of it is changed."""

    def __init__(self, view: View, connection: sqlite3.Connection | None, environ: Mapping[str, str]) -> None:
        self.view, self._connection, self._environ = view, connection, environ

    @cached_property
    def profiles(self) -> tuple[PoolProfile, ...]:
        """Return every pool but the embedded worker, by id."""
        found = (each for each in self.view.services.load_profiles() if not each.connector.last_resort)
        return tuple(sorted(found, key=lambda each: each.id))

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """Return the same pools as routing sees them."""
        ids = {profile.id for profile in self.profiles}
        bookings = ledger.entries(self._connection, now=self.view.now) if self._connection else []
        return tuple(pool for pool in self.view.pools(bookings) if pool.id in ids)

    @cached_property
    def labels(self) -> Labels:
        """Return the display labels."""
        return self.view.services.labels()

    def decide(self, lane: Lane, tier: Effort) -> Decision:
        """Return the pick that a task of this lane and tier would get now from nobody in particular."""
        bookings = ledger.entries(self._connection, now=self.view.now) if self._connection else []
        task = Task(prompt=ANY_TASK, lane=lane, cwd=str(Path.cwd()), effort=tier)
        expected = expectations(self._connection, lane, tier)
        return choose(self.view, task, bookings, caller_pool=None, expected=expected)

    def model_lists(self) -> dict[str, ModelList]:
        """Return what is remembered of the models of each pool; asks nobody."""
        return load_model_lists(self.view.services.home)

    def ask_for_models(self, *, everybody: bool, tell: Callable[[str], object]) -> dict[str, ModelList]:
        """Ask the CLIs whose list is due (or ``everybody``), some at a time, and remember what they say.

        A pool that the person turned off, or whose CLI is away, is not asked. Returns the lists of those asked.
        """
        from concurrent.futures import ThreadPoolExecutor

        known, now = self.model_lists(), self.view.now
        asked = [
            profile
            for profile in self.profiles
            if profile.binary is not None
            and self.view.settings.enabled(profile.id)
            and (everybody or known.get(profile.id, ModelList()).is_due(now))
        ]
        if not asked:
            return {}
        tell(f"asking {', '.join(self.labels.shown(profile.id) for profile in asked)} for their models …")

        def ask(profile: PoolProfile) -> ModelList:
            return ask_models(profile, self._environ, known.get(profile.id, ModelList()), now=now)

        with ThreadPoolExecutor(_ASKED_AT_ONCE) as threads:
            found = dict(zip([profile.id for profile in asked], threads.map(ask, asked), strict=True))
        keep_model_lists(self.view.services.home, found)
        return found


@contextmanager
def this_machine(context: CommandContext) -> Iterator[Machine]:
    """Look at the machine. Raises StateError when the person's decisions can't be read."""
    connection = open_database(context.home, readonly=True)
    try:
        services = services_for(context.home, context.environ, write_cache=False)
        yield Machine(look(services, connection, workspace=str(Path.cwd())), connection, context.environ)
    finally:
        # SQLite takes its own files away only when the connection is closed.
        if connection is not None:
            connection.close()
