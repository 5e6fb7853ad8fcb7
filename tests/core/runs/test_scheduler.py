"""What a kernel does next, case by case."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.core.runs.journals import Written, document

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
from bullswarm_core.runs.scheduler import Action, Finish, Park, Record, Start, TakeOver, next_actions
from bullswarm_core.runs.status import statuses

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
