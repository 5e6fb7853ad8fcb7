"""A task that was asked for, by a command or by a call, checked against this machine: ready to be picked for or started."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bullswarm_core import ledger
from bullswarm_core.caller import Caller, check_depth
from bullswarm_core.errors import UnknownNameError
from bullswarm_core.home import Home
from bullswarm_core.labels import Labels, WhyNoPool
from bullswarm_core.ledger import Booking
from bullswarm_core.quota.durations import expectations
from bullswarm_core.routing import Decision
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.pick import View, choose, conflict_text, second_writer
from bullswarm_core.runs.services import Services
from bullswarm_core.runs.task import Task
from bullswarm_core.settings import Settings
from bullswarm_core.workers.tree import tree_of
from bullswarm_server.ops.launch import ROOT_VARIABLE, Origin
from bullswarm_server.ops.services import why_no_pool

# `route` answers without a task; a pick does not depend on the words.
ANY_TASK = "(no task given)"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another run's attempt that writes in ``tree``; ``run`` is that run's short id."""

    booking: Booking
    tree: str
    run: str

    def text(self) -> str:
        """Say why a second writer is refused, and the ways out."""
        return conflict_text(self.booking, self.tree, run=self.run)


@dataclass(frozen=True, slots=True)
class Asked:
    """A task ready to be picked for or started. ``connection`` is read-only, None while the home has no database."""

    task: Task
    services: Services
    view: View
    origin: Origin
    connection: sqlite3.Connection | None

    def decide(self) -> Decision:
        """Return the pick that this task would get now; nothing is changed."""
        bookings = ledger.entries(self.connection, now=self.view.now) if self.connection else []
        expected = expectations(self.connection, self.task.lane, self.task.tier)
        return choose(self.view, self.task, bookings, caller_pool=self.origin.caller_pool, expected=expected)

    def conflict(self) -> Conflict | None:
        """Return who already writes where this task would write: the kernel would refuse it."""
        if self.connection is None:
            return None
        tree = tree_of(self.task.cwd)
        booking = second_writer(ledger.entries(self.connection, now=self.view.now), self.task, tree)
        return Conflict(booking, tree, Journal(self.connection).short_id(booking.run)) if booking else None


class PoolNames:
    """Turns what a person types into ids; either a pool's id or its label is accepted."""

    def __init__(self, pool_ids: Iterable[str], labels: Labels, *, why_no_pool: WhyNoPool | None = None) -> None:
        self._ids = frozenset(pool_ids)
        self._labels = labels
        self._why_no_pool = why_no_pool

    def pool(self, name: str) -> str:
        """Return the id of a pool. Raises UnknownNameError for a name that no pool has."""
        return self._labels.resolve(name, self._ids, why_no_pool=self._why_no_pool)

    def provider(self, name: str) -> str:
        """Return the name of a provider that has a pool. Raises UnknownNameError for another."""
        known = sorted({pool_id.partition(":")[0] for pool_id in self._ids})
        if name not in known:
            why = self._why_no_pool(name) if self._why_no_pool else None
            pools = f"pools exist of {', '.join(known)}"
            raise UnknownNameError(f'unknown provider "{name}"', hint=f"{pools} · {why}" if why else pools)
        return name


def pool_names(services: Services, pool_ids: Sequence[str], *, home: Home, environ: Mapping[str, str]) -> PoolNames:
    """The names by which these pools may be called: ids and labels, and for another name why it has no pool."""
    return PoolNames(pool_ids, services.labels().among(pool_ids), why_no_pool=why_no_pool(home, environ))


def origin_from(caller: Caller, settings: Settings, environ: Mapping[str, str]) -> Origin:
    """Who asks for work, and how deep in other work. Raises UsageError where the depth limit forbids more."""
    depth = check_depth(environ, limit=settings.depth_limit)
    return Origin(caller=caller.provider, caller_pool=caller.pool_id, depth=depth, root=environ.get(ROOT_VARIABLE))


def providers_of(references: Sequence[str], connection: sqlite3.Connection | None, *, option: str) -> tuple[str, ...]:
    """The providers that did the named earlier work, each a run or the path of its output; ``option`` is what asked.

    Raises UnknownNameError for what no run has done.
    """
    found: list[str] = []
    for reference in references:
        if connection is None:
            raise UnknownNameError(f'{option} "{reference}": nothing has been run yet', hint="leave it out")
        journal = Journal(connection)
        state = journal.state(journal.find(_run_named(reference)))
        found += [attempt.picked.provider for step in state.steps.values() for attempt in step.attempts]
    return tuple(dict.fromkeys(found))


def _run_named(reference: str) -> str:
    """An output lies in its run's folder, so its path names the run."""
    path = Path(reference)
    return path.resolve().parent.name if path.is_file() else reference
