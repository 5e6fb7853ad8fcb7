"""One verdict per attempt: what is ok, what is not and why, when the pool is back, what stands beside it."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.core.judging.cases import (
    ANSWER,
    AUTH,
    BOOM,
    CHANGED,
    COMMITTED,
    DENIED,
    GOOD,
    LATER,
    NOTHING,
    NOW,
    PLAN,
    QUOTA,
    THROTTLE,
    verdict,
)

from bullswarm_core.judging.findings import declared_failure
from bullswarm_core.judging.model import WorkerClocks
from bullswarm_core.judging.verdict import Judgement
from bullswarm_core.pools import Lane, Window
from bullswarm_core.quota.notice import Notice
from bullswarm_core.streams.facts import Denial, EndReason, ExitFacts, LimitSignal, ProviderError, StreamFacts
from bullswarm_core.trees.snapshot import DeliverableFacts


def kinds(found: Judgement) -> set[str]:
    return {note.kind for note in found.notes}


def test_a_hand_in_the_persons_settings_spoils_any_work() -> None:
    found = verdict("build", deliverable=CHANGED, meddled=("/home/me/.claude/settings.json",))
    assert (found.ok, found.failure_kind) == (False, "ownership")
    assert "/home/me/.claude/settings.json" in found.why


# --- what is ok -----------------------------------------------------------------------------------------------------


def test_an_answer_is_what_analyze_owes() -> None:
    found = verdict()
    assert found.ok and found.failure_kind is None and found.notes == () and not found.content_usable_despite_exit
    assert verdict(stream=replace(GOOD, answer="42")).ok
    assert verdict(stream=replace(GOOD, answer="It is thread-safe. Anything else?")).ok


@pytest.mark.parametrize("lane", ["build", "chore"])
def test_a_change_or_a_commit_is_what_build_and_chore_owe(lane: Lane) -> None:
    assert verdict(lane, deliverable=CHANGED).why == "1 file changed"
    assert verdict(lane, deliverable=COMMITTED).why == "1 commit"
    silent = verdict(lane, stream=replace(GOOD, answer=""), deliverable=CHANGED)
    assert silent.ok and kinds(silent) == {"no-output"}


@pytest.mark.parametrize("lane", ["build", "chore"])
def test_saying_done_is_not_producing(lane: Lane) -> None:
    found = verdict(lane, deliverable=NOTHING, stream=replace(GOOD, answer="Done. All tests pass now."))
    assert (found.ok, found.failure_kind) == (False, "not-produced")
    assert "no file was changed" in found.why
    assert verdict(lane, deliverable=None).failure_kind == "not-produced"


def test_work_of_others_in_the_same_tree_is_not_the_workers() -> None:
    shared = DeliverableFacts(attribution="shared", unattributed=3, is_git=True)
    found = verdict("build", deliverable=shared)
    assert found.failure_kind == "not-produced" and "3 by others" in found.why and "attribution-shared" in kinds(found)


def test_a_good_answer_that_quotes_a_limit_is_ok() -> None:
    found = verdict(stream=replace(GOOD, answer=f"The text is: You've hit your usage limit. {ANSWER}"), notice=QUOTA)
    assert found.ok and "limit-noticed" in kinds(found)


def test_a_recovered_stream_error_is_a_note() -> None:
    found = verdict(stream=replace(GOOD, errors=(BOOM,)))
    assert found.ok and kinds(found) == {"recovered-stream-error"}
    assert verdict("build", stream=replace(GOOD, errors=(BOOM,)), deliverable=CHANGED).ok
    retried = verdict(stream=replace(GOOD, errors=(replace(BOOM, fatal=False),)))
    assert retried.ok and kinds(retried) == {"recovered-stream-error"}
    news = verdict(stream=replace(GOOD, errors=(replace(BOOM, fatal=False, warning=True),)))
    assert news.ok and news.notes == ()


def test_a_cli_that_lingers_after_its_last_word_is_done() -> None:
    """Some CLIs hang after their last word; their keeper then ends them."""
    found = verdict(exit=ExitFacts(reason="after-terminal", signal="SIGKILL", leftovers_killed=2))
    assert found.ok and kinds(found) == {"forced_exit", "leftovers-killed"}
    failed = verdict(
        exit=ExitFacts(reason="after-terminal", signal="SIGKILL"), stream=replace(GOOD, terminal_error=True)
    )
    assert failed.failure_kind == "provider"


def test_what_could_not_be_ended_spoils_a_lane_that_writes_and_is_a_note_elsewhere() -> None:
    left = ExitFacts("exited", exit_code=0, survivors=2)
    for lane in ("build", "chore"):
        found = verdict(lane, exit=left, deliverable=CHANGED)
        assert (found.ok, found.failure_kind) == (False, "ownership")
        assert found.why.startswith("2 processes of the worker could not be ended")
    read = verdict(exit=left)
    assert read.ok and kinds(read) == {"survivors"}
    assert "1 process of" in verdict(exit=replace(left, survivors=1)).notes[0].text


def test_a_killed_keeper_leaves_it_open_whether_something_runs_on() -> None:
    found = verdict(exit=ExitFacts("lost"))
    assert found.failure_kind == "interrupted" and "survivors" in kinds(found)


def test_a_weaker_confinement_and_a_missing_one_are_said() -> None:
    why = "this kernel (Landlock 5) cannot stop signals to processes outside"
    weak = verdict(exit=ExitFacts("exited", exit_code=0, confinement="bullswarm", confinement_why=why))
    assert weak.ok and [note.text for note in weak.notes] == [f"weaker confinement: {why}"]
    none = verdict(exit=ExitFacts("exited", exit_code=0, confinement_why="this kernel has no Landlock"))
    assert none.ok and [note.text for note in none.notes] == ["no confinement: this kernel has no Landlock"]


def test_a_missing_last_word_needs_an_answer_after_the_last_tool() -> None:
    quiet = replace(GOOD, terminal=False, answer_source="messages")
    assert kinds(verdict(stream=quiet)) == {"no-last-word"}
    assert verdict(stream=replace(quiet, answered_after_tools=False)).failure_kind == "semantic"
    mute = verdict("build", stream=replace(quiet, answer=""), deliverable=CHANGED)
    assert (mute.failure_kind, mute.content_usable_despite_exit) == ("provider", True)
    assert "last word" in mute.why
    plain = StreamFacts(answer=ANSWER, answer_source="stdout", event_stream=False)
    assert verdict(stream=plain).ok and verdict(stream=plain).notes == ()


# --- what is not ok -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "clocks", "kind", "words"),
    [
        ("startup", WorkerClocks(startup_sec=90), "stalled", "stalled: no output within 90 s of the start"),
        ("silence", WorkerClocks(silence_sec=300), "stalled", "stalled: no output for 5 min, the worker was stopped"),
        ("no-progress", WorkerClocks(no_progress_sec=3600), "stalled",
         "stalled: no file change for 60 min, the worker was stopped"),
        ("wall", WorkerClocks(wall_sec=60), "timeout", "timeout: not done after 60 s, the worker was stopped"),
        ("stopped", WorkerClocks(), "cancelled", "cancelled: the worker was stopped on request after 12 s"),
        ("lost", WorkerClocks(), "interrupted", "interrupted: the worker and its keeper are gone"),
    ],
)  # fmt: skip
def test_clocks_stops_and_losses(reason: EndReason, clocks: WorkerClocks, kind: str, words: str) -> None:
    found = verdict(reason=reason, code=None, stream=StreamFacts(), clocks=clocks)
    assert found.failure_kind == kind and found.why.startswith(words)


def test_a_silent_clock_says_how_long_it_was_silent_and_that_it_idled() -> None:
    ended = ExitFacts(reason="silence", wall_sec=400, silent_sec=301, cpu_sec=0.4)
    found = verdict(exit=ended, stream=StreamFacts())
    assert "no output for 5 min" in found.why and kinds(found) == {"idle-cpu"}


def test_what_a_requested_stop_meant() -> None:
    for stop in ("paused", "restarted", "superseded"):
        assert verdict(reason="stopped", stream=StreamFacts(), stop=stop).failure_kind == stop


@pytest.mark.parametrize(
    ("ended", "name"),
    [
        (ExitFacts("exited", signal="SIGTERM"), "SIGTERM"), (ExitFacts("exited", exit_code=143), "SIGTERM"),
        (ExitFacts("exited", exit_code=137), "SIGKILL"), (ExitFacts("exited", exit_code=-9), "SIGKILL"),
        (ExitFacts("exited", exit_code=130), "SIGINT"),
    ],
)  # fmt: skip
def test_a_worker_that_was_killed_was_interrupted(ended: ExitFacts, name: str) -> None:
    found = verdict(exit=ended, stream=StreamFacts())
    assert found.failure_kind == "interrupted" and name in found.why
    assert verdict(exit=ended).content_usable_despite_exit


def test_a_worker_that_never_started() -> None:
    ended = ExitFacts("never-started", start_error="/opt/codex: Permission denied")
    found = verdict(exit=ended, stream=StreamFacts())
    assert found.failure_kind == "process" and "Permission denied" in found.why and "doctor" in found.why


def test_a_bad_exit_with_good_content() -> None:
    found = verdict(code=3)
    assert (found.failure_kind, found.content_usable_despite_exit) == ("process", True)
    assert found.why.startswith("exit 3")
    build = verdict("build", code=1, deliverable=CHANGED)
    assert (build.failure_kind, build.content_usable_despite_exit) == ("process", True)
    empty = verdict(exit=ExitFacts("exited", exit_code=1, stderr_tail="one\nError: it broke\n\n"), stream=StreamFacts())
    assert empty.why == "exit 1: Error: it broke" and not empty.content_usable_despite_exit
    assert verdict(code=None).failure_kind == "process"
    assert verdict(code=255).failure_kind == "process"


def test_a_success_that_says_it_failed() -> None:
    """``subtype: success`` with ``is_error: true``."""
    failed = replace(GOOD, terminal_error=True, answer="API Error: 500 boom", errors=(BOOM,))
    for code in (0, 1):
        assert verdict(code=code, stream=failed).failure_kind == "provider"
    assert verdict(code=1, stream=StreamFacts(errors=(ProviderError("fetch failed", status=503),))).why == (
        "provider error (HTTP 503): fetch failed"
    )


@pytest.mark.parametrize("notice", [QUOTA, THROTTLE, AUTH, PLAN])
@pytest.mark.parametrize("reason", ["exited", "silence", "limit", "startup"])
def test_a_notice_says_why_it_failed(notice: Notice, reason: EndReason) -> None:
    failed = StreamFacts(terminal_error=True, errors=(ProviderError(notice.line),))
    found = verdict(reason=reason, code=1, stream=failed, notice=notice)
    assert found.failure_kind == notice.kind and notice.line[:40] in found.why
    assert (found.back_at, found.back_at_source) == (notice.resets_at, notice.reset_source)


def test_a_time_limit_beats_an_old_throttle_but_not_a_spent_window() -> None:
    assert verdict(reason="wall", code=None, stream=StreamFacts(), notice=THROTTLE).failure_kind == "timeout"
    assert verdict(reason="wall", code=None, stream=StreamFacts(), notice=QUOTA).failure_kind == "quota"


def test_stopped_on_a_notice_that_is_gone() -> None:
    assert verdict(reason="limit", code=None, stream=StreamFacts()).failure_kind == "provider"


def test_a_throttle_that_names_its_wait() -> None:
    named = replace(THROTTLE, resets_at=LATER, reset_source="named")
    found = verdict(code=1, stream=StreamFacts(), notice=named)
    assert (found.failure_kind, found.back_at, found.back_at_source) == ("throttle", LATER, "named")
    assert "back at 2026-11-30T07:00:30Z" in found.why


def test_a_refusal_in_the_place_of_an_answer() -> None:
    reply = StreamFacts(answer=QUOTA.line, answer_source="terminal", terminal=True, worked=False)
    assert verdict(stream=reply, notice=replace(QUOTA, said_by="reply")).failure_kind == "quota"
    uncounted = replace(GOOD, worked=False)  # a provider that counts no tokens has answered all the same
    assert verdict(stream=uncounted, notice=THROTTLE).ok


# --- when the pool is back ------------------------------------------------------------------------------------------

SPENT = replace(QUOTA, resets_at=None, reset_source=None, window=None)


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ((), None),
        ((Window("5h", 96.0, LATER),), LATER),
        ((Window("5h", 94.9, LATER),), None),
        ((Window("5h", 100.0, NOW),), None),
        ((Window("5h", 100.0, None),), None),
        ((Window("5h", 100.0, LATER, source="refusal"),), None),
        ((Window("5h", 100.0, LATER, source="declared"),), None),
        ((Window("5h", 100.0, LATER), Window("weekly", 96.0, NOW + timedelta(days=3))), LATER),
        ((Window("5h", 100.0, LATER), Window("weekly", 100.0, NOW + timedelta(days=3))), NOW + timedelta(days=3)),
        ((Window("weekly", 100.0, LATER, scope="opus"),), None),
    ],
)
def test_a_measured_return(windows: tuple[Window, ...], expected: datetime | None) -> None:
    found = verdict(code=1, stream=StreamFacts(), notice=SPENT, windows=windows)
    assert found.failure_kind == "quota"
    assert (found.back_at, found.back_at_source) == (expected, "measured" if expected else None)


def test_a_models_own_window_counts_for_that_model() -> None:
    windows = (Window("weekly", 100.0, LATER, scope="opus"),)
    assert verdict(code=1, stream=StreamFacts(), notice=SPENT, windows=windows, model="claude-opus-5").back_at == LATER


def test_a_window_that_the_notice_names_is_the_one_that_counts() -> None:
    windows = (Window("weekly", 100.0, NOW + timedelta(days=3)), Window("5h", 97.0, LATER))
    assert verdict(code=1, stream=StreamFacts(), notice=replace(SPENT, window="5h"), windows=windows).back_at == LATER


def test_a_full_meter_makes_a_throttle_a_usage_limit() -> None:
    found = verdict(code=1, stream=StreamFacts(), notice=THROTTLE, windows=(Window("5h", 100.0, LATER),))
    assert (found.failure_kind, found.back_at, found.back_at_source) == ("quota", LATER, "measured")
    nearly = verdict(code=1, stream=StreamFacts(), notice=THROTTLE, windows=(Window("5h", 97.0, LATER),))
    assert (nearly.failure_kind, nearly.back_at) == ("throttle", None)


# --- what the worker's last words give away -------------------------------------------------------------------------


def test_an_empty_answer() -> None:
    assert verdict(stream=replace(GOOD, answer=" \n")).failure_kind == "semantic"
    free = verdict(stream=replace(GOOD, answer=""), free=True)
    assert free.failure_kind == "provider" and "empty output" in free.why
    assert verdict(stream=replace(GOOD, answer="", worked=False)).failure_kind == "semantic"


@pytest.mark.parametrize(
    "answer",
    ["Ready to execute once plan mode is exited.", "Which of the two parsers do you mean?", "Shall I proceed?",
     "I've made a plan. Please confirm.", "I'll begin once you approve the plan."],
)  # fmt: skip
def test_a_question_without_work_wants_input(answer: str) -> None:
    """A worker in plan mode, or one that asks before it begins, has done nothing."""
    found = verdict("build", deliverable=NOTHING, stream=replace(GOOD, answer=answer))
    assert found.failure_kind == "needs-input" and answer.split(". ")[-1][:20] in found.why
    assert verdict("build", deliverable=CHANGED, stream=replace(GOOD, answer=answer)).ok


def test_an_analysis_that_only_asks_wants_input() -> None:
    assert verdict(stream=replace(GOOD, answer="Which of the two parsers do you mean?")).failure_kind == "needs-input"
    assert verdict(stream=replace(GOOD, answer=f"{ANSWER} Would you like me to fix it?")).ok


@pytest.mark.parametrize(
    "answer",
    ["I will wait for the notification.", "I'll wait for the build to finish.", "Now I’ll wait for it.",
     "Waiting for the background task to complete.", "Started the tests. I'm waiting for the results.", "Standing by."],
)  # fmt: skip
def test_a_worker_that_waits_for_its_own_background_work_is_not_done(answer: str) -> None:
    """In print mode the background work is ended with the process."""
    for lane, made in (("analyze", None), ("build", CHANGED)):
        found = verdict(lane, deliverable=made, stream=replace(GOOD, answer=answer))  # type: ignore[arg-type]
        assert found.failure_kind == "semantic" and "incomplete" in found.why


def test_waiting_as_a_subject_is_no_waiting() -> None:
    for answer in (
        "Waiting for the build is what takes the time.",
        "The lock waits for the task.",
        f"{ANSWER} Wait 5 s.",
    ):
        assert verdict(stream=replace(GOOD, answer=answer)).ok


def test_nothing_but_announcements() -> None:
    assert verdict(stream=replace(GOOD, answer="I'll look at the parser now.")).failure_kind == "semantic"


@pytest.mark.parametrize("stop", ["max_tokens", "length", "max_turns", "refusal"])
def test_a_reply_that_was_cut_is_not_whole(stop: str) -> None:
    found = verdict(stream=replace(GOOD, stop_reason=stop))
    assert found.failure_kind == "provider" and "not finished" in found.why
    assert verdict(stream=replace(GOOD, stop_reason="end_turn")).ok


# --- denials --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 4])
def test_a_denial_decides_only_where_the_work_is_missing(code: int) -> None:
    """A worker may go on by another way after a refusal, or give up with exit code 0."""
    silent = verdict(code=code, stream=replace(GOOD, answer="", denials=DENIED, denial_count=48))
    assert silent.failure_kind == "denied" and "Write, Bash (48 refusals)" in silent.why
    undone = verdict("build", code=code, deliverable=NOTHING, stream=replace(GOOD, denials=DENIED))
    assert undone.failure_kind == "denied" and "Write, Bash (3 refusals)" in undone.why


def test_a_denial_with_good_work_is_a_note() -> None:
    found = verdict(stream=replace(GOOD, denials=DENIED))
    assert found.ok and kinds(found) == {"denied"} and "Write, Bash" in found.notes[0].text
    assert verdict("build", deliverable=CHANGED, stream=replace(GOOD, denials=DENIED)).ok


def test_a_complaint_of_the_system_is_a_denial_only_under_confinement() -> None:
    stream = replace(GOOD, denials=(Denial("bash", "Read-only file system", by="system"),))
    assert verdict("build", deliverable=NOTHING, stream=stream).failure_kind == "not-produced"
    assert verdict("build", deliverable=NOTHING, stream=stream, confined=True).failure_kind == "denied"
    held = ExitFacts("exited", exit_code=0, confinement="bullswarm")
    assert verdict("build", exit=held, deliverable=NOTHING, stream=stream).failure_kind == "denied"


# --- notes ----------------------------------------------------------------------------------------------------------


def test_notes_that_decide_nothing() -> None:
    stream = replace(
        GOOD, answered_after_tools=False, gap_bytes=7, limits=(LimitSignal("5h", None),), answer="Error: no"
    )
    found = verdict(stream=stream, deliverable=replace(CHANGED, truncated=True))
    assert found.ok and kinds(found) == {
        "answer-before-tools", "capture-cut", "limit-noticed", "doubtful-answer", "analyze-changed-files", "tree-not-all-seen",
    }  # fmt: skip


def test_worker_text_in_a_why_is_one_harmless_line() -> None:
    nasty = "Error: \x1b]52;c;Zm9v\x07\x1b[2Jfirst\nsecond" + "x" * 500
    for found in (
        verdict(code=1, stream=StreamFacts(terminal_error=True, errors=(ProviderError(nasty),))),
        verdict(exit=ExitFacts("exited", exit_code=1, stderr_tail=nasty), stream=StreamFacts()),
        verdict("build", deliverable=NOTHING, stream=replace(GOOD, answer=f"{nasty}?")),
        verdict(exit=ExitFacts("never-started", start_error=nasty), stream=StreamFacts()),
    ):
        assert not found.ok and "\x1b" not in found.why and "\n" not in found.why and len(found.why) <= 300


def test_when_a_failure_was_declared() -> None:
    assert not declared_failure(GOOD, ExitFacts("exited", exit_code=0))
    for stream, ended in (
        (replace(GOOD, terminal_error=True), ExitFacts("exited", exit_code=0)),
        (replace(GOOD, errors=(BOOM,)), ExitFacts("exited", exit_code=0)),
        (GOOD, ExitFacts("exited", exit_code=3)), (GOOD, ExitFacts("exited", signal="SIGTERM")),
    ):  # fmt: skip
        assert declared_failure(stream, ended)
    mere = (replace(BOOM, fatal=False), replace(BOOM, warning=True))
    assert not declared_failure(replace(GOOD, errors=mere), ExitFacts("exited", exit_code=0))
