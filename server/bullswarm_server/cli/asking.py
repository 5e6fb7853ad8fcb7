"""From the words of a command line to a task: pools by label or id, the caller, and the providers of earlier work."""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bullswarm_core import ledger
from bullswarm_core.caller import check_depth, find_caller
from bullswarm_core.database import open_database
from bullswarm_core.errors import UnknownNameError, UsageError
from bullswarm_core.quota.durations import expectations
from bullswarm_core.quota.supposed import parse_meters
from bullswarm_core.routing import Decision
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.pick import View, choose, look
from bullswarm_core.runs.services import Services
from bullswarm_core.runs.task import Task
from bullswarm_core.settings import Settings
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.task_arguments import PoolNames, build_task, read_prompt
from bullswarm_server.launch import ROOT_VARIABLE, Origin, refuse_home_in_reach
from bullswarm_server.machine import services_for, why_no_pool

# `route` answers without a task; a pick does not depend on the words.
_ANY_TASK = "(no task given)"


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


@contextmanager
def asking(
    options: argparse.Namespace, context: CommandContext, *, prompt_required: bool, write_cache: bool
) -> Iterator[Asked]:
    """Check a command's arguments against this machine. Raises UsageError for what is wrong; nothing is changed."""
    connection = open_database(context.home, readonly=True)
    try:
        yield _asked(options, context, connection, prompt_required=prompt_required, write_cache=write_cache)
    finally:
        # SQLite takes its own files away only when the connection is closed.
        if connection is not None:
            connection.close()


def _asked(
    options: argparse.Namespace,
    context: CommandContext,
    connection: sqlite3.Connection | None,
    *,
    prompt_required: bool,
    write_cache: bool,
) -> Asked:
    services = services_for(context.home, context.environ, write_cache=write_cache)
    prompt = read_prompt(options) or ("" if prompt_required else _ANY_TASK)
    profiles = services.load_profiles()
    pool_ids = [profile.id for profile in profiles]
    names = PoolNames(
        pool_ids, services.labels().among(pool_ids), why_no_pool=why_no_pool(context.home, context.environ)
    )
    settings = Settings.load(context.home)
    if options.model in settings.excluded_models:
        raise UsageError(
            f"you excluded the model {options.model}", hint="bullswarm strategy include-model takes it back in"
        )
    supposed = parse_meters(getattr(options, "meter", None) or (), now=services.now())
    avoided = _providers_of(options.independent_of, connection)
    task = build_task(options, prompt=prompt, names=names, avoid_also=avoided)
    refuse_home_in_reach(context.home, task)
    caller = find_caller(context.environ, profiles=profiles)
    depth = check_depth(context.environ, limit=settings.depth_limit)
    origin = Origin(
        caller=caller.provider, caller_pool=caller.pool_id, depth=depth, root=context.environ.get(ROOT_VARIABLE)
    )
    return Asked(
        task, services, look(services, connection, supposed=supposed, write_cache=write_cache), origin, connection
    )


def _providers_of(references: list[str], connection: sqlite3.Connection | None) -> tuple[str, ...]:
    """Return the providers that did the named earlier work, each a run or the path of its output (`--independent-of`)."""
    found: list[str] = []
    for reference in references:
        if connection is None:
            raise UnknownNameError(f'--independent-of "{reference}": nothing has been run yet', hint="leave it out")
        journal = Journal(connection)
        state = journal.state(journal.find(_run_named(reference)))
        found += [attempt.picked.provider for step in state.steps.values() for attempt in step.attempts]
    return tuple(dict.fromkeys(found))


def _run_named(reference: str) -> str:
    """An output lies in its run's folder, so its path names the run."""
    path = Path(reference)
    return path.resolve().parent.name if path.is_file() else reference
