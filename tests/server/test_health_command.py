"""`bullswarm health`: saved outputs are judged again, and nothing is written."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bullswarm_core.runs.attempt_result import JudgementRecord, MetaRecord
from bullswarm_core.runs.events import AttemptFinished, AttemptPicked, RunCreated
from bullswarm_core.runs.journal import Journal
from bullswarm_core.store.database import open_database
from bullswarm_core.store.home import Home
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.health import SavedOutput, check, run

NOW = datetime(2026, 11, 30, 5, 0, 30, tzinfo=UTC)
WORK = (
    "The parser reads tokens one at a time and keeps a stack of open brackets. A closing bracket pops it, and an"
    " unmatched one raises SyntaxError with the line."
)


class Desk:
    """A home of its own, and what a verb printed there."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.out = io.StringIO()
        self.context = CommandContext(home=self.home, environ={}, out=self.out, err=io.StringIO())

    def health(self, *arguments: str) -> tuple[int, str]:
        code = run(list(arguments), self.context)
        return code, self.out.getvalue()

    def document(self) -> tuple[int, dict[str, Any]]:
        code, text = self.health("--json")
        return code, json.loads(text)

    def keep(self, run_id: str, text: str | None, *, ok: bool = True, lane: str = "analyze") -> Path:
        """Record a run with one finished attempt and its output; None leaves the file out."""
        path = self.home.workflows_dir / run_id / "out-run-attempt-1.md"
        path.parent.mkdir(parents=True)
        if text is not None:
            path.write_text(text)
        connection = open_database(self.home)
        assert connection is not None
        journal = Journal(connection)
        created = RunCreated(
            run_id=run_id, short_id="", kind="run", goal="g", cwd="/", program={"steps": [{"id": "run"}]}
        )
        picked = AttemptPicked(
            step="run", ordinal=1, pool="echo", provider="echo", model=None, reasoning=None, lane=lane, effort="medium",
            reason="r", decision={}, booking=1, tree="/",
        )  # fmt: skip
        finished = AttemptFinished(
            step="run", ordinal=1, ok=ok, why="w", failure_kind=None if ok else "process", judgement=JudgementRecord(),
            meta=MetaRecord(),
            output_file=str(path),
        )  # fmt: skip
        journal.create(created, at=NOW)
        journal.append(run_id, [picked, finished], at=NOW)
        connection.close()
        return path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home")


def test_a_home_without_runs_is_healthy_and_stays_empty(desk: Desk) -> None:
    code, found = desk.document()
    assert code == 0
    assert found == {
        "schemaVersion": "bullswarm.health.v1",
        "checked": 0,
        "failing": 0,
        "regressed": 0,
        "outputs": [],
        "damaged": [],
    }
    assert not desk.home.root.exists()


