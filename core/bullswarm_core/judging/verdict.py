"""The one verdict on an attempt, from facts: how it ended, what its stream said, what it left behind.

Never the exit code alone, never the worker's word. Each rule below looks at the whole of the facts and either decides or
passes them on; their order is that of
docs/design/judging.md, "The order of rules".
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast.text import one_line, plain
from bullswarm_core.judging.expected import is_there, missing_words
from bullswarm_core.judging.findings import (
    content_problem,
    counted_denials,
    declared_failure,
    doubt_about,
    ended_by_signal,
    ended_well,
    measured_return,
    notes_on,
)
from bullswarm_core.judging.model import BackAtSource, FailureKind, JudgeInput, Note, StopKind, WorkerClocks
from bullswarm_core.judging.phrases import counted
from bullswarm_core.judging.prose import says_anything
from bullswarm_core.quota.notice import Notice
from bullswarm_core.wire import whole_second

__all__ = (
    "BackAtSource", "FailureKind", "JudgeInput", "Judgement", "Note", "StopKind", "WorkerClocks", "declared_failure", "judge",
)  # fmt: skip

# A why is read in a list of runs: one line, of which the provider's own words may take this much.
_QUOTED = 160
# From here on a span is told in minutes ("no file change for 60 min").
_IN_MINUTES = 120
# A wait that ends within this is no time to tell anybody.
_MOMENT = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an attempt comes to. ``why`` is one line with what happened, its number and the way out.

    ``back_at`` is when the pool can be used again; ``back_at_source`` is ``named`` (by the provider; it may have just
    passed) or ``measured`` (by the pool's meter). ``content_usable_despite_exit``: not ok, but what was left behind passes.
    """

    ok: bool
    why: str
    failure_kind: FailureKind | None = None
    back_at: datetime | None = None
    back_at_source: BackAtSource | None = None
    notes: tuple[Note, ...] = ()
    content_usable_despite_exit: bool = False


@dataclass(frozen=True, slots=True)
class _Finding:
    kind: FailureKind | None
    why: str
    back_at: datetime | None = None
    back_at_source: BackAtSource | None = None


def judge(facts: JudgeInput) -> Judgement:
    """Return the verdict on one attempt; every combination of facts gets exactly one."""
    finding = next(found for rule in _RULES if (found := rule(facts)))
    ok = finding.kind is None
    return Judgement(
        ok=ok,
        why=finding.why,
        failure_kind=finding.kind,
        back_at=finding.back_at,
        back_at_source=finding.back_at_source,
        notes=notes_on(facts, ok=ok),
        content_usable_despite_exit=not ok and _is_usable(facts),
    )


def _stopped(facts: JudgeInput) -> _Finding | None:
    if facts.exit.reason != "stopped":
        return None
    after = f"after {_span(facts.exit.wall_sec)}"
    if facts.stop == "interrupted":
        why = (
            f"interrupted: a signal ended the worker {after}, and nobody had asked for it · what it had written is kept"
        )
        return _Finding("interrupted", why)
    return _Finding(facts.stop, f"{facts.stop}: the worker was stopped on request {after}")


def _never_started(facts: JudgeInput) -> _Finding | None:
    if facts.exit.reason != "never-started":
        return None
    why = _quoted(facts.exit.start_error or "no reason was given")
    return _Finding("process", f"never started: {why} · bullswarm doctor checks the CLI")


def _refused_in_place_of_an_answer(facts: JudgeInput) -> _Finding | None:
    notice, reply = facts.notice, one_line(facts.stream.answer)
    if facts.stream.worked or notice is None or not reply.startswith(notice.line):
        return None
    return _refused(facts)


def _meddled(facts: JudgeInput) -> _Finding | None:
    """Nothing that a worker answers is worth its hand in what runs in the person's own sessions."""
    if not facts.meddled:
        return None
    named = ", ".join(facts.meddled[:3]) + (f" and {len(facts.meddled) - 3} more" if len(facts.meddled) > 3 else "")
    return _Finding(
        "ownership",
        f"your own settings changed while the worker ran: {named} · look at them before you use that CLI again",
    )


def _runs_on(facts: JudgeInput) -> _Finding | None:
    """What is still there can change the work and the person's settings after both were looked at."""
    if not facts.exit.survivors or facts.lane == "analyze":
        return None
    left = counted(facts.exit.survivors, "process", "processes")
    return _Finding(
        "ownership",
        f"{left} of the worker could not be ended · what the worker made may change yet: end them, look, then run again",
    )


