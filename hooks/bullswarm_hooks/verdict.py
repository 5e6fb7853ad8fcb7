"""A verdict in what a tool left behind (a JSON document, or the lines for people), and the one line about it.

Its words may be a worker's: control sequences go, each part is bounded, and what is quoted is marked as quoted.
"""

from __future__ import annotations

from bullswarm_core.fast.text import clipped, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEEPEST = 6
_LONGEST_WHY = 300
_LONGEST_PATH = 400
_LONGEST_NAME = 60
# Where agents put what a tool printed or returned (measured): Claude Code's shell, MCP results, OpenCode.
_PLACES = ("structuredContent", "structured_content", "stdout", "content", "output", "text", "result")


def find(response: object, *, depth: int = 0) -> dict[str, Any] | None:
    """Return the verdict in a tool's response, None when there is none."""
    if depth > _DEEPEST:
        return None
    if isinstance(response, str):
        return _in_text(response, depth)
    if isinstance(response, list):
        return next((found for item in response[:20] if (found := find(item, depth=depth + 1))), None)
    if not isinstance(response, dict):
        return None
    if ("runId" in response or "shortId" in response) and "ok" in response:
        return response
    inner = (find(response[place], depth=depth + 1) for place in _PLACES if place in response)
    return next((found for found in inner if found), None)


def line(verdict: dict[str, Any]) -> str:
    """Return the one line: what came of the task, where to look, and what to do next."""
    run = _text(verdict.get("shortId") or verdict.get("runId"), _LONGEST_NAME) or "last"
    if verdict.get("ok") is None:
        return f"bullswarm: run {run}{_pool(verdict)} is not finished · wait on: bullswarm runs wait {run}"
    good = verdict["ok"] is True
    parts = [f"bullswarm: run {run}{_pool(verdict)} {'is ok' if good else 'FAILED'}"]
    if why := _text(verdict.get("why"), _LONGEST_WHY):
        parts[0] += f' ("{why}")'
    if kind := _text(verdict.get("failureKind"), _LONGEST_NAME):
        parts.append(f"kind: {kind}")
    if back_at := _text(verdict.get("backAt"), _LONGEST_NAME):
        parts.append(f"back at {back_at}")
    if path := _text(verdict.get("outFile"), _LONGEST_PATH):
        parts.append(f"output: {path}")
    parts.append("read it and check its claims" if good else f"see bullswarm runs show {run}; don't just repeat it")
    return " · ".join(parts)


def _pool(verdict: dict[str, Any]) -> str:
    pick = verdict.get("pick")
    source = pick if isinstance(pick, dict) else verdict
    name = _text(source.get("poolLabel") or source.get("pool"), _LONGEST_NAME)
    return f" on {name}" if name else ""


def _text(value: object, most: int) -> str:
    return clipped(one_line(value).replace('"', "'"), most) if isinstance(value, str) else ""


def _in_text(text: str, depth: int) -> dict[str, Any] | None:
    import json

    start = text.find("{")
    if start >= 0 and (not text[:start].strip() or '"runId"' in text):
        try:
            document, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, (dict, list)) and (found := find(document, depth=depth + 1)):
            return found
    return _in_lines(text)


def _in_lines(text: str) -> dict[str, Any] | None:
    """Read the lines of ``bullswarm run`` without ``--json``: the first one and those that name the run and the output."""
    import re

    head = re.search(r"^(OK|FAIL|RUNNING|STOPPING|KERNEL-GONE) \[([^\]\n]+)\] ([^\n]*)$", text, re.MULTILINE)
    run = re.search(r"^run: (\w+) \(bullswarm runs show \w+\)$", text, re.MULTILINE)
    if head is None or run is None:
        return None
    path = re.search(r"^output: (.+) \(\d+ bytes\)$", text, re.MULTILINE)
    word, pool, why = head.groups()
    # The kind of a failure stands behind its reason.
    failure = re.fullmatch(r"(.*) \(([a-z-]+)\)", why) if word == "FAIL" else None
    return {
        "shortId": run.group(1),
        "ok": {"OK": True, "FAIL": False}.get(word),
        "pick": {"pool": pool} if pool != "-" else None,
        "why": failure.group(1) if failure else why,
        "failureKind": failure.group(2) if failure else None,
        "outFile": path.group(1) if path else None,
    }
