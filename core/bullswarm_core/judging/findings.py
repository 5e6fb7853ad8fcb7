"""The single questions that a verdict asks of the facts: did it end well, is the work there, when is the pool back."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from datetime import datetime

from bullswarm_core.answers.answer import AnswerCheck
from bullswarm_core.fast.text import one_line, plain
from bullswarm_core.judging.expected import Wanted, is_there, missing_words
from bullswarm_core.judging.model import FailureKind, JudgeInput, Note
from bullswarm_core.judging.phrases import counted
from bullswarm_core.judging.prose import (
    asks_back,
    content_gate,
    cut_short,
    last_sentence,
    only_announces,
    only_asks,
    says_anything,
    waits_for_itself,
)
from bullswarm_core.quota.notice import Notice
from bullswarm_core.streams.facts import Denial, ExitFacts, StreamFacts

# A meter at 95 % or more on a window still running makes its reset a known one.
_NEARLY_FULL_PCT = 95.0
# A shell reports a child's signal as 128 + its number; Linux has 64 of them.
_SIGNAL_BASE = 128
_MOST_SIGNALS = 64
# An idle CLI used about 1 % of a CPU while it hung, a healthy one 33 %.
_IDLE_SHARE = 0.02
# An answer is the worker's to write; a why is one line.
_QUOTED = 240
_TOO_LARGE = "the tree is too large to be seen whole"


def declared_failure(stream: StreamFacts, ended: ExitFacts) -> bool:
    """Tell whether the stream or the exit declared a failure: only then are sign-in and plan phrases read."""
    fatal = any(error.fatal and not error.warning for error in stream.errors)
    return stream.terminal_error or fatal or ended.exit_code not in (0, None) or ended.signal is not None


def ended_well(facts: JudgeInput) -> bool:
    """Tell whether the attempt came to its own end without reporting a failure.

    A CLI that said its last word and then lingered was only ended by force: its work is done by then. One that
    has a last word and never said it ended well only with an answer after its last tool.
    """
    ended, stream = facts.exit, facts.stream
    if stream.terminal_error:
        return False
    if ended.reason == "exited":
        if ended.exit_code != 0 or ended.signal is not None:
            return False
        answered = _has_answer(facts) or (says_anything(stream.answer) and stream.answered_after_tools)
        return stream.terminal or not stream.event_stream or answered
    return stream.terminal and ended.reason in ("after-terminal", "silence", "no-progress", "wall", "startup", "limit")


def ended_by_signal(ended: ExitFacts) -> str | None:
    """Return the name of the signal that ended the worker, told by the system or by an exit code of 128 + n.

    None where its keeper ended it: the keeper's reason says more.
    """
    if ended.reason != "exited":
        return None
    if ended.signal:
        return ended.signal
    code = ended.exit_code or 0
    number = -code if code < 0 else code - _SIGNAL_BASE
    if not 1 <= number <= _MOST_SIGNALS:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def counted_denials(facts: JudgeInput) -> tuple[Denial, ...]:
    """Return the refused tool calls; a "permission denied" of the system counts only where something held the worker."""
    confined = facts.confined or facts.exit.confinement != "none"
    return tuple(denial for denial in facts.stream.denials if denial.by == "cli" or confined)


def content_problem(facts: JudgeInput) -> tuple[FailureKind, str] | None:
    """Return what is missing from the work itself, or None where the deliverable of its step, else of its lane, is there.

    Build and chore need a changed file or a commit, analyze a reply that is more than an announcement or a question. A typed
    answer has to be valid in every lane, and of an analysis nothing else is asked.
    """
    if cut := cut_short(facts.stream.stop_reason):
        return "provider", f"not finished: {cut}"
    if facts.wanted is not None:
        return _wanted_problem(facts, facts.wanted)
    if facts.answer is None:
        return _analysis_problem(facts) if facts.lane == "analyze" else _work_problem(facts)
    if facts.lane != "analyze":
        return _work_problem(facts) or _answer_problem(facts.answer)
    asked_back = None if facts.answer.ok else _analysis_problem(facts)
    if asked_back is not None and asked_back[0] == "needs-input":
        return asked_back
    return _answer_problem(facts.answer)


def _wanted_problem(facts: JudgeInput, wanted: Wanted) -> tuple[FailureKind, str] | None:
    """Return what is missing of a step's deliverable, and of its typed answer (docs/design/judging.md, "Deliverables")."""
    problem = None
    if wanted.on_disk:
        problem = _work_problem(facts)
    elif wanted.type == "report":
        problem = _report_problem(facts)
    if problem is not None or facts.answer is None:
        return problem
    asked_back = None if facts.answer.ok or wanted.on_disk else _analysis_problem(facts)
    return asked_back if asked_back and asked_back[0] == "needs-input" else _answer_problem(facts.answer)