def test_good_outputs_pass(desk: Desk) -> None:
    path = desk.keep("wf-1-aaaaaa", WORK)
    code, found = desk.document()
    assert code == 0 and found["checked"] == 1 and found["failing"] == 0
    row = found["outputs"][0]
    assert row["runId"] == "wf-1-aaaaaa" and len(row["shortId"]) == 6 and row["attempt"] == "run-1"
    assert (row["outFile"], row["outBytes"], row["recordedOk"], row["ok"]) == (str(path), len(WORK), True, True)
    assert row["reason"] == "content passed all gates" and row["lane"] == "analyze"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty output"),
        ("I'll look at the parser now.", "announcement without substance"),
        ("Error: it broke", "failure pattern at output head or tail"),
        ('{"error": "x"}', "structured: error object, not an answer"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_an_output_that_was_recorded_ok_and_does_not_pass_fails_the_command(
    desk: Desk, text: str | None, reason: str
) -> None:
    desk.keep("wf-1-aaaaaa", WORK)
    desk.keep("wf-2-bbbbbb", text)
    code, printed = desk.health()
    assert code == 1
    assert f"run-1 · {reason} · recorded ok" in printed and printed.startswith("✗")
    assert "2 outputs checked · 1 fails the gate · 1 of them recorded ok" in printed


def test_what_was_recorded_as_failed_may_fail_again(desk: Desk) -> None:
    desk.keep("wf-1-aaaaaa", "Error: it broke", ok=False)
    code, found = desk.document()
    assert code == 0 and found["failing"] == 1 and found["regressed"] == 0


@pytest.mark.parametrize("lane", ["build", "chore"])
@pytest.mark.parametrize(
    "words",
    ["I wrote hello.py.", "I'll stop here.", "Error: it broke", "Fixed the 'command not found' in deploy.sh.", ""],
)
def test_the_words_beside_a_change_are_never_judged_as_an_answer(desk: Desk, lane: str, words: str) -> None:
    desk.keep("wf-1-aaaaaa", words, lane=lane)
    code, printed = desk.health()
    assert (code, printed) == (0, "1 output checked · 0 fail the gate · 0 of them recorded ok\n")


def test_the_output_of_a_change_must_still_be_there(desk: Desk) -> None:
    desk.keep("wf-1-aaaaaa", None, lane="build")
    code, printed = desk.health()
    assert code == 1 and printed.startswith("✗") and "1 fails the gate · 1 of them recorded ok" in printed


def test_a_short_answer_is_no_failure_and_is_not_listed_as_one(desk: Desk) -> None:
    desk.keep("wf-1-aaaaaa", "42")
    code, found = desk.document()
    assert code == 0 and (found["failing"], found["regressed"]) == (0, 0)
    assert found["outputs"][0]["reason"] == "a short answer, which a text gate can't judge"


def test_the_exit_code_the_marks_and_the_count_agree(desk: Desk) -> None:
    texts = [
        ("Error: it broke", True),
        ("Error: it broke", False),
        ("42", True),
        ("I'll look now.", True),
        (WORK, True),
    ]
    for place, (text, ok) in enumerate(texts):
        desk.keep(f"wf-{place}-aaaaaa", text, ok=ok)
    code, printed = desk.health()
    lines = printed.splitlines()
    assert code == 1 and lines[-1] == "5 outputs checked · 3 fail the gate · 2 of them recorded ok"
    assert sum(line.startswith("✗") for line in lines) == sum("recorded ok ·" in line for line in lines) == 2


def test_outputs_that_no_record_speaks_of_are_judged_and_never_fail_the_command(desk: Desk) -> None:
    folder = desk.home.workflows_dir / "wf-old"
    folder.mkdir(parents=True)
    (folder / "out-plan-attempt-2.md").write_text("")
    (folder / "out-linked.md").symlink_to("/etc/passwd")
    code, found = desk.document()
    assert code == 0
    assert [(row["runId"], row["attempt"], row["recordedOk"], row["ok"]) for row in found["outputs"]] == [
        ("wf-old", "plan-attempt-2", None, False)
    ]


def test_a_huge_output_is_judged_by_its_ends(tmp_path: Path) -> None:
    path = tmp_path / "out.md"
    path.write_bytes(WORK.encode() * 20_000 + b"\xff\nError: it broke at the very end\n")
    found = check(SavedOutput("wf-1", path, recorded_ok=True))
    assert found.reason == "failure pattern at output head or tail" and found.size == path.stat().st_size
    path.write_bytes(WORK.encode() * 20_000)
    assert check(SavedOutput("wf-1", path)).ok


@pytest.mark.parametrize("payload", ["{}", "[1]", "not json", '{"step": "none"}'])
def test_a_damaged_journal_spoils_no_other_run(desk: Desk, payload: str) -> None:
    desk.keep("wf-good", WORK)
    desk.keep("wf-bad", WORK)
    connection = open_database(desk.home)
    assert connection is not None
    connection.execute("UPDATE events SET payload = ? WHERE run = 'wf-bad' AND type = 'attempt.picked'", (payload,))
    connection.commit()
    connection.close()
    code, found = desk.document()
    assert (code, found["checked"]) == (0, 2)
    assert {row["runId"]: row["recordedOk"] for row in found["outputs"]} == {"wf-good": True, "wf-bad": None}
    assert [row["runId"] for row in found["damaged"]] == ["wf-bad"] and "damaged" in found["damaged"][0]["reason"]


def test_an_unknown_flag_is_refused(desk: Desk) -> None:
    with pytest.raises(SystemExit) as refused:
        desk.health("--jso")
    assert refused.value.code == 2
