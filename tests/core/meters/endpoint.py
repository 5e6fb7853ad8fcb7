"""A usage endpoint on 127.0.0.1 that answers as it is told and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class Answer:
    """What the endpoint answers; ``before`` is called first and may wait."""

    body: bytes = b"{}"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], object] | None = None


@dataclass(slots=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Endpoint:
    """The running endpoint: change ``answer`` at any time; ``asked`` are the requests so far."""

    url: str
    answer: Answer
    asked: list[Asked] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def tells(self, document: Any) -> None:
        self.answer = Answer(json.dumps(document).encode())


@contextmanager
def endpoint(answer: Answer | None = None) -> Iterator[Endpoint]:
    """Run an endpoint for the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            names = {name.lower(): value for name, value in self.headers.items()}
            running.asked.append(Asked(self.command, self.path, names, self.rfile.read(size)))
            answer = running.answer
            if answer.before is not None:
                answer.before()
            try:
                self.send_response(answer.status)
                for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)
            except OSError:
                pass  # whoever asked is gone

        do_POST = do_CONNECT = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    running = Endpoint(f"http://127.0.0.1:{server.server_port}", answer or Answer())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield running
    finally:
        running.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
