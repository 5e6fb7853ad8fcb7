"""What follows a failed attempt, kind by kind (docs/design/runs.md, "The failure rule")."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.runs.journals import Written, document

from bullswarm_core.judging.model import FailureKind
from bullswarm_core.reports.handback import failure_of
from bullswarm_core.runs.retry import NextTry, RetryHow, next_try, why_no_retry
from bullswarm_core.runs.status import retry_of
from bullswarm_core.wire import iso


def journal(**step: Any) -> Written:
    return Written(document({"id": "a", **step}))


def owed(written: Written) -> NextTry | None:
    return retry_of(written.state, written.state.steps["a"])


@pytest.mark.parametrize("kind", ["process", "provider", "stalled", "interrupted", "timeout", "denied"])
def test_a_fault_of_the_process_is_tried_once_elsewhere(kind: str) -> None:
    written = journal()
    written.run("a", kind)
    assert owed(written) == NextTry("another-pool", avoid=("codex",), alone_is_fine=True)
    written.run("a", kind, pool="grok", retry_how="another-pool")
    assert owed(written) is None


@pytest.mark.parametrize("kind", ["not-produced", "failed-evidence", "schema", "semantic"])
def test_a_fault_of_the_work_goes_back_to_the_same_pool_once(kind: str) -> None:
    written = journal()
    written.run("a", kind)
    assert owed(written) == NextTry("same-pool", pool="codex")
    written.run("a", kind, retry_how="same-pool")
    assert owed(written) is None


@pytest.mark.parametrize(
    "kind", ["quota", "ownership", "ownership-conflict", "runtime", "unavailable", "needs-input", "cancelled"]
)
def test_these_go_back_to_the_caller_at_once(kind: str) -> None:
    written = journal()
    written.run("a", kind)
    assert owed(written) is None


def test_a_dead_sign_in_is_not_tried_with_a_pool_that_shares_it() -> None:
    written = journal()
    written.run("a", "auth", meta={"worked": True})
    assert owed(written) == NextTry("another-pool", avoid=("codex",), avoid_group_of=("codex",))


def test_a_refusal_at_the_start_is_re_picked_three_times_and_spends_no_retry() -> None:
    written = journal()
    for number, how in enumerate((None, "re-pick", "re-pick", "re-pick")):
        written.run("a", "model-not-in-plan", pool=f"p{number}", retry_how=how, meta={"worked": False})
        expected = "re-pick" if number < 3 else "another-pool"
        after = owed(written)
        assert after is not None and after.how == expected
        assert after.avoid == tuple(f"p{each}" for each in range(number + 1))
    written.run("a", "process", pool="p9", retry_how="another-pool")
    assert owed(written) is None


def test_a_throttle_backs_off_twice_on_the_same_pool() -> None:
    written = journal()
    for how, wait in ((None, 20), ("back-off", 60)):
        written.run("a", "throttle", retry_how=how)
        assert owed(written) == NextTry("back-off", pool="codex", not_before=written.now + timedelta(seconds=wait))
    written.run("a", "throttle", retry_how="back-off")
    assert owed(written) is None


@pytest.mark.parametrize(("named", "wait"), [(-5, 0), (90, 90), (120, 120), (121, None), (3600, None)])
def test_a_named_wait_is_kept_up_to_two_minutes(named: int, wait: int | None) -> None:
    written = journal()
    written.pick("a")
    ends = written.now + timedelta(seconds=1)
    written.end("a", "throttle", backAt=iso(ends + timedelta(seconds=named)))
    after = owed(written)
    if wait is None:
        assert after is None
    else:
        assert after is not None and after.not_before == ends + timedelta(seconds=wait)


def test_a_back_off_spends_no_retry() -> None:
    written = journal()
    written.run("a", "throttle")
    written.run("a", "process", retry_how="back-off")
    after = owed(written)
    assert after is not None and after.how == "another-pool"


@pytest.mark.parametrize(
    ("step", "run", "tries"), [({}, 1, 2), ({"retry": 0}, 3, 1), ({}, 0, 1), ({}, 3, 4), ({"retry": 1}, 0, 2)]
)
def test_how_often_is_the_steps_word_then_the_runs(step: dict[str, Any], run: int, tries: int) -> None:
    written = Written(document({"id": "a", **step}), retryAttempts=run)
    written.run("a", "process", pool="p0")
    count = 1
    while owed(written) is not None:
        written.run("a", "process", pool=f"p{count}", retry_how="another-pool")
        count += 1
    assert count == tries


def test_an_outward_step_is_not_tried_again_once_its_worker_started() -> None:
    written = journal(deliverable="outward")
    written.run("a", "process")
    assert owed(written) is None


def test_a_check_that_is_itself_wrong_is_no_reason_to_try_again() -> None:
    written = journal()
    written.run("a", "failed-evidence", evidenceResults=[{"status": "failed", "fault": "check"}])
    assert owed(written) is None


def test_a_blocker_outside_of_the_step_is_no_reason_to_try_again() -> None:
    written = journal()
    written.run("a", "not-produced", outsideBlockers=["the database is down"])
    assert owed(written) is None
    assert why_no_retry(written.state.steps["a"].counted) == (
        "retry skipped: the worker reported a blocker outside this step: the database is down"
    )
    assert failure_of(written.state.steps["a"]) == (
        "not-produced",
        "not-produced · retry skipped: the worker reported a blocker outside this step: the database is down",
    )


def test_a_blocker_after_the_retry_skipped_none() -> None:
    written = journal()
    written.run("a", "not-produced")
    written.run("a", "not-produced", retry_how="same-pool", outsideBlockers=["the database is down"])
    assert failure_of(written.state.steps["a"]) == ("not-produced", "not-produced")


@pytest.mark.parametrize("kind", ["paused", "restarted", "superseded"])
def test_what_somebody_ended_is_begun_anew(kind: str) -> None:
    written = journal()
    written.run("a", kind)
    assert owed(written) == NextTry("anew")


def test_a_single_run_makes_one_attempt() -> None:
    written = Written(document({"id": "run"}), kind="run")
    written.run("run", "process")
    assert retry_of(written.state, written.state.steps["run"]) is None


@given(
    st.lists(
        st.tuples(st.sampled_from(get_args(FailureKind)), st.booleans()).filter(
            lambda each: each[0] not in ("paused", "restarted", "superseded")
        ),
        max_size=30,
    ),
    st.integers(0, 3),
)
def test_trying_again_always_ends(failures: list[tuple[str, bool]], retries: int) -> None:
    written = Written(document({"id": "a"}), retryAttempts=retries)
    how: str | None = None
    for number, (kind, worked) in enumerate(failures):
        written.run("a", kind, pool=f"p{number}", retry_how=how, meta={"worked": worked})
        after = next_try(written.state.program.step("a"), written.state.steps["a"].counted, retries=retries)
        if after is None:
            return
        assert after.how in get_args(RetryHow)
        assert after.how != "same-pool" or after.pool == f"p{number}"
        how = after.how
        # At most: the first, three re-picks, two back-offs and the retries.
        assert number + 1 <= 1 + 3 + 2 + retries
