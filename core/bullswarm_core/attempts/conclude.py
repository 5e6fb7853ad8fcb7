"""From the end of an attempt to its verdict: gather the facts, have them judged, and put the answer where people find it.

The diff of what an attempt left is written once, when it ends, so that no later edit of somebody else is taken for its work.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from bullswarm_core._dataclasses import dataclass, replace
from bullswarm_core.answers.answer import validator
from bullswarm_core.attempts.collect_answer import Harvest, harvest
from bullswarm_core.attempts.conclusion import Conclusion
from bullswarm_core.attempts.produced import Produced, Tree, produced, siblings_wrote
from bullswarm_core.dispatch.services import Services
from bullswarm_core.errors import StateError, StorageError
from bullswarm_core.judging.error_channel import with_channel
from bullswarm_core.judging.findings import declared_failure
from bullswarm_core.judging.limits import Reader, notice_of
from bullswarm_core.judging.model import JudgeInput, StopKind
from bullswarm_core.judging.prose import says_anything
from bullswarm_core.judging.reset_times import DEFAULT_HORIZON
from bullswarm_core.judging.verdict import Judgement, judge
from bullswarm_core.launch.state_folders import Findings, findings
from bullswarm_core.launch.tamper import changed as changed_settings
from bullswarm_core.meters.after_attempt import keep_attempt_reading
from bullswarm_core.pools.connector import PoolProfile, Signatures
from bullswarm_core.pools.launch_rules import StructuredOutput
from bullswarm_core.pools.model import Lane, Window
from bullswarm_core.process.child import run_child
from bullswarm_core.program.model import Step
from bullswarm_core.quota.notice import Notice
from bullswarm_core.quota.reading import load_reading
from bullswarm_core.quota.refusals import note_plan_refusal, note_refusal
from bullswarm_core.reports.verdict import EXCERPT_BYTES
from bullswarm_core.runs.attempt_result import LaunchRecord
from bullswarm_core.runs.events import AttemptPicked, RunCreated
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.run_files import AttemptFiles
from bullswarm_core.runs.state import AttemptState, RunState
from bullswarm_core.runs.task import Task
from bullswarm_core.store.home import read_json, write_bytes_atomic
from bullswarm_core.streams.facts import Denial, ExitFacts, StreamFacts
from bullswarm_core.streams.reader import stderr_denials, with_stderr
from bullswarm_core.streams.table import compile_table
from bullswarm_core.trees.git import GitTree, RunChild
from bullswarm_core.trees.snapshot import DeliverableFacts, attribute
from bullswarm_core.wire import iso, to_wire

# Every path that a worker changed is in git; the verdict names the first of them and counts the rest.
_NAMED_FILES = 100
_STDERR_SHOWN = 2000
_MONTH = timedelta(days=31)


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that has ended, with all that its kernel knows of it. ``launch`` is what the journal kept of its start.

    ``state`` is the run as it was when this kernel came to the attempt.

    ``step`` is None for a `run`; ``earlier`` are the attempts of the step that count with this one.
    """

    services: Services
    connection: sqlite3.Connection
    state: RunState
    task: Task
    picked: AttemptPicked
    files: AttemptFiles
    profile: PoolProfile | None
    exit: ExitFacts
    stream: StreamFacts
    notice: Notice | None
    launch: LaunchRecord
    started_at: datetime
    stop: StopKind = "cancelled"
    step: Step | None = None
    earlier: tuple[AttemptState, ...] = ()

    @property
    def created(self) -> RunCreated:
        """What the run was asked for as."""
        return self.state.created

    @property
    def signatures(self) -> Signatures:
        """The phrases by which this CLI's provider refuses."""
        return self.profile.connector.signatures if self.profile else Signatures()


