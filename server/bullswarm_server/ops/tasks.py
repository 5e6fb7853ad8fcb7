"""A task that somebody asks for, checked against this machine: which pool it would get, and what it needs to be started."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.attempts.pick import View, choose, conflict_text, look, second_writer
from bullswarm_core.dispatch import ledger
from bullswarm_core.dispatch.ledger import Booking
from bullswarm_core.dispatch.services import Services
from bullswarm_core.errors import UnknownNameError, UsageError
from bullswarm_core.pools import LANES, Effort, Lane
from bullswarm_core.pools.caller import Caller, check_depth
from bullswarm_core.pools.labels import Labels, WhyNoPool
from bullswarm_core.pools.settings import Settings
from bullswarm_core.program.model import MAX_PROMPT_BYTES
from bullswarm_core.quota.durations import expectations
from bullswarm_core.quota.overrides import parse_meters
from bullswarm_core.routing import Decision
from bullswarm_core.runs.events import RunCreated
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.task import Task
from bullswarm_core.store.home import Home
from bullswarm_core.trees.location import tree_of
from bullswarm_server.ops.context import Context
from bullswarm_server.ops.files import decoded, read_regular
from bullswarm_server.ops.launch import ROOT_VARIABLE, Origin, create_run, refuse_bullswarm_in_reach
from bullswarm_server.ops.services import why_no_pool

ANY_TASK = "(no task given)"
"""Stands in for the words of a task of which only the pick is asked: a pick doesn't depend on them."""
ROUTE_VERSION = "bullswarm.route.v1"
LARGER_THAN_A_TASK = "put the material into a file in the folder"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a surface calls the arguments that a refusal names."""

    folder: str = "cwd"
    independent_of: str = "independent_of"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """A task as it is asked for; pools by id or label, nothing checked yet.

    ``prompt`` None asks for the pick alone, ``cwd`` None for the pick in no folder in particular. ``folder_is_chosen`` says
    that a person named the folder of work, so that even the home folder is meant. ``meters`` are supposed readings, such as
    ``codex:weekly=33%``.
    """

    lane: Lane
    cwd: str | None
    prompt: str | None = None
    folder_is_chosen: bool = False
    effort: Effort | None = None
    reasoning: str | None = None
    model: str | None = None
    pool: str | None = None
    use_pools: Sequence[str] = ()
    avoid_pools: Sequence[str] = ()
    use_providers: Sequence[str] = ()
    avoid_providers: Sequence[str] = ()
    independent_of: Sequence[str] = ()
    capabilities: Sequence[str] = ()
    timeout_sec: float | None = None
    shared_tree: bool = False
    answer: dict[str, Any] | None = None
    meters: Sequence[str] = ()
    terms: Terms = Terms()


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
class PreparedTask:
    """A task ready to be picked for or started; ``connection`` is read-only, None while the home has no database."""

    task: Task
    services: Services
    view: View
    caller: Caller
    origin: Origin
    connection: sqlite3.Connection | None

    def decide(self) -> Decision:
        """Return the pick that this task would get now; nothing is changed."""
        bookings = ledger.entries(self.connection, now=self.view.now) if self.connection else []
        expected = expectations(self.connection, self.task.lane, self.task.tier)
        return choose(self.view, self.task, bookings, caller_pool=self.origin.caller_pool, expected=expected)

    def conflict(self) -> Conflict | None:
        """Return who already writes where this task would write: the kernel would refuse it."""
        return conflict_of(self.task, self.connection, now=self.view.now)

    def run_of_key(self, key: str | None) -> str | None:
        """Return the run that was started under an idempotency key in the last 24 hours, or None."""
        if key is None or self.connection is None:
            return None
        return Journal(self.connection).of_key(key, now=self.services.now())


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


@contextmanager
def prepare_task(ctx: Context, request: TaskRequest, *, write_cache: bool) -> Iterator[PreparedTask]:
    """Check a task against this machine and look at its pools; nothing is changed, and without ``write_cache`` no cache.

    Raises UsageError for what is wrong with the request.
    """
    with ctx.reading() as connection:
        services = ctx.services(write_cache=write_cache)
        profiles = services.load_profiles()
        names = pool_names(services, [profile.id for profile in profiles], home=ctx.home, environ=ctx.environ)
        settings = Settings.load(ctx.home)
        if request.model in settings.excluded_models:
            raise UsageError(
                f"you excluded the model {request.model}",
                hint="leave it out, or take it back in: bullswarm strategy include-model",
            )
        supposed = parse_meters(request.meters, now=services.now())
        task = _task(request, names, connection, environ=ctx.environ)
        refuse_bullswarm_in_reach(ctx.home, task)
        caller = ctx.caller(profiles)
        origin = origin_from(caller, settings, ctx.environ)
        view = look(services, connection, workspace=task.cwd, supposed=supposed, write_cache=write_cache)
        yield PreparedTask(task, services, view, caller, origin, connection)


def record_task(ctx: Context, prepared: PreparedTask, *, idempotency_key: str | None = None) -> RunCreated:
    """Record a run of the task, with its folder; nothing is running yet. Raises as ``create_run`` does."""
    with ctx.writing() as connection:
        return create_run(
            ctx.home,
            connection,
            prepared.task,
            environ=ctx.environ,
            origin=prepared.origin,
            now=prepared.services.now(),
            idempotency_key=idempotency_key,
        )


def route_document(prepared: PreparedTask, decision: Decision) -> dict[str, Any]:
    """Return the machine form of a pick that is only shown."""
    return {
        "schemaVersion": ROUTE_VERSION,
        "lane": prepared.task.lane,
        "effort": prepared.task.tier,
        "cwd": prepared.task.cwd,
        "caller": prepared.origin.caller_pool,
        **decision.to_json(),
    }


def conflict_of(task: Task, connection: sqlite3.Connection | None, *, now: datetime) -> Conflict | None:
    """Return who already writes in the tree where ``task`` would write, None where nobody does."""
    if connection is None:
        return None
    tree = tree_of(task.cwd)
    booking = second_writer(ledger.entries(connection, now=now), task, tree)
    return Conflict(booking, tree, Journal(connection).short_id(booking.run)) if booking else None


def working_folder(
    name: str, *, lane: Lane, environ: Mapping[str, str], called: str = "cwd", is_chosen: bool = False
) -> str:
    """Return the real path of the folder to work in; ``called`` is the argument that names it.

    Raises UsageError when it is no folder, when it is the whole machine, and when a worker would write in the home folder,
    unless a person has chosen it.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise UsageError(f"{called} {name} {what}", hint="give the folder that the task is about")
    try:
        real = folder.resolve()
    except FileNotFoundError as error:
        raise UsageError(
            "the folder that this was called in has been deleted", hint=f"cd to one that exists, or give {called}"
        ) from error
    hint = f"give the folder that the task is about with {called}"
    if real == Path("/"):
        raise UsageError("/ is the whole machine, no project", hint=hint)
    home = Path(environ.get("HOME") or Path.home())
    if lane != "analyze" and not is_chosen and real == home.resolve():
        raise UsageError(f"{real} is your home folder, no project", hint=hint)
    return str(real)


