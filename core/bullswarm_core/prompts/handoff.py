"""What a step's task says of its attempt before: the handoff of a retry, a rerun or a restart.

All of it comes from the journal and the attempt's files, so that a kernel which took the run over writes the same block.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import BullswarmError
from bullswarm_core.program.model import Step, files_of
from bullswarm_core.prompts.attempt_summary import evidence_lines, file_lines, output_line, problem_lines, why_line
from bullswarm_core.prompts.quoting import marked, path, short
from bullswarm_core.runs.attempt_result import AnswerReport, JudgementRecord
from bullswarm_core.runs.events import AttemptPicked
from bullswarm_core.runs.retry import DEFAULT_RETRIES, GATE_KINDS
from bullswarm_core.runs.run_files import AttemptFiles
from bullswarm_core.runs.state import AttemptState, RunState
from bullswarm_core.wire import iso

_EVIDENCE_LINES = 10
_MOST_STAT = 30
# As many as the check of an answer keeps.
_MOST_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class Prior:
    """The attempt that is handed over, and what its files tell: ``said`` are its last response events, one line each.

    ``stream`` is the file of its stream, None where it left none. ``diff_stat`` is what differed when it ended, one line for
    each file, and ``diff`` the file that holds it all.
    """

    attempt: AttemptState
    stream: str | None = None
    said: tuple[str, ...] = ()
    diff: str | None = None
    diff_stat: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The attempt's id within its run: ``build-1``."""
        return f"{self.attempt.picked.step}-{self.attempt.picked.ordinal}"

    @property
    def judgement(self) -> JudgementRecord:
        """What the journal keeps of its verdict."""
        return self.attempt.finished.judgement if self.attempt.finished else JudgementRecord()


def prior_attempt(state: RunState, picked: AttemptPicked) -> AttemptState | None:
    """Return the newest earlier attempt of the present round that did something; None where there is nothing to hand over.

    One that was refused before any work, or whose worker never started, left nothing.
    """
    earlier = [attempt for attempt in state.steps[picked.step].of_this_round if attempt.picked.ordinal < picked.ordinal]
    return next((attempt for attempt in reversed(earlier) if _did_something(attempt)), None)


def handoff(state: RunState, step: Step, picked: AttemptPicked, prior: Prior, *, cwd: str) -> list[str]:
    """Return the block ``## Prior attempt on this step``."""
    within = tuple(files_of(step)) or None
    word = "Files changed" if within is None else "Files changed inside this step's territory"
    return [
        "## Prior attempt on this step",
        "",
        *_head(state, prior.attempt),
        *file_lines(prior.judgement, cwd=cwd, word=word, within=within),
        *_difference(prior),
        output_line(prior.attempt, word="Final output" if _ended_well(prior.attempt) else "Partial output"),
        f"- Stream of events: {path(prior.stream) if prior.stream else 'none'}",
        *(["- The last that it said:", *marked(prior.said)] if prior.said else []),
        *evidence_lines(prior.judgement.evidence_results, tail=_EVIDENCE_LINES),
        *_retry_line(state, step, picked, prior.attempt),
        "Its edits are unverified. Look at them first; keep, fix or revert each of them, and report which you did.",
    ]


def correction(step: Step, prior: Prior, files: AttemptFiles, *, as_file: bool) -> list[str]:
    """Return the errors of an answer that did not match its schema, and where the corrected one goes."""
    finished = prior.attempt.finished
    if finished is None or finished.failure_kind != "schema" or step.answer is None:
        return []
    check = prior.judgement.answer_check or AnswerReport()
    given = check.file or finished.output_file
    return [
        "## Answer to be corrected",
        "",
        "The answer of the prior attempt does not match the schema of this task's answer.",
        f"- What it gave: {path(given) if given else 'nothing that could be kept'}",
        "- Errors:",
        *problem_lines(check.problems, most=_MOST_PROBLEMS),
        f"Write the whole corrected answer into the new file {path(str(files.answer_draft))}; the old one is not read again."
        if as_file
        else "Give the whole corrected answer as your final reply.",
    ]


def _did_something(attempt: AttemptState) -> bool:
    finished = attempt.finished
    if finished is None or attempt.launched is None:
        return False
    never = finished.meta.end_reason == "never-started" or finished.meta.worked is False
    return not never or bool(finished.judgement.changed_files)


def _ended_well(attempt: AttemptState) -> bool:
    return attempt.finished is not None and attempt.finished.meta.end_reason in (None, "exited", "after-terminal")