def conclude(ended: Ended) -> Conclusion:
    """Judge an attempt and write its output file; an answer that the disk refuses is a failure of ours, and said so.

    Nothing is written into the database.
    """
    now = ended.services.now()
    stream = _whole_stream(ended)
    failed = declared_failure(stream, ended.exit)
    _keep_reading(ended, stream, now)
    reading = load_reading(ended.services.home, ended.picked.pool, now=now)
    reader = Reader(
        written_at=now, signatures=ended.signatures, zone=UTC, horizon=_horizon(reading.windows), failed=failed
    )
    notice = ended.notice or notice_of(stream, reader)
    settings = _state_findings(ended)
    made = _produced(ended, stream)
    answer = _answer(ended, stream)
    facts = JudgeInput(
        lane=cast(Lane, ended.picked.lane),
        exit=ended.exit,
        stream=stream,
        deliverable=made.judged,
        wanted=made.wanted,
        notice=notice,
        windows=reading.windows,
        model=ended.picked.model,
        free=ended.picked.free,
        clocks=ended.launch.clocks(),
        confined=ended.launch.confinement != "none",
        pool=ended.picked.pool,
        by_key=ended.launch.billing == "api-key",
        stop=ended.stop,
        meddled=_changed_settings(ended, settings),
        rewritten=settings.rewritten,
        first_files=settings.first_files,
        not_compared=settings.not_compared,
        answer=answer.check if answer else None,
        answer_given_up=_gave_up(ended, stream),
        now=now,
    )
    judgement = judge(facts)
    if judgement.failure_kind == "quota":
        judgement = _after_limit(ended, facts)
    if judgement.failure_kind == "model-not-in-plan" and notice is not None:
        note_plan_refusal(ended.services.home, ended.picked.pool, ended.picked.model, notice.line, now=now)
    output = None
    try:
        output = _write_output(ended, stream)
    except StorageError as error:
        judgement = _not_written(ended, judgement, error)
    return Conclusion(
        judgement=judgement,
        meta=_meta(ended, stream, output),
        output_file=output,
        parts=_parts(ended, stream, made.own) | _answer_parts(answer) | _diff_parts(ended, made.own) | made.parts(),
        edited=_edited(ended, stream, made.own),
        notice=notice,
    )


def _state_findings(ended: Ended) -> Findings:
    """Compare the CLI's state folders with the listing from before the start; nothing for an attempt that has none."""
    try:
        before = read_json(ended.files.state_before)
    except StateError:
        return Findings(changed=(f"{ended.files.state_before} (unreadable)",))
    return findings(before) if before else Findings()


def _changed_settings(ended: Ended, settings: Findings) -> tuple[str, ...]:
    """Return the changed paths of the person's settings: files by name, and a guarded folder where none in it has one."""
    guarded = changed_settings(ended.launch.guarded)
    first = [path for path in settings.first_files if any(_is_in(path, place) for place in guarded)]
    named = (*settings.changed, *first)
    return (*named, *(place for place in guarded if not any(_is_in(path, place) for path in named)))


