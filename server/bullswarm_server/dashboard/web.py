"""The dashboard in a browser of this machine: textual-serve behind a page of our own, and only for who has the address.

It listens on 127.0.0.1 alone. The address holds a random token; the Host of every request must be this server (a name that
was turned to 127.0.0.1 doesn't do), and the page that opens the socket must be ours. The page asks for nothing outside.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import shlex
import signal
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path

import textual_serve
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from textual_serve.server import Server

ADDRESS = "127.0.0.1"
SHUTDOWN_SEC = 2.0
"""An open page ends its connection at once; the default is a minute."""
MOST_SESSIONS = 8
"""Each open page is a process of its own."""
_NAMES = (ADDRESS, "localhost")
_STATICS = {"textual.js": "static/js/textual.js", "xterm.css": "static/css/xterm.css"}
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>bullswarm</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="xterm.css">
<script src="textual.js"></script>
<style>
html, body { margin: 0; height: 100%; background: #121212; color: #e0e0e0; font-family: monospace; overflow: hidden; }
#terminal { width: 100vw; height: 100vh; }
#ended { display: none; position: absolute; inset: 0; z-index: 10; align-items: center; justify-content: center;
  background: #121212; }
body.-closed #ended { display: flex; }
</style>
</head>
<body>
<div id="ended">This session has ended; load the page again for another one.</div>
<div id="terminal" class="textual-terminal" data-session-websocket-url="SOCKET" data-font-size="16"></div>
</body>
</html>
"""


def refusal(*, host: str, origin: str | None, site: str | None, port: int, socket: bool) -> str | None:
    """Say why a request is not answered; None for one from our own page, or typed into the browser."""
    allowed = [f"{name}:{port}" for name in _NAMES]
    if host not in allowed:
        return "this server answers to its own name alone"
    if origin is None and socket:
        return "a socket is opened by the dashboard's own page"
    if origin is not None and origin != f"http://{host}":
        return "another page asks for it"
    if site not in (None, "none", "same-origin"):
        return "another site leads here"
    return None


class WebDashboard(Server):
    """Serves the dashboard of one home; ``command`` starts it, and ``token`` is part of every address."""

    def __init__(self, command: str, *, token: str) -> None:
        super().__init__(command, host=ADDRESS, title="bullswarm")
        self.token = token
        self.sessions = 0

    @property
    def url(self) -> str:
        """Where the page is, once the server listens."""
        return f"http://{ADDRESS}:{self.port}/{self.token}/"

    def application(self) -> web.Application:
        """Return what answers requests."""
        app = web.Application(middlewares=[self._guarded()])
        app.add_routes(
            [
                web.get("/{token}/", self._page),
                web.get("/{token}/ws", self._socket),
                *(web.get(f"/{{token}}/{name}", self._static) for name in _STATICS),
            ]
        )
        return app

    async def listen(self, port: int) -> web.AppRunner:
        """Listen on this port of 127.0.0.1, or with 0 on a free one. Raises OSError when it is taken."""
        runner = web.AppRunner(self.application(), access_log=None, shutdown_timeout=SHUTDOWN_SEC)
        await runner.setup()
        try:
            await web.TCPSite(runner, ADDRESS, port).start()
        except OSError:
            await runner.cleanup()
            raise
        self.port = int(runner.addresses[0][1])
        return runner

    def _guarded(self) -> Middleware:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            headers = request.headers
            why = refusal(
                host=headers.get("Host", ""),
                origin=headers.get("Origin"),
                site=headers.get("Sec-Fetch-Site"),
                port=self.port,
                socket=request.path.endswith("/ws"),
            )
            if why is not None:
                return web.Response(status=403, text=why, headers=_HEADERS)
            token = request.match_info.get("token", "")
            if not hmac.compare_digest(token.encode(), self.token.encode()):
                return web.Response(status=404, text="not here", headers=_HEADERS)
            return await handler(request)

        return guard

    async def _page(self, request: web.Request) -> web.StreamResponse:
        socket = f"ws://{request.host}/{self.token}/ws"
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
            f" connect-src ws://{request.host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        headers = {**_HEADERS, "Content-Security-Policy": policy}
        return web.Response(text=_PAGE.replace("SOCKET", escape(socket)), content_type="text/html", headers=headers)

    async def _static(self, request: web.Request) -> web.StreamResponse:
        name = request.path.rpartition("/")[2]
        return web.FileResponse(Path(textual_serve.__file__).parent / _STATICS[name], headers=_HEADERS)

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if self.sessions >= MOST_SESSIONS:
            return web.Response(status=503, text=f"{MOST_SESSIONS} pages are open already", headers=_HEADERS)
        self.sessions += 1
        try:
            return await self.handle_websocket(request)
        finally:
            self.sessions -= 1


def serve(*, port: int, tell: Callable[[str], None]) -> None:
    """Serve until the process is ended or interrupted; ``tell`` is given the address. Raises OSError for a taken port."""
    command = shlex.join([sys.executable, "-P", "-m", "bullswarm_server.cli.main", "dashboard"])
    server = WebDashboard(f"exec {command}", token=secrets.token_urlsafe(32))
    asyncio.run(_serve(server, port, tell))


async def _serve(server: WebDashboard, port: int, tell: Callable[[str], None]) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    runner = await server.listen(port)
    try:
        tell(server.url)
        await ended.wait()
    finally:
        await runner.cleanup()
