"""A program of dependent steps: checked against its rules and this machine, recorded as a run, and made to grow."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.attempts.preflight import Machine, isolation_issues, precheck
from bullswarm_core.dispatch.assemble import current_pools, routing_context
from bullswarm_core.dispatch.services import Services
from bullswarm_core.errors import RunConflictError, UsageError
from bullswarm_core.pools.caller import Caller
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.pools.labels import Labels
from bullswarm_core.pools.settings import Settings
from bullswarm_core.program.model import Program, program_from
from bullswarm_core.program.validate import issues_of
from bullswarm_core.runs.events import RunCreated
from bullswarm_core.runs.fold import begun
from bullswarm_core.runs.intents import grown
from bullswarm_core.runs.journal import Journal, RunRow
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.task import Task
from bullswarm_core.store.home import file_lock
from bullswarm_core.wire import iso
from bullswarm_server.ops.context import Context
from bullswarm_server.ops.launch import Origin, create_workflow
from bullswarm_server.ops.tasks import Conflict, PoolNames, Terms, conflict_of, origin_from, pool_names, working_folder

MOST_PROGRAM_BYTES = 64 * 1024 * 1024
"""A program carries its prompts, of which each may have 8 MiB; a larger file is the wrong one."""
MOST_GOAL = 4000
"""In characters."""


class InvalidProgramError(UsageError):
    """A program that breaks its rules, or that can't run on this machine; carries every issue."""

    def __init__(self, issues: Sequence[str], *, what: str) -> None:
        count = f"{len(issues)} issue{'' if len(issues) == 1 else 's'}"
        super().__init__(f"the program {what}: {count}: {'; '.join(issues)}", hint="correct it")
        self.issues, self.what, self.why = tuple(issues), what, f"the program {what}: {count}"


class DuplicateGoalError(UsageError):
    """A goal that another run pursues in the same folder; carries that run."""

    def __init__(self, twin: RunRow) -> None:
        started = iso(twin.created_at)
        super().__init__(f"the same goal is under way in {twin.cwd}: run {twin.short_id}, started {started}")
        self.twin = twin


class SecondWriterError(RunConflictError):
    """A program whose writing steps would change a tree in which another run writes; carries the conflict."""

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(conflict.text())
        self.conflict = conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRequest:
    """A workflow as it is asked for; ``program`` is any JSON value, pools are ids or labels, None is the usual value.

    ``folder_is_chosen`` says that a person named the folder of work. A run of the same ``idempotency_key`` in the last
    24 hours is the answer to this request.
    """

    goal: str
    program: Any
    cwd: str
    folder_is_chosen: bool = False
    worker_pool: str | None = None
    worker_model: str | None = None
    worker_reasoning: str | None = None
    concurrency: int | None = None
    retry_attempts: int | None = None
    isolation: str | None = None
    shared_tree: bool = False
    idempotency_key: str | None = None
    terms: Terms = Terms()


@dataclass(frozen=True, slots=True)
class PreparedWorkflow:
    """A program that may be started here; ``options`` are the run-wide ones as the journal keeps them."""

    request: WorkflowRequest
    plan: Program
    cwd: str
    options: Mapping[str, Any]
    origin: Origin


def prepare_workflow(ctx: Context, request: WorkflowRequest) -> PreparedWorkflow:
    """Check a program against its rules and this machine; nothing is started.

    Raises InvalidProgramError with every issue, and UsageError for what else is wrong with the request.
    """
    issues = issues_of(request.program)
    if issues:
        raise InvalidProgramError(issues, what="is not valid")
    plan = program_from(request.program)
    cwd = working_folder(
        request.cwd,
        lane="build" if writes(plan) else "analyze",
        environ=ctx.environ,
        called=request.terms.folder,
        is_chosen=request.folder_is_chosen,
    )
    _check_goal(request.goal)
    machine = look_at_machine(ctx)
    origin, options = machine.origin(), _options(request, machine)
    # The run of an earlier request is its answer, whatever has become of the machine since.
    if _run_of_key(ctx, request.idempotency_key) is None:
        issues = machine.issues(request.program, cwd=cwd, options=options, now=ctx.now())
        if issues:
            raise InvalidProgramError(issues, what="cannot run here")
    return PreparedWorkflow(request, plan, cwd, options, origin)


def record_workflow(ctx: Context, prepared: PreparedWorkflow, *, again: bool = False) -> tuple[RunCreated, bool]:
    """Record a run of the program, with its folder, and return it and whether it is new; nothing is running yet.

    Raises DuplicateGoalError while the same goal is under way in the folder, unless it is asked for ``again``;
    SecondWriterError where another run writes; and as ``create_workflow`` does.
    """
    request = prepared.request
    ctx.home.ensure()
    # Two requests at once must not both find that nothing is under way.
    with file_lock(ctx.home.root / "goal.lock"), ctx.writing() as connection:
        journal, key = Journal(connection), request.idempotency_key
        earlier = None if key is None else journal.of_key(key, now=ctx.now())
        if earlier is None:
            if not again and (twin := _under_way(journal, request.goal, prepared.cwd)):
                raise DuplicateGoalError(twin)
            _refuse_second_writer(connection, prepared, now=ctx.now())
        created = create_workflow(
            ctx.home,
            connection,
            request.program,
            goal=request.goal,
            cwd=prepared.cwd,
            options=prepared.options,
            environ=ctx.environ,
            origin=prepared.origin,
            now=ctx.now(),
            idempotency_key=key,
        )
    return created, earlier is None


