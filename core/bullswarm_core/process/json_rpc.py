"""Asks a child of ours questions in JSON-RPC, one document a line: a vendor's own CLI that knows what its account has used.

Everything that a child may do wrong is bounded: silence, an early death, lines that are no JSON, lines without an end, a
flood of notifications. What it says on stderr is thrown away, since nobody knows what stands there.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import MeterError
from bullswarm_core.process.child import end_child, has_ended, start_child
from bullswarm_core.process.line_splitter import LineSplitter

if TYPE_CHECKING:
    import subprocess

TALK_LIMIT = 16 << 20
"""Bytes that a child may say in one talk; the answers that we ask for are a few kilobytes."""
# Larger lines are let go; a whole list of models, the largest answer that was seen, is a fifth of it.
_LINE_CAP = 1 << 20
# Measured: `codex app-server` ends 0.03 s after its stdin is closed; killed before, it may leave a half-written cache.
_LEAVE_SEC = 2.0
_METHOD_NOT_FOUND = -32601


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one question. ``code`` None says that ``result`` is one; else the child refused, for ``message``.

    ``message`` and ``detail`` (its `data`, where that is a text) are the child's own words and may hold anything: they are
    for recognising a case, never for showing.
    """

    result: Any = None
    code: int | None = None
    message: str = ""
    detail: str = ""


class LineRpc:
    """One child that is asked; used with ``with``, it is ended together with everything below it.

    ``environ`` is the complete environment; ``timeout_sec`` bounds the whole talk. Raises WorkerStartError when the child
    can't be started and MeterError (``unreachable``) when it falls silent, says too much or ends before it answered.
    """

    def __init__(
        self, argv: Sequence[str], *, cwd: str | os.PathLike[str], environ: Mapping[str, str], timeout_sec: float
    ) -> None:
        self._argv = tuple(argv)
        # Its arguments may hold anything, so messages name the program alone.
        self._name = os.path.basename(argv[0])  # noqa: PTH119
        self._cwd, self._environ, self._timeout_sec = cwd, environ, timeout_sec
        self._lines = LineSplitter(cap=_LINE_CAP)
        self._heard: deque[bytes] = deque()
        self._room = TALK_LIMIT
        self._last_id = 0

    def __enter__(self) -> LineRpc:
        import selectors
        import subprocess

        self._deadline = time.monotonic() + self._timeout_sec
        self._child: subprocess.Popen[bytes] = start_child(
            self._argv, cwd=self._cwd, environ=self._environ, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._child.stdin is not None and self._child.stdout is not None
        self._in, self._out = self._child.stdin.fileno(), self._child.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            with suppress(BrokenPipeError):
                self._child.stdin.close()
            leave = min(time.monotonic() + _LEAVE_SEC, self._deadline)
            while kind is None and not has_ended(self._child) and time.monotonic() < leave:
                time.sleep(0.005)
        finally:
            end_child(self._child)
            self._selector.close()
            self._child.stdout.close()

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Reply:
        """Put one question and wait for its answer; notifications pass by, and a question of the child's is refused."""
        self._last_id += 1
        self._say({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": dict(params or {})})
        while True:
            message = _message(self._next_line(method))
            if message is None:
                continue
            if isinstance(message.get("method"), str):
                self._refuse(message)
            elif message.get("id") in (self._last_id, str(self._last_id)):
                return _reply(message)

    def tell(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification, which nobody answers."""
        self._say({"jsonrpc": "2.0", "method": method, **({"params": dict(params)} if params else {})})

    def _refuse(self, message: Mapping[str, Any]) -> None:
        # A child whose question stays without an answer may wait for it before it answers ours.
        if message.get("id") is not None:
            error = {"code": _METHOD_NOT_FOUND, "message": "not supported"}
            self._say({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def _say(self, message: Mapping[str, Any]) -> None:
        left = memoryview(json.dumps(message).encode() + b"\n")
        while left:
            try:
                left = left[os.write(self._in, left) :]
            except BlockingIOError:
                # Its pipe is full: it must be heard out, or both of us would wait for ever.
                self._hear(0.02, "its stdin")
            except BrokenPipeError:
                raise MeterError(f"{self._name} closed its stdin", kind="unreachable") from None

    def _next_line(self, what: str) -> bytes:
        while not self._heard:
            self._hear(0.1, what)
        return self._heard.popleft()

    def _hear(self, seconds: float, what: str) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise MeterError(f"{self._name} did not answer {what} within {self._timeout_sec:g} s", kind="unreachable")
        if not self._selector.select(min(left, seconds)):
            # A grandchild may hold the pipe of a child that is gone.
            if has_ended(self._child):
                raise self._gone(what)
            return
        chunk = os.read(self._out, 65536)
        if not chunk:
            rest = self._lines.rest()
            if not rest:
                raise self._gone(what)
            self._heard.append(rest)
        self._room -= len(chunk)
        if self._room < 0:
            raise MeterError(f"{self._name} said more than {TALK_LIMIT >> 20} MB", kind="unreachable")
        self._heard += self._lines.split(chunk)

    def _gone(self, what: str) -> MeterError:
        return MeterError(f"{self._name} ended before it answered {what}", kind="unreachable")


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _reply(message: Mapping[str, Any]) -> Reply:
    error = message.get("error")
    if error is None:
        return Reply(message.get("result"))
    known = error if isinstance(error, dict) else {}
    code, detail = known.get("code"), known.get("data")
    return Reply(
        None,
        code if type(code) is int else 0,
        str(known.get("message", ""))[:4000],
        detail[:4000] if isinstance(detail, str) else "",
    )