def _output_lost(facts: JudgeInput) -> _Finding | None:
    """A disk that refused the output leaves no last word: what was kept may look like an answer and be half of one."""
    ended, stream = facts.exit, facts.stream
    if not ended.capture_error or ended.exit_code not in (0, None) or ended.signal or stream.terminal_error:
        return None
    if stream.terminal and (facts.lane != "analyze" or content_problem(facts) is None):
        return None
    # The file's name is enough: its folder is the run's, and a long path would push the reason out of the line.
    what = _quoted(ended.capture_error.rpartition("/")[2])
    lost = f"output lost: {what} ({counted(ended.dropped_bytes, 'byte is', 'bytes are')} in no file)"
    return _Finding("runtime", f"{lost} · free disk space, then run again")


def _done(facts: JudgeInput) -> _Finding | None:
    if not ended_well(facts) or content_problem(facts) is not None:
        return None
    checked = f"answer checked ({facts.answer.where})" if facts.answer else None
    if facts.lane == "analyze":
        if checked:
            return _Finding(None, checked)
        length = len(plain(facts.stream.answer).strip())
        if not length and facts.wanted is not None and facts.wanted.type == "outward":
            return _Finding(None, "ended well; what an outward step does is not checked")
        return _Finding(None, f"answered in {counted(length, 'character', 'characters')}")
    made, wanted = facts.deliverable, facts.wanted
    assert made is not None, "content_problem passes no build or chore without its deliverable"
    parts = [counted(len(made.changed), "file changed", "files changed")] if made.changed else []
    parts += [counted(len(made.commits), "commit", "commits")] if made.commits else []
    if wanted is not None and not parts:
        parts = [counted(len(wanted.written), "file written", "files written")]
    if wanted is not None and wanted.carried:
        parts.append("done by an earlier attempt of the step")
    return _Finding(None, ", ".join([*parts, checked] if checked else parts))


def _refused(facts: JudgeInput) -> _Finding | None:
    notice = facts.notice
    if notice is None:
        return None
    if notice.kind == "auth":
        return _Finding("auth", _not_let_in(notice.line, by_key=facts.by_key))
    if notice.kind == "model-not-in-plan":
        return _Finding("model-not-in-plan", f"not in plan: {_quoted(notice.line)} · choose a model that the plan has")
    if notice.kind == "quota":
        return _spent(facts, notice)
    full = measured_return(facts, notice, least_pct=100.0)
    if full is not None:
        return _Finding("quota", f"usage limit: the meter is full and the provider says: {_quoted(notice.line)}"
                        f" · back at {whole_second(full)}", full, "measured")  # fmt: skip
    if facts.exit.reason == "wall":
        return None
    source = notice.reset_source if notice.resets_at else None
    waits = notice.resets_at is not None and notice.resets_at - facts.now > _MOMENT
    ending = f"back at {whole_second(notice.resets_at)}" if waits and notice.resets_at else "try again in a moment"
    return _Finding("throttle", f"rate limited: {_quoted(notice.line)} · {ending}", notice.resets_at, source)


def _not_let_in(line: str, *, by_key: bool) -> str:
    if by_key:
        return f"API key refused: {_quoted(line)} · give that CLI a key that its provider accepts, then run again"
    return f"sign-in failed: {_quoted(line)} · sign in with that CLI, then run again"


def _spent(facts: JudgeInput, notice: Notice) -> _Finding:
    back_at: datetime | None = notice.resets_at
    source: BackAtSource | None = "named" if back_at else None
    if back_at is None:
        back_at = measured_return(facts, notice)
        source = "measured" if back_at else None
    ending = f"back at {whole_second(back_at)}" if back_at else "no reset is known; --avoid-pool leaves this pool out"
    return _Finding("quota", f"usage limit: {_quoted(notice.line)} · {ending}", back_at, source)


def _stopped_on_a_limit(facts: JudgeInput) -> _Finding | None:
    if facts.exit.reason != "limit":
        return None
    return _Finding("provider", "stopped on a limit notice that is not in the record any more")


def _clock_ran_out(facts: JudgeInput) -> _Finding | None:
    ended, clocks = facts.exit, facts.clocks
    stopped = "the worker was stopped"
    if ended.reason == "startup":
        span = _span(clocks.startup_sec or ended.wall_sec)
        return _Finding("stalled", f"stalled: no output within {span} of the start, {stopped}")
    if ended.reason == "silence":
        span = _span(clocks.silence_sec or ended.silent_sec or ended.wall_sec)
        return _Finding("stalled", f"stalled: no output for {span}, {stopped}")
    if ended.reason == "no-progress":
        span = _span(clocks.no_progress_sec or ended.wall_sec)
        return _Finding("stalled", f"stalled: no file change for {span}, {stopped}")
    if ended.reason == "wall":
        span = _span(clocks.wall_sec or ended.wall_sec)
        return _Finding("timeout", f"timeout: not done after {span}, {stopped} · --timeout sets the limit")
    return None


