"""What a tool is to the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult, ToolAnnotations

from bullswarm_server.mcp.arguments import Arguments
from bullswarm_server.mcp.session import Call
from bullswarm_server.mcp.waiting import Report

# Codex runs a tool in `exec`, where nobody can be asked, only if it is read-only or all three of these are false.
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ACTS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool's words, its arguments, and its work; ``work`` raises BullswarmError for a call that was wrong."""

    model: type[Arguments]
    description: str
    annotations: ToolAnnotations
    work: Callable[[Call, Any, Report], Awaitable[CallToolResult]]

    @property
    def name(self) -> str:
        """The name under which it is called."""
        return self.model.tool