def _report_problem(facts: JudgeInput) -> tuple[FailureKind, str] | None:
    """Return what is wrong with a report; an empty one was not produced, unless a free pool only gave up."""
    if facts.free or says_anything(plain(facts.stream.answer)):
        return _analysis_problem(facts)
    return "not-produced", "not produced: the final reply is empty"


def _answer_problem(check: AnswerCheck) -> tuple[FailureKind, str] | None:
    if check.ok:
        return None
    first, more = check.problems[0], len(check.problems) - 1
    if not check.checked:
        return "runtime", f"typed answer: {one_line(first.problem)}"
    if check.source is None:
        return "schema", "no answer: the task asks for one that matches a schema, and none was given"
    what = one_line(f"{'' if first.path == '#' else first.path + ': '}{first.problem}")
    also = f" (and {more} more)" if more else ""
    return "schema", f"the answer does not match its schema: {what[:_QUOTED]}{also} · {check.where}"


def _has_answer(facts: JudgeInput) -> bool:
    """Tell whether a typed answer was asked for and is valid."""
    return facts.answer is not None and facts.answer.ok


def _analysis_problem(facts: JudgeInput) -> tuple[FailureKind, str] | None:
    answer = plain(facts.stream.answer).strip()
    if not says_anything(answer):
        return ("provider" if facts.free else "semantic"), "empty output: the worker gave no answer"
    if only_asks(answer):
        return "needs-input", f"needs input: {_last(answer)}"
    if waits_for_itself(answer):
        return "semantic", f"incomplete: the worker ended while waiting for its own background work ({_last(answer)})"
    if only_announces(answer):
        return "semantic", f"announcement without substance: {_last(answer)}"
    if not facts.stream.answered_after_tools and not facts.stream.terminal and facts.stream.event_stream:
        return "semantic", "incomplete: the stream ends in a tool call"
    return None


def _work_problem(facts: JudgeInput) -> tuple[FailureKind, str] | None:
    answer, made = plain(facts.stream.answer).strip(), facts.deliverable
    if made is None:
        return "not-produced", "not produced: the working tree could not be compared, so no change is proven"
    if made.gone:
        return "not-produced", "not produced: the folder is gone, or another one is in its place"
    if is_there(facts.wanted, made):
        if waits_for_itself(answer):
            return (
                "semantic",
                f"incomplete: the worker ended while waiting for its own background work ({_last(answer)})",
            )
        return None
    named = missing_words(facts.wanted, made) if facts.wanted else None
    if answer and asks_back(answer):
        return "needs-input", f"needs input, and {named or 'no file was changed'}: {_last(answer)}"
    if named:
        return "not-produced", f"not produced: {named}"
    others = f" by this worker ({made.unattributed} by others in the same tree)" if made.unattributed else ""
    unseen = f"; {made.unseen or _TOO_LARGE}" if made.truncated else ""
    return "not-produced", f"not produced: no file was changed and no commit was made{others}{unseen}"


def doubt_about(answer: str) -> str | None:
    """Return why ``answer`` looks like a failure and not like an answer; a short answer is no reason."""
    gate = content_gate(answer)
    return None if gate.ok or gate.intent_only else gate.reason


def measured_return(facts: JudgeInput, notice: Notice, *, least_pct: float = _NEARLY_FULL_PCT) -> datetime | None:
    """Return when the pool's own meter says that it is back: the last reset of its full windows that still run.

    A window counts from ``least_pct`` used; when one is wholly spent, those that are only nearly so don't count. Marks of
    earlier refusals and declared figures are no measurements, and a model's own window counts for that model alone.
    """
    model = (facts.model or facts.stream.model or "").lower()
    full = [
        (window.used_pct, window.resets_at)
        for window in facts.windows
        if window.used_pct is not None
        and window.used_pct >= least_pct
        and window.resets_at is not None
        and window.resets_at > facts.now
        and window.source not in ("refusal", "declared")
        and (notice.window is None or window.kind == notice.window)
        and (window.scope is None or window.scope.lower() in model)
    ]
    spent = [resets_at for used, resets_at in full if used >= 100.0]
    return max(spent or [resets_at for _used, resets_at in full], default=None)


def notes_on(facts: JudgeInput, *, ok: bool) -> tuple[Note, ...]:
    """Return what a reader should know beside the verdict."""
    return (*_notes_on_end(facts, ok=ok), *_notes_on_work(facts, ok=ok))


