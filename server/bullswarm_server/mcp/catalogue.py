"""Writes `catalogue.json`: what the SDK server answers to the handshake and the lists, in every protocol version.

`python -m bullswarm_server.mcp.catalogue` writes it anew; a test asserts that the file is what this makes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from bullswarm_core.store.home import Home
from bullswarm_server.mcp.front import catalogue_file
from bullswarm_server.mcp.server import build_server

LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
_CLIENT = {"name": "catalogue", "version": "1"}


async def make() -> dict[str, Any]:
    """Ask the SDK server everything that the front answers; equal results are stored once."""
    results: list[Any] = []
    lists: dict[str, dict[str, int]] = {}
    introductions: dict[str, int] = {}
    for version in HANDSHAKE_PROTOCOL_VERSIONS:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": _CLIENT}
        first, *rest = await ask([("initialize", params), *((method, None) for method in LISTS)])
        introductions[version] = _kept(results, first["result"])
        for method, answer in zip(LISTS, rest, strict=True):
            lists.setdefault(method, {})[version] = _kept(results, answer["result"])
    for version in MODERN_PROTOCOL_VERSIONS:
        methods = ("server/discover", *LISTS)
        for method, answer in zip(methods, await ask([(method, envelope(version)) for method in methods]), strict=True):
            lists.setdefault(method, {})[version] = _kept(results, answer["result"])
    return {
        "initialize": introductions,
        "latest": LATEST_HANDSHAKE_VERSION,
        "modern": list(MODERN_PROTOCOL_VERSIONS),
        "lists": lists,
        "results": results,
    }


def envelope(version: str) -> dict[str, Any]:
    """Return the parameters of a request of the stateless era that asks for nothing else."""
    prefix = "io.modelcontextprotocol/"
    return {
        "_meta": {
            f"{prefix}protocolVersion": version,
            f"{prefix}clientInfo": _CLIENT,
            f"{prefix}clientCapabilities": {},
        }
    }


async def ask(requests: list[tuple[str, dict[str, Any] | None]]) -> list[dict[str, Any]]:
    """Send requests to a server of its own, one after the other, and return what it answers, as on the wire."""
    server = build_server(Home(), {})
    lines, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](1)
    outbox, messages = anyio.create_memory_object_stream[SessionMessage](1)
    answers: list[dict[str, Any]] = []
    async with anyio.create_task_group() as group, messages:
        group.start_soon(server.run, inbox, outbox, server.create_initialization_options())
        async with lines:
            for number, (method, params) in enumerate(requests):
                request = {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}
                await lines.send(SessionMessage(jsonrpc_message_adapter.validate_python(request, by_name=False)))
                answer = (await messages.receive()).message.model_dump_json(by_alias=True, exclude_unset=True)
                answers.append(json.loads(answer))
                if method == "initialize":
                    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                    await lines.send(SessionMessage(jsonrpc_message_adapter.validate_python(ready, by_name=False)))
    return answers


def text_of(catalogue: dict[str, Any]) -> str:
    """Return the file's text, one result a line, so that a change is seen where it is."""
    results = ",\n".join(
        json.dumps(result, ensure_ascii=False, separators=(",", ":")) for result in catalogue["results"]
    )
    head = json.dumps({key: value for key, value in catalogue.items() if key != "results"}, indent=1)
    return f'{head[:-2]},\n "results": [\n{results}\n]}}\n'


def _kept(results: list[Any], result: Any) -> int:
    if result not in results:
        results.append(result)
    return results.index(result)


def main() -> None:
    """Write the catalogue beside this module."""
    Path(catalogue_file()).write_text(text_of(anyio.run(make)), encoding="utf-8")


if __name__ == "__main__":
    main()
