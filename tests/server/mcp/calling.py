"""A client of the SDK's own in front of our server, in memory, in either protocol era."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp import Client
from mcp_types import CallToolResult, Implementation
from tests.server.site import Site

from bullswarm_server.mcp.results import plain_text
from bullswarm_server.mcp.server import build_server

Mode = Literal["auto", "legacy"]
MODES: tuple[Mode, ...] = ("auto", "legacy")
# The promise to clients: the whole result, as it is sent.
MOST_BYTES = 8 * 1024


@dataclass(slots=True)
class Answer:
    """A tool's result, with the promise about its size already checked."""

    result: CallToolResult

    def __post_init__(self) -> None:
        assert len(self.result.model_dump_json(by_alias=True, exclude_none=True).encode()) <= MOST_BYTES

    @property
    def error(self) -> bool:
        return bool(self.result.is_error)

    @property
    def text(self) -> str:
        return plain_text(self.result)

    @property
    def document(self) -> dict[str, Any]:
        assert isinstance(self.result.structured_content, dict)
        return json.loads(json.dumps(self.result.structured_content))  # type: ignore[no-any-return]


@dataclass(slots=True)
class Caller:
    """Calls tools and keeps the progress that was reported."""

    client: Client
    progress: list[tuple[float, float | None, str | None]] = field(default_factory=list)

    async def __call__(self, tool: str, **arguments: Any) -> Answer:
        async def heard(progress: float, total: float | None, message: str | None) -> None:
            self.progress.append((progress, total, message))

        return Answer(await self.client.call_tool(tool, arguments, progress_callback=heard))


@contextlib.asynccontextmanager
async def calling(
    site: Site,
    *,
    mode: Mode = "auto",
    name: str = "some-client",
    version: str = "1",
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[Caller]:
    """Connect a client that introduces itself as ``name``."""
    server = build_server(site.home, {**site.environ, **(environ or {})})
    async with Client(server, mode=mode, client_info=Implementation(name=name, version=version)) as client:
        yield Caller(client)
