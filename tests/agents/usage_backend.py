"""A vendor's usage endpoint on 127.0.0.1: answers with what a test gives it, and keeps who asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class UsageBackend:
    """``answers`` are status and body by the end of a path; ``None`` never answers. ``asked`` are path and headers."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any] | None] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.url = ""
        self.closing = threading.Event()

    def count(self, end: str) -> int:
        """Say how often a path was asked."""
        return sum(path.endswith(end) for path, _ in self.asked)


@contextmanager
def usage_backend() -> Iterator[UsageBackend]:
    """Serve until the end of the block."""
    backend = UsageBackend()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            backend.asked.append((path, {name.lower(): value for name, value in self.headers.items()}))
            found: tuple[int, Any] | None = next(
                (answer for end, answer in backend.answers.items() if path.endswith(end)), (404, {})
            )
            if found is None:
                backend.closing.wait(60)
                return
            self._send(*found)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            backend.asked.append((self.path, {}))
            self._send(404, {})

        def _send(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *words: Any) -> None:  # noqa: A002
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    backend.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield backend
    finally:
        backend.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
