"""Ten thousand messages of every wrong kind: no crash, nothing but JSON on the wire, no process left."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.processes import until
from tests.server.mcp.stdio import INTRODUCTION, Server
from tests.server.site import SAY, Site

from bullswarm_server.mcp.catalogue import envelope

MESSAGES = 10_000
# The issue: the whole of it runs in CI with everything else.
WITHIN_SEC = 30
METHODS = (
    "initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list",
    "prompts/list", "prompts/get", "server/discover", "subscriptions/listen", "completion/complete", "logging/setLevel",
    "notifications/initialized", "notifications/cancelled", "notifications/progress", "tasks/get", "", "\U0001d11e",
    "tools/call\x00",
)  # fmt: skip
TOOLS = ("run", "runs", "route", "label", "pools", "workflow_goal", "none", 3, None)


class Fuzz:
    """Makes lines from a seed."""

    def __init__(self, seed: int, folder: str) -> None:
        self.random = random.Random(seed)
        self.folder = folder

    def line(self) -> bytes:
        kind = self.random.random()
        if kind < 0.08:
            return self.random.randbytes(self.random.randrange(1, 200)).replace(b"\n", b" ")
        if kind < 0.1:
            return b"[" * self.random.randrange(1, 5000) + b"]" * self.random.randrange(0, 5000)
        line = json.dumps(self.message(), ensure_ascii=self.random.random() < 0.5).encode("utf-8", "surrogatepass")
        if kind < 0.3:
            return line[: self.random.randrange(0, len(line))]
        if kind < 0.3005:
            return line[:-1] + b',"more":"' + b"x" * 2_000_000 + b'"}'
        return line

    def message(self) -> Any:
        pick = self.random.random()
        if pick < 0.05:
            return self.value(3)
        if pick < 0.1:
            return {"jsonrpc": "2.0", "id": self.identity(), "result": self.value(2)}
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": self.random.choice(METHODS)}
        if pick < 0.85:
            message["id"] = self.identity()
        if pick < 0.95:
            message["params"] = self.params(message["method"])
        if pick > 0.97:
            message[self.random.choice(("jsonrpc", "id", "method", "params"))] = self.value(2)
        return message

    def params(self, method: str) -> Any:
        pick = self.random.random()
        if pick < 0.2:
            return self.value(3)
        if method == "initialize":
            return INTRODUCTION
        if method == "notifications/cancelled":
            return {"requestId": self.identity()}
        # A call that reads the machine costs some milliseconds: a few of them are as good as thousands.
        if method == "tools/call" and pick < 0.5:
            return {"name": self.random.choice(TOOLS), "arguments": self.arguments()}
        return (
            envelope(self.random.choice(("2026-07-28", "1", "")))
            if pick > 0.9
            else {"_meta": {"progressToken": self.identity()}}
        )

    def arguments(self) -> Any:
        names = ("lane", "prompt", "cwd", "run_id", "op", "pool", "label", "wait_s", "program", "goal", "cursor", "x")
        values: tuple[Any, ...] = (
            "analyze",
            "build",
            "list",
            "show",
            "last",
            "nobody",
            self.folder,
            "/",
            "",
            0,
            -1,
            1e300,
            None,
            True,
            [],
            {},
            self.value(2),
        )
        return {name: self.random.choice(values) for name in self.random.sample(names, self.random.randrange(0, 6))}

    def identity(self) -> Any:
        # Out of few, so that ids collide and cancellations hit.
        return self.random.choice((*range(20), "a", "1", 2**70, -1, 0.5, True, None, "", [], {}))

    def value(self, depth: int) -> Any:
        pick = self.random.randrange(0, 9 if depth else 6)
        plain = (None, True, self.random.randrange(-5, 2**64), self.random.random() * 1e300, "\ud800x\x00\x1b", "text")
        if pick < len(plain):
            return plain[pick]
        if pick == 6:
            return [self.value(depth - 1) for _ in range(self.random.randrange(0, 4))]
        keys = ("id", "method", "params", "_meta", "name", "arguments", "progressToken", "uri", "cursor", "x")
        return {self.random.choice(keys): self.value(depth - 1) for _ in range(self.random.randrange(0, 4))}


@pytest.mark.parametrize("introduced", [True, False])
def test_ten_thousand_messages_of_every_wrong_kind(site: Site, introduced: bool) -> None:
    site.worker("alpha", SAY)
    fuzz = Fuzz(20261130 + introduced, str(site.project))
    server = Server(site)
    try:
        if introduced:
            server.introduce()
        batch = b"\n".join(fuzz.line() for _ in range(MESSAGES // 2)) + b"\n"
        server.write(batch)
        # The process is whole: it serves a real call, and is done with everything that came before.
        if introduced:
            assert not server.tool("label", "a real call")["isError"]
        # Without an introduction the first request that was understood has decided the era, and one of them has no ping.
        assert server.ask("ping", "still here").keys() & ({"result"} if introduced else {"result", "error"})
        assert server.process.poll() is None
        server.end_of_input()
        server.process.wait(WITHIN_SEC)
        assert server.process.returncode == 0
    finally:
        server.close()
    assert all(isinstance(message, dict) for message in server.said)
    assert len(server.said) > 1000
    assert b"Traceback" not in server.errors, server.errors[-3000:].decode("utf-8", "replace")
    until(lambda: not site.processes(), "nothing is left running")
