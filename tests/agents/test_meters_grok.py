"""The real Grok, asked for its usage over `grok agent stdio`, with a billing service of ours on 127.0.0.1 behind it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.agents.conftest import needs
from tests.agents.install import BIN_FOLDER
from tests.agents.setups import GROK
from tests.providers.metering import TOKEN, shown, write

from bullswarm_core.errors import MeterError
from bullswarm_core.meters.endpoints import guarded_fetch
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.quota.observation import MeterContext, Observation
from bullswarm_core.store.home import Home
from bullswarm_core.wire import iso
from bullswarm_providers import registry

pytestmark = pytest.mark.real_cli
NOW = datetime.now(UTC).replace(microsecond=0)
STARTS, ENDS = NOW - timedelta(days=2), NOW + timedelta(days=5)


class Billing(ThreadingHTTPServer):
    """A billing service: what it answers, with which status, and who asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.config: dict[str, Any] = {
            "creditUsagePercent": 42.5,
            "currentPeriod": {"type": "USAGE_PERIOD_TYPE_WEEKLY", "start": iso(STARTS), "end": iso(ENDS)},
            "onDemandCap": {"val": 0},
        }
        self.tokens: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Billing

    def log_message(self, *arguments: Any) -> None:
        """Say nothing: a test's output belongs to the test."""

    def do_GET(self) -> None:
        status, body = 200, b"{}"
        if "/billing" in self.path:
            self.server.tokens.append(self.headers["Authorization"])
            status, body = self.server.status, json.dumps({"config": self.server.config}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def billing_service() -> Iterator[Billing]:
    with Billing() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def billing() -> Iterator[Billing]:
    with billing_service() as server:
        yield server


@pytest.fixture
def environ(own_home: Path, request: pytest.FixtureRequest, billing: Billing) -> dict[str, str]:
    needs(GROK, request.config)
    (own_home / ".grok").mkdir()
    return {
        "HOME": str(own_home),
        "PATH": f"{BIN_FOLDER}:/usr/bin:/bin",
        "GROK_CLI_CHAT_PROXY_BASE_URL": billing.url,
    }


def sign_in(own_home: Path) -> Path:
    """Write the sign-in of a person, as Grok itself keeps it."""
    file = own_home / ".grok" / "auth.json"
    client = "b1a00492-073a-47ea-816f-4c329264a828"
    entry = {
        "key": TOKEN,
        "auth_mode": "oidc",
        "create_time": iso(NOW - timedelta(days=1)),
        "expires_at": iso(NOW + timedelta(days=6)),
        "user_id": "u1",
        "email": "someone@example.com",
        "refresh_token": "never-sent",
        "oidc_issuer": "https://auth.x.ai",
        "oidc_client_id": client,
    }
    write(file, {f"https://auth.x.ai::{client}": entry})
    return file


def read(environ: dict[str, str], endpoints: dict[str, str] | None = None) -> Observation:
    pool: PoolProfile = registry.load(Home(), environ).profile("grok")
    addresses = endpoints or {}
    context = MeterContext(pool, environ, NOW, guarded_fetch(addresses, environ), addresses)
    found: Observation = pool.provider.live_reading(context)
    return found


def test_without_a_sign_in_grok_says_so_and_nobody_is_asked(environ: dict[str, str], billing: Billing) -> None:
    with pytest.raises(MeterError) as caught:
        read(environ, {"billing": f"{billing.url}/billing"})
    assert (caught.value.kind, caught.value.hint) == ("sign-in", "run grok login")
    assert billing.tokens == []


def test_signed_in_grok_tells_the_week_and_its_sign_in_stays_as_it_was(
    environ: dict[str, str], billing: Billing, own_home: Path
) -> None:
    file = sign_in(own_home)
    before = file.read_bytes()
    found = read(environ)
    assert shown(found) == {"weekly": (42.5, iso(ENDS))}
    assert (found.read_by, found.overage) == ("grok agent", False)
    assert billing.tokens == [f"Bearer {TOKEN}"]
    assert file.read_bytes() == before


@pytest.mark.parametrize(("status", "kind"), [(401, "sign-in"), (429, "limited")])
def test_what_the_vendor_refuses_is_known_from_groks_answer(
    environ: dict[str, str], billing: Billing, own_home: Path, status: int, kind: str
) -> None:
    sign_in(own_home)
    billing.status = status
    with pytest.raises(MeterError) as caught:
        read(environ, {"billing": f"{billing.url}/billing"})
    assert caught.value.kind == kind
    assert TOKEN not in str(caught.value)


def test_where_grok_reaches_nobody_the_address_is_asked(
    environ: dict[str, str], billing: Billing, own_home: Path
) -> None:
    sign_in(own_home)
    with billing_service() as other:
        environ["GROK_CLI_CHAT_PROXY_BASE_URL"] = "http://127.0.0.1:9/v1"
        found = read(environ, {"billing": f"{other.url}/billing?format=credits"})
        assert shown(found) == {"weekly": (42.5, iso(ENDS))}
        assert found.read_by == "billing endpoint"
        assert other.tokens == [f"Bearer {TOKEN}"]
    assert billing.tokens == []
