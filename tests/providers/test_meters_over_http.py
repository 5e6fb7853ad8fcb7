"""Every reader that asks an address, over real HTTP to a server on 127.0.0.1: what it sends, and what it makes of refusals."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.providers.metering import NOW, TOKEN, body, enable, profile, shown, with_binaries, write

from bullswarm_core.errors import MeterError
from bullswarm_core.meters.endpoints import guarded_fetch, guarded_post
from bullswarm_core.quota.observation import MeterContext, Observation

GLM = {"env": {"ANTHROPIC_BASE_URL": "https://api.z.ai/api/anthropic", "ANTHROPIC_AUTH_TOKEN": TOKEN}}
KIMI = {"env": {"ANTHROPIC_BASE_URL": "https://api.kimi.com/coding/", "ANTHROPIC_API_KEY": TOKEN}}
# The pool, its sign-in, the bodies by the endpoint's name, and the kinds of windows that they hold.
READERS: list[tuple[str, str, Any, dict[str, str], set[str]]] = [
    ("grok", ".grok/auth.json", {"a": {"key": TOKEN}}, {"billing": "grok-billing"}, {"weekly"}),
    ("command-code", ".commandcode/auth.json", {"apiKey": TOKEN},
     {"credits": "command-code-credits", "subscriptions": "command-code-subscriptions"}, {"5h", "weekly", "monthly"}),
    ("opencode", ".local/share/opencode/auth.json", {"opencode-go": {"key": TOKEN}},
     {"usage": "opencode-go-usage"}, {"5h", "weekly", "monthly"}),
    ("gemini", ".gemini/oauth_creds.json", {"access_token": TOKEN},
     {"project": "gemini-project", "quota": "gemini-quota"}, {"daily gemini-3-pro", "daily gemini-2.5-flash"}),
    ("copilot", ".config/github-copilot/apps.json", {"github.com:x": {"oauth_token": TOKEN}},
     {"user": "copilot-user"}, {"monthly"}),
    ("kimi", ".kimi-claude/settings.json", KIMI, {"usages": "kimi-usages"}, {"5h", "weekly"}),
    ("glm", ".glm-claude/settings.json", GLM, {"quota": "glm-quota"}, {"5h", "weekly"}),
]  # fmt: skip
EACH = pytest.mark.parametrize(
    ("pool_id", "file", "sign_in", "bodies", "kinds"), READERS, ids=[reader[0] for reader in READERS]
)


class Vendor(ThreadingHTTPServer):
    """Answers each path with a recorded body, or all of them with one status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.headers: dict[str, str] = {}
        self.bodies: dict[str, str] = {}
        self.tokens: set[str] = set()

    def endpoints(self) -> dict[str, str]:
        return {name: f"http://127.0.0.1:{self.server_address[1]}/{name}" for name in self.bodies}


class _Handler(BaseHTTPRequestHandler):
    server: Vendor

    def log_message(self, *arguments: Any) -> None:
        """Say nothing: a test's output belongs to the test."""

    def do_GET(self) -> None:
        self.server.tokens.add(str(self.headers["Authorization"]).split(" ")[-1])
        name = self.server.bodies.get(self.path.lstrip("/"))
        # The token in an answer, too: a vendor that sends it back must not bring it into an error.
        answer = body(name) if name and self.server.status == 200 else {"error": f"refused {TOKEN}"}
        content = json.dumps(answer).encode()
        self.send_response(self.server.status)
        for header, value in self.server.headers.items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    with Vendor() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def environ(tmp_path: Path, own_home: Path) -> dict[str, str]:
    enable("gemini", "copilot", "kimi", "glm")
    return with_binaries(tmp_path / "bin", "grok", "command-code", "opencode", "gemini", "copilot", "claude")


def read(pool_id: str, environ: dict[str, str], endpoints: dict[str, str]) -> Observation:
    pool = profile(pool_id, environ)
    assert set(endpoints) <= set(pool.connector.meter.endpoints)
    fetch, post = guarded_fetch(endpoints, environ), guarded_post(endpoints, environ)
    found: Observation = pool.provider.live_reading(MeterContext(pool, environ, NOW, fetch, endpoints, post))
    return found


@EACH
def test_a_reading_over_http(
    own_home: Path,
    environ: dict[str, str],
    vendor: Vendor,
    pool_id: str,
    file: str,
    sign_in: Any,
    bodies: dict[str, str],
    kinds: set[str],
) -> None:
    write(own_home / file, sign_in)
    before = (own_home / file).read_bytes()
    vendor.bodies = bodies
    assert set(shown(read(pool_id, environ, vendor.endpoints()))) == kinds
    assert vendor.tokens == {TOKEN}
    assert (own_home / file).read_bytes() == before


@EACH
@pytest.mark.parametrize(
    ("status", "headers", "kind", "retry_after_sec"),
    [
        (401, {}, "sign-in", None),
        (429, {"Retry-After": "120"}, "limited", 120.0),
        (500, {}, "unreachable", None),
        (302, {"Location": "http://127.0.0.1:9/elsewhere"}, None, None),
    ],
)
def test_a_refusal_over_http_is_told_without_the_token(
    own_home: Path,
    environ: dict[str, str],
    vendor: Vendor,
    pool_id: str,
    file: str,
    sign_in: Any,
    bodies: dict[str, str],
    kinds: set[str],
    status: int,
    headers: dict[str, str],
    kind: str | None,
    retry_after_sec: float | None,
) -> None:
    write(own_home / file, sign_in)
    vendor.bodies, vendor.status, vendor.headers = bodies, status, headers
    with pytest.raises(MeterError) as caught:
        read(pool_id, environ, vendor.endpoints())
    error = caught.value
    assert kind in (None, error.kind) and error.retry_after_sec == retry_after_sec
    assert TOKEN not in f"{error!r}{error}{error.__cause__!r}{error.__context__!r}"
