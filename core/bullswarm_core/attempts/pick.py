"""The pick of a step's pool, and its booking in the same transaction, so that ten picks at once see each other and spread.

An attempt whose kernel died before it started a worker is booked again: its place in the ledger may have been dropped.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import cast

from bullswarm_core._dataclasses import dataclass, field, replace
from bullswarm_core.attempts.startable import unstartable
from bullswarm_core.dispatch import ledger
from bullswarm_core.dispatch.assemble import current_pools, routing_context, with_supposed_meters
from bullswarm_core.dispatch.ledger import Booking
from bullswarm_core.dispatch.probe import is_probed, probe
from bullswarm_core.dispatch.quarantines import quarantines_of
from bullswarm_core.dispatch.services import Services
from bullswarm_core.errors import RunConflictError
from bullswarm_core.launch.project import project_grant
from bullswarm_core.pools.credentials import names_of_one_credential
from bullswarm_core.pools.model import Effort, Lane, Pool
from bullswarm_core.pools.settings import Settings
from bullswarm_core.process.identity import current
from bullswarm_core.quota.durations import Expectations, expectations
from bullswarm_core.quota.overrides import SupposedMeter
from bullswarm_core.quota.rate_cache import Rates, learned_rates
from bullswarm_core.routing import Decision, decide
from bullswarm_core.routing.quarantine import Quarantine
from bullswarm_core.runs.decision_log import incumbents_of
from bullswarm_core.runs.events import AttemptPicked, RunCreated, StepUnplaced
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.retry import NextTry
from bullswarm_core.runs.run_files import AttemptFiles, RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.task import Task, is_apart, step_tasks, tree_written
from bullswarm_core.store.database import transaction


@dataclass(frozen=True, slots=True)
class View:
    """The pools of this machine at one moment, but for their load. ``rates`` and ``quarantines`` are by pool id.

    ``incumbents`` are the pools that last succeeded in the workspace that was looked at, by lane.
    """

    services: Services
    settings: Settings
    now: datetime
    supposed: tuple[SupposedMeter, ...] = ()
    rates: Mapping[str, Rates] = field(default_factory=dict)
    incumbents: Mapping[Lane, str] = field(default_factory=dict)
    quarantines: Mapping[str, Quarantine] = field(default_factory=dict)

    def pools(self, bookings: Iterable[Booking]) -> tuple[Pool, ...]:
        """Return every pool with its meter and the load of ``bookings``."""
        profiles = tuple(self.services.load_profiles())
        labels = self.services.labels()
        pools = current_pools(
            self.services.home,
            profiles,
            self.settings,
            now=self.now,
            labels=labels,
            inflight=ledger.inflight_by_pool(bookings),
            rates=self.rates,
        )
        return with_supposed_meters(pools, self.supposed, labels=labels)


def look(
    services: Services,
    connection: sqlite3.Connection | None,
    *,
    workspace: str,
    supposed: tuple[SupposedMeter, ...] = (),
    write_cache: bool = False,
) -> View:
    """Read what a pick for work in the folder ``workspace`` needs, now.

    Raises StateError when the person's decisions can't be read. Without ``write_cache`` nothing is written at all (a dry run).
    """
    settings, now = Settings.load(services.home), services.now()
    # Fitting takes some milliseconds: here, and not in the transaction of the pick, for which others wait.
    rates = learned_rates(
        services.home,
        [profile.id for profile in services.load_profiles()],
        connection,
        inflight=ledger.inflight_by_pool(ledger.entries(connection, now=now)) if connection else {},
        write_cache=write_cache,
    )
    return View(
        services=services,
        settings=settings,
        now=now,
        supposed=supposed,
        rates=rates,
        incumbents=incumbents_of(settings, connection, workspace=workspace),
        quarantines=quarantines_of(settings, connection, now=now),
    )


def choose(
    view: View,
    task: Task,
    bookings: Iterable[Booking],
    *,
    caller_pool: str | None,
    expected: Expectations,
    probes: Mapping[str, str] | None = None,
    barred: Mapping[str, str] | None = None,
) -> Decision:
    """Return the decision for a task; the one function behind a real pick, a dry run and `route`.

    ``probes`` says which pools' free models did not answer just now, and why. ``barred`` is what `barred_pools` returned;
    None asks it now, for a worker in the task's own folder.
    """
    context = routing_context(
        view.settings,
        probes=probes,
        route_summary=task.route_summary,
        incumbents=view.incumbents,
        quarantines=view.quarantines,
    )
    if barred is None:
        barred = barred_pools(view, task)
    return decide(
        task.request(caller=caller_pool, candidate_minutes=expected.usual.minutes),
        tuple(replace(pool, unavailable=pool.unavailable or barred.get(pool.id)) for pool in view.pools(bookings)),
        now=view.now,
        policy=view.settings.routing_policy,
        context=replace(context, expected_minutes=expected.minutes_by_pool(), task_spread=expected.spread),
    )


def barred_pools(view: View, task: Task, *, folder: str | None = None) -> dict[str, str]:
    """Return the pools whose CLI must not be started at a task, with the reason.

    ``folder`` is where the worker may write, None for the task's own folder. The project's files are read for it, so it
    comes before the transaction of a pick, for which others wait.
    """
    return unstartable(
        view.services.load_profiles(),
        task,
        writable=folder or task.cwd,
        environ=view.services.environ,
        grant=project_grant(view.settings.project_settings, task.cwd),
    )


def pick_pool(
    services: Services,
    connection: sqlite3.Connection,
    journal: Journal,
    state: RunState,
    step_id: str,
    again: NextTry | None = None,
) -> AttemptPicked | StepUnplaced:
    """Pick and book a pool for the step's next attempt, or record why there is none; both are in the journal afterwards.

    ``again`` is what the failure rule asks of an attempt that follows a failed one.
    """
    services.freshen_meters()
    view = look(services, connection, workspace=state.created.cwd, write_cache=True)
    sharing = _sharing_sign_in(services, again)
    tasks = step_tasks(state, step_id, again, sharing=sharing)
    # The tasks differ in the pools that they avoid, not in where they work.
    barred = barred_pools(view, tasks[0], folder=_own_tree(services, state, step_id)) if tasks else {}
    probes = _probed(view, connection, state, tasks[0], barred) if tasks else {}
    with transaction(connection):
        bookings = ledger.live(connection, now=view.now)
        outcome: AttemptPicked | StepUnplaced = _nothing_left(state, step_id)
        for task in tasks:
            outcome = _placed(view, connection, journal, state, step_id, task, bookings, probes, barred)
            if isinstance(outcome, AttemptPicked):
                outcome = replace(outcome, retry_how=again.how if again else None)
                break
        if isinstance(outcome, StepUnplaced) and again is not None:
            outcome = _no_retry(state, outcome)
        journal.append(state.created.run_id, [outcome], at=view.now)
    return outcome


def _placed(
    view: View,
    connection: sqlite3.Connection,
    journal: Journal,
    state: RunState,
    step_id: str,
    task: Task,
    bookings: list[Booking],
    probes: Mapping[str, str],
    barred: Mapping[str, str],
) -> AttemptPicked | StepUnplaced:
    tree = tree_written(view.services.home, state, step_id, ordinal=len(state.steps[step_id].attempts) + 1)
    others = [booking for booking in bookings if booking.run != state.created.run_id]
    if refusal := _refuse_second_writer(journal, others, task, tree):
        return StepUnplaced(step=step_id, why=refusal, failure_kind="ownership-conflict")
    if above := _refuse_above_total(view, journal, state, step_id):
        return above
    return _pick(view, connection, state, step_id, task, tree, bookings, probes, barred)


def _own_tree(services: Services, state: RunState, step_id: str) -> str | None:
    """Return the worktree that a step gets for itself, or None where it works in the run's folder."""
    if not is_apart(state, step_id):
        return None
    return tree_written(services.home, state, step_id, ordinal=len(state.steps[step_id].attempts) + 1)


