"""Joins the front to the SDK: lines in, messages out, over streams in memory."""

from __future__ import annotations

import os
import sys
import threading

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from bullswarm_core.errors import UsageError
from bullswarm_core.store.home import Home, refuse_foreign
from bullswarm_server.mcp.front import PRIVATE_ID, Front, Wire
from bullswarm_server.mcp.malformed import INVALID_REQUEST, error, identity_of, parsed
from bullswarm_server.mcp.server import build_server

# A client that sends faster than we work is held up by its own pipe.
_MOST_UNREAD = 256


def run(front: Front, wire: Wire, ended: threading.Event) -> None:
    """Serve until the input has ended."""
    anyio.run(_serve, front, wire, ended)


def refuse_foreign_home() -> str | None:
    """Return why a home in which others may write is not used, for every request to be answered with; None for ours."""
    try:
        refuse_foreign(Home(os.environ.get("BULLSWARM_HOME") or None))
    except UsageError as error:
        return f"bullswarm: {error}"
    return None


async def _serve(front: Front, wire: Wire, ended: threading.Event) -> None:
    server = build_server(Home(os.environ.get("BULLSWARM_HOME") or None), os.environ, arrival=front.arrival)
    lines, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](_MOST_UNREAD)
    outbox, messages = anyio.create_memory_object_stream[SessionMessage](_MOST_UNREAD)
    async with anyio.from_thread.BlockingPortal() as portal, anyio.create_task_group() as group:
        group.start_soon(_write, messages, wire)
        group.start_soon(_end_with, ended, lines)
        # What waits is handed over from a thread: this one has to be free to take it.
        group.start_soon(anyio.to_thread.run_sync, front.connect, lambda line: portal.call(_deliver, lines, wire, line))
        await server.run(inbox, outbox, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _deliver(lines: MemoryObjectSendStream[SessionMessage | Exception], wire: Wire, line: bytes) -> None:
    try:
        message = jsonrpc_message_adapter.validate_json(line.decode("utf-8", "replace"), by_name=False)
    except (ValidationError, ValueError, RecursionError) as problem:
        # The SDK passes over what it can't read, and the front let it through: whoever waits for an answer gets it here.
        await _sent(lines, problem)
        readable, refusal = parsed(line)
        identity = None if readable is None else identity_of(readable)
        if identity is not None:
            refusal = error(identity, INVALID_REQUEST, "the request does not have the form that MCP gives it")
        if refusal is not None:
            await anyio.to_thread.run_sync(wire.say, refusal, abandon_on_cancel=True)
        return
    await _sent(lines, SessionMessage(message))


async def _sent(lines: MemoryObjectSendStream[SessionMessage | Exception], item: SessionMessage | Exception) -> None:
    try:
        await lines.send(item)
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        sys.stderr.write("a message came after the end and was not read\n")


async def _write(messages: MemoryObjectReceiveStream[SessionMessage], wire: Wire) -> None:
    async with messages:
        async for item in messages:
            identity = getattr(item.message, "id", None)
            if isinstance(identity, str) and identity.startswith(PRIVATE_ID):
                continue
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            # In a thread: a client that does not read must not stop this process from hearing of its death.
            await anyio.to_thread.run_sync(wire.send, text.encode("utf-8", "replace"), abandon_on_cancel=True)


async def _end_with(ended: threading.Event, lines: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    await anyio.to_thread.run_sync(ended.wait, abandon_on_cancel=True)
    lines.close()