def task_file_text(path: Path, *, what: str) -> str:
    """Return the text of a regular file of at most 8 MiB; ``what`` names it in an error. Raises UsageError."""
    irregular = "give a file that holds the task"
    data = read_regular(path, what=what, most=MAX_PROMPT_BYTES, irregular=irregular, too_large=LARGER_THAN_A_TASK)
    return decoded(data, what=what)


def pool_names(services: Services, pool_ids: Sequence[str], *, home: Home, environ: Mapping[str, str]) -> PoolNames:
    """The names by which these pools may be called: ids and labels, and for another name why it has no pool."""
    return PoolNames(pool_ids, services.labels().among(pool_ids), why_no_pool=why_no_pool(home, environ))


def names_of_pools(ctx: Context) -> PoolNames:
    """Return the names of the pools of this machine; nothing is written."""
    services = ctx.services(write_cache=False)
    pool_ids = [profile.id for profile in services.load_profiles()]
    return pool_names(services, pool_ids, home=ctx.home, environ=ctx.environ)


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


def _task(
    request: TaskRequest, names: PoolNames, connection: sqlite3.Connection | None, *, environ: Mapping[str, str]
) -> Task:
    if request.lane not in LANES:
        raise UsageError(f'unknown lane "{request.lane}"', hint=f"give one of {', '.join(LANES)}")
    terms = request.terms
    avoided = providers_of(request.independent_of, connection, option=terms.independent_of)
    cwd = "/"
    if request.cwd is not None:
        cwd = working_folder(
            request.cwd, lane=request.lane, environ=environ, called=terms.folder, is_chosen=request.folder_is_chosen
        )
    return Task(
        prompt=ANY_TASK if request.prompt is None else request.prompt,
        lane=request.lane,
        cwd=cwd,
        effort=request.effort,
        reasoning=request.reasoning,
        model=request.model,
        pool=names.pool(request.pool) if request.pool is not None else None,
        use_pools=tuple(map(names.pool, request.use_pools)),
        avoid_pools=tuple(map(names.pool, request.avoid_pools)),
        use_providers=tuple(map(names.provider, request.use_providers)),
        avoid_providers=tuple(dict.fromkeys((*map(names.provider, request.avoid_providers), *avoided))),
        independent_of=tuple(request.independent_of),
        capabilities=tuple(request.capabilities),
        timeout_sec=request.timeout_sec,
        shared_tree=request.shared_tree,
        answer=request.answer,
    )


def _run_named(reference: str) -> str:
    """An output lies in its run's folder, so its path names the run."""
    path = Path(reference)
    return path.resolve().parent.name if path.is_file() else reference