def writes(plan: Program) -> bool:
    """Tell whether any step of the program may change files."""
    return any(step.lane != "analyze" for step in plan.steps)


def _options(request: WorkflowRequest, machine: MachineView) -> dict[str, Any]:
    found = {
        "concurrency": request.concurrency,
        "retryAttempts": request.retry_attempts,
        "workerPool": machine.names.pool(request.worker_pool) if request.worker_pool is not None else None,
        "workerModel": request.worker_model,
        "workerReasoning": request.worker_reasoning,
        "isolation": request.isolation,
        "sharedTree": request.shared_tree or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _check_goal(text: str) -> None:
    if not text.strip() or len(text) > MOST_GOAL:
        raise UsageError(
            f"the goal must have 1 to {MOST_GOAL} characters", hint="say in a line what the program is for"
        )
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError("the goal holds bytes that are not UTF-8", hint="write it in UTF-8")


def _run_of_key(ctx: Context, key: str | None) -> str | None:
    if key is None:
        return None
    with ctx.reading() as connection:
        return Journal(connection).of_key(key, now=ctx.now()) if connection else None


def _under_way(journal: Journal, text: str, cwd: str) -> RunRow | None:
    rows = journal.rows(unfinished_only=True)
    return next((row for row in rows if row.kind == "workflow" and (row.goal, row.cwd) == (text, cwd)), None)


def _refuse_second_writer(connection: sqlite3.Connection, prepared: PreparedWorkflow, *, now: datetime) -> None:
    """Refuse early, with nothing created, what every writing step would be refused for."""
    if not writes(prepared.plan) or prepared.options.get("isolation") == "worktree":
        return
    task = Task(prompt="-", lane="build", cwd=prepared.cwd, shared_tree=prepared.request.shared_tree)
    conflict = conflict_of(task, connection, now=now)
    if conflict is not None:
        raise SecondWriterError(conflict)


@dataclass(frozen=True, slots=True)
class MachineView:
    """This machine as a launch sees it."""

    ctx: Context
    services: Services
    profiles: Sequence[PoolProfile]
    settings: Settings
    caller: Caller

    @property
    def labels(self) -> Labels:
        """The labels of pools that there are."""
        return self.services.labels().among([profile.id for profile in self.profiles])

    @property
    def names(self) -> PoolNames:
        """The names by which the pools may be called."""
        ids = [profile.id for profile in self.profiles]
        return pool_names(self.services, ids, home=self.ctx.home, environ=self.ctx.environ)

    def origin(self) -> Origin:
        """Return who asks. Raises UsageError for a worker that is too deep in other runs."""
        return origin_from(self.caller, self.settings, self.ctx.environ)

    def issues(
        self,
        program: Mapping[str, Any],
        *,
        cwd: str,
        options: Mapping[str, Any],
        now: datetime,
        only: Collection[str] | None = None,
    ) -> list[str]:
        """Return what keeps a valid program from working here: all of its steps, or the named ones."""
        state = begun(
            RunCreated(
                run_id="-", short_id="-", kind="workflow", goal="-", cwd=cwd, program=program, options=dict(options)
            ),
            at=now,
            seq=1,
        )
        machine = Machine(
            pools=current_pools(self.ctx.home, self.profiles, self.settings, now=now, labels=self.labels),
            context=routing_context(self.settings),
            policy=self.settings.routing_policy,
            labels=self.labels,
            now=now,
            caller_pool=self.caller.pool_id,
        )
        issues = precheck(state, machine, only=only)
        if options.get("isolation") == "worktree":
            issues += isolation_issues(state.program, cwd, home=self.ctx.home.root, environ=self.ctx.environ)
        return issues


def look_at_machine(ctx: Context) -> MachineView:
    """Look at this machine. Raises StateError when the person's decisions can't be read."""
    services = ctx.services()
    profiles = services.load_profiles()
    return MachineView(ctx, services, profiles, Settings.load(ctx.home), ctx.caller(profiles))


def refuse_additions(ctx: Context, state: RunState, fragment: Mapping[str, Any]) -> None:
    """Raise UsageError for added steps that could never work here; the wish itself checks the rules of programs."""
    program, added = grown(state, fragment)
    if issues_of(program):
        return
    created = state.created
    issues = look_at_machine(ctx).issues(program, cwd=created.cwd, options=created.options, now=ctx.now(), only=added)
    if issues:
        raise UsageError(
            f"nothing was added to {created.short_id}, it cannot run here: {'; '.join(issues)}",
            hint="correct it and add it again",
        )