def _head(state: RunState, attempt: AttemptState) -> list[str]:
    picked, finished = attempt.picked, attempt.finished
    lines = [
        f"- Pool: {picked.pool}",
        f"- Model: {picked.model or f'{picked.pool} connector default'}",
        f"- Started: {iso(attempt.launched_at) if attempt.launched_at else 'never'}",
        f"- Finished: {iso(attempt.finished_at) if attempt.finished_at else 'unknown'}",
        f"- Duration: {_duration(attempt)}",
    ]
    if finished is None or not finished.ok:
        kind = finished.failure_kind if finished else None
        return [*lines, f"- Failure: {kind or 'failed'} — {why_line(attempt)}"]
    why = state.steps[picked.step].reset_why or "rerun"
    return [*lines, f"- It succeeded, and the step begins anew all the same ({why})"]


def _duration(attempt: AttemptState) -> str:
    seconds = attempt.finished.meta.wall_sec if attempt.finished else None
    if seconds is None:
        if attempt.launched_at is None or attempt.finished_at is None:
            return "unknown"
        seconds = (attempt.finished_at - attempt.launched_at).total_seconds()
    return f"{int(seconds) // 60}m{int(seconds) % 60:02d}s"


def _difference(prior: Prior) -> list[str]:
    """Show the diff as it was when the attempt ended: what others changed since is not in it."""
    if not prior.diff_stat:
        return []
    shown: Sequence[str] = prior.diff_stat[:_MOST_STAT]
    more = len(prior.diff_stat) - len(shown)
    return [
        "- Diff when it ended (frozen then; against the last commit, so that uncommitted edits from before are in it, too):",
        *marked(shown),
        *([f"  - and {more} more files"] if more else []),
        *([f"- The whole diff: {path(prior.diff)}"] if prior.diff else []),
    ]


def _retry_line(state: RunState, step: Step, picked: AttemptPicked, prior: AttemptState) -> list[str]:
    finished = prior.finished
    if picked.retry_how != "same-pool" or finished is None or finished.failure_kind not in GATE_KINDS:
        return []
    earlier = [attempt for attempt in state.steps[step.id].counted if attempt.picked.ordinal < picked.ordinal]
    number = 1 + sum(attempt.picked.retry_how in ("same-pool", "another-pool") for attempt in earlier)
    allowed = state.created.options.get("retryAttempts", DEFAULT_RETRIES) if step.retry is None else step.retry
    which = "the one automatic retry" if allowed == 1 else f"automatic retry {number} of {allowed}"
    return [f"- This is {which}: the check that failed is run again, and after the last retry the step goes back."]


# The last three response events, one line each.
_MOST_SAID = 3
_SAID_CHARS = 300
# The last of a stream: some hundred events, read in a few hundredths of a second.
_TAIL_BYTES = 256 * 1024
_MOST_LINES = 400


def read_prior(attempt: AttemptState, files: AttemptFiles, table: Mapping[str, Any]) -> Prior:
    """Gather an attempt for its handoff. ``table`` teaches the events of its CLI; empty for one that prints plain text."""
    judgement = attempt.finished.judgement if attempt.finished else JudgementRecord()
    stream = next((file for file in (files.stream, files.stdout) if file.exists()), None)
    return Prior(
        attempt=attempt,
        stream=str(stream) if stream else None,
        said=last_said(stream, table) if stream else (),
        diff=judgement.diff_file or None,
        diff_stat=judgement.diff_stat,
    )


def last_said(stream: Path, table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the last three texts that the agent said, each as one line of 300 characters at most; nothing if unreadable."""
    lines = _last_lines(stream)
    if table:
        with contextlib.suppress(BullswarmError):
            return tuple(short(text, _SAID_CHARS) for text in _messages(lines, table)[-_MOST_SAID:])
        return ()
    texts = [short(line.decode("utf-8", "replace"), _SAID_CHARS) for line in lines]
    return tuple([text for text in texts if text][-_MOST_SAID:])


def _messages(lines: list[bytes], table: Mapping[str, Any]) -> list[str]:
    """Read the events one by one and note each message of the agent; one that grows from event to event is one message."""
    from bullswarm_core.streams.reader import StreamReader

    reader, said = StreamReader(table), [""]
    for line in lines:
        reader.feed(line + b"\n")
        answer = reader.snapshot().answer.strip()
        if answer and answer not in said[-_MOST_SAID:]:
            said[-1:] = [answer] if answer.startswith(said[-1]) else [said[-1], answer]
    return [text for text in said if text]


def _last_lines(stream: Path) -> list[bytes]:
    from bullswarm_core.process.capture import segments

    tail, cut = b"", False
    try:
        for segment in reversed(segments(stream)):
            with segment.path.open("rb") as file:
                size = file.seek(0, 2)
                start = max(0, size - (_TAIL_BYTES - len(tail)))
                file.seek(start)
                tail = file.read(size - start) + tail
            cut = start > 0 or segment.start > 0
            if len(tail) >= _TAIL_BYTES:
                break
    except OSError:
        return []
    # Where the tail begins in the middle of an event, its rest is none.
    return tail.split(b"\n")[1 if cut else 0 :][-_MOST_LINES:]
