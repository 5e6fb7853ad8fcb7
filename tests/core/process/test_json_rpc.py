"""A child that is asked in JSON-RPC may say anything, in any order, or nothing: each talk ends, and so does the child."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.core.keeper.keeping import wait_for

from bullswarm_core.errors import MeterError, WorkerStartError
from bullswarm_core.process import json_rpc
from bullswarm_core.process.child import marked
from bullswarm_core.process.descendants import parents
from bullswarm_core.process.json_rpc import LineRpc, Reply

MARK = "BULLSWARM_TEST_RPC"
START = """
import json, os, sys, time
def say(**message): print(json.dumps(message), flush=True)
def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)
"""


@contextmanager
def child(code: str, *, timeout_sec: float = 20, mark: str = "1") -> Iterator[LineRpc]:
    argv = [sys.executable, "-I", "-S", "-c", START + code]
    with LineRpc(argv, cwd="/", environ={MARK: mark}, timeout_sec=timeout_sec) as talk:
        yield talk


def test_questions_and_answers_take_turns() -> None:
    code = """
while True:
    asked = hear()
    if "id" in asked: say(id=asked["id"], result=[asked["jsonrpc"], asked["method"], asked["params"]])
"""
    with child(code) as talk:
        assert talk.ask("one", {"a": "ä"}) == Reply(["2.0", "one", {"a": "ä"}])
        talk.tell("thanks")
        assert talk.ask("two") == Reply(["2.0", "two", {}])


def test_what_stands_between_is_passed_over() -> None:
    code = """
asked = hear()
say(method="news", params={"id": 1})
print("no json"); print(); print("[1]"); print("null"); print('"x"'); print("{" * 100000)
say(id=77, result="of another question"); say(id=None, result="of none"); say(result="without an id")
sys.stdout.buffer.write(b"\\xff\\xfe\\n"); sys.stdout.flush()
say(id=str(asked["id"]), result="mine")
hear()
"""
    with child(code) as talk:
        assert talk.ask("it") == Reply("mine")


def test_an_answer_without_a_line_feed_before_the_end() -> None:
    with child("sys.stdout.write(json.dumps({'id': hear()['id'], 'result': 5}))") as talk:
        assert talk.ask("it") == Reply(5)


def test_a_question_of_the_childs_is_refused_and_ours_goes_on() -> None:
    code = """
asked = hear()
say(id="c1", method="fs/read", params={})
answer = hear()
say(id=asked["id"], result=answer)
"""
    with child(code) as talk:
        reply = talk.ask("it")
    assert reply.result["id"] == "c1"
    assert reply.result["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ({"code": -32600, "message": "no account"}, -32600, "no account"),
        ({"code": "x", "message": 5}, 0, "5"),
        ({"code": True}, 0, ""),
        ("refused", 0, ""),
        ({"code": 1, "message": "m" * 9_000}, 1, "m" * 4_000),
    ],
)
def test_a_refusal(error: object, code: int, message: str) -> None:
    with child(f"say(id=hear()['id'], error={error!r}); hear()") as talk:
        assert talk.ask("it") == Reply(None, code, message)


def test_a_line_beyond_the_cap_is_let_go() -> None:
    code = """
asked = hear()
say(id=asked["id"], result="x" * (3 << 20))
say(id=asked["id"], result="short")
hear()
"""
    with child(code) as talk:
        assert talk.ask("it") == Reply("short")


def test_a_flood_without_an_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rpc, "TALK_LIMIT", 2 << 20)
    with (
        pytest.raises(MeterError, match="said more than 2 MB") as raised,
        child("while True: print('x' * 999)") as talk,
    ):
        talk.ask("it")
    assert raised.value.kind == "unreachable"


def test_a_large_question_to_a_child_that_talks_first() -> None:
    code = """
for _ in range(4000): say(method="news", params={"text": "n" * 200})
asked = hear()
say(id=asked["id"], result=len(asked["params"]["text"]))
hear()
"""
    with child(code) as talk:
        assert talk.ask("it", {"text": "q" * 900_000}) == Reply(900_000)


def test_silence_ends_with_the_time_that_was_given() -> None:
    begun = time.monotonic()
    silent = child("hear(); time.sleep(60)", timeout_sec=0.5)
    with pytest.raises(MeterError, match=r"did not answer it within 0\.5 s") as raised, silent as talk:
        talk.ask("it")
    assert raised.value.kind == "unreachable"
    assert time.monotonic() - begun < 10


def test_a_child_that_never_reads_its_stdin() -> None:
    with pytest.raises(MeterError, match="did not answer"), child("time.sleep(60)", timeout_sec=0.5) as talk:
        talk.ask("it", {"text": "q" * 900_000})


def test_an_early_death_is_told_at_once_and_without_its_stderr() -> None:
    begun = time.monotonic()
    code = "print('the token is sk-secret', file=sys.stderr); sys.exit(3)"
    with pytest.raises(MeterError) as raised, child(code) as talk:
        talk.ask("it")
    assert "sk-secret" not in str(raised.value)
    assert raised.value.kind == "unreachable"
    assert time.monotonic() - begun < 10


def test_a_grandchild_that_holds_the_pipe_keeps_nobody() -> None:
    code = "hear(); os.fork() or time.sleep(60); os._exit(0)"
    with pytest.raises(MeterError, match="ended before it answered"), child(code) as talk:
        talk.ask("it")


def test_nothing_of_it_is_left(tmp_path: Path) -> None:
    mark = str(tmp_path)
    code = """
import subprocess
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
say(id=hear()["id"], result="ready")
time.sleep(60)
"""
    with child(code, mark=mark, timeout_sec=2) as talk:
        assert talk.ask("it") == Reply("ready")
        assert len(marked(f"{MARK}={mark}", parents())) == 2
    wait_for(lambda: not marked(f"{MARK}={mark}", parents()))


def test_a_child_may_end_by_itself_once_its_stdin_is_closed(tmp_path: Path) -> None:
    done = tmp_path / "done"
    code = f"say(id=hear()['id'], result=1); sys.stdin.read(); open({str(done)!r}, 'w').close()"
    with child(code) as talk:
        talk.ask("it")
    assert done.exists()


def test_a_binary_that_is_not_there() -> None:
    talk = LineRpc(["/nowhere/codex", "app-server"], cwd="/", environ={}, timeout_sec=1)
    with pytest.raises(WorkerStartError, match="/nowhere/codex"), talk:
        raise AssertionError("it was started")


def test_no_file_stays_open() -> None:
    if not os.path.isdir("/proc/self/fd"):  # noqa: PTH112
        pytest.skip("open files can be counted on Linux only")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with child("say(id=hear()['id'], result=1)") as talk:
        talk.ask("it")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
