"""Whatever comes in: exit 0, nothing on stderr, one strict JSON document or nothing on stdout."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hooks.state import hook, hook_state_document, write_state

from bullswarm_hooks import AGENTS, answers
from bullswarm_hooks.call import Call
from bullswarm_hooks.main import LARGEST_INPUT_BYTES, answer

EVENTS = ("SessionStart", "PreToolUse", "PostToolUse", "PostToolUseFailure")
# As Claude Code 2.1.332 and Codex 0.171.0 sent them.
COMMON = {"session_id": "7c9f9662-ebe4-48ae-b28d-95a619c544ec", "transcript_path": "/t.jsonl", "cwd": "/srv/app"}
OWN_PIN = {
    **COMMON, "hook_event_name": "PreToolUse", "permission_mode": "default", "tool_name": "Bash", "tool_use_id": "t",
    "tool_input": {"command": "bullswarm run --lane build --pool me 'fix it'", "description": "d"},
}  # fmt: skip

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def strict(data: bytes) -> Any:
    """The one document; a second one, a constant that is no JSON, or a stray byte fails."""

    def refuse(name: str) -> Any:
        raise AssertionError(name)

    return json.loads(data.decode("utf-8"), parse_constant=refuse)


@pytest.fixture
def home(own_home: Path) -> Path:
    write_state(own_home / ".bullswarm", hook_state_document())
    return own_home / ".bullswarm"


def test_the_process_answers_with_one_document(home: Path) -> None:
    done = hook("claude", "PreToolUse", given=json.dumps(OWN_PIN).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    said = strict(done.stdout)["hookSpecificOutput"]
    assert said["hookEventName"] == "PreToolUse"
    assert said["permissionDecision"] == "deny"
    assert said["permissionDecisionReason"] == (
        "bullswarm: me is the caller's own pool (this session runs on it), so it can't take the work: "
        "leave the pin out, or name another pool: cx"
    )


@pytest.mark.parametrize(
    "given_bytes",
    [
        b"", b"\0", b"{", b"[]", b"null", b'"bullswarm"', b"{}bullswarm{}", b"\xff\xfe bullswarm",
        b"[" * 100_000 + b"bullswarm", b"bullswarm " * 600_000,
        json.dumps({**OWN_PIN, "hook_event_name": "Stop"}).encode(),
    ],
    ids=lambda data: data[:20],
)  # fmt: skip
def test_broken_input_is_silence(home: Path, given_bytes: bytes) -> None:
    for event in EVENTS:
        done = hook("claude", event, given=given_bytes)
        assert (done.returncode, done.stderr) == (0, b""), event
        assert done.stdout == b"", event


def test_a_huge_input_is_read_to_its_end(home: Path) -> None:
    huge = json.dumps({**OWN_PIN, "more": "x" * LARGEST_INPUT_BYTES}).encode()
    done = hook("claude", "PreToolUse", given=huge)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "words",
    [(), ("claude",), ("grok", "PreToolUse"), ("claude", "Stop"), ("claude", "PreToolUse", "more"), ("--help", "x")],
)
def test_a_call_that_is_not_ours_is_silence(home: Path, words: tuple[str, ...]) -> None:
    done = hook(*words, given=json.dumps({**OWN_PIN, "hook_event_name": "Stop"}).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "environ", [{"BULLSWARM_DEPTH": "1"}, {"BULLSWARM_DEPTH": "x"}, {"GROK_HOOK_EVENT": "pre_tool_use"}]
)
def test_in_a_worker_and_in_grok_everything_is_silent(home: Path, environ: dict[str, str]) -> None:
    for event in EVENTS:
        done = hook("claude", event, given=json.dumps({**OWN_PIN, "hook_event_name": event}).encode(), environ=environ)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (home / "cache" / "callers").exists()


def test_depth_zero_is_no_worker(home: Path) -> None:
    assert hook("claude", "PreToolUse", given=json.dumps(OWN_PIN).encode(), environ={"BULLSWARM_DEPTH": "0"}).stdout


def _break(file: Path, how: str) -> None:
    if how == "absent":
        file.unlink()
    elif how == "fifo":
        file.unlink()
        os.mkfifo(file)
    elif how == "folder":
        file.unlink()
        file.mkdir()
    elif how == "huge":
        file.write_bytes(b" " * (2 << 20) + b"{}")
    else:
        file.write_bytes(how.encode())


@pytest.mark.parametrize(
    "how",
    [
        "absent", "fifo", "folder", "huge", "", "{", "[]", '{"schemaVersion": "bullswarm.hook-state.v2"}',
        '{"schemaVersion": "bullswarm.hook-state.v1"}', '{"schemaVersion": "bullswarm.hook-state.v1", "at": "yesterday"}',
        '{"schemaVersion": "bullswarm.hook-state.v1", "at": "2026-01-01T00:00:00Z", "pools": {"a": 1}, "runs": 3}',
        '{"schemaVersion": "bullswarm.hook-state.v1", "at": "2026-01-01T00:00:00Z", "pools": [null, {"pool": 3}, {"pool": "x", '
        '"windows": [1, {"kind": "5h", "usedPct": "a"}], "surplus": "much", "poolLabel": 4}], "runs": [{"shortId": "a"}]}',
    ],
)  # fmt: skip
def test_state_that_is_missing_or_damaged_is_silence(home: Path, how: str) -> None:
    _break(home / "cache" / "hook-state.json", how)
    for event in EVENTS:
        started = time.monotonic()
        done = hook("claude", event, given=json.dumps({**OWN_PIN, "hook_event_name": event}).encode())
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert time.monotonic() - started < 2.5


def test_a_home_that_may_not_be_written_is_silence(home: Path) -> None:
    (home / "cache" / "callers").write_text("a file where a folder should be")
    done = hook("claude", "SessionStart", given=json.dumps(COMMON).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"pools by surplus" in done.stdout


def test_an_input_that_never_ends_meets_the_deadline(home: Path) -> None:
    import subprocess

    code = "import sys; from bullswarm_hooks import main; main.DEADLINE_SEC = 0.3; sys.exit(main.main())"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        [sys.executable, "-c", code, "claude", "SessionStart"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environ,
    ) as process:
        assert process.wait(timeout=20) == 0
        assert process.stdout is not None and process.stdout.read() == b""


def test_a_closed_output_is_no_error(home: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    import subprocess

    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    code = "import sys; from bullswarm_hooks.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "claude", "PreToolUse"], input=json.dumps(OWN_PIN).encode(), stdout=writer,
        stderr=subprocess.PIPE, env=environ, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@given(
    agent=st.sampled_from(sorted(AGENTS)),
    event=st.sampled_from(EVENTS),
    payload=st.dictionaries(
        st.sampled_from(["session_id", "tool_name", "tool_input", "tool_response", "cwd"]), json_values
    ),
    tool=st.sampled_from(["Bash", "Agent", "mcp__bullswarm__run", "bullswarm_run", "spawn_agent", "task", ""]),
)
def test_any_payload_gets_a_document_of_its_event_or_none(
    agent: str, event: str, payload: dict[str, Any], tool: str
) -> None:
    said = answer(
        Call(agent, event, {"tool_name": tool, **payload}, {"BULLSWARM_HOME": "/nonexistent", "HOME": "/nonexistent"})
    )
    if said is not None:
        _check_shape(event, said)


def _check_shape(event: str, said: dict[str, Any]) -> None:
    assert list(said) == ["hookSpecificOutput"]
    inner = said["hookSpecificOutput"]
    assert inner["hookEventName"] == event
    assert answers.FIELDS[event].issuperset(set(inner) - {"hookEventName"})


def test_an_event_without_a_specific_output_says_nothing() -> None:
    assert answers.context("Stop", "x") is None
    assert answers.deny("SessionStart", "x") is None
    assert answers.rewrite("PostToolUse", {}, agent="codex") is None
    assert answers.context("SessionStart", " ") is None
