"""What a retry is told of the attempt before it, from the journal and from the attempt's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.prompts.test_step import TYPED, finish, picked_next, written_for
from tests.core.runs.journals import Written, document

from bullswarm_core.prompts.handoff import last_said, prior_attempt, read_prior
from bullswarm_core.runs.attempt_result import JudgementRecord, MetaRecord
from bullswarm_core.runs.events import AttemptFinished, StepReset
from bullswarm_core.runs.fold import fold
from bullswarm_core.runs.run_files import RunFolder

BUILD = {"id": "a", "lane": "build", "files": ["x.py"]}
TABLE = {
    "schemaVersion": "bullswarm.stream.v1",
    "kind": "type",
    "rules": [
        {"on": "said", "emit": "text", "fields": {"text": "text", "group": "id"}},
        {"on": "call", "emit": "tool_call", "fields": {"id": "id", "name": "name"}},
        {"on": "end", "emit": "terminal", "fields": {"answer": "text"}},
    ],
}


def block(text: str) -> list[str]:
    """Cut the handoff out of a task."""
    return text[text.index("## Prior attempt on this step") : text.index("Rules for this task")].rstrip().splitlines()


def test_the_whole_block() -> None:
    written = Written(document(BUILD))
    evidence = {"type": "command", "cmd": "make test", "status": "failed", "why": "exit 2"}
    finish(
        written, "a", "failed-evidence", changedFiles=["other.py", "x.py"], changedFileCount=2,
        diffStat=["other.py +1 -0", "x.py +3 -1"], diffFile="/home/workflows/wf-1/diff-a-attempt-1.patch",
        evidenceResults=[{**evidence, "tail": "\n".join(f"line {n}" for n in range(30))}],
    )  # fmt: skip
    task = written_for(written.state, "a", retry_how="same-pool")
    assert block(task.text) == [
        "## Prior attempt on this step",
        "",
        "- Pool: codex",
        "- Model: codex connector default",
        "- Started: 2026-03-01T12:00:03Z",
        "- Finished: 2026-03-01T12:00:04Z",
        "- Duration: 1m01s",
        "- Failure: failed-evidence — failed-evidence",
        "- Files changed inside this step's territory (1):",
        "  - /project/x.py",
        "  - and 1 outside of the files that this step declares",
        "- Diff when it ended (frozen then; against the last commit, so that uncommitted edits from before are in it, too):",
        "> other.py +1 -0",
        "> x.py +3 -1",
        "- The whole diff: /home/workflows/wf-1/diff-a-attempt-1.patch",
        "- Final output: /home/workflows/wf-1/out-a-attempt-1.md (12 bytes)",
        "- Stream of events: none",
        "- Evidence: make test → failed: exit 2",
        *(f"> line {n}" for n in range(20, 30)),
        "- This is the one automatic retry: the check that failed is run again, and after the last retry the step goes back.",
        "Its edits are unverified. Look at them first; keep, fix or revert each of them, and report which you did.",
    ]
    assert task.handoff_from == "a-1"
    assert 900 < task.handoff_bytes < len(task.text)


def test_a_first_attempt_has_nothing_to_hand_over() -> None:
    task = written_for(Written(document(BUILD)).state, "a")
    assert "Prior attempt" not in task.text
    assert (task.handoff_from, task.handoff_bytes) == (None, 0)


@pytest.mark.parametrize(
    ("retry", "options", "line"),
    [
        (None, {}, "- This is the one automatic retry: "),
        (None, {"retryAttempts": 3}, "- This is automatic retry 1 of 3: "),
        (1, {"retryAttempts": 3}, "- This is the one automatic retry: "),
    ],
)
def test_a_gate_retry_is_told_which_one_it_is(retry: int | None, options: dict[str, Any], line: str) -> None:
    step = BUILD | ({"retry": retry} if retry is not None else {})
    written = Written(document(step), **options)
    finish(written, "a", "not-produced")
    assert line in written_for(written.state, "a", retry_how="same-pool").text


def test_a_retry_elsewhere_or_by_hand_is_no_gate_retry() -> None:
    written = Written(document(BUILD))
    finish(written, "a", "stalled")
    assert "automatic retry" not in written_for(written.state, "a", retry_how="another-pool").text
    finish(written, "a", "not-produced")
    written.write(StepReset("a", why="rerun", by="me"))
    text = written_for(written.state, "a").text
    assert "- Failure: not-produced" in text and "automatic retry" not in text


def test_a_rerun_of_good_work_says_so() -> None:
    written = Written(document(BUILD))
    finish(written, "a")
    written.write(StepReset("a", why="rerun", by="me"))
    assert "- It succeeded, and the step begins anew all the same (rerun)" in written_for(written.state, "a").text


def test_the_attempt_that_did_something_is_handed_over() -> None:
    """Refusals at the start leave nothing: what counts is the attempt before them."""
    written = Written(document(BUILD))
    finish(written, "a", "stalled", changedFiles=["x.py"])
    written.run("a", "auth", meta={"worked": False})
    written.run("a", "process", meta={"endReason": "never-started"})
    found = prior_attempt(written.state, picked_next(written.state, "a"))
    assert found is not None and found.picked.ordinal == 1
    written.run("a", "auth", meta={"worked": False}, changedFiles=["x.py"])
    found = prior_attempt(written.state, picked_next(written.state, "a"))
    assert found is not None and found.picked.ordinal == 4


def test_a_kernel_that_took_over_writes_the_same_block() -> None:
    """The attempt may already be picked when its task is written, and the state is folded anew."""
    written = Written(document(BUILD))
    finish(written, "a", "stalled", changedFiles=["x.py"])
    before = written_for(written.state, "a", retry_how="another-pool").text
    picked = picked_next(written.state, "a", retry_how="another-pool")
    written.write(picked)
    again = fold(written.events)
    assert again is not None and len(again.steps["a"].attempts) == 2
    assert written_for(again, "a", picked=picked).text == before


def test_what_is_missing_from_the_record_is_said_and_not_made_up() -> None:
    written = Written(document(BUILD))
    written.pick("a", lane="build")
    finished = AttemptFinished(
        step="a", ordinal=1, ok=False, why="bullswarm failed", failure_kind="runtime", judgement=JudgementRecord(),
        meta=MetaRecord.from_wire({"pool": "codex"}),
    )  # fmt: skip
    written.write(finished)
    lines = block(written_for(written.state, "a").text)
    assert "- Duration: 0m01s" in lines and "- Final output: none" in lines
    assert not any(line.startswith(("- Files changed", "- Diff", "- Evidence")) for line in lines)


@pytest.mark.parametrize(
    ("lane", "where"),
    [
        (
            "build",
            "Write the whole corrected answer into the new file /home/workflows/wf-1/tmp-a-attempt-2/answer.json; the",
        ),
        ("analyze", "Give the whole corrected answer as your final reply."),
    ],
)
def test_an_answer_that_was_wrong_is_to_be_corrected(lane: str, where: str) -> None:
    written = Written(document({"id": "a", "lane": lane, "answer": TYPED}))
    problems = [{"path": f"/{n}", "problem": "is no boolean\n- obey"} for n in range(120)]
    finish(written, "a", "schema", answerCheck={"ok": False, "file": "/home/given.json", "problems": problems})
    text = written_for(written.state, "a", retry_how="same-pool").text
    assert "## Answer to be corrected\n" in text and "- What it gave: /home/given.json\n" in text
    assert "> /0: is no boolean - obey\n" in text and "> /99: " in text and "> /100: " not in text
    assert where in text
    finish(written, "a", "stalled")
    assert "to be corrected" not in written_for(written.state, "a").text


def write_stream(folder: RunFolder, *events: dict[str, Any] | str) -> Path:
    folder.path.mkdir(parents=True, exist_ok=True)
    stream = folder.attempt("a", 1).stream
    stream.write_text("".join(f"{event if isinstance(event, str) else json.dumps(event)}\n" for event in events))
    return stream


def test_the_last_three_things_it_said_are_read_from_the_stream(tmp_path: Path) -> None:
    stream = write_stream(
        RunFolder(tmp_path),
        {"type": "said", "text": "one"},
        {"type": "said", "text": "two\nlines \x1b[31m" + "x" * 500},
        {"type": "call", "id": "1", "name": "sh"},
        "no event at all",
        {"type": "said", "text": "thr", "id": "m"},
        {"type": "said", "text": "ee", "id": "m"},
        {"type": "said", "text": "four"},
        {"type": "end", "text": "four"},
    )
    said = last_said(stream, TABLE)
    assert [text[:12] for text in said] == ["two lines xx", "three", "four"]
    assert len(said[0]) == 300
    assert last_said(tmp_path / "missing", TABLE) == ()
    assert last_said(stream, {"schemaVersion": "broken"}) == ()


def test_of_a_huge_stream_only_the_end_is_read(tmp_path: Path) -> None:
    filler = [{"type": "said", "text": f"{n} " + "x" * 2000} for n in range(2000)]
    stream = write_stream(RunFolder(tmp_path), *filler, {"type": "said", "text": "last"})
    stream.with_name(f"{stream.name}.tail-{stream.stat().st_size}").write_text(
        '{"type": "said", "text": "really last"}\n'
    )
    said = last_said(stream, TABLE)
    assert said[1:] == ("last", "really last") and said[0].startswith("1999 ")


def test_of_plain_output_the_last_lines_are_read(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    files = folder.attempt("a", 1)
    files.stdout.write_bytes(b"one\n\ntwo\n\x1b[1mthree\xff\nfour")
    written = Written(document(BUILD))
    finish(written, "a", "stalled")
    prior = read_prior(written.state.steps["a"].attempts[0], files, {})
    assert (prior.said, prior.stream) == (("two", "three\ufffd", "four"), str(files.stdout))
    text = written_for(written.state, "a", folder=folder).text
    assert f"- Stream of events: {files.stdout}\n- The last that it said:\n> two\n> three" in text
