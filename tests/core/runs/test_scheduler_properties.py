"""What a kernel does next, for random programs driven to their end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.runs.journals import Written, document

from bullswarm_core.program.model import files_of
from bullswarm_core.program.validate import issues_of
from bullswarm_core.runs.events import (
    GatePassed,
    LoopContinued,
)
from bullswarm_core.runs.scheduler import Action, Finish, Park, Record, Start, next_actions, next_moment
from bullswarm_core.runs.status import OVER, statuses

TYPED = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}


def todo(written: Written) -> tuple[Action, ...]:
    return next_actions(written.state, now=written.now)


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
    from bullswarm_core.runs.fold import apply, fold

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
