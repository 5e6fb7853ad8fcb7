"""`pools`: every pool with its meters, pace, load and label."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
from mcp_types import CallToolResult

from bullswarm_core.dispatch.services import utc_now
from bullswarm_server.displays.pools import pool_lines
from bullswarm_server.mcp.arguments import PoolsArguments
from bullswarm_server.mcp.results import MOST_BYTES, Document, answer, clipped, fitted, size, without_empty
from bullswarm_server.mcp.session import Call
from bullswarm_server.mcp.tools.tool import READS, Tool
from bullswarm_server.mcp.waiting import Report
from bullswarm_server.ops.meters import outcome_lines
from bullswarm_server.ops.pools import look_at_pools

_MOST_ROWS = 64
_MOST_PROBLEMS, _PROBLEM_LENGTH = 5, 200
# Of a row, in the list of all: what a choice depends on. One pool alone is shown with every detail.
_BULKY = ("snapshot", "spend", "tiers", "capabilities", "configDir")


async def _pools(call: Call, given: PoolsArguments, _: Report) -> CallToolResult:
    return await anyio.to_thread.run_sync(_show, call, given.pool, given.force)


def _show(call: Call, only: str | None, force: bool) -> CallToolResult:
    whole, lines = pools_now(call, only, force=force)
    troubles = [clipped(line, 400) for line in outcome_lines(whole.get("renewed", ()), now=utc_now())[:_MOST_ROWS]]
    problems = [
        {key: clipped(value, _PROBLEM_LENGTH) for key, value in problem.items()}
        for problem in whole["problems"][:_MOST_PROBLEMS]
    ]

    def build(rows: int) -> CallToolResult:
        kept = whole["pools"][:rows]
        omitted = len(whole["pools"]) - len(kept)
        document = {**whole, "pools": [slim(row) for row in kept], "problems": problems}
        text = [clipped(line, 400) for line in lines[:rows]] or [
            "no pool: no agent CLI was found; bullswarm doctor says why"
        ]
        if omitted:
            document["omittedPools"] = omitted
            text.append(f'… {omitted} more pools: pools {{"pool":"<id>"}} shows one')
        return answer([*text, *troubles], document)

    if only is not None:
        detailed = answer(
            [*lines, *troubles],
            {**whole, "pools": [without_empty(row) for row in whole["pools"]], "problems": problems},
        )
        if size(detailed) <= MOST_BYTES:
            return detailed
    return fitted(build, _MOST_ROWS)


def pools_now(call: Call, only: str | None = None, *, force: bool = False) -> tuple[Document, list[str]]:
    """Return the document of `pools --json` and its lines, of every pool or of one. Raises UnknownNameError.

    Old readings are renewed for a second at most; ``force`` has all that are shown read anew, for up to 20 s.
    """
    seen = look_at_pools(call.ops, only=only, force=force)
    return seen.document(), pool_lines(seen.rows)


def slim(row: dict[str, Any]) -> Document:
    """Return a row without its details and without what is not known."""
    kept = {key: clipped(value, 300) if isinstance(value, str) else value for key, value in row.items()}
    load = row.get("inflight") or {}
    kept["inflight"] = {key: load[key] for key in ("count", "remainingMinutes") if key in load}
    return without_empty({key: value for key, value in kept.items() if key not in _BULKY})


TOOL = Tool(
    model=PoolsArguments,
    description="Every pool (account) with meters, pace (surplus), load and label. For a look; `run` picks by itself.",
    annotations=READS,
    work=_pools,
)
