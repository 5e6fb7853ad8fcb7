"""`bullswarm mcp` as a process: the handshake, what is on the wire, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from tests.processes import until
from tests.server.mcp.calling import MODES, Mode
from tests.server.mcp.stdio import INTRODUCTION, Server
from tests.server.site import SAY, WAIT_FOR_GO, Site

# Asked for: within a second. A machine that is busy with other tests gets some of it on top.
ENDS_WITHIN_SEC = 1.0
BUSY_SEC = 1.0
# A module of ours that fails to import, whatever the reason, once the front has answered.
BROKEN = (
    "import sys; sys.modules['bullswarm_server.mcp.transport'] = None\n"
    "from bullswarm_server.mcp.stdio import serve; serve()"
)
NOISY = (
    "import os, sys, types; noise = types.ModuleType('bullswarm_server.mcp.transport')\n"
    "def run(front, wire, ended):\n"
    "    print('NOISE'); sys.stdout.flush(); os.write(1, b'NOISE'); os.system('echo NOISE; cat'); ended.wait()\n"
    "noise.run = run; noise.refuse_foreign_home = lambda: None; sys.modules['bullswarm_server.mcp.transport'] = noise\n"
    "from bullswarm_server.mcp.stdio import serve; serve()"
)


@pytest.fixture
def start(site: Site) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def begin(**more: Any) -> Server:
        servers.append(Server(site, **more))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()


def task(site: Site, **more: Any) -> dict[str, Any]:
    return {"name": "run", "arguments": {"lane": "analyze", "cwd": str(site.project), "prompt": "Explain.", **more}}


@pytest.mark.parametrize("mode", MODES)
async def test_the_sdks_client_runs_a_task_over_stdio(site: Site, mode: Mode) -> None:
    site.worker("alpha", SAY)
    words = ["-m", "bullswarm_server.cli.main", "mcp"]
    parameters = StdioServerParameters(command=sys.executable, args=words, env=site.environ, cwd="/")
    async with Client(parameters, mode=mode) as client:
        before = await client.list_tools()
        result = await client.call_tool("run", task(site)["arguments"])
        after = await client.list_tools()
    assert (result.structured_content or {})["ok"] is True
    assert [tool.model_dump() for tool in before.tools] == [tool.model_dump() for tool in after.tools]


def test_answers_before_and_after_loading_are_the_same(start: Callable[..., Server]) -> None:
    server = start()
    server.introduce()
    methods = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "ping")
    before = [server.ask(method, f"a{method}")["result"] for method in methods]
    assert not server.tool("label", "loads")["isError"]
    assert [server.ask(method, f"b{method}")["result"] for method in methods] == before
    assert [message["id"] for message in server.said].count(0) == 1


def test_a_cancelled_request_gets_no_answer_and_its_work_goes_on(site: Site, start: Callable[..., Server]) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    server = start()
    server.introduce()
    server.send("tools/call", 1, {**task(site), "_meta": {"progressToken": 1}})
    site.happened("attempt.launched")
    server.send("notifications/cancelled", params={"requestId": 1, "reason": "AbortError"})
    assert server.ask("ping", 2)["result"] == {}
    site.go()
    done = server.tool("run", 3, run_id="last")["structuredContent"]
    assert (done["ok"], done["state"]) == (True, "finished")
    assert 1 not in [message.get("id") for message in server.said]


def test_a_call_that_is_cancelled_while_the_server_loads_is_never_begun(
    site: Site, start: Callable[..., Server]
) -> None:
    site.worker("alpha", SAY)
    server = start()
    server.introduce()
    server.send("tools/call", 1, task(site))
    server.send("notifications/cancelled", params={"requestId": 1})
    assert server.tool("runs", 2, op="list")["structuredContent"]["runs"] == []
    assert 1 not in [message.get("id") for message in server.said]


def test_ended_kernels_leave_no_zombies_behind(site: Site, start: Callable[..., Server]) -> None:
    site.worker("alpha", SAY)
    server = start()
    server.introduce()
    for number in range(3):
        assert server.tool("run", number, **task(site)["arguments"])["structuredContent"]["ok"] is True

    def zombies() -> list[str]:
        server.tool("label", "look")
        return [
            child
            for tasks in Path(f"/proc/{server.process.pid}/task").glob("*/children")
            for child in tasks.read_text().split()
        ]

    until(lambda: not zombies(), "no child is left")


def test_a_pipe_that_does_not_block_loses_nothing(site: Site) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    words = [sys.executable, "-m", "bullswarm_server.cli.main", "mcp"]
    process = subprocess.Popen(words, env=site.environ, stdin=subprocess.PIPE, stdout=writing)
    os.close(writing)
    messages = [{"id": 0, "method": "initialize", "params": INTRODUCTION}]
    messages += [{"id": number, "method": "tools/list"} for number in range(1, 60)]
    assert process.stdin is not None
    process.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages))
    process.stdin.flush()
    # The answers take several times what a pipe holds.
    time.sleep(0.5)
    with open(reading, "rb") as answers:
        assert [json.loads(answers.readline())["id"] for _ in messages] == list(range(60))
        process.stdin.close()
        process.wait()


def test_progress_is_sent_with_the_clients_token(site: Site, start: Callable[..., Server]) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    server = start()
    server.introduce()
    server.send("tools/call", 1, {**task(site), "_meta": {"progressToken": "token"}})
    progress = until(
        lambda: [said for said in server.said if said.get("method") == "notifications/progress"], "progress"
    )
    assert progress[0]["params"]["progressToken"] == "token"
    assert progress[0]["params"]["progress"] >= 3
    assert "[alpha] working" in progress[0]["params"]["message"]
    site.go()
    assert server.answer_to(1)["result"]["structuredContent"]["ok"] is True


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize(
    ("way", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129), (None, 0)],
    ids=lambda value: str(value),
)
def test_it_ends_within_a_second_and_leaves_the_work_to_its_kernel(
    site: Site, start: Callable[..., Server], way: signal.Signals | None, code: int, loaded: bool
) -> None:
    site.worker("alpha", WAIT_FOR_GO)
    server = start()
    server.introduce()
    if loaded:
        server.send("tools/call", 1, task(site))
        site.happened("attempt.launched")
    if way is None:
        server.end_of_input()
    else:
        server.process.send_signal(way)
    assert server.seconds_to_end() < ENDS_WITHIN_SEC + BUSY_SEC
    assert server.process.returncode == code
    assert server.process.pid not in site.processes()
    if loaded:
        assert site.kernel() in site.processes()
        site.go()
        assert site.say("runs", "wait", "last", "--json").document["ok"] is True


def test_it_ends_with_its_parent_though_others_hold_its_pipes(site: Site, tmp_path: Any) -> None:
    note, reading = tmp_path / "pid", os.pipe()
    script = (
        "import subprocess, sys, time\n"
        "server = subprocess.Popen([sys.executable, '-m', 'bullswarm_server.cli.main', 'mcp'], stdout=subprocess.DEVNULL)\n"
        f"open({str(note)!r}, 'w').write(str(server.pid))\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], env=site.environ, stdin=reading[0], stderr=subprocess.DEVNULL
    )
    try:
        pid = int(until(lambda: note.exists() and note.read_text(), "the server was started"))
        time.sleep(1.0)
        assert pid in site.processes()
        parent.kill()
        parent.wait()
        until(lambda: pid not in site.processes(), "the server ended", seconds=ENDS_WITHIN_SEC + BUSY_SEC)
    finally:
        parent.kill()
        parent.wait()
        for descriptor in reading:
            os.close(descriptor)


def test_nothing_but_json_is_ever_on_the_wire(start: Callable[..., Server]) -> None:
    server = start(code=NOISY)
    server.introduce()
    server.ask("tools/list", 1)
    time.sleep(0.6)
    server.end_of_input()
    server.seconds_to_end()
    server.close()
    assert [message["id"] for message in server.said] == [0, 1]
    assert server.errors.count(b"NOISE") == 3


def test_a_server_that_cannot_load_says_so_and_what_to_do(start: Callable[..., Server]) -> None:
    server = start(code=BROKEN)
    server.introduce()
    assert server.ask("tools/list", 1)["result"]["tools"]
    error = server.ask("tools/call", 2, {"name": "pools"})["error"]
    assert error["code"] == -32603
    assert "run `bullswarm doctor`" in error["message"]
    server.end_of_input()
    assert server.seconds_to_end() < ENDS_WITHIN_SEC + BUSY_SEC


def test_lines_may_come_in_any_pieces(start: Callable[..., Server]) -> None:
    server = start()
    line = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INTRODUCTION}).encode()
    more = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    for piece in (line[:10], line[10:200], line[200:] + b"\r\n\n\n" + more[:5], more[5:] + b"\n"):
        server.write(piece)
        time.sleep(0.05)
    assert server.answer_to(0)["result"]["serverInfo"]["name"] == "bullswarm"
    assert server.answer_to(1)["result"]["tools"]


def test_a_huge_message_is_taken_and_one_that_is_too_large_is_refused(site: Site, start: Callable[..., Server]) -> None:
    site.worker("alpha", SAY)
    server = start()
    server.introduce()
    huge = server.ask("tools/call", 1, task(site, prompt="x" * 9_000_000))
    assert "the task has 9000000 bytes" in huge["result"]["content"][0]["text"]
    for _ in range(65):
        server.write(b" " * (1 << 20))
    server.write(b"\n")
    assert "passed over" in server.answer_to(None)["error"]["message"]
    assert server.ask("ping", 2)["result"] == {}


def test_arguments_are_refused_and_help_is_given(site: Site) -> None:
    wrong = site.say("mcp", "--port", "1")
    assert (wrong.code, wrong.out) == (2, "")
    assert '"--port" was given' in wrong.err
    assert site.say("mcp", "--help").out.startswith("usage: bullswarm mcp")
