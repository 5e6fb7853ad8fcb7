"""Which tool calls of a Codex thread were refused, read from its rollout file as Codex 0.171 writes it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm_core.streams.facts import Denial
from bullswarm_providers.codex import rollout
from bullswarm_providers.codex.rollout import denials_in_rollout, refusals, rollout_of

THREAD = "01a22b27-33d8-71a1-b7a8-526994a1f1a7"
READ_ONLY = "/bin/bash: line 1: /w/in.txt: Read-only file system\n"
PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: /w/in.txt\n+x\n*** End Patch\nEOF"
REJECTED = "patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings"


def record(at: str = "2026-11-30T06:32:01.956Z", **payload: Any) -> dict[str, Any]:
    return {"timestamp": at, "ordinal": 9, "type": "response_item", "payload": payload}


def called(number: int, command: str, name: str = "exec_command", **more: Any) -> dict[str, Any]:
    return record(type="function_call", name=name, arguments=json.dumps({"cmd": command}), call_id=f"c{number}", **more)


def answered(number: int, output: Any, **more: Any) -> dict[str, Any]:
    return record(type="function_call_output", call_id=f"c{number}", output=output, **more)


def report(code: int, said: str) -> str:
    head = f"Chunk ID: a5da7e\nWall time: 0.0000 seconds\nProcess exited with code {code}\nOriginal token count: 19"
    return f"{head}\nOutput:\n{said}"


def lines(*records: Any) -> list[bytes]:
    return [json.dumps(one).encode() + b"\n" for one in records]


def keep(folder: Path, *records: Any, thread: str = THREAD, day: str = "2026/11/30") -> Path:
    place = folder / "sessions" / day
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"rollout-2026-11-30T06-31-59-{thread}.jsonl"
    path.write_bytes(b"".join(lines(*records)))
    return path


def test_a_command_that_the_sandbox_stopped() -> None:
    found = list(refusals(lines(called(1, "echo x > in.txt"), answered(1, report(1, READ_ONLY)))))
    assert found == [Denial("command_execution", READ_ONLY, "echo x > in.txt", "system")]


def test_a_rejected_patch_names_its_file() -> None:
    assert list(refusals(lines(called(1, PATCH), answered(1, REJECTED)))) == [
        Denial("apply_patch", REJECTED, "/w/in.txt", "cli")
    ]


def test_a_patch_of_the_freeform_tool() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n*** End Patch"
    call = record(type="custom_tool_call", name="apply_patch", input=patch, call_id="c1")
    output = record(type="custom_tool_call_output", call_id="c1", output=[{"type": "input_text", "text": REJECTED}])
    assert list(refusals(lines(call, output))) == [Denial("apply_patch", REJECTED, "a.py", "cli")]


@pytest.mark.parametrize(
    "output",
    [
        "`/bin/bash -lc 'rm -f nothing'` rejected: rm -f style commands are not permitted. Use a safer approach",
        "approval policy is Never; reject command — you cannot ask for escalated permissions if the approval policy is Never",
        {"content": REJECTED, "success": False},
    ],
)
def test_codex_refuses_by_itself(output: Any) -> None:
    (denial,) = refusals(lines(called(1, "rm -f nothing"), answered(1, output)))
    assert (denial.tool, denial.by) == ("command_execution", "cli")


@pytest.mark.parametrize(
    "output",
    [
        report(0, "Permission denied (in the text of a file)"),
        report(0, READ_ONLY),
        report(3, "1 test failed"),
        "Process running with session ID 4",
        "unsupported call: update_plan",
        None,
        7,
    ],
)
def test_what_is_no_refusal(output: Any) -> None:
    assert list(refusals(lines(called(1, "make"), answered(1, output)))) == []


def test_words_in_the_command_or_the_report_are_no_refusal() -> None:
    assert list(refusals(lines(called(1, "grep 'patch rejected' log"), answered(1, report(1, ""))))) == []


def test_only_the_calls_of_this_run_count() -> None:
    records = lines(
        called(1, "old"), answered(1, report(1, READ_ONLY)),
        called(2, "new", at="2026-11-30T08:00:00Z"), answered(2, report(1, READ_ONLY), at="2026-11-30T08:00:01Z"),
    )  # fmt: skip
    found = refusals(records, since=datetime(2026, 11, 30, 7, tzinfo=UTC))
    assert [denial.target for denial in found] == ["new"]


def test_what_the_stream_told_is_not_told_twice(tmp_path: Path) -> None:
    keep(
        tmp_path,
        called(1, "one"), answered(1, report(1, READ_ONLY)), called(2, "two"), answered(2, report(1, READ_ONLY)),
    )  # fmt: skip
    known = Denial("command_execution", READ_ONLY.strip(), "/bin/bash -lc one", "system")
    assert [denial.target for denial in denials_in_rollout(tmp_path, THREAD, known=[known])] == ["two"]
    assert len(denials_in_rollout(tmp_path, THREAD)) == 2


def test_only_the_rollout_of_the_thread_is_read(tmp_path: Path) -> None:
    keep(tmp_path, called(1, "x"), answered(1, report(1, READ_ONLY)), thread="0" * 36)
    assert denials_in_rollout(tmp_path, THREAD) == ()
    path = keep(tmp_path, called(1, "x"), answered(1, report(1, READ_ONLY)), day="2026/11/29")
    assert rollout_of(tmp_path, THREAD) == path
    assert len(denials_in_rollout(tmp_path, THREAD)) == 1


@pytest.mark.parametrize("thread", [None, "", "../../../etc", "*", "a" * 65, f"{THREAD}\n"])
def test_a_thread_id_is_no_pattern_and_no_path(tmp_path: Path, thread: str | None) -> None:
    keep(tmp_path, called(1, "x"), answered(1, report(1, READ_ONLY)))
    assert denials_in_rollout(tmp_path, thread) == ()


def test_a_rollout_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    path = keep(tmp_path)
    path.unlink()
    path.mkdir()
    assert denials_in_rollout(tmp_path, THREAD) == ()
    assert denials_in_rollout(tmp_path / "none", THREAD) == ()


def test_a_huge_rollout_is_read_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = keep(tmp_path, called(1, "x"), answered(1, report(1, READ_ONLY)))
    long_line = b'{"payload":{"type":"function_call_output","call_id":"c1","output":"' + b"y" * 3_000_000 + b'"}}\n'
    path.write_bytes(long_line + path.read_bytes())
    assert len(denials_in_rollout(tmp_path, THREAD)) == 1
    monkeypatch.setattr(rollout, "_LARGEST_ROLLOUT", 2_000_000)
    assert denials_in_rollout(tmp_path, THREAD) == ()


def test_at_most_64_are_given(tmp_path: Path) -> None:
    records = [one for n in range(90) for one in (called(n, "x"), answered(n, report(1, READ_ONLY)))]
    keep(tmp_path, *records)
    assert len(denials_in_rollout(tmp_path, THREAD)) == 64


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just("function_call") | st.just("function_call_output"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["payload", "type", "call_id", "output", "content", "text", "arguments", "name", "timestamp"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


@given(st.lists(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()), max_size=6))
def test_no_rollout_raises(content: list[bytes]) -> None:
    since = datetime(2026, 11, 30, tzinfo=UTC)
    for denial in refusals([b"_call " + line for line in content] + content, since=since):
        assert denial.reason
