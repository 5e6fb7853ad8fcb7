"""`route`: the pick that a task would get; starts nothing, changes nothing."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
from mcp_types import CallToolResult

from bullswarm_core.routing import Decision
from bullswarm_server.displays.route import decision_lines
from bullswarm_server.mcp.arguments import RouteArguments
from bullswarm_server.mcp.results import Document, answer, clipped, fitted, without_empty
from bullswarm_server.mcp.session import Call
from bullswarm_server.mcp.task_requests import absolute_folder, prepare
from bullswarm_server.mcp.tools.tool import READS, Tool
from bullswarm_server.mcp.waiting import Report
from bullswarm_server.ops.tasks import PreparedTask, route_document

_MOST_ROWS = 40
_ROW_KEYS = (
    "pool", "poolLabel", "provider", "model", "effectiveSurplus", "inflight", "fiveHourUsedPct", "forecastFiveHourPct",
    "pacingWindow", "pacingUsedPct", "forecastPacingPct", "urgencyState", "nearFiveHourLimit", "forecastOverLimit", "free",
)  # fmt: skip
_FACTS = (
    "schemaVersion",
    "lane",
    "effort",
    "cwd",
    "caller",
    "pool",
    "poolLabel",
    "model",
    "reasoning",
    "failureKind",
    "backAt",
)


async def _route(call: Call, given: RouteArguments, _: Report) -> CallToolResult:
    return await anyio.to_thread.run_sync(_show, call, given)


def _show(call: Call, given: RouteArguments) -> CallToolResult:
    # A pick depends on the folder only for the record: without one nothing is claimed about any.
    cwd = absolute_folder(given.cwd) if given.cwd else None
    with prepare(call, given, cwd=cwd, prompt=given.prompt, write_cache=False) as prepared:
        decision = prepared.decide()
    return pick_answer(prepared, decision, folder_given=given.cwd is not None)


def pick_answer(prepared: PreparedTask, decision: Decision, *, folder_given: bool = True) -> CallToolResult:
    """Answer with a decision: the pick or why there is none, and the pools that were compared and left out."""
    whole = route_document(prepared, decision)
    if not folder_given:
        whole["cwd"] = None
    names = dict(prepared.services.labels().items())
    way_out = enabling(prepared, decision)

    def build(rows: int) -> CallToolResult:
        lines = [clipped(line, 400) for line in decision_lines(decision)]
        if way_out:
            lines.insert(1, f"next: {way_out}")
        shown = lines[: rows + 4]
        if len(shown) < len(lines):
            shown.append(f"… {len(lines) - len(shown)} more lines: bullswarm route on the command line shows all")
        return answer(shown, _document(whole, rows, names, way_out))

    return fitted(build, _MOST_ROWS)


def _document(whole: Document, rows: int, names: dict[str, str], way_out: str | None) -> Document:
    candidates = [without_empty({key: row.get(key) for key in _ROW_KEYS}) for row in whole["candidates"]]
    excluded = [_left_out(row, names) for row in whole["excluded"]]
    document = {
        **{key: whole.get(key) for key in _FACTS},
        "reason": clipped(whole["reason"], 800),
        "next": way_out,
        "forecast": without_empty(
            {key: value for key, value in whole["forecast"].items() if not isinstance(value, (list, dict))}
        ),
        "candidates": candidates[:rows],
        "excluded": excluded[:rows],
        "omittedRows": max(0, len(candidates) - rows) + max(0, len(excluded) - rows) or None,
    }
    return {"pool": whole["pool"], **without_empty(document)}


def _left_out(row: dict[str, Any], names: dict[str, str]) -> Document:
    return without_empty({
        "pool": row["pool"],
        "poolLabel": row.get("poolLabel") or names.get(row["pool"]),
        "kind": row["kind"],
        "reason": clipped(row["reason"], 200),
        "until": row.get("until"),
    })  # fmt: skip


def enabling(prepared: PreparedTask, decision: Decision) -> str | None:
    """Say what would bring a worker for a task that has none; None with a worker, or where only time helps."""
    if decision.pool is not None and not without_worker(prepared, decision):
        return None
    others = [entry for entry in decision.excluded if entry.kind != "caller"]
    disabled = [entry.pool for entry in others if entry.kind == "disabled"]
    unavailable = [entry.pool for entry in others if entry.kind == "unavailable"]
    opening, closing = "no delegate pool: ", "; until then do the work yourself"
    if disabled:
        ways = ", ".join(f"bullswarm strategy set-provider {pool} on" for pool in disabled[:5])
        return f"{opening}the person can enable one ({ways}){closing}"
    if unavailable:
        names = ", ".join(unavailable[:5])
        return f"{opening}the person has to install, sign in to or mend {names} (bullswarm doctor){closing}"
    if not others:
        return f"{opening}the person has to install and sign in to another agent CLI (bullswarm doctor){closing}"
    return None


def without_worker(prepared: PreparedTask, decision: Decision) -> bool:
    """Tell whether the pick is the embedded stand-in, which does no work, and nobody asked for it by name."""
    profile = prepared.services.profile(decision.pool) if decision.pool else None
    if profile is None or not profile.connector.last_resort:
        return False
    request = prepared.task.request(caller=prepared.origin.caller_pool, candidate_minutes=None)
    return not request.names(profile.id, profile.connector.name)


TOOL = Tool(
    model=RouteArguments,
    description=(
        "Show which pool (account) a task would get and why, with the pools compared and left out. Starts nothing. "
        "`run` picks by itself: don't call this first."
    ),
    annotations=READS,
    work=_route,
)
