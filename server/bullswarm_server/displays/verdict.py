"""A verdict for people: what came of the task, why this pool, where the output is, and the beginning of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bullswarm_core.pools.labels import Labels
from bullswarm_core.reports.verdict import EXCERPT_BYTES
from bullswarm_server.displays.text import Style, duration, one_line, plain

_PLAIN = Style(colour=False)
_EXCERPT_LINES = 12
_SHOWN_FILES = 8
_SHOWN_PROBLEMS = 5
_ANSWER_LENGTH = 400


def verdict_lines(verdict: Mapping[str, Any], *, style: Style = _PLAIN, labels: Labels | None = None) -> list[str]:
    """Return the lines for one verdict; every text of a worker or provider comes as ``plain`` leaves it.

    With ``labels`` its own sentences name the pools as people see them.
    """
    if labels is not None:
        said = {
            name: labels.in_text(verdict[name]) for name in ("why", "routeWhy") if isinstance(verdict.get(name), str)
        }
        verdict = {**verdict, **said}
    lines = [_first_line(verdict, style)]
    lines += [line for line in _facts(verdict) if line]
    lines += [f"note: {one_line(note['text'])}" for note in verdict.get("notes") or ()]
    lines += [f"note: {one_line(note)}" for note in verdict.get("launchNotes") or ()]
    lines += _excerpt(verdict, style)
    return lines


def _first_line(verdict: Mapping[str, Any], style: Style) -> str:
    pick = verdict.get("pick") or {}
    pool = one_line(pick.get("poolLabel") or pick.get("pool") or "-")
    why = one_line(str(verdict.get("why") or ""))
    if verdict.get("state") != "finished":
        return f"{style.warn(str(verdict.get('state')).upper())} [{pool}] {why}"
    word = style.good("OK") if verdict.get("ok") else style.bad("FAIL")
    kind = verdict.get("failureKind")
    return f"{word} [{pool}] {why}{f' ({kind})' if kind else ''}"


def _facts(verdict: Mapping[str, Any]) -> list[str | None]:
    meta = verdict.get("meta") or {}
    back_at = verdict.get("backAt")
    return [
        f"back at {back_at} ({verdict.get('backAtSource')})" if back_at else None,
        _labelled("route", verdict.get("routeWhy")) if verdict.get("routeWhy") != verdict.get("why") else None,
        _reasoning(verdict.get("reasoning")),
        _changed(verdict.get("changedFiles") or ()),
        *_answer(verdict),
        _held(verdict),
        _time(meta),
        _usage(meta.get("usage")),
        f"run: {verdict['shortId']} (bullswarm runs show {verdict['shortId']})" if verdict.get("shortId") else None,
        _output(verdict),
    ]


def _labelled(name: str, text: object) -> str | None:
    return f"{name}: {one_line(str(text))}" if text else None


def _reasoning(reasoning: Mapping[str, Any] | None) -> str | None:
    if not reasoning or not reasoning.get("applied"):
        return None
    clamped = ", clamped" if reasoning.get("clamped") else ""
    return f"reasoning: {one_line(str(reasoning['applied']))} ({reasoning.get('source')}{clamped})"


def _answer(verdict: Mapping[str, Any]) -> list[str]:
    """Return the lines on a typed answer: its value, or what is wrong with it, and the file that holds all of it."""
    check = verdict.get("answerCheck")
    if not check:
        return []
    source = str(check.get("source") or "none").replace("-", " ")
    kept = f" · {one_line(str(check['file']))}" if check.get("file") else ""
    if check.get("ok"):
        value = json.dumps(verdict.get("answer"), ensure_ascii=False)
        shown = one_line(value[:_ANSWER_LENGTH]) + ("…" if len(value) > _ANSWER_LENGTH else "")
        return [f"answer: {shown}", f"answer checked: {source}, {check.get('bytes') or 0} bytes{kept}"]
    problems = check.get("problems") or ()
    lines = [f"answer: {one_line(p['path'])}: {one_line(p['problem'])}" for p in problems[:_SHOWN_PROBLEMS]]
    more = f" and {len(problems) - _SHOWN_PROBLEMS} more" if len(problems) > _SHOWN_PROBLEMS else ""
    return [*lines, f"answer refused: {source}{more}{kept}"]


def _changed(files: object) -> str | None:
    names = [one_line(str(name)) for name in files] if isinstance(files, (list, tuple)) else []
    if not names:
        return None
    more = f" and {len(names) - _SHOWN_FILES} more" if len(names) > _SHOWN_FILES else ""
    return f"changed: {', '.join(names[:_SHOWN_FILES])}{more}"


def _held(verdict: Mapping[str, Any]) -> str | None:
    parts = []
    if verdict.get("confinement"):
        parts.append(f"confinement: {verdict['confinement']}")
    if verdict.get("billing") == "api-key":
        parts.append("billing: api-key")
    if verdict.get("attribution") == "shared":
        parts.append("attribution: shared")
    return " · ".join(parts) or None


def _time(meta: Mapping[str, Any]) -> str | None:
    wall = meta.get("wallSec")
    return f"time: {_clock(float(wall))}" if isinstance(wall, (int, float)) else None


def _clock(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{duration(seconds / 60)}"


def _usage(usage: Mapping[str, Any] | None) -> str | None:
    if not usage:
        return None
    names = (("read", "input"), ("cache-read", "cacheRead"), ("cache-write", "cacheWrite"), ("output", "output"))
    known = [f"{shown}={usage[key]}" for shown, key in names if usage.get(key) is not None]
    return f"usage: {' '.join(known)} tokens" if known else None


def _output(verdict: Mapping[str, Any]) -> str | None:
    path = verdict.get("outFile")
    if path:
        return f"output: {_path(path)} ({verdict.get('outBytes') or 0} bytes)"
    written = (verdict.get("meta") or {}).get("streamFile")
    return f"written so far: {_path(written)}" if written else None


def _path(path: object) -> str:
    # Runs of spaces belong to a path.
    return plain(str(path)).replace("\n", " ")


def _excerpt(verdict: Mapping[str, Any], style: Style) -> list[str]:
    text = verdict.get("excerpt")
    if not text:
        return []
    lines = plain(str(text)).strip().splitlines()
    shown = ["", *(f"  {line}" for line in lines[:_EXCERPT_LINES])]
    if len(lines) > _EXCERPT_LINES or (verdict.get("outBytes") or 0) > EXCERPT_BYTES:
        # How much more there is, only the file knows: the excerpt is itself a beginning.
        where = "all of it is in the output file" if verdict.get("outFile") else "the rest was not kept"
        shown.append(style.faint(f"  … (this is the beginning; {where})"))
    return shown
