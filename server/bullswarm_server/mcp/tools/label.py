"""`label`: show, set or clear the display label of a pool."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread
from mcp_types import CallToolResult, ToolAnnotations

from bullswarm_core.errors import UsageError
from bullswarm_core.labels import Labels, clear_label, set_label
from bullswarm_server.cli.label import SCHEMA_VERSION
from bullswarm_server.hook_state import refresh
from bullswarm_server.mcp.arguments import LabelArguments
from bullswarm_server.mcp.results import answer, clipped, fitted
from bullswarm_server.mcp.session import Call
from bullswarm_server.mcp.tools.tool import Tool
from bullswarm_server.mcp.waiting import Report
from bullswarm_server.ops.services import why_no_pool

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
    pool_ids = frozenset(profile.id for profile in call.services(write_cache=True).load_profiles())
    if given.label is not None or given.clear:
        return _changed(call, given.pool, given.label, pool_ids)
    kept, labels = Labels.kept(call.home), Labels.load(call.home)
    known, why = {*pool_ids, *dict(kept.items())}, why_no_pool(call.home, call.machine.environ)
    pool_id = labels.resolve(given.pool, known, why_no_pool=why)
    return _shown([(pool_id, kept.of(pool_id))], labels)


def _changed(call: Call, pool: str, label: str | None, pool_ids: frozenset[str]) -> CallToolResult:
    why = why_no_pool(call.home, call.machine.environ)
    if label is None:
        pool_id, _ = clear_label(call.home, pool, pool_ids, why_no_pool=why)
    else:
        pool_id = set_label(call.home, pool, label, pool_ids, why_no_pool=why)
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