def _is_in(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def _after_limit(ended: Ended, facts: JudgeInput) -> Judgement:
    """Have the meter read at once and judge by what it tells of the reset; mark the pool if the notice knows one.

    A pool that can't be read counts as full until its reset, if that reset is named or measured.
    """
    services, pool = ended.services, ended.picked.pool
    services.read_meter(pool)
    now = services.now()
    judgement = judge(replace(facts, windows=load_reading(services.home, pool, now=now).windows, now=now))
    if facts.notice is not None:
        note_refusal(services.home, pool, facts.notice, now=now, model=ended.picked.model)
    return judgement


def notice_reader(profile: PoolProfile, *, written_at: datetime) -> Reader:
    """Return how a running attempt's notices are read: nothing counts as failed before the end."""
    return Reader(written_at=written_at, signatures=profile.connector.signatures, zone=UTC)


def _keep_reading(ended: Ended, stream: StreamFacts, now: datetime) -> None:
    if ended.profile is not None and (file := _stream_file(ended)) is not None:
        services = ended.services
        keep_attempt_reading(
            services.home,
            ended.profile,
            stream_file=file,
            stream=stream,
            ended=ended.exit,
            environ=services.environ,
            now=now,
        )


def _horizon(windows: tuple[Window, ...]) -> timedelta:
    """Say how far ahead a reset may lie: a pool with a monthly window may name one weeks away."""
    return _MONTH if any(window.kind == "monthly" for window in windows) else DEFAULT_HORIZON


def _whole_stream(ended: Ended) -> StreamFacts:
    """Add what the provider's own records and stderr tell that the stream leaves out."""
    stream, stderr = ended.stream, ended.exit.stderr_tail
    more = getattr(ended.profile.provider, "more_denials", None) if ended.profile else None
    if more is not None and ended.profile is not None:
        stream = _with_denials(stream, more(ended.profile, stream, ended.exit))
    if ended.profile is not None and (table := ended.profile.connector.stream_table()) and stderr:
        told = {denial.reason.strip() for denial in stream.denials}
        spoken = stderr_denials(stderr, compile_table(table))
        stream = _with_denials(stream, tuple(denial for denial in spoken if denial.reason not in told))
    return with_channel(with_stderr(stream, stderr), stderr_tail=stderr)


def _with_denials(stream: StreamFacts, more: tuple[Denial, ...]) -> StreamFacts:
    return replace(stream, denials=stream.denials + more, denial_count=stream.denial_count + len(more))


def _produced(ended: Ended, stream: StreamFacts) -> Produced:
    journal, picked, run_id = Journal(ended.connection), ended.picked, ended.created.run_id

    def others_since(since: datetime) -> bool:
        # A writing step without files runs alone among the writers of its run; one that only reads runs beside any.
        beside = ended.step is not None and (ended.step.files or picked.lane == "analyze")
        return journal.others_wrote(picked.tree, run_id=run_id, since=since) or bool(
            beside and siblings_wrote(journal.read_on(ended.state), picked.step, tree=picked.tree, since=since)
        )

    tree = Tree(ended.task.cwd, ended.services, others_since, stream.edits)
    return produced(tree, ended.files, step=ended.step, earlier=ended.earlier, started_at=ended.started_at)


def _edited(ended: Ended, stream: StreamFacts, own: DeliverableFacts | None) -> tuple[str, ...]:
    """Return the changed files that are surely the worker's work, and no by-product of a tool that it ran.

    These are the files that it says it edited; of a CLI that doesn't say, those that were there before.
    """
    if ended.step is None or ended.picked.lane == "analyze" or own is None:
        return ()
    return attribute(own, cwd=ended.task.cwd, overlapped=True, edits=stream.edits).changed or own.modified


def _answer(ended: Ended, stream: StreamFacts) -> Harvest | None:
    """Find and check the typed answer, where the step asks for one and a worker was there to give it."""
    schema = ended.task.answer
    if schema is None or ended.exit.reason == "never-started":
        return None
    return harvest(
        schema,
        lane=ended.picked.lane,
        files=ended.files,
        stream=stream,
        structured=_structured(ended),
        validate=validator(run_child, environ=ended.services.environ),
    )


def _structured(ended: Ended) -> StructuredOutput | None:
    """Return how this CLI was given the schema of the answer, None where it was not."""
    if ended.profile is None or not ended.launch.structured_output:
        return None
    return ended.profile.connector.launch.structured_output


def _gave_up(ended: Ended, stream: StreamFacts) -> bool:
    rule = _structured(ended)
    return rule is not None and any(error.fatal and error.code in rule.gave_up for error in stream.errors)


def _answer_parts(answer: Harvest | None) -> dict[str, Any]:
    return {} if answer is None else {"answer": answer.value, "answerCheck": to_wire(answer.check)}


def _diff_parts(ended: Ended, deliverable: DeliverableFacts | None) -> dict[str, Any]:
    """Freeze the diff of a writer's step, for whoever goes on with its work; a disk that refuses it costs nothing else."""
    if ended.created.kind == "run" or ended.picked.lane == "analyze" or deliverable is None:
        return {}
    try:
        environ = dict(ended.services.environ)
        frozen = freeze_diff(ended.files, deliverable, cwd=ended.task.cwd, run=run_child, environ=environ)
    except StorageError:
        return {}
    return {"diffStat": list(frozen.stat), "diffFile": frozen.file}


def _write_output(ended: Ended, stream: StreamFacts) -> str | None:
    """The output file holds the final answer; without one, nothing, so that an old file is never taken for an answer."""
    if not says_anything(stream.answer):
        return None
    write_bytes_atomic(ended.files.output, stream.answer.encode("utf-8", "surrogateescape"))
    return str(ended.files.output)


def _not_written(ended: Ended, judgement: Judgement, error: StorageError) -> Judgement:
    """Say that the answer is in no file of its own; the lines in which the worker gave it are kept."""
    return replace(
        judgement,
        ok=False,
        failure_kind="runtime" if judgement.ok else judgement.failure_kind,
        why=f"{error} · the answer stands in {_stream_file(ended)}" if judgement.ok else f"{judgement.why} · {error}",
        content_usable_despite_exit=judgement.ok or judgement.content_usable_despite_exit,
    )


def _stream_file(ended: Ended) -> Path | None:
    return next((path for path in (ended.files.stream, ended.files.stdout) if path.exists()), None)


def _meta(ended: Ended, stream: StreamFacts, output: str | None) -> dict[str, Any]:
    exit_, files, stream_file = ended.exit, ended.files, _stream_file(ended)
    return {
        "pool": ended.picked.pool,
        "model": stream.model or ended.picked.model,
        "sessionId": stream.session_id,
        "endReason": exit_.reason,
        "exitCode": exit_.exit_code,
        "signal": exit_.signal,
        "timedOut": exit_.reason == "wall",
        "stalled": exit_.reason in ("startup", "silence", "no-progress"),
        "cancelled": exit_.reason == "stopped" and ended.stop != "interrupted",
        "forcedExit": exit_.reason == "after-terminal",
        # With its keeper dead nobody knows how long it worked, and no rate may be learned from a zero.
        "wallSec": None if exit_.reason == "lost" else round(exit_.wall_sec, 3),
        "silentSec": exit_.silent_sec,
        "cpuSec": exit_.cpu_sec,
        "startedAt": iso(exit_.started_at) if exit_.started_at else None,
        "endedAt": iso(exit_.ended_at) if exit_.ended_at else None,
        "outBytes": files.output.stat().st_size if output else 0,
        "streamFile": str(stream_file) if stream_file else None,
        "stderrFile": str(files.stderr) if files.stderr.exists() else None,
        "stderrTail": exit_.stderr_tail[-_STDERR_SHOWN:],
        "usage": to_wire(stream.tokens) if stream.tokens else None,
        "tokenSource": "provider-reported" if stream.tokens else "unknown",
        "costUsd": stream.cost_usd,
        "turns": stream.turns,
        # A refusal before any work is no try of it.
        "worked": stream.worked and not _silent(stream),
        "toolCalls": stream.tool_calls,
        "leftoversKilled": exit_.leftovers_killed,
        "survivors": exit_.survivors,
        "confinement": exit_.confinement if exit_.confinement != "none" else ended.launch.confinement,
        "capture": {
            "outputBytes": exit_.output_bytes,
            "droppedBytes": exit_.dropped_bytes,
            "error": exit_.capture_error or None,
            "lines": stream.lines,
            "badLines": stream.bad_lines,
            "longLines": stream.long_lines,
            "duplicateLines": stream.duplicate_lines,
            "gapBytes": stream.gap_bytes,
        },
    }


def _silent(stream: StreamFacts) -> bool:
    """Tell whether a CLI that reports what it does reported nothing done: no answer, no tool and no tokens.

    Codex, for one, says after a refusal only that its turn failed, and leaves its tokens out.
    """
    told = stream.event_stream and stream.lines > stream.bad_lines
    return told and not (stream.tool_calls or stream.tokens or stream.openings or says_anything(stream.answer))


def _parts(ended: Ended, stream: StreamFacts, deliverable: DeliverableFacts | None) -> dict[str, Any]:
    changed = deliverable.changed if deliverable else ()
    return {
        "excerpt": stream.answer.encode("utf-8", "replace")[:EXCERPT_BYTES].decode("utf-8", "ignore"),
        "answerSource": stream.answer_source,
        "changedFiles": list(changed[:_NAMED_FILES]),
        "changedFileCount": len(changed),
        "commits": list(deliverable.commits) if deliverable else [],
        "attribution": deliverable.attribution if deliverable else "own",
        "denied": to_wire(stream.denials),
        "launchNotes": list(ended.launch.notes),
    }


# A diff that somebody still reads; the files themselves stay where they are.
_MOST_FILES = 200
_MOST_PATCH_BYTES = 1024 * 1024
_MOST_NEW_FILE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class DiffSnapshot:
    """``stat`` is one line for each file (``src/a.py +12 -3``); ``file`` holds the diff, None where there is none to show."""

    stat: tuple[str, ...] = ()
    file: str | None = None


def freeze_diff(
    files: AttemptFiles, facts: DeliverableFacts, *, cwd: str, run: RunChild, environ: Mapping[str, str]
) -> DiffSnapshot:
    """Write the attempt's diff against the commit from before it, and return what it comes to.

    Files that git doesn't know are shown whole where the attempt made them; of others only the name is told. Raises
    StorageError when the disk refuses the diff.
    """
    names = facts.changed[:_MOST_FILES]
    if not names:
        return DiffSnapshot()
    known, patch = _of_git(files, names, cwd=cwd, run=run, environ=environ)
    pieces, stat_lines = [patch], []
    for name in names:
        if name in known:
            stat_lines.append(f"{name} {known[name]}")
            continue
        text = _text_of(Path(cwd, name)) if name in facts.created else None
        what = "deleted" if name in facts.deleted else "new" if name in facts.created else "changed"
        stat_lines.append(f"{name} {what}" if text is None else f"{name} new +{len(text.splitlines())}")
        pieces.append(b"" if text is None else _as_new(name, text))
    whole = b"".join(pieces)[:_MOST_PATCH_BYTES]
    if not whole:
        return DiffSnapshot(tuple(stat_lines))
    write_bytes_atomic(files.diff, whole)
    return DiffSnapshot(tuple(stat_lines), str(files.diff))


def _of_git(
    files: AttemptFiles, names: Sequence[str], *, cwd: str, run: RunChild, environ: Mapping[str, str]
) -> tuple[dict[str, str], bytes]:
    """Return what git tells of each file that it knows, and its patch; nothing outside of git or before a first commit."""
    try:
        before = read_json(files.before, default={})
    except StateError:
        return {}, b""
    head = before.get("head")
    if not before.get("isGit") or not isinstance(head, str):
        return {}, b""
    tree = GitTree(cwd, run, environ)
    return tree.lines_changed(head, names), tree.patch(head, names)


def _text_of(path: Path) -> str | None:
    """Return the text of a small regular file; None for anything else. Nothing is opened that could be waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            data = file.read(_MOST_NEW_FILE_BYTES + 1)
            return None if len(data) > _MOST_NEW_FILE_BYTES or b"\0" in data else data.decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def _as_new(name: str, text: str) -> bytes:
    lines = text.splitlines()
    head = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n"
    hunk = f"@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines) if lines else ""
    return (head + hunk).encode("utf-8", "surrogateescape")
