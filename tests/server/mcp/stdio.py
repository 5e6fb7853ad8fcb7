"""`bullswarm mcp` as a client starts it: a process, two pipes, lines of JSON."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from tests.processes import PATIENCE_SEC
from tests.server.site import Site

INTRODUCTION = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "codex-mcp-client", "version": "0.171.0"},
}


class Server:
    """One server process; everything that it says is kept, and has to be JSON."""

    def __init__(self, site: Site, *, environ: Mapping[str, str] | None = None, code: str | None = None) -> None:
        words = ["-c", code] if code else ["-m", "bullswarm_server.cli.main", "mcp"]
        self.process = subprocess.Popen(
            [sys.executable, *words],
            cwd="/",
            env={**site.environ, **(environ or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.said: list[Any] = []
        self.errors = b""
        self._arrived: queue.Queue[Any] = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            self.said.append(message)
            self._arrived.put(message)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read()

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, identity: Any = None, params: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        if identity is not None:
            message["id"] = identity
        if params is not None:
            message["params"] = params
        self.write(json.dumps(message).encode() + b"\n")

    def ask(self, method: str, identity: Any, params: Any = None) -> Any:
        """Send a request and wait for its answer; what comes before it is kept in `said`."""
        self.send(method, identity, params)
        return self.answer_to(identity)

    def answer_to(self, identity: Any) -> Any:
        deadline = time.monotonic() + PATIENCE_SEC
        while True:
            message = self._arrived.get(timeout=max(0.01, deadline - time.monotonic()))
            if message.get("id") == identity and "method" not in message:
                return message

    def tool(self, name: str, identity: Any, **arguments: Any) -> Any:
        """Call a tool and return its result."""
        return self.ask("tools/call", identity, {"name": name, "arguments": arguments})["result"]

    def introduce(self) -> Any:
        answer = self.ask("initialize", 0, INTRODUCTION)
        self.send("notifications/initialized")
        return answer

    def end_of_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def seconds_to_end(self) -> float:
        began = time.monotonic()
        self.process.wait(PATIENCE_SEC)
        return time.monotonic() - began

    def close(self) -> None:
        """End the process where the test has not, and take in all that it said."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join(PATIENCE_SEC)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
