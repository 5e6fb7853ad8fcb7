"""Reads from a thread's rollout which tool calls were refused: Codex's event stream is silent about many of them.

Measured with 0.171: a command that the sandbox stopped may emit no item, and a rejected patch never does. The rollout
under ``$CODEX_HOME/sessions/YYYY/MM/DD`` holds every call and every output.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.streams.facts import Denial

# A thread id is a UUID; anything else is no part of a file name.
_THREAD_ID = re.compile(r"[0-9A-Za-z-]{8,64}")
# A run that began before midnight has its rollout in an earlier day's folder; a resumed thread's may be older.
_DAYS_SEARCHED = 40
# A day's work of one thread stays far below; a line beyond the second limit is no refusal (those are one sentence).
_LARGEST_ROLLOUT = 64 * 1024 * 1024
_LONGEST_LINE = 1024 * 1024
_KEPT = 64
_LONGEST_REASON = 4_000
_LONGEST_TARGET = 1_000

_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_PATCH_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_EXIT_CODE = re.compile(r"^Process exited with code (-?\d+)$", re.MULTILINE)
_REPORT_START = re.compile(r"\A.*?^Output:\n", re.MULTILINE | re.DOTALL)
_SYSTEM_REFUSAL = re.compile(r"read-only file ?system|permission denied|operation not permitted", re.IGNORECASE)
# How Codex itself refuses; such an output is no report of a process.
_OWN_REFUSAL = re.compile(
    r"\bpatch rejected\b|\brejected by user approval settings\b|\bapproval policy is never\b"
    r"|\bcommands are not permitted\b|\brequires approval\b",
    re.IGNORECASE,
)


def denials_in_rollout(
    config_dir: str | Path, thread_id: str | None, *, known: Iterable[Denial] = (), since: datetime | None = None
) -> tuple[Denial, ...]:
    """Return the refused calls of a thread that are not ``known`` yet, at most 64; what can't be read tells nothing.

    A resumed thread has the calls of earlier runs before its own: those before ``since`` are passed over.
    """
    path = rollout_of(config_dir, thread_id)
    if path is None:
        return ()
    told = Counter(_sameness(denial.reason) for denial in known)
    found: list[Denial] = []
    for denial in refusals(_lines(path), since=since):
        if told[_sameness(denial.reason)] > 0:
            told[_sameness(denial.reason)] -= 1
        elif len(found) < _KEPT:
            found.append(denial)
    return tuple(found)


def rollout_of(config_dir: str | Path, thread_id: str | None) -> Path | None:
    """Find the rollout file of a thread among those of the last days, None where there is none."""
    if not thread_id or not _THREAD_ID.fullmatch(thread_id):
        return None
    for day in newest_days(Path(config_dir) / "sessions"):
        for name in names_in(day):
            if name.startswith("rollout-") and name.endswith(f"-{thread_id}.jsonl"):
                return day / name
    return None


def refusals(lines: Iterable[bytes], *, since: datetime | None = None) -> Iterator[Denial]:
    """Give the refused calls in a rollout's lines; lines that are no such records are passed over."""
    calls: dict[str, tuple[str, str | None]] = {}
    for line in lines:
        payload = _payload(line, since)
        identity = payload.get("call_id")
        if not isinstance(identity, str):
            continue
        if payload.get("type") in _CALLS:
            calls[identity] = _call(payload)
        elif payload.get("type") in _OUTPUTS and (refusal := _refusal(_text(payload.get("output")))):
            tool, target = calls.get(identity, ("", None))
            reason, by_system = refusal
            yield Denial(tool, reason[:_LONGEST_REASON], target, "system" if by_system else "cli")


def _refusal(output: str) -> tuple[str, bool] | None:
    """Return the words of a refusal and whether the system spoke them; a command that ended well was not refused."""
    exited = _EXIT_CODE.search(output)
    if exited is None:
        return (output, False) if _OWN_REFUSAL.search(output) else None
    said = _REPORT_START.sub("", output, count=1)
    refused = exited[1] != "0" and _SYSTEM_REFUSAL.search(said)
    return (said, True) if refused else None


def _call(payload: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the tool's name, as the stream names it, and the command or the first file that a call is about."""
    name, words = str(payload.get("name") or ""), _command(payload)
    if files := _PATCH_FILE.findall(words):
        return "apply_patch", files[0][:_LONGEST_TARGET]
    return ("command_execution" if name == "exec_command" else name), words[:_LONGEST_TARGET] or None


def _command(payload: Mapping[str, Any]) -> str:
    given = payload.get("arguments", payload.get("input"))
    if not isinstance(given, str):
        return ""
    try:
        arguments = json.loads(given)
    except (ValueError, RecursionError):
        return given
    command = arguments.get("cmd", arguments.get("command")) if isinstance(arguments, dict) else None
    if isinstance(command, list):
        return " ".join(str(word) for word in command)
    return command if isinstance(command, str) else given


def _text(output: Any) -> str:
    if isinstance(output, dict):
        output = output.get("content", output.get("output"))
    if isinstance(output, list):
        texts = [part.get("text") for part in output if isinstance(part, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return output if isinstance(output, str) else ""


def _payload(line: bytes, since: datetime | None) -> Mapping[str, Any]:
    # Most lines are messages and counts; only these are worth parsing.
    if b"_call" not in line:
        return {}
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    payload = record.get("payload") if isinstance(record, dict) else None
    if not isinstance(payload, dict) or _is_before(record.get("timestamp"), since):
        return {}
    return payload


def _is_before(written: Any, since: datetime | None) -> bool:
    if since is None or not isinstance(written, str):
        return False
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return False
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) < since


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with open_ordinary(path) as file:
            while file.tell() < _LARGEST_ROLLOUT and (line := file.readline(_LONGEST_LINE)):
                yield line
    except OSError:
        return


def newest_days(sessions: Path) -> Iterator[Path]:
    """Give the folders of the last 40 days that have any, the newest first."""
    searched = 0
    for year in _descending(sessions):
        for month in _descending(year):
            for day in _descending(month):
                if searched >= _DAYS_SEARCHED:
                    return
                searched += 1
                yield day


def _descending(folder: Path) -> list[Path]:
    return [folder / name for name in sorted(names_in(folder), reverse=True) if name.isdigit()]


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, none where it can't be read."""
    try:
        return os.listdir(folder)  # noqa: PTH208  names are all that is needed, and a day may hold thousands
    except OSError:
        return []


def _sameness(reason: str) -> str:
    """Two reports of one refusal differ in white space at their ends, and the stream cuts long ones."""
    return reason.strip()[:200]