def _interrupted(facts: JudgeInput) -> _Finding | None:
    if facts.exit.reason == "lost":
        return _Finding("interrupted", "interrupted: the worker and its keeper are gone and left no exit record"
                        " · what it had written is kept")  # fmt: skip
    name = ended_by_signal(facts.exit)
    return _Finding("interrupted", f"interrupted: ended by {name} · what it had written is kept") if name else None


def _gave_up_on_the_answer(facts: JudgeInput) -> _Finding | None:
    """A CLI that checks the answer itself ends with an error when the worker can't give one that fits."""
    if not facts.answer_given_up or facts.answer is None or facts.answer.ok:
        return None
    words = next((error.text for error in reversed(facts.stream.errors) if error.fatal), "")
    return _Finding("schema", f"the answer does not match its schema: {_quoted(words)} · {facts.answer.where}")


def _provider_failed(facts: JudgeInput) -> _Finding | None:
    stream = facts.stream
    fatal = [error for error in stream.errors if error.fatal and not error.warning]
    if not stream.terminal_error and not (fatal and content_problem(facts) is not None):
        return None
    error = fatal[-1] if fatal else None
    words = (error.text if error else stream.answer).strip() or (error and error.code) or stream.stop_reason
    status = f" (HTTP {error.status})" if error and error.status and str(error.status) not in (words or "") else ""
    return _Finding(
        "provider", f"provider error{status}: {_quoted(words or 'the CLI reported a failure without words')}"
    )


def _denied(facts: JudgeInput) -> _Finding | None:
    denied = counted_denials(facts)
    if not denied or not _is_missing(facts):
        return None
    tools = list(dict.fromkeys(denial.tool for denial in denied))
    named = ", ".join(tools[:5]) + (f" and {len(tools) - 5} more" if len(tools) > 5 else "")
    lacking = missing_words(facts.wanted, facts.deliverable) if facts.wanted else None
    changed = facts.deliverable is not None and facts.deliverable.produced
    missing = lacking or ("no answer was given" if facts.lane == "analyze" or changed else "no file was changed")
    count = counted(max(len(denied), facts.stream.denial_count), "refusal", "refusals")
    first = next((denial for denial in denied if denial.target), None)
    where = f"; the first: {first.tool} {_quoted(first.target)}" if first and first.target else ""
    allow = f"`bullswarm strategy set-provider {facts.pool} --sandbox full`" if facts.pool else "a wider --sandbox"
    return _Finding("denied", f"denied: {named} ({count}{where}) and {missing} · {allow} allows more")


def _failed_process(facts: JudgeInput) -> _Finding | None:
    code = facts.exit.exit_code
    if code == 0 or facts.exit.reason != "exited":
        return None
    last = next((line for line in reversed(facts.exit.stderr_tail.splitlines()) if line.strip()), "")
    words = f": {_quoted(last)}" if last.strip() else ""
    usable = " · what it left behind looks usable" if _is_usable(facts) else ""
    return _Finding("process", f"exit {'unknown' if code is None else code}{words}{usable}")


def _content_missing(facts: JudgeInput) -> _Finding | None:
    problem = content_problem(facts)
    return _Finding(*problem) if problem else None


def _no_last_word(facts: JudgeInput) -> _Finding:
    return _Finding("provider", "the CLI ended without its last word: its final event never came")


_RULES: tuple[Callable[[JudgeInput], _Finding | None], ...] = (
    _stopped,
    _never_started,
    _refused_in_place_of_an_answer,
    _meddled,
    _runs_on,
    _output_lost,
    _done,
    _refused,
    _stopped_on_a_limit,
    _clock_ran_out,
    _interrupted,
    _gave_up_on_the_answer,
    _provider_failed,
    _denied,
    _failed_process,
    _content_missing,
    _no_last_word,
)


def _is_missing(facts: JudgeInput) -> bool:
    if facts.answer is not None and facts.answer.source is None:
        return True
    if facts.lane == "analyze":
        return not says_anything(facts.stream.answer) and not (facts.answer and facts.answer.ok)
    return not is_there(facts.wanted, facts.deliverable)


def _is_usable(facts: JudgeInput) -> bool:
    if content_problem(facts) is not None:
        return False
    return facts.lane != "analyze" or facts.answer is not None or doubt_about(facts.stream.answer) is None


def _quoted(words: str) -> str:
    line = one_line(words)
    return line if len(line) <= _QUOTED else f"{line[: _QUOTED - 1]}…"


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _IN_MINUTES else f"{seconds / 60:.0f} min"
