"""A run as a tool's answer: the verdict, or how far it is, with the beginning of the output and where to read on."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_types import CallToolResult

from bullswarm_server.displays.verdict import verdict_lines
from bullswarm_server.mcp.answers import TypedAnswer
from bullswarm_server.mcp.results import Document, Room, answer, clipped, fence, fitted, page, path_text, without_empty
from bullswarm_server.mcp.waiting import progress_line

# Shown with a verdict; twice this (text and document) leaves room for everything else within 8 KB.
EXCERPT_BYTES = 1600
_SHOWN_FILES = 15
_SHOWN_NOTES = 4
_NOTE_LENGTH = 240
_PICK_KEYS = ("pool", "poolLabel", "provider", "lane", "effort", "model")
_PLAIN_KEYS = (
    "schemaVersion", "runId", "shortId", "state", "ok", "failureKind", "backAt", "backAtSource", "attribution",
    "confinement", "billing", "takenOver", "createdAt", "startedAt", "finishedAt",
)  # fmt: skip


def verdict_answer(verdict: Document, *, cursor: int = 0, most: int = EXCERPT_BYTES, **more: Any) -> CallToolResult:
    """Answer with a finished run: its verdict and a page of its output from ``cursor`` on."""
    output = Output(verdict.get("outFile"), verdict.get("excerpt"))
    nonce = secrets.token_hex(6)
    typed = TypedAnswer(verdict)

    def build(budget: int) -> CallToolResult:
        # A typed answer comes first; a reply that is the answer once more is not shown again.
        shown = not cursor and typed.fits(budget)
        text, after = (
            ("", output.size) if shown and typed.is_output else output.page(cursor, budget - typed.size * shown)
        )
        fenced = fence(text, nonce=nonce) if text else None
        follow = _read_on(verdict, after) if text and after < output.size else None
        room = Room(budget / most)
        document = {
            **_slim(verdict, room),
            **typed.document(shown=shown, room=room),
            **more,
            "output": fenced,
            "cursor": after if follow else None,
            "next": follow,
        }
        lines = verdict_lines(_for_text(verdict, room))
        if follow:
            lines.insert(1, f"next: {follow}")
        lines += typed.lines(shown=shown, room=room, nonce=nonce)
        # Null, {} and [] are answers, too.
        value = {"answer": verdict["answer"]} if shown else {}
        return answer([*lines, *([fenced] if fenced else [])], {**without_empty(document), **value})

    return fitted(build, most)


def running_answer(
    verdict: Document, signs: Mapping[str, Any], *, waited_sec: float | None, tip: str | None = None
) -> CallToolResult:
    """Answer with a run that goes on: what is known, the wait that was applied, and what to call next."""
    name = verdict["shortId"]
    gone = verdict["state"] == "kernel-gone"
    wait = f'run {{"run_id":"{name}"}} waits on'
    following = (
        f'{wait}{" and starts its kernel again" if gone else ""}; runs {{"op":"stop","run_id":"{name}"}} stops the work'
    )
    if tip:
        following = f"{following}. {tip}"

    def build(share: int) -> CallToolResult:
        room = Room(share / 100)
        document = {
            **_slim(verdict, room),
            "effectiveWaitSec": waited_sec,
            "progress": without_empty(signs),
            "next": following,
        }
        lines = [
            f"{str(verdict['state']).upper()} {name}: {progress_line(dict(signs))}",
            f"next: {following}",
            f"run: {verdict['runId']} in {path_text(verdict['cwd'], room(1024, 300))}",
        ]
        if waited_sec is not None:
            lines.append(f"waited {waited_sec:g} s")
        return answer(lines, {**without_empty(document), "ok": None})

    return fitted(build, 100)


class Output:
    """The output of a finished run; when its file is gone, the excerpt that the verdict keeps."""

    def __init__(self, path: str | None, excerpt: str | None) -> None:
        self._path = Path(path) if path else None
        self._kept = (excerpt or "").encode("utf-8", "replace")
        try:
            self.size = self._path.stat().st_size if self._path else 0
        except OSError:
            self._path, self.size = None, len(self._kept)

    def page(self, start: int, most: int) -> tuple[str, int]:
        """Return text from byte ``start`` on and the byte after it."""
        return page(self._read, start, most) if start < self.size else ("", self.size)

    def _read(self, place: int, count: int) -> bytes:
        if self._path is None:
            return self._kept[place : place + count]
        try:
            with self._path.open("rb") as file:
                file.seek(place)
                return file.read(count)
        except OSError:
            return self._kept[place : place + count]


def _read_on(verdict: Mapping[str, Any], after: int) -> str:
    return f'runs {{"op":"result","run_id":"{verdict["shortId"]}","cursor":{after}}} reads on'


def _slim(verdict: Mapping[str, Any], room: Room) -> Document:
    """Return the verdict without what only a person at the machine needs; `runs show --json` has all of it."""
    meta = verdict.get("meta") or {}
    changed = verdict.get("changedFiles") or ()
    return {
        **{key: verdict.get(key) for key in _PLAIN_KEYS},
        "why": clipped(verdict.get("why") or "", room(700, 200)),
        "pick": {key: (verdict.get("pick") or {}).get(key) for key in _PICK_KEYS} if verdict.get("pick") else None,
        "routeWhy": _remark(verdict.get("routeWhy"), room(400, 100)),
        "cwd": path_text(verdict.get("cwd"), room(1024, 300)),
        "changedFiles": [clipped(name, _NOTE_LENGTH) for name in changed[: room(_SHOWN_FILES)]],
        "changedFileCount": verdict.get("changedFileCount") or len(changed) or None,
        "commits": [clipped(name, 60) for name in (verdict.get("commits") or ())[: room(_SHOWN_NOTES)]],
        "deniedCount": len(verdict.get("denied") or ()) or None,
        "notes": _notes(verdict, room),
        "outFile": path_text(verdict.get("outFile"), room(1024, 300)),
        "outBytes": verdict.get("outBytes"),
        "wallSec": meta.get("wallSec"),
        "usage": without_empty(meta.get("usage") or {}),
    }


def _remark(text: object, length: int) -> str | None:
    return clipped(text, length) if text else None


def _notes(verdict: Mapping[str, Any], room: Room) -> list[str]:
    notes = [*(note["text"] for note in verdict.get("notes") or ()), *(verdict.get("launchNotes") or ())]
    return [clipped(note, _NOTE_LENGTH) for note in notes[: room(_SHOWN_NOTES)]]


def _for_text(verdict: Mapping[str, Any], room: Room) -> Document:
    """Return what the lines for people are made of, each text bounded; the output follows them, fenced."""
    changed = verdict.get("changedFiles") or ()
    return {
        **verdict,
        "why": clipped(verdict.get("why") or "", room(700, 200)),
        "routeWhy": _remark(verdict.get("routeWhy"), room(400, 100)),
        "notes": [],
        "launchNotes": _notes(verdict, room),
        "changedFiles": [clipped(name, 120) for name in changed[: room(_SHOWN_FILES)]],
        "outFile": path_text(verdict.get("outFile"), room(1024, 300)),
        "excerpt": None,
        "answerCheck": None,
    }