def _nothing_left(state: RunState, step_id: str) -> StepUnplaced:
    """Say that a step's route names only pools that are out of the question by what happened before."""
    route = state.program.step(step_id).route
    named = ", ".join((*route.use_pools, *route.use_providers)) or "its pool"
    why = f"no eligible pool: the route of {step_id} allows only {named}, which it is to be kept from now"
    return StepUnplaced(step=step_id, why=why, failure_kind="unavailable")


def _no_retry(state: RunState, unplaced: StepUnplaced) -> StepUnplaced:
    """A retry that finds no free pool keeps its own failure and ends its why with the reasons."""
    failed = state.steps[unplaced.step].counted[-1].finished
    assert failed is not None, "a try follows only an attempt that has ended"
    why = f"{failed.why} · no retry: {unplaced.why}"
    return replace(unplaced, why=why, failure_kind=failed.failure_kind or unplaced.failure_kind)


def _sharing_sign_in(services: Services, again: NextTry | None) -> list[str]:
    """Return the pools that share a sign-in with those that the next try must avoid for it."""
    if again is None or not again.avoid_group_of:
        return []
    return names_of_one_credential(services.load_profiles(), again.avoid_group_of)


def _probed(
    view: View, connection: sqlite3.Connection, state: RunState, task: Task, barred: Mapping[str, str]
) -> dict[str, str]:
    """Try the free models that would be picked, best first, until one answers or the pick is no free model of a rung.

    It takes up to 30 s a model, so it comes before the transaction; each pool is left out at most once, so it ends.
    """
    failed: dict[str, str] = {}
    expected = expectations(connection, task.lane, task.tier)
    while True:
        bookings = ledger.entries(connection, now=view.now)
        caller = state.created.caller_pool
        decision = choose(view, task, bookings, caller_pool=caller, expected=expected, probes=failed, barred=barred)
        if decision.pool is None or decision.pool in failed or not is_probed(decision.rung):
            return failed
        profile = view.services.profile(decision.pool)
        assert decision.rung is not None, "is_probed is false without a rung"
        reason = probe(view.services, profile, decision.rung) if profile else "provider error"
        if reason is None:
            return failed
        failed[decision.pool] = reason


