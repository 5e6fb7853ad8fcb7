"""What a kernel does next: single cases, and random programs driven to their end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.runs.journals import Written, document

from bullswarm_core.program.issues import issues_of
from bullswarm_core.program.model import files_of
from bullswarm_core.runs.events import (
    GatePassed,
    GateWaiting,
    LoopContinued,
    LoopOutOfRounds,
    LoopPassed,
    LoopRound,
    PauseLifted,
    PauseRequested,
    RunParked,
    StepAccepted,
    StepReset,
    StepsAdded,
    StepUnplaced,
    StopRequested,
)
from bullswarm_core.runs.nodes import OVER, statuses
from bullswarm_core.runs.scheduler import Action, Finish, Park, Record, Start, TakeOver, next_actions, next_moment

TYPED = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}
EVIDENCE = [{"type": "command", "cmd": "true"}]


def todo(written: Written) -> tuple[Action, ...]:
    return next_actions(written.state, now=written.now)


def starts(written: Written) -> list[str]:
    return [action.step for action in todo(written) if isinstance(action, Start)]


def records(written: Written) -> list[Any]:
    found = [action.payload for action in todo(written) if isinstance(action, Record)]
    written.write(*found)
    return found


def test_a_step_starts_when_all_before_it_is_done() -> None:
    written = Written(document({"id": "a"}, {"id": "b", "dependsOn": ["a"]}, {"id": "c"}))
    assert starts(written) == ["a", "c"]
    written.pick("a")
    written.pick("c")
    assert starts(written) == []
    written.end("a")
    assert starts(written) == ["b"]
    written.run("b")
    assert [type(action) for action in todo(written)] == [TakeOver]
    written.end("c")
    assert todo(written) == (Finish(),)


def test_what_waits_for_a_failed_step_is_blocked_and_the_rest_goes_on() -> None:
    written = Written(
        document({"id": "a"}, {"id": "b", "dependsOn": ["a"]}, {"id": "c"}, {"id": "d", "dependsOn": ["c"]})
    )
    written.run("a", "quota")
    assert statuses(written.state) == {"a": "failed", "b": "blocked", "c": "pending", "d": "pending"}
    assert starts(written) == ["c"]
    written.run("c")
    written.run("d")
    assert todo(written) == (Finish(),)


def test_an_accepted_step_opens_the_way() -> None:
    written = Written(document({"id": "a"}, {"id": "b", "dependsOn": ["a"]}))
    written.run("a", "quota")
    written.write(StepAccepted("a", reason="good enough"))
    assert statuses(written.state)["a"] == "succeeded" and starts(written) == ["b"]


def test_a_rerun_begins_anew_and_avoids_for_good() -> None:
    written = Written(document({"id": "a"}, {"id": "b", "dependsOn": ["a"]}))
    written.run("a", "quota")
    written.write(StepReset("a", why="rerun", avoid=("codex",)))
    assert starts(written) == ["a"]
    assert written.state.steps["a"].avoid == ("codex",) and written.state.steps["a"].counted == ()
    written.run("a", "quota", pool="grok")
    written.write(StepReset("a", why="rerun", avoid=("grok",)))
    assert set(written.state.steps["a"].avoid) == {"codex", "grok"}


def test_a_restart_waits_for_the_worker_that_it_stops() -> None:
    written = Written(document({"id": "a"}))
    written.pick("a")
    written.write(StepReset("a", why="restart", pool="grok"))
    (follow,) = todo(written)
    assert isinstance(follow, TakeOver) and follow.superseded
    written.end("a", "restarted")
    (start,) = todo(written)
    assert start == Start("a") and written.state.steps["a"].pool == "grok"


def test_concurrency_holds() -> None:
    written = Written(document(*({"id": f"s{n}"} for n in range(9))), concurrency=3)
    assert starts(written) == ["s0", "s1", "s2"]
    written.pick("s0")
    written.pick("s1")
    assert starts(written) == ["s2"]
    assert len(starts(Written(document(*({"id": f"s{n}"} for n in range(9)))))) == 4


def writer(name: str, *files: str) -> dict[str, Any]:
    return {"id": name, "lane": "build", "files": list(files)}


def test_writers_of_one_file_never_run_together() -> None:
    written = Written(document(writer("a", "x", "y"), writer("b", "y", "z"), writer("c", "z"), {"id": "d"}))
    assert starts(written) == ["a", "c", "d"]


def test_a_writer_without_files_runs_alone_among_the_writers() -> None:
    written = Written(document(writer("a"), writer("b", "y"), {"id": "d"}))
    assert starts(written) == ["a", "d"]
    apart = Written(document(writer("a", "x"), writer("b", "y"), writer("c", "y")), isolation="worktree")
    assert starts(apart) == ["a", "b"]


def test_a_back_off_is_waited_for_and_the_run_does_not_end() -> None:
    written = Written(document({"id": "a"}))
    written.run("a", "throttle")
    assert todo(written) == ()
    written.now += timedelta(seconds=20)
    (start,) = todo(written)
    assert isinstance(start, Start) and start.again is not None and start.again.how == "back-off"


def test_a_promised_retry_that_finds_no_pool_is_the_end_of_the_step() -> None:
    written = Written(document({"id": "a"}))
    written.run("a", "process")
    assert starts(written) == ["a"]
    written.write(StepUnplaced("a", why="no retry: …", failure_kind="process"))
    assert todo(written) == (Finish(),) and statuses(written.state)["a"] == "failed"


def gated(**gate: Any) -> Written:
    return Written(
        document(
            {"id": "a", "answer": TYPED},
            {"id": "b", "dependsOn": ["g"]},
            gates=[{"id": "g", "dependsOn": ["a"], **gate}],
        )
    )


def test_a_gate_without_a_condition_waits_and_the_run_is_parked() -> None:
    written = gated()
    written.run("a", answer={"done": True})
    assert records(written) == [GateWaiting("g")]
    assert todo(written) == (Park(RunParked("waiting", ("g",))),)
    written.write(RunParked("waiting", ("g",)))
    assert todo(written) == ()
    written.write(GatePassed("g", how="continued"))
    assert starts(written) == ["b"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"done": False}, GatePassed("g", how="when-false")),
        ({"done": True}, GateWaiting("g", why="its condition holds")),
        ({"done": "no"}, GateWaiting("g", why="its condition can't be read")),
        (None, GateWaiting("g", why="its condition can't be read")),
    ],
)
def test_a_gate_reads_its_condition(answer: Any, expected: Any) -> None:
    written = gated(when={"step": "a", "field": "done"})
    written.run("a", answer=answer)
    assert records(written) == [expected]


def test_a_gate_behind_a_step_that_begins_anew_is_no_longer_waiting() -> None:
    written = gated()
    written.run("a", answer={"done": True})
    records(written)
    written.write(StepReset("a", why="rerun"))
    assert statuses(written.state) == {"a": "pending", "g": "pending", "b": "pending"}


def test_a_gate_behind_a_failed_step_is_blocked_until_the_failure_is_mended() -> None:
    written = gated()
    written.run("a", "quota")
    assert statuses(written.state)["g"] == "blocked" and todo(written) == (Finish(),)
    written.write(StepReset("a", why="rerun"))
    assert statuses(written.state)["g"] == "pending"


def looped(rounds: int = 3, **until: Any) -> Written:
    return Written(
        document(
            {"id": "w", "lane": "build", "files": ["x"]},
            {"id": "r", "dependsOn": ["w"], "answer": TYPED, "evidence": EVIDENCE},
            {"id": "z", "dependsOn": ["l"]},
            loops=[{"id": "l", "steps": ["w", "r"], "until": {"step": "r", **until}, "maxRounds": rounds}],
        )
    )


def round_of(written: Written, *, done: bool | None, passed: bool | None = None) -> None:
    written.run("w")
    checks = None if passed is None else [{"status": "passed" if passed else "failed"}]
    written.run("r", answer=None if done is None else {"done": done}, evidenceResults=checks)


def test_a_loop_goes_round_until_its_condition_holds() -> None:
    written = looped(field="done")
    round_of(written, done=False)
    assert records(written) == [LoopRound("l", 2)]
    assert starts(written) == ["w"]
    round_of(written, done=True)
    assert records(written) == [LoopPassed("l", 2)]
    assert starts(written) == ["z"]


def test_a_loop_ends_by_evidence_that_may_fail_in_earlier_rounds() -> None:
    written = looped(evidence="passed")
    round_of(written, done=None, passed=False)
    assert records(written) == [LoopRound("l", 2)]
    round_of(written, done=None, passed=True)
    assert records(written) == [LoopPassed("l", 2)]


def test_a_loop_out_of_rounds_waits_and_can_be_given_more_or_left() -> None:
    written = looped(1, field="done")
    round_of(written, done=False)
    assert records(written) == [LoopOutOfRounds("l", 1, "r.done = true did not hold")]
    assert todo(written) == (Park(RunParked("waiting", ("l",))),)
    written.write(RunParked("waiting", ("l",)), LoopContinued("l", rounds=1))
    assert records(written) == [LoopRound("l", 2)]
    round_of(written, done=None)
    assert records(written) == [LoopOutOfRounds("l", 2, "r.done = true can't be read")]
    written.write(LoopContinued("l"))
    assert written.state.loops["l"].outcome == "continued-unmet" and starts(written) == ["z"]


def test_a_failed_step_blocks_its_loop_and_what_is_behind() -> None:
    written = looped(field="done")
    written.run("w", "quota")
    assert statuses(written.state) == {"w": "failed", "r": "blocked", "l": "blocked", "z": "blocked"}


def test_a_stop_starts_nothing_and_follows_what_runs_to_its_end() -> None:
    written = Written(document({"id": "a"}, {"id": "b"}))
    written.pick("a")
    written.write(StopRequested(by="me"))
    assert [type(action) for action in todo(written)] == [TakeOver]
    written.end("a", "cancelled")
    assert todo(written) == (Finish(),)
    assert statuses(written.state) == {"a": "cancelled", "b": "cancelled"}


def test_a_pause_drains_and_parks() -> None:
    written = Written(document({"id": "a"}, {"id": "b", "dependsOn": ["a"]}))
    written.pick("a")
    written.write(PauseRequested(by="me"))
    assert [type(action) for action in todo(written)] == [TakeOver]
    written.end("a")
    assert todo(written) == (Park(RunParked("paused")),)
    written.write(RunParked("paused"), PauseLifted(by="me"))
    assert starts(written) == ["b"]


def test_added_steps_are_run_and_what_is_done_stays_done() -> None:
    written = Written(document({"id": "a"}))
    written.run("a")
    grown = document({"id": "a"}, {"id": "b", "dependsOn": ["a"]})
    written.write(StepsAdded(program=grown, added=("b",)))
    assert starts(written) == ["b"]


@st.composite
def programs(draw: st.DrawFn) -> dict[str, Any]:
    """Programs of up to 8 steps with a gate and a loop, so built that they are valid."""
    count = draw(st.integers(1, 8))
    names = [f"s{number}" for number in range(count)]
    loop_size = draw(st.integers(0, min(3, count)))
    inside = names[:loop_size] if loop_size else []
    has_gate = draw(st.booleans())
    steps: list[dict[str, Any]] = []
    for number, name in enumerate(names):
        earlier = [other for other in names[:number] if (other in inside) == (name in inside)]
        before = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else []
        if inside and name not in inside and draw(st.booleans()):
            before.append("loop")
        if has_gate and name not in inside and number == count - 1 and number:
            before.append("gate")
        step: dict[str, Any] = {"id": name, "dependsOn": before, "answer": TYPED}
        if draw(st.booleans()):
            files = draw(st.lists(st.sampled_from(["x", "y", "z"]), unique=True, max_size=2))
            step |= {"lane": "build", "files": files}
        steps.append(step)
    more: dict[str, Any] = {}
    if inside:
        until = {"step": inside[-1], "field": "done"}
        more["loops"] = [{"id": "loop", "steps": inside, "until": until, "maxRounds": draw(st.integers(1, 3))}]
    if has_gate:
        first = names[loop_size] if loop_size < count else "loop"
        more["gates"] = [{"id": "gate", "dependsOn": [first if first != names[-1] else "loop" if inside else first]}]
        if more["gates"][0]["dependsOn"] == [names[-1]]:
            steps[-1]["dependsOn"] = [name for name in steps[-1]["dependsOn"] if name != "gate"]
    return document(*steps, **more)


KINDS = st.sampled_from(
    [None, None, None, None, "process", "quota", "throttle", "auth", "not-produced", "runtime", "stalled", "cancelled"]
)


@settings(max_examples=150, deadline=None)
@given(programs(), st.integers(1, 4), st.data())
def test_every_program_ends_and_keeps_its_rules(program: dict[str, Any], concurrency: int, data: st.DataObject) -> None:
    assert issues_of(program) == []
    written = Written(program, concurrency=concurrency)
    parks = 0
    for _ in range(500):
        actions = todo(written)
        _check_nothing_comes_by_itself(written)
        if actions == (Finish(),):
            break
        for action in actions:
            if isinstance(action, Record):
                written.write(action.payload)
            elif isinstance(action, Start):
                _check_start(written, action.step)
                how = action.again.how if action.again else None
                written.pick(action.step, pool=data.draw(st.sampled_from(["p", "q"])), retry_how=how)
                _check_together(written, concurrency)
            elif isinstance(action, Park):
                written.write(action.payload)
                parks += 1
                for name in action.payload.waiting_for:
                    written.write(GatePassed(name, how="continued") if name == "gate" else LoopContinued(name))
        if running := [step.id for step in written.state.steps.values() if step.running]:
            name = data.draw(st.sampled_from(running))
            kind = data.draw(KINDS)
            written.end(
                name, kind, answer={"done": data.draw(st.booleans())}, meta={"worked": data.draw(st.booleans())}
            )
        elif not actions:
            moment = next_moment(written.state, now=written.now)
            assert moment is not None, "with nothing at work and nothing to do there is a time to wait for"
            written.now = moment
    else:
        raise AssertionError("the run never ended")
    assert parks <= 2
    assert set(statuses(written.state).values()) <= {"succeeded", "passed", "failed", "blocked", "cancelled"}


def _check_nothing_comes_by_itself(written: Written) -> None:
    """Until the next moment that the scheduler names, only an event changes what is to be done."""
    moment = next_moment(written.state, now=written.now)
    later = written.now + timedelta(days=1) if moment is None else moment - timedelta(microseconds=1)
    assert moment is None or moment > written.now
    assert next_actions(written.state, now=later) == todo(written)


def _check_start(written: Written, name: str) -> None:
    known = statuses(written.state)
    assert known[name] == "pending"
    assert all(known[other] in OVER for other in written.state.plan.waits[name])
    counted = written.state.steps[name].counted
    assert not any(attempt.finished is None or attempt.finished.ok for attempt in counted)


def _check_together(written: Written, concurrency: int) -> None:
    running = [written.state.program.step(step.id) for step in written.state.steps.values() if step.running]
    assert len(running) <= concurrency
    writers = [step for step in running if step.lane != "analyze"]
    for number, one in enumerate(writers):
        for other in writers[number + 1 :]:
            mine, others = set(files_of(one)), set(files_of(other))
            assert mine and others and not mine & others


@settings(max_examples=50, deadline=None)
@given(programs(), st.data())
def test_a_state_is_the_fold_of_its_journal_wherever_it_is_cut(program: dict[str, Any], data: st.DataObject) -> None:
    from bullswarm_core.runs.state import apply, fold

    written = Written(program)
    for _ in range(30):
        for action in todo(written):
            if isinstance(action, Record):
                written.write(action.payload)
            elif isinstance(action, Start):
                written.pick(action.step)
        running = [step.id for step in written.state.steps.values() if step.running]
        if not running:
            break
        written.end(data.draw(st.sampled_from(running)), data.draw(KINDS), answer={"done": True})
    cut = data.draw(st.integers(1, len(written.events)))
    state = fold(written.events[:cut])
    for event in written.events[cut:]:
        state = apply(state, event)
    assert state == written.state
