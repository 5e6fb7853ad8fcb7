"""What is wrong with the checks of a step: its evidence, and the schema of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bullswarm_core.judging.answer_schema import schema_issues
from bullswarm_core.program.shape import is_whole

MOST_EVIDENCE = 5
MOST_EVIDENCE_SEC = 600
OUTPUT_FILE = "$output"
_FIELDS = {"command": ("type", "cmd", "timeoutSec"), "schema": ("type", "file", "schema", "format", "timeoutSec")}


def answer_issues(at: str, step: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the answer schema of a step."""
    if "answer" not in step:
        return []
    return _schema_issues(f"{at}.answer", step["answer"])


def evidence_issues(at: str, step: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the evidence of a step."""
    evidence = step.get("evidence", [])
    if not isinstance(evidence, list) or len(evidence) > MOST_EVIDENCE:
        return [f"{at}.evidence must be an array of at most {MOST_EVIDENCE} items"]
    issues: list[str] = []
    for place, item in enumerate(evidence):
        issues += _item_issues(f"{at}.evidence[{place}]", item)
    return issues


def _item_issues(at: str, item: Any) -> list[str]:
    kind = item.get("type") if isinstance(item, Mapping) else None
    if not isinstance(item, Mapping) or not isinstance(kind, str) or kind not in _FIELDS:
        return [f'{at} must be {{type: "command", cmd}} or {{type: "schema", file, schema}}']
    fields = _FIELDS[kind]
    issues = [f"{at}.{key} is not allowed; it has {', '.join(fields)}" for key in item if key not in fields]
    if "timeoutSec" in item and not is_whole(item["timeoutSec"], 1, MOST_EVIDENCE_SEC):
        issues.append(f"{at}.timeoutSec must be whole seconds from 1 to {MOST_EVIDENCE_SEC}")
    if kind == "command":
        cmd = item.get("cmd")
        if not isinstance(cmd, str) or not cmd.strip() or "\n" in cmd or "\0" in cmd:
            issues.append(f"{at}.cmd must be one line, a command that exits 0 when the work is right")
        return issues
    file = item.get("file")
    if not isinstance(file, str) or (file != OUTPUT_FILE and not _is_inside(file)):
        issues.append(f'{at}.file must be a relative file, or "{OUTPUT_FILE}" for the final reply')
    if item.get("format", "json") not in ("json", "jsonl"):
        issues.append(f"{at}.format must be json or jsonl")
    return issues + _schema_issues(f"{at}.schema", item.get("schema"))


def _is_inside(file: str) -> bool:
    return bool(file) and not file.startswith(("/", "~")) and ".." not in file.split("/") and "\0" not in file


def _schema_issues(at: str, schema: Any) -> list[str]:
    if not isinstance(schema, Mapping):
        return [f"{at} must be a JSON schema object"]
    return [f"{at}: {issue}" for issue in schema_issues(schema)]
