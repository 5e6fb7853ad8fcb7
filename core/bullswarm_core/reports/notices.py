"""The words for each event of a run: one small function per type. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bullswarm_core.fast.text import clipped, minutes_and_seconds, one_line
from bullswarm_core.program.model import Condition
from bullswarm_core.reports import commands
from bullswarm_core.reports.handback import proof_of
from bullswarm_core.reports.needs_you import detail_lines, head_line, needs_you, option_lines
from bullswarm_core.reports.watch import Moment, Notice
from bullswarm_core.runs.events import (
    AttemptFinished,
    AttemptLaunched,
    AttemptPicked,
    AttemptTakenOver,
    GatePassed,
    GateWaiting,
    KernelStarted,
    LoopContinued,
    LoopOutOfRounds,
    LoopPassed,
    LoopRound,
    PauseLifted,
    PauseRequested,
    RunCreated,
    RunFinished,
    RunParked,
    RunReopened,
    SteeringAdded,
    StepAccepted,
    StepReset,
    StepsAdded,
    StepUnplaced,
    StopRequested,
)
from bullswarm_core.runs.retry import NOT_A_FAILURE
from bullswarm_core.runs.status import holds, retry_of

_MOST_WHY = 160
_RETRY_WORDS = {
    "another-pool": "tried again on another pool",
    "same-pool": "tried again there, failure attached",
    "back-off": "tried again there after a pause",
    "re-pick": "tried on another pool",
    "anew": "begins anew",
}
_HOW_WORDS = {
    "another-pool": "handoff attached",
    "same-pool": "failure attached",
    "back-off": "after a rate-limit backoff",
}


def tell(moment: Moment) -> Sequence[Notice]:
    """Return what a watcher is told of an event: mostly one notice, none for an event that says nothing to people."""
    payload = moment.event.payload
    if payload is None:
        return [moment.notice("unknown", f"· {one_line(moment.event.type)}", notable=False)]
    return _WORDS[type(payload)](moment, payload)


def _created(moment: Moment, said: RunCreated) -> Sequence[Notice]:
    return [moment.notice("created", f"· run {said.short_id} asked for · {_short(said.goal)}", notable=False)]


def _kernel(moment: Moment, said: KernelStarted) -> Sequence[Notice]:
    words = "a new kernel goes on with the run" if said.resumed else "the kernel has started"
    return [moment.notice("kernel", f"· {words}", notable=said.resumed, facts={"resumed": said.resumed})]


def _picked(moment: Moment, said: AttemptPicked) -> Sequence[Notice]:
    line = f"· {said.step} picked {said.pool} · {_short(said.reason)}"
    return [moment.notice("picked", line, about=said.step, notable=False, facts=_attempt_facts(said))]


def _launched(moment: Moment, said: AttemptLaunched) -> Sequence[Notice]:
    picked = _picked_of(moment, said.step, said.ordinal)
    number = f" try {said.ordinal}" if said.ordinal > 1 else ""
    how = _HOW_WORDS.get(picked.retry_how or "")
    line = _joined(f"▶ {said.step}{number}", picked.pool, _model(picked), f"{picked.lane}/{picked.effort}", how)
    return [moment.notice("started", line, about=said.step, facts=_attempt_facts(picked))]


def _taken_over(moment: Moment, said: AttemptTakenOver) -> Sequence[Notice]:
    words = {
        "re-attached": "its worker lives: followed on",
        "harvested": "its worker had ended: read out",
        "lost": "its worker and its record are gone",
    }.get(said.how, said.how)
    line = f"· {said.step} taken over · {words}"
    return [moment.notice("taken-over", line, about=said.step, facts={"how": said.how})]


def _finished(moment: Moment, said: AttemptFinished) -> Sequence[Notice]:
    picked = _picked_of(moment, said.step, said.ordinal)
    facts = {
        **_attempt_facts(picked),
        "ok": said.ok,
        "failureKind": said.failure_kind,
        "why": said.why,
        "durationSec": said.meta.wall_sec,
        "outFile": said.output_file,
    }
    step = moment.after.steps[said.step]
    spent = _spent(said)
    if picked.generation != step.generation or said.failure_kind in NOT_A_FAILURE:
        line = f"· {said.step} stopped · {_short(said.why)}"
        return [moment.notice("stopped", line, about=said.step, facts=facts)]
    if said.ok:
        return _done(moment, said, picked, facts)
    if said.failure_kind == "cancelled":
        line = _joined(f"✗ {said.step} cancelled", spent, _short(said.why))
        return [moment.notice("cancelled", line, about=said.step, facts=facts)]
    again = retry_of(moment.after, step)
    if again is not None:
        line = _joined(f"↺ {said.step} failed ({said.failure_kind})", picked.pool, spent, _RETRY_WORDS[again.how])
        return [moment.notice("retrying", line, about=said.step, details=(_why(said.why),), facts=facts)]
    if moment.after.is_single or moment.after.stop_requested is not None:
        line = _joined(f"✗ {said.step} failed ({said.failure_kind})", picked.pool, spent)
        return [moment.notice("failed", line, about=said.step, details=(_why(said.why),), facts=facts)]
    limit = f"⚠ {said.step} usage limit on {picked.pool} · back to you" if said.failure_kind == "quota" else None
    return [_needs_you(moment, said.step, before=limit)]


def _done(moment: Moment, said: AttemptFinished, picked: AttemptPicked, facts: dict[str, Any]) -> Sequence[Notice]:
    proof = proof_of(moment.after, moment.after.steps[said.step])
    early = said.judgement.returned_early
    count = said.judgement.changed_file_count or len(said.judgement.changed_files)
    files = f"{count} file{'' if count == 1 else 's'}" if count else None
    line = _joined(f"✓ {said.step} done", picked.pool, _spent(said), files, proof)
    found = [moment.notice("done", line, about=said.step, facts={**facts, "proof": proof, "files": count})]
    if early is not None and early.count:
        line = f"◐ {said.step} returned early · {early.count} not done"
        items = tuple(f"  - {_short(item)}" for item in early.items[:3])
        found.append(moment.notice("returned-early", line, about=said.step, details=items, facts=early.to_wire()))
    return found


def _unplaced(moment: Moment, said: StepUnplaced) -> Sequence[Notice]:
    if moment.after.is_single:
        line = f"✗ {said.step} no pool"
        return [moment.notice("failed", line, about=said.step, details=(_why(said.why),), facts={"why": said.why})]
    return [_needs_you(moment, said.step)]


def _needs_you(moment: Moment, step: str, *, before: str | None = None) -> Notice:
    document = needs_you(moment.after, moment.after.steps[step], folder=moment.folder)
    head, details = head_line(document), detail_lines(document)
    if before is not None:
        head, details = before, [head, *details]
    return moment.notice(
        "needs-you", head, about=step, trouble=True, wakes=True, details=tuple(details),
        options=tuple(option_lines(document)), facts=document,
    )  # fmt: skip


def _stop(moment: Moment, said: StopRequested) -> Sequence[Notice]:
    return [moment.notice("stopping", f"■ stopping · asked by {_short(said.by)}", facts={"by": said.by})]


def _reset(moment: Moment, said: StepReset) -> Sequence[Notice]:
    where = f"on {said.pool}" if said.pool else f"not on {', '.join(said.avoid)}" if said.avoid else None
    line = _joined(f"↺ {said.step} begins anew", said.why, where, _by(said.by))
    facts = {"why": said.why, "avoid": list(said.avoid), "pool": said.pool, "by": said.by}
    return [moment.notice("reset", line, about=said.step, facts=facts)]


def _accepted(moment: Moment, said: StepAccepted) -> Sequence[Notice]:
    line = _joined(f"✓ {said.step} accepted as it is", _short(said.reason), _by(said.by))
    return [moment.notice("accepted", line, about=said.step, facts={"reason": said.reason, "by": said.by})]


def _gate_waiting(moment: Moment, said: GateWaiting) -> Sequence[Notice]:
    gate = next(gate for gate in moment.after.program.gates if gate.id == said.gate)
    command = commands.go_on(moment.after.created.short_id, said.gate)
    note = _short(gate.note) if gate.note else None
    line = _joined(f"⧖ gate {said.gate} waiting", note, f"continue: {command}")
    facts = {"note": gate.note, "why": said.why, "options": {"continue": command}}
    details = (_why(said.why),) if said.why else ()
    return [
        moment.notice(
            "gate-waiting", line, about=said.gate, trouble=True, wakes=True, details=details, facts=facts,
        )
    ]  # fmt: skip


def _gate_passed(moment: Moment, said: GatePassed) -> Sequence[Notice]:
    how = "continued by the caller" if said.how == "continued" else "its condition does not hold"
    line = f"✓ gate {said.gate} passed · {how}"
    return [moment.notice("gate-passed", line, about=said.gate, facts={"how": said.how, "by": said.by})]


def _loop_round(moment: Moment, said: LoopRound) -> Sequence[Notice]:
    loop = moment.after.program.loop(said.loop)
    most = moment.after.loops[said.loop].max_rounds
    missed = _condition_missed(moment, loop.until)
    line = f"↻ loop {said.loop} round {said.round} of {most} · {missed}"
    facts = {"round": said.round, "maxRounds": most, "until": loop.until.shown}
    return [moment.notice("loop-round", line, about=said.loop, trouble=True, facts=facts)]


def _loop_passed(moment: Moment, said: LoopPassed) -> Sequence[Notice]:
    loop, most = moment.after.program.loop(said.loop), moment.after.loops[said.loop].max_rounds
    line = f"✓ loop {said.loop} passed in round {said.round} of {most} · {loop.until.shown}"
    facts = {"round": said.round, "maxRounds": most, "until": loop.until.shown}
    return [moment.notice("loop-passed", line, about=said.loop, trouble=True, facts=facts)]


def _loop_out(moment: Moment, said: LoopOutOfRounds) -> Sequence[Notice]:
    loop, most = moment.after.program.loop(said.loop), moment.after.loops[said.loop].max_rounds
    command = commands.go_on(moment.after.created.short_id, said.loop, rounds=1)
    missed = _condition_missed(moment, loop.until)
    line = f"⧖ loop {said.loop} out of rounds ({said.round} of {most}) · {missed} · continue: {command}"
    facts = {
        "round": said.round, "maxRounds": most, "until": loop.until.shown, "why": said.why,
        "options": {"continue": command, "goOnUnmet": commands.go_on(moment.after.created.short_id, said.loop)},
    }  # fmt: skip
    details = (_why(said.why),) if said.why else ()
    return [
        moment.notice(
            "loop-out-of-rounds", line, about=said.loop, trouble=True, wakes=True, details=details, facts=facts
        )
    ]


def _loop_continued(moment: Moment, said: LoopContinued) -> Sequence[Notice]:
    how = f"for {said.rounds} more round{'' if said.rounds == 1 else 's'}" if said.rounds else "although it was not met"
    line = f"→ loop {said.loop} continued by the caller {how}"
    return [moment.notice("loop-continued", line, about=said.loop, facts={"rounds": said.rounds, "by": said.by})]


def _steps_added(moment: Moment, said: StepsAdded) -> Sequence[Notice]:
    line = _joined(f"+ added {', '.join(said.added)}", _by(said.by))
    return [moment.notice("added", line, facts={"added": list(said.added), "by": said.by})]


def _steering(moment: Moment, said: SteeringAdded) -> Sequence[Notice]:
    line = f"✎ message{f' from {_short(said.by)}' if said.by else ''}: {one_line(said.message)}"
    return [
        moment.notice("steering", line, trouble=True, wakes=True, facts={"message": said.message, "by": said.by})
    ]  # fmt: skip


def _pause(moment: Moment, said: PauseRequested) -> Sequence[Notice]:
    how = "what runs is stopped" if said.at_once else "what runs is let finish"
    line = _joined(f"⧖ pausing · {how}", _by(said.by), f"go on: {commands.resume(moment.after.created.short_id)}")
    facts = {"atOnce": said.at_once, "by": said.by}
    return [moment.notice("pausing", line, trouble=True, wakes=True, facts=facts)]


def _pause_lifted(moment: Moment, said: PauseLifted) -> Sequence[Notice]:
    return [moment.notice("pause-lifted", _joined("→ the run goes on", _by(said.by)), facts={"by": said.by})]


def _parked(moment: Moment, said: RunParked) -> Sequence[Notice]:
    at = f" for you at {', '.join(said.waiting_for)}" if said.waiting_for else ""
    facts = {"reason": said.reason, "waitingFor": list(said.waiting_for)}
    return [moment.notice("parked", f"· the run is {said.reason}{at}", notable=False, facts=facts)]


def _reopened(moment: Moment, said: RunReopened) -> Sequence[Notice]:
    line = _joined("↺ the run has work again", _short(said.why), _by(said.by))
    return [moment.notice("reopened", line, facts={"why": said.why, "by": said.by})]


def _run_finished(moment: Moment, said: RunFinished) -> Sequence[Notice]:
    return [
        moment.notice("ended", f"· the run has ended: {said.outcome}", notable=False, facts={"outcome": said.outcome})
    ]


def _condition_missed(moment: Moment, until: Condition) -> str:
    """Say what the condition read; a new round has taken the answer away, so that the state before the event is asked."""
    state = moment.before if moment.before is not None else moment.after
    read = holds(state, until)
    return f"{until.shown} {'could not be read' if read is None else 'did not hold'}"


def _picked_of(moment: Moment, step: str, ordinal: int) -> AttemptPicked:
    attempts = moment.after.steps[step].attempts
    return next(attempt.picked for attempt in attempts if attempt.picked.ordinal == ordinal)


def _attempt_facts(picked: AttemptPicked) -> dict[str, Any]:
    return {
        "attempt": f"{picked.step}-{picked.ordinal}",
        "pool": picked.pool,
        "model": picked.model,
        "lane": picked.lane,
        "effort": picked.effort,
        "retryHow": picked.retry_how,
    }


def _model(picked: AttemptPicked) -> str | None:
    return clipped(one_line(picked.model), 40) if picked.model else None


def _spent(said: AttemptFinished) -> str | None:
    seconds = said.meta.wall_sec
    return None if seconds is None else minutes_and_seconds(seconds)


def _why(text: str) -> str:
    return f"  why       {_short(text)}"


def _short(text: str) -> str:
    return clipped(one_line(text), _MOST_WHY)


def _by(by: str | None) -> str | None:
    return f"by {_short(by)}" if by else None


def _joined(*parts: str | None) -> str:
    return " · ".join(part for part in parts if part)


_WORDS: Mapping[type[Any], Callable[[Moment, Any], Sequence[Notice]]] = {
    RunCreated: _created,
    KernelStarted: _kernel,
    AttemptPicked: _picked,
    AttemptLaunched: _launched,
    AttemptTakenOver: _taken_over,
    AttemptFinished: _finished,
    StepUnplaced: _unplaced,
    StopRequested: _stop,
    StepReset: _reset,
    StepAccepted: _accepted,
    GateWaiting: _gate_waiting,
    GatePassed: _gate_passed,
    LoopRound: _loop_round,
    LoopPassed: _loop_passed,
    LoopOutOfRounds: _loop_out,
    LoopContinued: _loop_continued,
    StepsAdded: _steps_added,
    SteeringAdded: _steering,
    PauseRequested: _pause,
    PauseLifted: _pause_lifted,
    RunParked: _parked,
    RunReopened: _reopened,
    RunFinished: _run_finished,
}
