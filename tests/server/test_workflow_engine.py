"""Whole workflows on scripted workers: a kernel drives a program to its result, or to where it waits for somebody."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from tests.core.runs.journals import document
from tests.processes import until
from tests.server.site import SAY, Site
from tests.server.workflows import ACTOR, TYPED, begin, ended, go_on, record, result, statuses, wish

from bullswarm_core.attempts import startable
from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.kernel import engine, liveness
from bullswarm_core.launch.project import refuse_obedient
from bullswarm_core.runs.events import PauseLifted, RunReopened, StopRequested
from bullswarm_core.runs.intents import accept, add, continue_node, pause, rerun, resume
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_server.ops.services import services_for


@pytest.fixture
def actors(site: Site) -> Site:
    """Two pools that do as they are told."""
    site.worker("one", ACTOR)
    site.worker("two", ACTOR)
    return site


def test_dependent_steps_run_in_order_and_the_result_tells_of_each(actors: Site) -> None:
    program = document(
        {"id": "a"}, {"id": "b"}, {"id": "c", "dependsOn": ["a", "b"], "lane": "build", "prompt": "WRITE made.txt"}
    )
    state = ended(actors, begin(actors, program))
    found = result(state)
    assert (found["status"], found["reason"]) == ("completed", "3 of 3 steps succeeded")
    assert statuses(state) == {"a": "succeeded", "b": "succeeded", "c": "succeeded"}
    assert found["steps"][2]["changedFiles"] == ["made.txt"] and found["totals"]["attempts"] == 3
    a, b, c = (state.steps[name].attempts[0] for name in "abc")
    assert c.picked_at >= max(a.finished_at, b.finished_at)  # type: ignore[type-var, operator]
    assert actors.in_flight() == []


def test_a_failed_step_is_tried_once_elsewhere_and_only_what_waits_for_it_is_blocked(actors: Site) -> None:
    program = document({"id": "a", "prompt": "FAIL"}, {"id": "b", "dependsOn": ["a"]}, {"id": "c"})
    state = ended(actors, begin(actors, program))
    assert statuses(state) == {"a": "failed", "b": "blocked", "c": "succeeded"}
    assert result(state)["reason"] == "2 of 3 steps did not succeed: a failed (process), b blocked"
    tries = [attempt.picked for attempt in state.steps["a"].attempts]
    assert {picked.pool for picked in tries} == {"one", "two"}
    assert [picked.retry_how for picked in tries] == [None, "another-pool"]


def test_with_one_pool_alone_the_retry_stays_there(site: Site) -> None:
    site.worker("one", ACTOR)
    state = ended(site, begin(site, document({"id": "a", "prompt": "FAIL"})))
    assert [attempt.picked.pool for attempt in state.steps["a"].attempts] == ["one", "one"]


def test_a_rerun_an_acceptance_and_an_addition_reopen_a_finished_run(actors: Site) -> None:
    run_id = begin(actors, document({"id": "a", "prompt": "FAIL"}, {"id": "b", "dependsOn": ["a"]}), retryAttempts=0)
    first = ended(actors, run_id)
    failed_on = first.steps["a"].attempts[0].picked.pool
    again = go_on(actors, run_id, rerun("a", avoid=(failed_on,), by="me"))
    assert again.steps["a"].attempts[1].picked.pool != failed_on and result(again)["status"] == "partial"
    accepted = go_on(actors, run_id, accept("a", reason="good enough", by="me"))
    assert result(accepted)["status"] == "completed" and result(accepted)["steps"][0]["accepted"] == "good enough"
    added = go_on(actors, run_id, add({"steps": [{"id": "c", "prompt": "Do it.", "dependsOn": ["b"]}]}, by="me"))
    assert statuses(added) == {"a": "succeeded", "b": "succeeded", "c": "succeeded"}
    assert len(added.steps["b"].attempts) == 1, "a finished step never runs again"


def test_a_gate_parks_the_run_without_a_kernel_until_somebody_continues(actors: Site) -> None:
    program = document({"id": "a"}, {"id": "b", "dependsOn": ["g"]}, gates=[{"id": "g", "dependsOn": ["a"]}])
    run_id = begin(actors, program)
    parked = ended(actors, run_id)
    assert parked.parked is not None and parked.parked.waiting_for == ("g",)
    until(lambda: not any("bullswarm_server.kernel" in line for line in actors.processes().values()), "no kernel")
    assert statuses(go_on(actors, run_id, continue_node("g", by="me"))) == {"a": "succeeded", "b": "succeeded"}


def test_a_loop_passes_in_its_second_round(actors: Site) -> None:
    program = document(
        {"id": "r", "prompt": "MORE", "answer": TYPED},
        {"id": "z", "dependsOn": ["l"]},
        loops=[{"id": "l", "steps": ["r"], "until": {"step": "r", "field": "done"}, "maxRounds": 3}],
    )
    state = ended(actors, begin(actors, program))
    assert result(state)["loops"] == [{"id": "l", "status": "passed", "outcome": "passed", "round": 2, "maxRounds": 3}]
    assert len(state.steps["r"].attempts) == 2 and statuses(state)["z"] == "succeeded"


def test_writers_without_files_never_work_at_once(actors: Site) -> None:
    program = document(*({"id": name, "lane": "build", "prompt": f"WRITE {name}.txt"} for name in "abc"))
    state = ended(actors, begin(actors, program))
    spans = sorted((step.attempts[0].picked_at, step.attempts[0].finished_at) for step in state.steps.values())
    assert all(before[1] <= after[0] for before, after in pairwise(spans))  # type: ignore[operator]


def test_a_stop_ends_the_work_and_what_has_not_begun(actors: Site) -> None:
    run_id = begin(actors, document({"id": "a", "prompt": "WAIT"}, {"id": "b", "dependsOn": ["a"]}))
    actors.happened("attempt.launched")
    with actors.database() as connection:
        Journal(connection).append(run_id, [StopRequested(by="me")], at=utc_now())
    state = ended(actors, run_id)
    assert (result(state)["status"], statuses(state)) == ("cancelled", {"a": "cancelled", "b": "cancelled"})


def test_a_pause_at_once_stops_the_worker_and_a_resume_begins_it_anew(actors: Site) -> None:
    run_id = begin(actors, document({"id": "a", "prompt": "WAIT"}))
    actors.happened("attempt.launched")
    wish(actors, run_id, pause(at_once=True, by="me"))
    paused = ended(actors, run_id)
    assert paused.parked is not None and paused.parked.reason == "paused"
    assert paused.steps["a"].attempts[0].finished.failure_kind == "paused"  # type: ignore[union-attr]
    actors.go()
    state = go_on(actors, run_id, resume(by="me"))
    assert statuses(state) == {"a": "succeeded"} and len(state.steps["a"].attempts) == 2
    assert PauseLifted.type in actors.events(run_id) and RunReopened.type not in actors.events(run_id)


def test_the_kernel_may_die_at_any_moment(actors: Site) -> None:
    program = document({"id": "a", "prompt": "WAIT"}, {"id": "b", "dependsOn": ["a"]})
    run_id = begin(actors, program)
    actors.happened("attempt.launched")
    actors.kill(actors.kernel())
    actors.go()
    state = ended(actors, run_id)
    assert statuses(state) == {"a": "succeeded", "b": "succeeded"}
    assert len(state.steps["a"].attempts) == 1 and state.steps["a"].attempts[0].taken_over in (
        "re-attached",
        "harvested",
    )


def test_independent_reviews_avoid_the_providers_that_wrote(actors: Site) -> None:
    program = document(
        {"id": "w", "lane": "build", "prompt": "WRITE made.txt", "files": ["made.txt"]},
        {"id": "r", "dependsOn": ["w"], "route": {"independentOf": ["w"]}},
    )
    state = ended(actors, begin(actors, program))
    wrote, reviewed = (state.steps[name].attempts[0].picked for name in "wr")
    assert wrote.pool != reviewed.pool and "independent of w" in reviewed.reason


def test_a_step_that_its_route_leaves_without_a_pool_comes_back_at_once(site: Site) -> None:
    site.worker("one", SAY)
    program = document({"id": "w"}, {"id": "r", "dependsOn": ["w"], "route": {"independentOf": ["w"]}})
    state = ended(site, begin(site, program))
    assert statuses(state) == {"w": "succeeded", "r": "failed"}
    assert result(state)["steps"][1]["failureKind"] == "unavailable"


def test_what_is_asked_while_a_parked_runs_kernel_still_holds_its_lease_is_done_by_that_kernel(
    actors: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = document({"id": "a"}, {"id": "b", "dependsOn": ["g"]}, gates=[{"id": "g", "dependsOn": ["a"]}])
    run_id = record(actors, program)
    lease = liveness.kernel_lease
    leases: list[RunFolder] = []

    @contextlib.contextmanager
    def slow_to_let_go(folder: RunFolder) -> Iterator[None]:
        with lease(folder):
            yield
            if not leases:
                leases.append(folder)
                wish(actors, run_id, continue_node("g", by="me"))

    monkeypatch.setattr(engine, "kernel_lease", slow_to_let_go)
    with actors.database() as connection:
        state = engine.drive(services_for(actors.home, actors.environ), connection, run_id, say=lambda line: None)
    assert statuses(state) == {"a": "succeeded", "b": "succeeded"}


def test_a_pick_reads_the_projects_files_before_others_wait_for_it(
    actors: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else can book while a pick's transaction is open, and a project may lie on a slow disk."""
    run_id = record(actors, document({"id": "a"}, {"id": "b", "dependsOn": ["a"]}))
    in_transaction = []
    with actors.database() as connection:
        look = refuse_obedient

        def watched(*given: Any) -> None:
            in_transaction.append(connection.in_transaction)
            look(*given)

        monkeypatch.setattr(startable, "refuse_obedient", watched)
        state = engine.drive(services_for(actors.home, actors.environ), connection, run_id, say=lambda line: None)
    assert statuses(state) == {"a": "succeeded", "b": "succeeded"}
    assert in_transaction and not any(in_transaction)
