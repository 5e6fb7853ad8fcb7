"""The fast handshake: answers from a catalogue at once, while the SDK, about a second's import, loads behind it.

A client drops a server that is slow to introduce itself from the first turn (Codex after about 1 s, Claude Code in print
mode after 2). So this module answers the introduction and the lists, in either protocol era, from
`catalogue.json`, which a test holds equal to what the SDK server says; it keeps every other message until the SDK is there,
and is then only a pipe. Standard library alone; nothing but JSON-RPC ever reaches the client.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from bullswarm_server.mcp.malformed import Message, error, parsed

_MODERN_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_MODERN_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_MODERN_CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
PRIVATE_ID = "bullswarm-front:"
_INTERNAL_ERROR = -32603


def catalogue_file() -> str:
    """Return the path of the generated catalogue."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "catalogue.json")  # noqa: PTH100, PTH118, PTH120


class Wire:
    """The client's end: whole lines out, from any thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, line: bytes) -> None:
        """Write one message; a client that has gone ends the process, since nobody is left to serve."""
        data = memoryview(line + b"\n")
        with self._lock:
            while data:
                try:
                    data = data[os.write(self._descriptor, data) :]
                except BlockingIOError:
                    # A client may share a pipe that does not block.
                    select.select([], [self._descriptor], [])
                except OSError:
                    leave(0)

    def say(self, message: Message) -> None:
        """Write one message from its object."""
        self.send(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


class Front:
    """Decides what is answered from the catalogue, what waits for the SDK, and what is taken back before that."""

    def __init__(self, catalogue: Message, say: Callable[[Message], None]) -> None:
        self._catalogue = catalogue
        self._say = say
        self._lock = threading.Lock()
        self._waiting: list[tuple[Any, bytes]] = []
        self._arrivals: dict[Any, float] = {}
        self._deliver: Callable[[bytes], None] | None = None
        self._failed: str | None = None
        self._era: str | None = None
        self._version: str | None = None
        self.wanted = threading.Event()

    def take(self, line: bytes) -> None:
        """Deal with one line from the client."""
        message, refusal = parsed(line)
        if message is None:
            if refusal is not None:
                self._say(refusal)
            return
        with self._lock:
            deliver = self._deliver
            if deliver is None:
                self._before_loading(line, message)
                return
        deliver(line)

    def connect(self, deliver: Callable[[bytes], None]) -> None:
        """Hand everything that waits to the SDK, and from now on every line."""
        with self._lock:
            for _, line in self._waiting:
                deliver(line)
            self._waiting.clear()
            self._deliver = deliver

    def arrival(self, identity: Any) -> float | None:
        """Return when a request came that then waited for the SDK, in monotonic seconds; None for any other. Ask once.

        The client's patience with it has run since then.
        """
        return self._arrivals.pop((type(identity), identity), None)

    def fail(self, why: str) -> None:
        """Answer whatever waits, and all that comes, with why the server could not be loaded."""
        with self._lock:
            self._failed = why
            for key, _ in self._waiting:
                if key is not None:
                    self._say(error(key[1], _INTERNAL_ERROR, why))
            self._waiting.clear()

    def _before_loading(self, line: bytes, message: Message) -> None:
        key = _key(message)
        if key is None:
            if not self._taken_back(message):
                self._keep(None, line)
            return
        answer = self._known(message)
        if answer is not None:
            self._say({"jsonrpc": "2.0", "id": message["id"], "result": answer})
            if message["method"] == "tools/list":
                self.wanted.set()
        elif self._failed is not None:
            self._say(error(message["id"], _INTERNAL_ERROR, self._failed))
        else:
            self._era = self._era or ("modern" if _envelope(message) else "legacy")
            self._keep(key, line)
            self.wanted.set()

    def _keep(self, key: Any, line: bytes) -> None:
        if self._failed is None:
            self._waiting.append((key, line))
            if key is not None:
                self._arrivals[key] = time.monotonic()

    def _taken_back(self, message: Message) -> bool:
        """A request that is cancelled while it waits never happened: it gets no answer and is never begun."""
        params = message.get("params")
        if message.get("method") != "notifications/cancelled" or not isinstance(params, dict):
            return False
        wanted = _key({"id": params.get("requestId"), "method": ""})
        for place, (key, _) in enumerate(self._waiting):
            if key is not None and key == wanted:
                del self._waiting[place], self._arrivals[key]
                return True
        return False

    def _known(self, message: Message) -> Any | None:
        """Return the catalogue's answer, or None where only the SDK can tell."""
        method, params = message["method"], message.get("params")
        if _envelope(message):
            return self._known_modern(method, params, message)
        if method == "initialize" and self._era is None and _is_introduction(params):
            return self._introduced(message)
        if self._version is None or self._era != "legacy" or not _is_plain(params):
            return None
        if method == "ping":
            return {}
        return self._listed(method, self._version)

    def _introduced(self, message: Message) -> Any:
        versions: Message = self._catalogue["initialize"]
        asked = message["params"]["protocolVersion"]
        self._era, self._version = "legacy", asked if asked in versions else self._catalogue["latest"]
        self._keep(None, _under_private_id(message))
        return self._catalogue["results"][versions[str(self._version)]]

    def _known_modern(self, method: str, params: Any, message: Message) -> Any | None:
        meta = params["_meta"]
        version, client = meta[_MODERN_VERSION_KEY], meta.get(_MODERN_CLIENT_KEY)
        whole = (
            isinstance(version, str)
            and version in self._catalogue["modern"]
            and isinstance(meta.get(_MODERN_CAPABILITIES_KEY), dict)
            and (client is None or _is_implementation(client))
            and _is_plain(params)
        )
        if not whole or self._era == "legacy":
            return None
        answer = self._listed(method, version)
        if answer is not None and self._era is None:
            # The first request decides the era, for the SDK too: it has to see one.
            self._era = "modern"
            self._keep(None, _under_private_id(message))
        return answer

    def _listed(self, method: str, version: str) -> Any | None:
        place = self._catalogue["lists"].get(method, {}).get(version)
        return None if place is None else self._catalogue["results"][place]


def leave(code: int) -> NoReturn:
    """End the process now; the work that it started has kernels of its own and goes on."""
    sys.stderr.flush()
    os._exit(code)


def _key(message: Message) -> tuple[type, Any] | None:
    """Tell requests apart: 1 and "1" are two ids, and True is none. None for a notification."""
    value = message.get("id")
    return (type(value), value) if type(value) in (int, str) else None


def _envelope(message: Message) -> bool:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and _MODERN_VERSION_KEY in meta


def _is_plain(params: Any) -> bool:
    """Say whether a request asks for the whole list, with nothing that only the SDK would look at."""
    return params is None or (
        isinstance(params, dict) and set(params) <= {"_meta"} and isinstance(params.get("_meta", {}), dict)
    )


def _is_introduction(params: Any) -> bool:
    return (
        isinstance(params, dict)
        and isinstance(params.get("protocolVersion"), str)
        and isinstance(params.get("capabilities"), dict)
        and _is_implementation(params.get("clientInfo"))
    )


def _is_implementation(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str) and isinstance(value.get("version"), str)


def _under_private_id(message: Message) -> bytes:
    """The SDK has to see the request, too; its own answer to it is known by the id and goes nowhere."""
    return json.dumps({**message, "id": f"{PRIVATE_ID}{message['id']}"}).encode()
