"""The pure rules of evidence: what a result says, what a series comes to, and how far a step is proven."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.judging.evidence import (
    AFTER_A_CHANGE,
    LONGEST_LINE,
    MOST_ERRORS,
    MOST_TOUCHED,
    STOPPED,
    TAIL_LINES,
    DataCheck,
    DataProblem,
    Finding,
    Ran,
    changed_deliverable,
    failure_words,
    of_command,
    of_data,
    outcome,
    proof_label,
    result,
    tail_of,
)
from bullswarm_core.program.model import Evidence

PYTEST = Evidence("command", cmd="pytest -q", timeout_sec=90)
DATA = Evidence("schema", file="d.json")
LINES = Evidence("schema", file="d.jsonl", format="jsonl")
DASH, BASH, OLD_BASH = (
    "/bin/sh: 1: t: not found",
    "/bin/sh: line 1: t: command not found",
    "/bin/sh: t: command not found",
)


@pytest.mark.parametrize(
    ("ran", "tail", "status", "why", "by_check"),
    [
        (Ran(0), "", "passed", None, False),
        (Ran(1), "boom", "failed", "exit 1", False),
        (Ran(137), "", "failed", "exit 137", False),
        (Ran(-9), "", "failed", "killed by SIGKILL", False),
        (Ran(-63), "", "failed", "killed by signal 63", False),
        (Ran(None, timed_out=True), "", "failed", "timed out after 90s", False),
        (Ran(None, stopped=True), "", "not-run", "stopped", False),
        (Ran(127), f"words\n{DASH}", "failed", "could not start: t: command not found", True),
        (Ran(127), BASH, "failed", "could not start: t: command not found", True),
        (Ran(127), OLD_BASH, "failed", "could not start: t: command not found", True),
        (Ran(1), BASH, "failed", "exit 1", False),
        (Ran(127), "sh: 1: t: not found", "failed", "exit 127", False),
        (Ran(127), "/bin/sh: 1: ./t.sh: not found", "failed", "exit 127", False),
        (Ran(127), f"{BASH}\nmore", "failed", "exit 127", False),
    ],
)
def test_a_command(ran: Ran, tail: str, status: str, why: str | None, by_check: bool) -> None:
    found = of_command(PYTEST, ran, tail)
    assert (found.status, found.why, found.by_check) == (status, why, by_check)


@pytest.mark.parametrize(
    ("item", "check", "status", "why", "by_check"),
    [
        (DATA, DataCheck(records=1), "passed", None, False),
        (DATA, DataCheck(unreadable="d.json: it is missing"), "failed", "d.json: it is missing", False),
        (DATA, DataCheck(unchecked="no"), "failed", "check could not run: no", True),
        (DATA, DataCheck(error_count=1), "failed", "not valid: 1 error", False),
        (DATA, DataCheck(error_count=2), "failed", "not valid: 2 errors", False),
        (LINES, DataCheck(), "failed", "no records", False),
        (LINES, DataCheck(records=1), "passed", None, False),
    ],
)
def test_data(item: Evidence, check: DataCheck, status: str, why: str | None, by_check: bool) -> None:
    found = of_data(item, check)
    assert (found.status, found.why, found.by_check) == (status, why, by_check)


def test_a_changed_deliverable_is_named_and_bounded() -> None:
    assert changed_deliverable(["a", "b"]).why == "changed the deliverable: a, b"
    assert changed_deliverable(list("abcdefg")).why == "changed the deliverable: a, b, c, d, e and 2 more"


def test_a_result_is_bounded_and_whole() -> None:
    errors = tuple(DataProblem("#", str(number)) for number in range(100))
    found = result(
        DATA,
        Finding("failed", "x" * 1000, by_check=True),
        ran=Ran(1, duration_ms=5),
        check=DataCheck(errors=errors, error_count=100),
        touched=[str(number) for number in range(99)],
        head_moved=True,
    )
    assert set(found) == {
        "type", "file", "status", "exit", "durationMs", "tail", "log", "why", "errorCount", "errors", "touched",
        "headMoved", "fault",
    }  # fmt: skip
    assert (len(found["errors"]), found["errorCount"], len(found["touched"])) == (MOST_ERRORS, 100, MOST_TOUCHED)
    assert len(found["why"]) == 400 and found["fault"] == "check"
    assert "fault" not in result(PYTEST, Finding("passed")) and result(PYTEST, Finding("passed"))["cmd"] == "pytest -q"


PASSED, FAILED = Finding("passed"), Finding("failed", "exit 1")
BROKEN = Finding("failed", "could not start: t", by_check=True)


@pytest.mark.parametrize(
    ("findings", "came_to"),
    [
        ([], "passed"),
        ([PASSED, PASSED], "passed"),
        ([PASSED, FAILED], "failed"),
        ([FAILED, AFTER_A_CHANGE], "failed"),
        ([FAILED, BROKEN], "check-failed"),
        ([PASSED, STOPPED], "stopped"),
        ([FAILED, STOPPED], "stopped"),
    ],
)
def test_what_a_series_comes_to(findings: list[Finding], came_to: str) -> None:
    assert outcome([result(PYTEST, finding) for finding in findings]) == came_to


def test_the_words_of_a_failure() -> None:
    check = DataCheck(errors=(DataProblem("#/n", "'x' is\nno integer"),), error_count=1)
    invalid = result(DATA, of_data(DATA, check), check=check)
    failed, passed = result(PYTEST, FAILED), result(PYTEST, PASSED)
    assert failure_words([passed]) == ""
    assert failure_words([passed, failed]) == "pytest -q → exit 1"
    assert failure_words([invalid]) == "schema of d.json → not valid: 1 error (#/n: 'x' is no integer)"
    assert failure_words([failed, invalid, failed]) == "pytest -q → exit 1 · 2 more checks failed"
    assert failure_words([failed, result(PYTEST, AFTER_A_CHANGE)]) == "pytest -q → exit 1"


@pytest.mark.parametrize(
    ("output", "tail"),
    [
        (b"", ""),
        (b"a\nb\n\n\n", "a\nb"),
        (b"10%\r20%\r\nend", "20%\nend"),
        (b"10%\r20%\r", "20%"),
        (b"\x1b[1mbold\x1b[0m \x07", "bold"),
        (b"\tindented", "    indented"),
        (b"\xff", "\ufffd"),
    ],
)
def test_the_tail(output: bytes, tail: str) -> None:
    assert tail_of(output) == tail


@given(st.binary(max_size=5000) | st.lists(st.text(), max_size=60).map(lambda lines: "\n".join(lines).encode()))
def test_a_tail_is_always_fit_to_be_shown(output: bytes) -> None:
    lines = tail_of(output).split("\n")
    assert len(lines) <= TAIL_LINES and all(len(line) <= LONGEST_LINE and "\x1b" not in line for line in lines)
    json.dumps(lines).encode()


@pytest.mark.parametrize(
    ("known", "label"),
    [
        ({}, "finished · unproven"),
        ({"results": []}, "finished · unproven"),
        ({"answer_checked": True}, "answer checked"),
        ({"answer_checked": True, "reviewed": True}, "proven by review"),
        ({"results": [result(PYTEST, PASSED)], "reviewed": True}, "proven by command"),
        ({"results": [result(DATA, PASSED)]}, "proven by schema"),
        ({"results": [result(DATA, PASSED), result(PYTEST, PASSED)]}, "proven by command and schema"),
        ({"results": [result(DATA, PASSED), result(PYTEST, FAILED)], "answer_checked": True}, "answer checked"),
        ({"results": [result(PYTEST, FAILED)], "accepted": True}, "accepted by choice"),
    ],
)
def test_how_far_a_step_is_proven(known: dict[str, Any], label: str) -> None:
    assert proof_label(**known) == label
