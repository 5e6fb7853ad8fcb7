"""The HTTP server that plays a script to whichever agent asks."""

import json
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Protocol

from tests.agents.scripted_model import anthropic, chat, responses
from tests.agents.scripted_model.request import ModelRequest, conversation_of
from tests.agents.scripted_model.scenario import (
    Answer,
    DropConnection,
    Fail,
    HangBeforeHeaders,
    HangMidStream,
    Later,
    Script,
    Turn,
    say,
    turn_for,
)
from tests.agents.scripted_model.side import is_side_request

_POLL_SECONDS = 0.02


class _Protocol(Protocol):
    """What each of the three protocol modules offers."""

    PATHS: tuple[str, ...]

    def messages_of(self, body: dict[str, Any]) -> list[Any]: ...
    def whole(self, answer: Answer, request: ModelRequest, unique: str) -> dict[str, Any]: ...
    def stream(self, answer: Answer, request: ModelRequest, unique: str) -> Iterator[str]: ...
    def beginning(self, turn: HangMidStream, request: ModelRequest, unique: str) -> Iterator[str]: ...


_PROTOCOLS: dict[str, _Protocol] = {
    path: protocol for protocol in (anthropic, chat, responses) for path in protocol.PATHS
}


class ScriptedModel:
    """A scripted model that listens on a free port of 127.0.0.1 while its `with` block runs.

    `script` is a list of turns, or a function that picks the list for a request, so that several workers can share one
    model. `pages` answers further GET paths with JSON. Every request is kept in `requests`, in order of arrival.
    Leaving the block lets hanging requests go, joins every thread, and raises what went wrong inside the server.
    """

    def __init__(
        self,
        script: Script | Callable[[ModelRequest], Script],
        *,
        pages: Mapping[str, Any] | None = None,
    ) -> None:
        self.requests: list[ModelRequest] = []
        self.faults: list[BaseException] = []
        self.released = threading.Event()
        self._script = script
        self._pages = dict(pages or {})
        self._arrived = threading.Condition()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), name="scripted-model")
        self._thread.start()

    @property
    def url(self) -> str:
        """The address without a path, such as http://127.0.0.1:40001."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def prompts(self) -> list[ModelRequest]:
        """Give the requests that asked the model to work: no side request, no list of models."""
        with self._arrived:
            return [request for request in self.requests if is_prompt(request)]

    def wait_for_prompts(self, count: int, *, timeout: float = 20.0) -> bool:
        """Wait until that many prompts have arrived; False when `timeout` seconds pass first."""
        deadline = time.monotonic() + timeout
        with self._arrived:
            while sum(map(is_prompt, self.requests)) < count:
                if not self._arrived.wait(max(0.0, deadline - time.monotonic())):
                    return False
        return True

    def wait_for_prompt(self, words: str, *, timeout: float = 20.0) -> bool:
        """Wait until a prompt with these words has arrived; False when `timeout` seconds pass first."""
        with self._arrived:
            return self._arrived.wait_for(
                lambda: any(words in request.prompt for request in self.requests if is_prompt(request)), timeout
            )

    def close(self) -> None:
        """Let hanging requests go and end every thread; closing twice does no harm."""
        self.released.set()
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> "ScriptedModel":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is None and self.faults:
            raise self.faults[0]

    def record(self, request: ModelRequest) -> None:
        """Keep a request and wake whoever waits for it."""
        with self._arrived:
            self.requests.append(request)
            self._arrived.notify_all()

    def turn(self, request: ModelRequest) -> Turn:
        """Choose what to answer."""
        if is_side_request(request):
            return say("A scripted run")
        script = self._script(request) if callable(self._script) else self._script
        return turn_for(request, script)

    def page(self, path: str) -> Any:
        """Give the JSON of a plain GET, or None when there is no such page."""
        if path.endswith("/models"):
            return {"object": "list", "data": [{"id": "stub-model", "object": "model", "owned_by": "stub"}]}
        return self._pages.get(path)


def is_prompt(request: ModelRequest) -> bool:
    """Tell whether this request asks the model to work on the task."""
    return request.path in _PROTOCOLS and not is_side_request(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    # Twenty workers may connect in the same moment.
    request_queue_size = 64

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """End what is still open, so that no thread waits for a client that stays silent."""
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        # An agent that was killed, or that gave up, leaves a broken connection: that is the test's wish, no fault.
        if error is not None and not isinstance(error, ConnectionError):
            self.model.faults.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def version_string(self) -> str:
        """Name the server; agents print this header."""
        return "scripted-model"

    def log_message(self, *arguments: Any) -> None:
        """Say nothing: the requests are kept, and a test's output belongs to the test."""

    def do_HEAD(self) -> None:
        self._record(None)
        self._send_json(200, None)

    def do_GET(self) -> None:
        self._record(None)
        page = self.server.model.page(self._path())
        self._send_json(*((404, _not_found(self._path())) if page is None else (200, page)))

    def do_POST(self) -> None:
        body = self._read_json()
        path = self._path()
        request = self._record(body)
        if path.endswith("/count_tokens"):
            self._send_json(200, {"input_tokens": 10})
        elif path not in _PROTOCOLS:
            self._send_json(404, _not_found(path))
        else:
            self._play(self.server.model.turn(request), request)

    def _play(self, turn: Turn, request: ModelRequest) -> None:
        released = self.server.model.released
        self.close_connection = True
        match turn:
            case Later(seconds, then):
                if not released.wait(seconds):
                    self._play(then, request)
            case HangBeforeHeaders():
                released.wait()
            case DropConnection():
                self.connection.shutdown(socket.SHUT_RDWR)
            case Fail(status, body, headers):
                self._send_json(status, body, headers)
            case HangMidStream():
                self._send_events(_PROTOCOLS[request.path].beginning(turn, request, uuid.uuid4().hex))
                released.wait()
            case Answer():
                self._answer(turn, request)

    def _answer(self, answer: Answer, request: ModelRequest) -> None:
        protocol, unique = _PROTOCOLS[request.path], uuid.uuid4().hex
        if request.body.get("stream"):
            self._send_events(protocol.stream(answer, request, unique), answer.headers)
        else:
            self._send_json(200, protocol.whole(answer, request, unique), answer.headers)

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _read_json(self) -> Any:
        length = int(self.headers.get("Content-Length") or 0)
        try:
            return json.loads(self.rfile.read(length))
        except ValueError:
            return None

    def _record(self, body: Any) -> ModelRequest:
        protocol = _PROTOCOLS.get(self._path())
        messages = protocol.messages_of(body) if protocol and isinstance(body, dict) else []
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = ModelRequest(self.command, self._path(), headers, body, conversation_of(messages))
        self.server.model.record(request)
        return request

    def _send_events(self, events: Iterator[str], headers: Mapping[str, str] | None = None) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        for event in events:
            self.wfile.write(event.encode())
            self.wfile.flush()

    def _send_json(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        self.close_connection = True
        content = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _not_found(path: str) -> dict[str, Any]:
    return {"error": {"type": "not_found_error", "message": f"the scripted model has no page {path}"}}
