"""A model on 127.0.0.1 that speaks Google's protocol, as far as Gemini CLI needs it to answer one task or to fail."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 30,
    "candidatesTokenCount": 40,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 145,
}
Part = dict[str, Any]


def text(said: str) -> Part:
    """A part of an answer that is text, which ends the task."""
    return {"text": said}


def call(name: str, **arguments: Any) -> Part:
    """A part of an answer that calls a tool."""
    return {"functionCall": {"name": name, "args": arguments}}


class GeminiModel:
    """Answers each turn of the task with the next part, or every request with an HTTP error."""

    def __init__(self, parts: list[Part], *, fail: tuple[int, Any] | None = None) -> None:
        self.parts, self.fail = parts, fail
        self.bodies: list[dict[str, Any]] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "GeminiModel":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def part(self, body: dict[str, Any]) -> Part:
        """Give the answer to a request: the part of the turn that it is in."""
        self.bodies.append(body)
        turn = sum(entry.get("role") == "model" for entry in body.get("contents", ()))
        part: Part = self.parts[min(turn, len(self.parts) - 1)]
        return part


class _Server(ThreadingHTTPServer):
    model: GeminiModel


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *arguments: Any) -> None:
        """Say nothing: a test's output belongs to the test."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if self.server.model.fail is not None:
            status, answer = self.server.model.fail
            return self._send(status, "application/json", json.dumps(answer))
        if "enerateContent" not in self.path:
            return self._send(200, "application/json", json.dumps({"totalTokens": 100}))
        content = {"role": "model", "parts": [self.server.model.part(body)]}
        answer = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": USAGE}
        if "stream" in self.path:
            return self._send(200, "text/event-stream", f"data: {json.dumps(answer)}\n\n")
        return self._send(200, "application/json", json.dumps(answer))

    def _send(self, status: int, kind: str, content: str) -> None:
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content.encode())))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content.encode())
