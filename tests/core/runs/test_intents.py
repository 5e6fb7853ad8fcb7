"""What people may ask of a workflow, in each of its states: the events that it comes to, or a refusal that says why."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.runs.journals import Written, document

from bullswarm_core.errors import NothingToRetryError, UsageError
from bullswarm_core.runs.events import (
    GatePassed,
    GateWaiting,
    LoopContinued,
    LoopOutOfRounds,
    PauseLifted,
    PauseRequested,
    RunFinished,
    RunParked,
    RunReopened,
    StepAccepted,
    StepReset,
    StepsAdded,
    StepUnplaced,
    StopRequested,
)
from bullswarm_core.runs.intents import Wish, accept, add, continue_node, pause, rerun, restart, resume, steer
from bullswarm_core.runs.status import statuses

TYPED = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}


def chain() -> Written:
    return Written(document({"id": "a"}, {"id": "b", "dependsOn": ["a"]}), retryAttempts=0)


def asked(written: Written, wish: Wish) -> list[Any]:
    return list(wish(written.state))


def refused(written: Written, wish: Wish, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        wish(written.state)


def over(written: Written, outcome: str = "partial") -> Written:
    written.write(RunFinished(outcome=outcome, verdict={}))
    return written


def test_a_waiting_gate_is_opened_and_no_other() -> None:
    written = Written(document({"id": "a"}, gates=[{"id": "g", "dependsOn": ["a"]}]))
    refused(written, continue_node("g", by="me"), "gate g is pending, not waiting")
    written.run("a")
    written.write(GateWaiting("g"))
    refused(written, continue_node("g", rounds=1, by="me"), "has no rounds")
    refused(written, continue_node("a", by="me"), "no gate and no loop")
    assert asked(written, continue_node("g", by="me")) == [GatePassed("g", how="continued", by="me")]
    refused(over(written), continue_node("g", by="me"), "is over")


def test_a_loop_out_of_rounds_is_given_more_or_left() -> None:
    loop = {"id": "l", "steps": ["a"], "until": {"step": "a", "field": "done"}, "maxRounds": 1}
    written = Written(document({"id": "a", "answer": TYPED}, loops=[loop]))
    refused(written, continue_node("l", by="me"), "loop l is pending, not waiting")
    written.run("a", answer={"done": False})
    written.write(LoopOutOfRounds("l", 1))
    for rounds in (0, 6):
        refused(written, continue_node("l", rounds=rounds, by="me"), f"--rounds {rounds} is not between 1 and 5")
    assert asked(written, continue_node("l", rounds=2, by="me")) == [LoopContinued("l", rounds=2, by="me")]
    assert asked(written, continue_node("l", by="me")) == [LoopContinued("l", by="me")]


def test_a_pause_is_asked_for_once_and_may_be_made_harder() -> None:
    written = chain()
    assert asked(written, pause(at_once=False, by="me")) == [PauseRequested(by="me")]
    written.write(PauseRequested(by="me"))
    refused(written, pause(at_once=False, by="me"), "paused already")
    assert asked(written, pause(at_once=True, by="me")) == [PauseRequested(by="me", at_once=True)]
    assert asked(written, resume(by="me")) == [PauseLifted(by="me")]


def test_a_resume_of_a_run_that_goes_on_asks_for_nothing() -> None:
    assert asked(chain(), resume(by="me")) == []


@pytest.mark.parametrize(
    ("kind", "again"), [("process", True), ("quota", True), ("not-produced", False), ("failed-evidence", False)]
)
def test_a_resume_of_a_finished_run_tries_what_may_end_otherwise(kind: str, again: bool) -> None:
    written = chain()
    written.run("a", kind)
    over(written)
    if again:
        assert asked(written, resume(by="me")) == [
            RunReopened(by="me", why="retry of a"),
            StepReset("a", why="resume", by="me"),
        ]
    else:
        with pytest.raises(NothingToRetryError, match="nothing to retry"):
            resume(by="me")(written.state)


def test_a_resume_of_a_stopped_run_begins_what_never_began() -> None:
    written = chain()
    written.run("a")
    written.write(StopRequested(by="me"))
    over(written, "cancelled")
    written.write(*asked(written, resume(by="me")))
    assert statuses(written.state) == {"a": "succeeded", "b": "pending"}


def test_an_outward_step_that_may_have_acted_is_not_tried_again_by_a_resume() -> None:
    written = Written(document({"id": "a", "deliverable": "outward"}), retryAttempts=0)
    written.run("a", "process")
    with pytest.raises(NothingToRetryError):
        resume(by="me")(over(written).state)


def test_what_can_be_done_about_a_run_that_is_over_is_said_where_something_can() -> None:
    written = chain()
    written.run("a", "process")
    with pytest.raises(UsageError, match="try again what failed: bullswarm workflow resume abcdef"):
        pause(at_once=False, by="me")(over(written).state)
    with pytest.raises(UsageError) as refusal:
        pause(at_once=False, by="me")(over(chain(), "completed").state)
    assert refusal.value.hint == "bullswarm runs show abcdef"


def test_a_step_without_a_pool_is_tried_again_by_a_resume() -> None:
    written = chain()
    written.write(StepUnplaced("a", why="no pool", failure_kind="quota"))
    assert StepReset("a", why="resume", by="me") in asked(over(written), resume(by="me"))


def test_a_rerun_is_for_steps_that_have_ended() -> None:
    written = chain()
    refused(written, rerun("z", by="me"), '"z" is no step')
    refused(written, rerun("a", by="me"), "step a is pending: it has not run")
    written.pick("a")
    refused(written, rerun("a", by="me"), "step a is running")
    written.end("a", "quota")
    expected = StepReset("a", why="rerun", by="me", avoid=("codex",))
    assert asked(written, rerun("a", avoid=("codex",), by="me")) == [expected]
    assert asked(over(written), rerun("a", avoid=("codex",), by="me"))[1:] == [expected]


def test_a_good_step_is_rerun_only_while_nothing_went_on_from_it() -> None:
    written = chain()
    written.run("a")
    assert asked(written, rerun("a", by="me")) == [StepReset("a", why="rerun", by="me")]
    written.run("b")
    refused(written, rerun("a", by="me"), "step a succeeded, and b went on from it")


def test_only_what_failed_is_accepted_and_with_a_reason() -> None:
    written = chain()
    refused(written, accept("a", reason="fine", by="me"), "step a is pending: only what failed is accepted")
    written.run("a", "not-produced")
    for reason in ("", " ", "x" * 501, "two\nlines"):
        refused(written, accept("a", reason=reason, by="me"), "--reason must be one line of 1 to 500 characters")
    assert asked(written, accept("a", reason="fine", by="me")) == [StepAccepted("a", reason="fine", by="me")]
    assert [type(each) for each in asked(over(written), accept("a", reason="fine", by="me"))] == [
        RunReopened,
        StepAccepted,
    ]


def test_only_a_running_step_is_restarted() -> None:
    written = chain()
    refused(written, restart("a", by="me"), "step a is not running")
    written.pick("a")
    assert asked(written, restart("a", pool="grok", by="me")) == [StepReset("a", why="restart", by="me", pool="grok")]


@pytest.mark.parametrize("message", ["", "  ", "x" * 4001])
def test_a_message_to_those_who_watch_says_something(message: str) -> None:
    refused(chain(), steer(message, by="me"), "--message must have 1 to 4000 characters")


def test_steps_are_added_and_may_hold_back_what_has_not_started() -> None:
    written = chain()
    written.run("a")
    fragment = {"steps": [{"id": "c", "prompt": "Do it.", "dependsOn": ["a"]}], "blocks": {"c": ["b"]}}
    (added,) = asked(written, add(fragment, by="me"))
    assert isinstance(added, StepsAdded) and added.added == ("c",)
    assert [step.get("dependsOn") for step in added.program["steps"]] == [None, ["a", "c"], ["a"]]
    written.write(added)
    assert statuses(written.state) == {"a": "succeeded", "c": "pending", "b": "pending"}


@pytest.mark.parametrize(
    ("fragment", "why"),
    [
        ({}, "there is nothing to add"),
        ({"steps": []}, "there is nothing to add"),
        ({"steps": {}, "x": 1}, "must be an object of steps, gates, loops and blocks, without x"),
        ({"steps": "c"}, "steps must be an array"),
        ({"steps": [{"id": "a", "prompt": "x"}]}, 'id "a" is used twice'),
        ({"steps": [{"id": "c", "prompt": "x", "dependsOn": ["z"]}]}, 'unknown step, gate or loop "z"'),
        ({"steps": [{"id": "c", "prompt": "x"}], "blocks": {"d": ["b"]}}, 'blocks names "d"'),
        ({"steps": [{"id": "c", "prompt": "x"}], "blocks": {"c": ["a"]}}, "no step that has not started"),
        ({"steps": [{"id": "c", "prompt": "x", "dependsOn": ["b"]}], "blocks": {"c": ["b"]}}, "a cycle"),
        (
            {"loops": [{"id": "l", "steps": ["a"], "until": {"step": "a", "field": "done"}, "maxRounds": 2}]},
            'loop "l" names a, which the run has already',
        ),
    ],
)
def test_what_makes_no_program_is_not_added(fragment: dict[str, Any], why: str) -> None:
    written = chain()
    written.run("a")
    refused(written, add(fragment, by="me"), why)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["a", "b", "c"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "steps", "prompt", "dependsOn"]), inner)
    ),
    max_leaves=12,
)


@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_no_fragment_breaks_an_addition(steps: Any, gates: Any, loops: Any, blocks: Any) -> None:
    written = chain()
    try:
        events = asked(written, add({"steps": steps, "gates": gates, "loops": loops, "blocks": blocks}, by="me"))
    except UsageError:
        return
    written.write(*events)
    assert set(statuses(written.state)) >= {"a", "b"}


def test_nothing_is_asked_of_a_run_that_is_over_but_to_open_it_again() -> None:
    written = over(chain(), "cancelled")
    for wish in (pause(at_once=True, by="me"), restart("a", by="me"), steer("Hello.", by="me")):
        refused(written, wish, "is over")
    parked = chain()
    parked.write(RunParked("paused"))
    assert asked(parked, pause(at_once=False, by="me")) == [PauseRequested(by="me")]
