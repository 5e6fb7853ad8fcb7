"""`label`: show, set or clear the display label of a pool."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread
from mcp_types import CallToolResult, ToolAnnotations

from bullswarm_core.errors import UsageError
from bullswarm_core.pools.labels import Labels
from bullswarm_server.hook_state import refresh
from bullswarm_server.mcp.arguments import LabelArguments
from bullswarm_server.mcp.results import answer, clipped, fitted
from bullswarm_server.mcp.session import Call
from bullswarm_server.mcp.tools.tool import Tool
from bullswarm_server.mcp.waiting import Report
from bullswarm_server.ops.labels import SCHEMA_VERSION, clear_label, find_pool, set_label

_MOST_ROWS = 64


async def _label(call: Call, given: LabelArguments, _: Report) -> CallToolResult:
    return await anyio.to_thread.run_sync(_work, call, given)


def _work(call: Call, given: LabelArguments) -> CallToolResult:
    if given.pool is None:
        if given.label is not None or given.clear:
            raise UsageError("pool is missing", hint="name the pool whose label is meant, by id or label")
        return _shown(Labels.kept(call.home).items(), Labels.load(call.home))
    if given.clear and given.label is not None:
        raise UsageError("clear takes no label", hint="give one of them")
    if given.label is not None or given.clear:
        return _changed(call, given.pool, given.label)
    pool_id, kept = find_pool(call.ops, given.pool), Labels.kept(call.home)
    return _shown([(pool_id, kept.of(pool_id))], Labels.load(call.home))


def _changed(call: Call, pool: str, label: str | None) -> CallToolResult:
    pool_id = clear_label(call.ops, pool)[0] if label is None else set_label(call.ops, pool, label)
    # The hooks and the status line of the agents show labels, too.
    refresh(call.home, call.machine.environ, keep_unseen=True)
    return _shown([(pool_id, label)], Labels.load(call.home))


def _shown(pairs: Sequence[tuple[str, str | None]], labels: Labels) -> CallToolResult:
    def build(rows: int) -> CallToolResult:
        kept = [(pool, label and clipped(label, 100)) for pool, label in pairs[:rows]]
        lines = [_line(pool, label, labels) for pool, label in kept]
        document = {
            "schemaVersion": SCHEMA_VERSION,
            "labels": [{"pool": pool, "poolLabel": label} for pool, label in kept],
            **({"omittedLabels": len(pairs) - len(kept)} if len(kept) < len(pairs) else {}),
        }
        return answer(lines or ["no labels"], document)

    return fitted(build, _MOST_ROWS)


def _line(pool: str, label: str | None, labels: Labels) -> str:
    if label is None:
        return f"{pool} has no label"
    if labels.of(pool) is None:
        return f"{pool} has the label {label}, which is not shown: it is another pool's id"
    return f"{pool} is shown as {label}"


TOOL = Tool(
    model=LabelArguments,
    description="Show, set or clear the display label of a pool; without a pool, all labels. Set one only when asked to.",
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
    work=_label,
)
