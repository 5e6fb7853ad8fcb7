"""A Chromium without a window, spoken to over its DevTools: what a page asked for, what it complained of, what it became."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

_NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((found for name in _NAMES if (found := shutil.which(name))), None)
PATIENCE_SEC = 30.0


@dataclass(slots=True)
class Tab:
    """One page of the browser."""

    socket: aiohttp.ClientWebSocketResponse
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    _count: int = 0

    async def say(self, method: str, **params: Any) -> dict[str, Any]:
        """Give a command and return its result; what happens until then is noted."""
        self._count += 1
        await self.socket.send_json({"id": self._count, "method": method, "params": params})
        while True:
            told = await self.socket.receive_json(timeout=PATIENCE_SEC)
            if told.get("id") == self._count:
                assert "result" in told, told
                result: dict[str, Any] = told["result"]
                return result
            self._note(told)

    async def until_body(self, name: str, *, press: str | None = None) -> None:
        """Wait until the page's body has a class; ``press`` is a key that is pressed until then."""
        async with asyncio.timeout(PATIENCE_SEC):
            while name not in await self.evaluate("document.body ? document.body.className : ''"):
                if press is not None:
                    await self.say("Input.dispatchKeyEvent", type="keyDown", key=press, text=press)
                await asyncio.sleep(0.2)

    async def evaluate(self, script: str) -> Any:
        """Return what a script comes to."""
        return (await self.say("Runtime.evaluate", expression=script))["result"].get("value")

    def _note(self, told: dict[str, Any]) -> None:
        params = told.get("params", {})
        if told.get("method") == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif told.get("method") == "Network.webSocketCreated":
            self.asked.append(params["url"])
        elif told.get("method") == "Log.entryAdded" and "Content Security Policy" in params["entry"]["text"]:
            self.complaints.append(params["entry"]["text"])


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Tab]:
    """Start a browser whose files are in ``folder``; nothing of it is left at the end."""
    profile = folder / "browser"
    process = subprocess.Popen(
        [
            str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0",
            f"--user-data-dir={profile}", "--window-size=1000,700", "--disable-background-networking", "--disable-sync",
            "about:blank",
        ],
        env={"HOME": str(folder), "PATH": os.environ["PATH"]}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        port = await _port(profile / "DevToolsActivePort", process)
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            target = next(one for one in await answer.json() if one["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                for part in ("Network", "Page", "Log"):
                    await tab.say(f"{part}.enable")
                yield tab
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)


async def _port(file: Path, process: subprocess.Popen[bytes]) -> str:
    """Wait until the browser says where it listens."""
    async with asyncio.timeout(PATIENCE_SEC):
        while not (file.exists() and file.read_text().strip()):
            assert process.poll() is None, "the browser ended at once"
            await asyncio.sleep(0.05)
    return file.read_text().split()[0]