def second_writer(bookings: Iterable[Booking], task: Task, tree: str) -> Booking | None:
    """Return the attempt that already writes in the tree in which ``task`` would write, if one does."""
    if task.lane == "analyze" or task.shared_tree:
        return None
    return next((booking for booking in bookings if booking.tree == tree and booking.lane != "analyze"), None)


def conflict_text(booking: Booking, tree: str, *, run: str) -> str:
    """Say why a second writer is refused, and the ways out; ``run`` is what the first one's run is called."""
    return (
        f"run {run} already writes in {tree} (a {booking.lane} task on {booking.pool}): wait for it"
        f" (bullswarm runs wait {run}), or share the tree with --shared-tree"
    )


def _refuse_second_writer(journal: Journal, bookings: list[Booking], task: Task, tree: str) -> str | None:
    booking = second_writer(bookings, task, tree)
    return conflict_text(booking, tree, run=journal.short_id(booking.run)) if booking else None


def _refuse_above_total(view: View, journal: Journal, state: RunState, step_id: str) -> StepUnplaced | None:
    root = state.created.root or state.created.run_id
    starts, limit = journal.starts_under(root), view.settings.total_limit
    if starts < limit:
        return None
    why = f"{starts} workers were started under root task {root}, and config.totalLimit is {limit}: raise it in state.json"
    return StepUnplaced(step=step_id, why=why, failure_kind="runtime")


def _pick(
    view: View,
    connection: sqlite3.Connection,
    state: RunState,
    step_id: str,
    task: Task,
    tree: str,
    bookings: list[Booking],
    probes: Mapping[str, str],
    barred: Mapping[str, str],
) -> AttemptPicked | StepUnplaced:
    caller = state.created.caller_pool
    by_log = expectations(connection, task.lane, task.tier)
    decision = choose(view, task, bookings, caller_pool=caller, expected=by_log, probes=probes, barred=barred)
    if decision.pool is None or decision.rung is None:
        return _unplaced(decision, step_id)
    expected = by_log.on(decision.pool)
    rung = task.asked_of(decision.rung)
    ordinal = len(state.steps[step_id].attempts) + 1
    files = RunFolder.of(view.services.home, state.created.run_id).attempt(step_id, ordinal)
    booking = Booking(
        run=state.created.run_id,
        step=step_id,
        attempt=files.id,
        pool=decision.pool,
        lane=task.lane,
        effort=task.tier,
        started_at=view.now,
        kernel=current(),
        model=rung.model,
        expected_minutes=expected.minutes,
        expected_source=expected.source,
        cwd=task.cwd,
        task_file=str(files.task),
        out_file=str(files.output),
        tree=tree,
    )
    row = decision.row
    return AttemptPicked(
        step=step_id,
        ordinal=ordinal,
        pool=decision.pool,
        provider=row.provider if row else decision.pool.partition(":")[0],
        model=booking.model,
        reasoning=rung.reasoning,
        lane=task.lane,
        effort=task.tier,
        reason=decision.reason,
        decision=decision.to_json(),
        booking=ledger.book(connection, booking),
        tree=tree,
        free=rung.free,
        rung_source=rung.source,
        level_source=rung.level_source,
        shared_tree=task.shared_tree,
        expected_minutes=expected.minutes,
        generation=state.steps[step_id].generation,
    )


def _unplaced(decision: Decision, step_id: str) -> StepUnplaced:
    return StepUnplaced(
        step=step_id,
        why=decision.reason,
        failure_kind=decision.failure_kind or "unavailable",
        back_at=decision.back_at,
        back_at_source="measured" if decision.back_at else None,
        decision=decision.to_json(),
    )


def book_again(
    services: Services,
    connection: sqlite3.Connection,
    created: RunCreated,
    picked: AttemptPicked,
    task: Task,
    files: AttemptFiles,
) -> None:
    """Take the attempt's place again, for this kernel; call it in a transaction.

    Raises RunConflictError when another run has come to write in the same tree since.
    """
    now = services.now()
    others = [entry for entry in ledger.live(connection, now=now) if entry.run != created.run_id]
    writer = second_writer(others, task, picked.tree)
    if writer is not None:
        run = Journal(connection).short_id(writer.run)
        raise RunConflictError(conflict_text(writer, picked.tree, run=run))
    booking = ledger.Booking(
        id=picked.booking,
        run=created.run_id,
        step=picked.step,
        attempt=files.id,
        pool=picked.pool,
        lane=cast(Lane, picked.lane),
        effort=cast(Effort, picked.effort),
        started_at=now,
        kernel=current(),
        model=picked.model,
        expected_minutes=picked.expected_minutes,
        cwd=task.cwd,
        task_file=str(files.task),
        out_file=str(files.output),
        tree=picked.tree,
    )
    ledger.book(connection, booking)
