"""What a watcher is told of a journal: the words, the troubles, and cursors that lose and repeat nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.runs.journals import START, Written, document

from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.notices import tell
from bullswarm_core.reports.stalls import Life, LifeWatch, stale_signs, stale_since
from bullswarm_core.reports.watch import WATCH_VERSION, Notice, Teller, standing
from bullswarm_core.runs.events import (
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
from bullswarm_core.runs.run_files import RunFolder

FOLDER = RunFolder(Path("/home/workflows/wf-1"))
TYPED = {"type": "object", "properties": {"done": {"type": "boolean"}}}


def told(written: Written, *, after: int = 0) -> list[Notice]:
    return Teller(folder=FOLDER, telling=tell).take(written.events, after=after)


def last(written: Written) -> Notice:
    return told(written)[-1]


def lines(written: Written, *, after: int = 0) -> list[str]:
    return [notice.line for notice in told(written, after=after) if notice.notable]


def looped(**step: Any) -> dict[str, Any]:
    return document(
        {"id": "r", "answer": TYPED, **step},
        loops=[{"id": "l", "steps": ["r"], "until": {"step": "r", "field": "done"}, "maxRounds": 3}],
    )


def whole_story() -> Written:
    """A journal with every kind of event in it."""
    program = document(
        {"id": "a"}, {"id": "b", "dependsOn": ["g"]}, {"id": "r", "answer": TYPED}, {"id": "z"},
        gates=[{"id": "g", "dependsOn": ["a"], "note": "look at it"}],
        loops=[{"id": "l", "steps": ["r"], "until": {"step": "r", "field": "done"}, "maxRounds": 2}],
    )  # fmt: skip
    written = Written(program, retryAttempts=1)
    written.write(KernelStarted({}, resumed=False))
    written.run("a", "process")
    written.pick("a", pool="claude-code", retry_how="another-pool")
    written.write(KernelStarted({}, resumed=True), AttemptTakenOver("a", 2, "re-attached"))
    written.end("a", changedFiles=["x"], returnedEarly={"count": 1, "items": ["the rest"]})
    written.write(GateWaiting("g"), SteeringAdded("look", by="me"), PauseRequested(by="me"), PauseLifted(by="me"))
    written.write(GatePassed("g", how="continued", by="me"))
    written.run("r", answer={"done": False})
    written.write(LoopRound("l", 2))
    written.run("r", answer={"done": False})
    written.write(LoopOutOfRounds("l", 2), LoopContinued("l", rounds=1, by="me"), LoopRound("l", 3))
    written.run("r", answer={"done": True})
    written.write(LoopPassed("l", 3))
    written.write(StepUnplaced("z", "no pool left", "unavailable", decision={}))
    written.write(StepReset("z", "rerun", avoid=("codex",)))
    written.run("z", "quota", backAt="2026-03-01T18:00:00Z")
    written.write(StepAccepted("z", "fine", by="me"))
    written.run("b", "failed-evidence")
    written.run("b", "failed-evidence", retry_how="same-pool")
    program = {**program, "steps": [*program["steps"], {"id": "n", "prompt": "x"}]}
    written.write(RunParked("waiting", ("g",)), RunFinished("partial", {}), RunReopened("me", "a step was added"))
    written.write(StepsAdded(program, ("n",), by="me"), StopRequested("me"))
    return written


@given(st.lists(st.integers(0, 80), max_size=6))
def test_however_a_journal_is_cut_by_cursors_each_notice_is_told_once_and_in_the_same_words(cuts: list[int]) -> None:
    written = whole_story()
    newest = len(written.events)
    ends = sorted({min(cut, newest) for cut in cuts} | {newest})
    found: list[Notice] = []
    cursor = 0
    for end in ends:
        # A new process each time: it folds what is there, and tells what stands behind its cursor.
        found += Teller(folder=FOLDER, telling=tell).take(written.events[:end], after=cursor)
        cursor = end
    assert found == told(written)


@given(st.lists(st.integers(1, 9), max_size=40))
def test_one_watch_that_reads_piece_by_piece_tells_the_same(sizes: list[int]) -> None:
    written, teller, found, at = whole_story(), Teller(folder=FOLDER, telling=tell), [], 0
    for size in [*sizes, len(written.events)]:
        found += teller.take(written.events[at : at + size])
        at += size
        assert teller.sequence == min(at, len(written.events))
    assert found == told(written)


def test_every_event_is_told_as_one_json_object_with_its_sequence() -> None:
    written = whole_story()
    notices = told(written)
    assert {notice.sequence for notice in notices} == set(range(1, len(written.events) + 1))
    for notice in notices:
        found = json.loads(json.dumps(notice.document()))
        assert found["schemaVersion"] == WATCH_VERSION and found["sequence"] == notice.sequence and found["type"]
        assert "\n" not in notice.line


def test_an_unknown_event_of_a_newer_program_is_told_on_request_only() -> None:
    from bullswarm_core.runs.events import Event

    written = Written(document({"id": "a"}))
    written.events.append(Event("wf-1", 2, START, "from.tomorrow", None))
    assert (last(written).line, last(written).notable) == ("· from.tomorrow", False)


def test_the_words_for_a_step_that_starts_is_tried_again_and_ends() -> None:
    written = Written(document({"id": "a", "lane": "build"}))
    written.run("a", "process", meta={"wallSec": 75})
    written.pick("a", pool="claude-code", retry_how="another-pool", lane="build")
    written.end("a", meta={"wallSec": 660.4}, changedFiles=["x", "y"], changedFileCount=2)
    assert lines(written) == [
        "▶ a · codex · analyze/medium",
        "↺ a failed (process) · codex · 1m15s · tried again on another pool",
        "▶ a try 2 · claude-code · build/medium · handoff attached",
        "✓ a done · claude-code · 11m00s · 2 files · " + told(written)[-1].facts["proof"],
    ]


def test_a_step_that_returned_early_says_how_much_is_not_done() -> None:
    written = Written(document({"id": "a"}))
    written.run("a", returnedEarly={"count": 2, "items": ["one", "two"]})
    assert last(written).line == "◐ a returned early · 2 not done"
    assert last(written).details == ("  - one", "  - two")


def test_gates_and_loops_speak_as_the_reference_says() -> None:
    program = document({"id": "a"}, gates=[{"id": "g", "dependsOn": ["a"], "note": "look"}])
    written = Written(program)
    written.run("a")
    written.write(GateWaiting("g"))
    assert last(written).line == "⧖ gate g waiting · look · continue: bullswarm workflow continue abcdef g"
    written.write(GatePassed("g", how="continued", by="me"))
    assert last(written).line == "✓ gate g passed · continued by the caller"
    loop = Written(looped())
    loop.run("r", answer={"done": False})
    loop.write(LoopRound("l", 2))
    assert last(loop).line == "↻ loop l round 2 of 3 · r.done = true did not hold"
    assert (last(loop).trouble, last(loop).wakes) == (True, False), "loop verdicts are told and wake nobody"
    loop.run("r", answer={"done": True})
    loop.write(LoopPassed("l", 2))
    assert last(loop).line == "✓ loop l passed in round 2 of 3 · r.done = true"
    out = Written(looped())
    out.run("r", answer={"done": False})
    out.write(LoopOutOfRounds("l", 3))
    assert last(out).line == (
        "⧖ loop l out of rounds (3 of 3) · r.done = true did not hold"
        " · continue: bullswarm workflow continue abcdef l --rounds 1"
    )
    out.write(LoopContinued("l", rounds=2, by="me"))
    assert last(out).line == "→ loop l continued by the caller for 2 more rounds"


def test_a_failed_step_needs_the_person_with_all_that_is_to_be_known() -> None:
    written = Written(
        document(
            {"id": "a", "evidence": [{"type": "command", "cmd": "make test"}]},
            {"id": "b", "dependsOn": ["a"]},
            {"id": "c"},
        )
    )
    written.pick("c")
    result = {
        "type": "command",
        "cmd": "make test",
        "status": "failed",
        "exit": 1,
        "why": "exit 1",
        "tail": "ok\n2 failed\n",
    }
    written.run("a", "failed-evidence", meta={"wallSec": 660}, evidenceResults=[result], changedFileCount=3)
    written.run("a", "failed-evidence", meta={"wallSec": 30}, evidenceResults=[result], retry_how="same-pool")
    notice = last(written)
    assert (notice.trouble, notice.wakes) == (True, True)
    assert [notice.line, *notice.details] == [
        "✗ a needs you · evidence failed after 1 retry",
        "  evidence  make test → exit 1",
        "            2 failed",
        "  try 1     codex · 11m00s · 3 files",
        "  try 2     same pool, failure attached · 0m30s · 0 files",
        "  still running: c · waiting on this: b",
    ]
    assert [line.split("  ")[2].strip() for line in notice.options[1:]] == ["retry here", "add steps", "accept anyway"]
    assert notice.facts["options"]["retry"] == "bullswarm workflow step rerun abcdef a"
    assert notice.facts["evidence"][0]["tail"] == "2 failed" and notice.facts["retries"] == 1


def test_another_pool_that_some_try_could_have_had_is_offered_and_the_tried_ones_avoided() -> None:
    written = Written(document({"id": "a"}), retryAttempts=0)
    written.pick("a")
    event = written.events[-2]
    assert event.payload is not None
    event.payload.decision["candidates"] = [{"pool": "codex"}, {"pool": "grok"}]  # type: ignore[attr-defined]
    written.end("a", "process")
    facts = last(written).facts
    assert facts["options"]["rerun"] == "bullswarm workflow step rerun abcdef a --avoid codex"
    assert "retry" not in facts["options"] and last(written).line.endswith("· not retried")


def test_a_usage_limit_and_when_the_pool_is_back() -> None:
    written = Written(document({"id": "a"}))
    written.run("a", "quota", backAt="2026-03-01T18:00:00Z")
    notice = last(written)
    assert notice.line == "⚠ a usage limit on codex · back to you"
    assert notice.details[0] == "✗ a needs you · usage limit · not retried"
    assert "  back at   2026-03-01T18:00:00Z" in notice.details
    assert "    wait for it      after 2026-03-01T18:00:00Z: bullswarm workflow step rerun abcdef a" in notice.options


def test_a_step_that_may_have_acted_says_why_it_was_not_tried_again() -> None:
    written = Written(document({"id": "a", "deliverable": "outward", "lane": "chore"}))
    written.run("a", "process")
    assert last(written).line == "✗ a needs you · process · not retried: act step (it may have acted)"


def test_backing_off_is_told_and_a_stopped_run_needs_nobody() -> None:
    written = Written(document({"id": "a"}), retryAttempts=0)
    written.run("a", "throttle")
    written.run("a", "throttle", retry_how="back-off")
    written.run("a", "throttle", retry_how="back-off")
    assert last(written).line == "✗ a needs you · rate limited · backed off twice"
    assert "  try 2     same pool · after a rate-limit backoff · 0m01s · 0 files" in last(written).details
    stopped = Written(document({"id": "a"}), retryAttempts=0)
    stopped.pick("a")
    stopped.write(StopRequested("me"))
    stopped.end("a", "process")
    assert (last(stopped).kind, last(stopped).trouble) == ("failed", False)


def test_a_single_run_that_fails_needs_no_choice() -> None:
    written = Written(document({"id": "run"}), kind="run")
    written.run("run", "process")
    assert (last(written).kind, last(written).options) == ("failed", ())


def test_text_of_workers_and_people_is_one_harmless_line() -> None:
    written = Written(document({"id": "a"}), retryAttempts=0)
    written.write(SteeringAdded("first\nsecond\x1b[31m red\x1b]0;title\x07", by="you\x1b[2J"))
    assert last(written).line == "✎ message from you: first second red"
    written.run("a", "process", evidenceResults=[])
    assert all("\x1b" not in line and "\n" not in line for line in (*last(written).details, *last(written).options))


def test_people_read_labels_and_the_machine_reads_ids() -> None:
    written = Written(document({"id": "a"}))
    written.run("a")
    labels = Labels({"codex": "work"})
    assert labels.in_text(told(written)[-1].line).startswith("✓ a done · work")
    assert told(written)[-1].document()["pool"] == "codex"


def test_without_a_cursor_a_watcher_is_told_what_still_stands_and_nothing_that_is_settled() -> None:
    program = document(
        {"id": "a"}, {"id": "b"}, {"id": "c", "dependsOn": ["g"]}, gates=[{"id": "g", "dependsOn": ["b"]}]
    )
    written = Written(program, retryAttempts=0)
    written.run("a", "process")
    written.run("b", "process")
    written.write(StepReset("b", "rerun"))
    written.run("b")
    written.write(GateWaiting("g"))
    found = standing(told(written), written.state)
    assert [(notice.kind, notice.about) for notice in found] == [("needs-you", "a"), ("gate-waiting", "g")]
    written.write(StepAccepted("a", "fine"), GatePassed("g", how="continued"))
    assert standing(told(written), written.state) == []


# --- signs of life

NOW = datetime(2026, 3, 1, 15, 0, tzinfo=UTC)


def life(*, quiet: float = 0, minutes: float = 30, unchanged: float | None = None, **more: Any) -> Life:
    def ago(count: float) -> datetime:
        return NOW - timedelta(minutes=count)

    return Life(
        step="a", ordinal=1, started=ago(minutes), last_output=ago(quiet),
        last_change=None if unchanged is None else ago(unchanged), **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given_life", "score"),
    [
        (life(quiet=10), 2),
        (life(quiet=9.9), 0),
        (life(quiet=10, in_flight=True), 0),
        (life(unchanged=20, commands=5), 1),
        (life(unchanged=20, commands=4), 0),
        (life(unchanged=19, commands=5), 0),
        (life(same_command=3), 1),
        (life(same_command=2), 0),
        (life(expected_minutes=9.9), 1),
        (life(expected_minutes=10), 0),
        (life(unchanged=20, commands=5, same_command=3), 2),
        (life(unchanged=20, commands=5, same_command=3, checking=True), 0),
        (life(quiet=10, checking=True, expected_minutes=1), 2),
    ],
)
def test_the_stale_score_is_that_of_the_reference(given_life: Life, score: int) -> None:
    signs = stale_signs(given_life, NOW)
    assert sum(sign.weight for sign in signs) == score
    assert (stale_since(signs) is not None) == (score >= 2)


def test_staleness_is_told_once_per_attempt_and_names_its_reasons() -> None:
    watch = LifeWatch()
    silent = life(quiet=11, expected_minutes=5)
    (notice,) = watch.look([silent], now=NOW, sequence=7)
    assert notice.line == "⚠ a looks stale: quiet for 11m00s, 30m of an expected 5m"
    assert (notice.sequence, notice.trouble, notice.wakes) == (7, True, True)
    assert watch.look([silent], now=NOW + timedelta(minutes=1), sequence=8) == []


def test_a_stall_is_told_once_per_silence_and_not_while_a_command_runs() -> None:
    watch = LifeWatch(stall_after_sec=300)
    assert watch.look([life(quiet=6, in_flight=True)], now=NOW, sequence=1) == []
    assert [notice.line for notice in watch.look([life(quiet=6)], now=NOW, sequence=1)] == ["⚠ a quiet for 6m00s"]
    assert watch.look([life(quiet=6)], now=NOW, sequence=1) == []
    assert len(watch.look([life(quiet=5.5)], now=NOW, sequence=1)) == 1, "it spoke, and fell silent again"


@given(quiet=st.floats(0, 60), cut=st.floats(0, 60), stall=st.floats(1, 600))
def test_a_silence_is_told_by_exactly_one_of_two_watches(quiet: float, cut: float, stall: float) -> None:
    """The first watch ends at some moment, and the second goes on from it with --since."""
    ended = NOW - timedelta(minutes=cut)
    spoke = NOW - timedelta(minutes=quiet)
    one = Life(step="a", ordinal=1, started=spoke, last_output=spoke)
    first = LifeWatch(stall_after_sec=stall).look([one], now=ended, sequence=1) if ended >= spoke else []
    second = LifeWatch(stall_after_sec=stall, since=ended).look([one], now=NOW, sequence=1)
    kinds = [notice.kind for notice in (*first, *second)]
    assert len(kinds) == len(set(kinds))
    whole = LifeWatch(stall_after_sec=stall).look([one], now=NOW, sequence=1)
    assert bool(whole) <= bool(kinds)
