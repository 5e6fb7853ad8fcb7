"""The dashboard in a browser: only for who has the address, only from its own page, and with nothing from outside."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import psutil
import pytest
from tests.server.dashboard.browser import BROWSER, browser
from tests.server.dashboard.world import Runs, World

from bullswarm_server.cli.main import dispatch
from bullswarm_server.dashboard.web import refusal

COMMAND = [sys.executable, "-m", "bullswarm_server.cli.main", "dashboard", "--web"]
SOCKET = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "MTIzNDU2Nzg5MDEyMzQ1Ng==",
}  # fmt: skip


@pytest.mark.parametrize(
    ("host", "origin", "site", "socket", "allowed"),
    [
        ("127.0.0.1:80", None, "none", False, True),
        ("localhost:80", "http://localhost:80", "same-origin", True, True),
        ("127.0.0.1:80", "http://127.0.0.1:80", None, True, True),
        ("127.0.0.1:80", None, None, True, False),
        ("127.0.0.1:80", "http://localhost:80", None, True, False),
        ("127.0.0.1:80", "https://127.0.0.1:80", None, True, False),
        ("127.0.0.1:80", "http://evil.example", None, False, False),
        ("127.0.0.1:80", "null", None, True, False),
        ("evil.example:80", None, None, False, False),
        ("127.0.0.1:81", None, None, False, False),
        ("127.0.0.1", None, None, False, False),
        ("", None, None, False, False),
        ("127.0.0.1:80", None, "cross-site", False, False),
        ("127.0.0.1:80", "http://127.0.0.1:80", "same-site", True, False),
    ],
)
def test_who_is_answered(host: str, origin: str | None, site: str | None, socket: bool, allowed: bool) -> None:
    assert (refusal(host=host, origin=origin, site=site, port=80, socket=socket) is None) is allowed


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs: its address, and its process."""

    url: str
    process: subprocess.Popen[str]

    def ask(self, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
        """Ask for a path, with headers whose names have underscores for hyphens."""
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=20)
        try:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            body = "" if answer.status == 101 else answer.read().decode()
            return answer.status, dict(answer.getheaders()), body
        finally:
            connection.close()

    @property
    def path(self) -> str:
        return urlsplit(self.url).path


@pytest.fixture
def served(world: World, runs: Runs) -> Iterator[Served]:
    environ = {**world.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen(
        COMMAND, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    try:
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{43}/", url), (url, process.stderr.read())
        yield Served(url, process)
    finally:
        ended_before = process.poll() is not None
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(20) == 0 or ended_before, process.stderr.read()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)
            process.stdout.close()
            process.stderr.close()


def test_only_its_own_page_with_the_token_gets_anything(served: Served) -> None:
    status, headers, page = served.ask(served.path)
    assert status == 200 and "bullswarm" in page
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["Referrer-Policy"] == "no-referrer"
    assert not re.findall(r"https?://", page)
    for name in ("textual.js", "xterm.css"):
        assert served.ask(f"{served.path}{name}")[0] == 200
    host = urlsplit(served.url).netloc
    port = host.partition(":")[2]
    for path, more, wanted in (
        ("/", {}, 404),
        ("/wrong/", {}, 404),
        ("/wrong/ws", {**SOCKET, "Origin": f"http://{host}"}, 404),
        (served.path, {"Host": f"evil.example:{port}"}, 403),
        (served.path, {"Origin": "http://evil.example"}, 403),
        (f"{served.path}ws", SOCKET, 403),
        (f"{served.path}ws", {**SOCKET, "Origin": "http://evil.example"}, 403),
        (f"{served.path}../../etc/passwd", {}, 404),
        (f"{served.path}ws", {**SOCKET, "Origin": f"http://{host}"}, 101),
    ):
        assert served.ask(path, **more)[0] == wanted, (path, more)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_nothing_is_left_when_the_server_ends(served: Served, number: signal.Signals) -> None:
    origin = f"http://{urlsplit(served.url).netloc}"
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{served.url}ws", headers={"Origin": origin}) as socket,
    ):
        assert await socket.receive_bytes(timeout=30)
        children = psutil.Process(served.process.pid).children(recursive=True)
        assert children
        served.process.send_signal(number)
        assert await asyncio.to_thread(served.process.wait, 20) == (0 if number is signal.SIGTERM else -number)
    _, alive = await asyncio.to_thread(psutil.wait_procs, children, 20)
    for each in alive:
        each.kill()
    assert not alive


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
async def test_a_browser_shows_it_takes_keys_and_asks_for_nothing_outside(served: Served, tmp_path: Path) -> None:
    async with browser(tmp_path) as page:
        await page.say("Page.navigate", url=served.url)
        # The first bytes that the dashboard draws set one class, the end of its process the other.
        await page.until_body("-first-byte")
        await page.evaluate("document.querySelector('.xterm-helper-textarea').focus()")
        await page.until_body("-closed", press="q")
        asked = [url for url in page.asked if not url.startswith("data:")]
        assert f"{served.url}textual.js" in asked
        assert {urlsplit(url).netloc for url in asked} == {urlsplit(served.url).netloc}
        assert not page.complaints


def test_without_its_package_the_web_form_says_what_to_install(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "bullswarm_server.dashboard.web")
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    out, err = io.StringIO(), io.StringIO()
    assert dispatch(["dashboard", "--web"], environ=world.environ, out=out, err=err) == 2
    assert "pip install 'bullswarm[web]'" in err.getvalue()
    assert dispatch(["dashboard", "--port", "8000"], environ=world.environ, out=out, err=err) == 2
    assert "--port is of the web form" in err.getvalue()


def test_a_port_that_is_taken_or_is_none_is_refused(world: World, served: Served) -> None:
    environ = {**world.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    port = urlsplit(served.url).netloc.partition(":")[2]
    for words, said in (
        (["--web", "--port", port], f"cannot listen on port {port}"),
        (["--web", "--port", "0"], '"0" is not a port'),
    ):
        done = subprocess.run(
            [*COMMAND[:-1], *words], env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and said in done.stderr, done.stderr