def _notes_on_end(facts: JudgeInput, *, ok: bool) -> list[Note]:
    ended, stream, notes = facts.exit, facts.stream, []
    if ok and any(not error.warning for error in stream.errors):
        notes.append(Note("recovered-stream-error", "the provider reported an error that the worker recovered from"))
    if ok and ended.reason != "exited":
        notes.append(Note("forced_exit", "the CLI said its last word but did not exit, and was ended"))
    if ok and stream.event_stream and not stream.terminal:
        notes.append(Note("no-last-word", "the CLI exited without its final event"))
    if ok and (facts.notice or stream.limits):
        notes.append(Note("limit-noticed", "the provider spoke of a limit, but the work was done"))
    if ended.leftovers_killed:
        notes.append(
            Note(
                "leftovers-killed",
                f"{counted(ended.leftovers_killed, 'process', 'processes')} that the CLI left behind"
                f" {'was' if ended.leftovers_killed == 1 else 'were'} ended",
            )
        )
    if ended.survivors:
        left = counted(ended.survivors, "process", "processes")
        notes.append(Note("survivors", f"{left} of the worker could not be ended; the keeper goes on trying"))
    if ended.reason == "lost":
        notes.append(Note("survivors", "the keeper was killed: a process of the worker that hides its mark may run on"))
    if ended.confinement_why:
        how = "weaker confinement" if ended.confinement != "none" else "no confinement"
        notes.append(Note("weaker-confinement", f"{how}: {one_line(ended.confinement_why)}"))
    if stream.gap_bytes or ended.dropped_bytes:
        lost = max(stream.gap_bytes, ended.dropped_bytes)
        notes.append(Note("capture-cut", f"{counted(lost, 'byte of output was', 'bytes of output were')} not kept"))
    notes += _notes_on_settings(facts)
    idle = ended.cpu_sec is not None and ended.cpu_sec < _IDLE_SHARE * ended.wall_sec
    if ended.reason in ("startup", "silence") and idle:
        notes.append(Note("idle-cpu", f"the CLI was idle: {ended.cpu_sec:.1f} s of CPU in {ended.wall_sec:.0f} s"))
    return notes


def _notes_on_settings(facts: JudgeInput) -> list[Note]:
    notes = []
    if facts.rewritten:
        notes.append(
            Note("settings-rewritten", f"rewritten while the worker ran, same content: {_first_of(facts.rewritten)}")
        )
    if facts.first_files:
        notes.append(Note("first-start-files", f"made by the CLI's first start: {_first_of(facts.first_files)}"))
    if facts.not_compared:
        notes.append(
            Note("settings-not-all-compared", f"not compared before and after: {_first_of(facts.not_compared)}")
        )
    return notes


def _first_of(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more


def _notes_on_work(facts: JudgeInput, *, ok: bool) -> list[Note]:
    stream, made, notes = facts.stream, facts.deliverable, []
    if ok and (denied := counted_denials(facts)):
        tools = ", ".join(dict.fromkeys(denial.tool for denial in denied))
        calls = counted(max(len(denied), stream.denial_count), "tool call was", "tool calls were")
        notes.append(Note("denied", f"{calls} refused: {tools}"))
    if ok and not says_anything(stream.answer):
        notes.append(Note("no-output", "the worker gave no final words"))
    if facts.lane == "analyze" and made is not None and made.changed:
        notes.append(
            Note("analyze-changed-files", f"{counted(len(made.changed), 'file', 'files')} changed in the analyze lane")
        )
    if says_anything(stream.answer) and not stream.answered_after_tools:
        notes.append(
            Note("answer-before-tools", "the last thing that the worker did was a tool call, after its answer")
        )
    if ok and facts.lane == "analyze" and not _has_answer(facts) and (doubt := doubt_about(stream.answer)):
        notes.append(Note("doubtful-answer", doubt))
    if made is not None and made.attribution == "shared" and made.unattributed:
        notes.append(
            Note(
                "attribution-shared",
                f"others changed {counted(made.unattributed, 'thing', 'things')} in the same tree meanwhile",
            )
        )
    if made is not None and made.truncated:
        notes.append(Note("tree-not-all-seen", made.unseen or _TOO_LARGE))
    if made is not None and made.only_ignored:
        notes.append(Note("only-ignored-files", "git ignores every file that changed"))
    if made is not None and made.gone:
        notes.append(Note("folder-gone", "the working folder is gone, or another one is in its place"))
    return notes


def _last(answer: str) -> str:
    return one_line(last_sentence(answer))[:160]
