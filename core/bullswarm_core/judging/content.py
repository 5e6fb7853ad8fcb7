"""Is a saved output an answer at all? The gate of probes and of ``health``; informational for runs.

Runs are judged by facts. This gate reads prose and can be wrong about a short answer, so a verdict only borrows its two
certain findings: an empty output, and one that holds nothing but announcements.

Rule: docs/design/judging.md, "The content gate".
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Literal

from bullswarm_core.fast.text import plain
from bullswarm_core.values import dataclass

ContentReason = Literal[
    "content passed all gates",
    "empty output",
    "failure pattern at output head or tail",
    "structured: error object, not an answer",
    "announcement without substance",
]

# Outputs shorter than this are scanned whole, longer ones at their head and tail.
_SCANNED_WHOLE = 600
_SCANNED_END = 400
# This much text apart from announcements is work, or two units of this much together.
_SUBSTANCE = 80
_TWO_UNITS = 40
# Unicode calls these four Hangul fillers letters; they show nothing (Default_Ignorable_Code_Point).
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0")
# A typed answer with nothing to list: no finding is a finding.
_EMPTY_JSON = re.compile(r"\[\s*\]|\{\s*\}")
_ERROR_KEYS = frozenset({"error", "errors", "message", "code", "status", "detail", "reason"})

_FAILURE_AT_START = re.compile(
    r"\s*(?:rate limit\b|exceeded\b.{0,80}\bquota\b|(?:error|fatal|exception)\b"
    r"|(?:unauthorized|authentication failed|invalid api key|api key expired|permission denied)\b)",
    re.I,
)
_FAILURE_ANYWHERE = re.compile(
    r"command not found|econnrefused|etimedout|socket hang up|too many requests|service unavailable|bad gateway"
    r"|(?-i:no such file or directory)",
    re.I,
)
# A sentence ends at .!? and white space only before something that can begin one, so that "Node.js" never splits.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'“‘(\[*_#`>-])")
_ANNOUNCEMENT = re.compile(
    r"(?:(?:ok|okay|sure|now|first|next|then|and|so|alright|great)\b[,.!:]?\s+)*"
    r"(?:i(?:'|’)ll|i will|i(?:'|’)m going to|i am going to|i plan to|i intend to|let me)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class ContentVerdict:
    """What the gate found. ``intent_only``: nothing but announcements of work to come."""

    ok: bool
    reason: ContentReason
    intent_only: bool = False


def content_gate(text: str) -> ContentVerdict:
    """Judge a whole output by its text alone; the exit code is judged elsewhere."""
    stripped = text.strip()
    if not says_anything(stripped):
        return ContentVerdict(False, "empty output")
    structured = _json_object(stripped)
    if structured is not None and structured.keys() and structured.keys() <= _ERROR_KEYS:
        return ContentVerdict(False, "structured: error object, not an answer")
    if _has_failure_pattern(stripped):
        return ContentVerdict(False, "failure pattern at output head or tail")
    if not _has_substance(stripped) and structured is None and not _ends_in_array(stripped):
        return ContentVerdict(False, "announcement without substance", intent_only=True)
    return ContentVerdict(True, "content passed all gates")


def says_anything(text: str) -> bool:
    """Tell whether ``text`` says anything: a letter or a digit of any script outside control sequences, or empty JSON.

    A terminal's commands, NULs, blank characters and lone punctuation are no answer; "42" and "是" are.
    """
    shown = plain(text)
    return any(_is_word_character(character) for character in shown) or bool(_EMPTY_JSON.fullmatch(shown.strip()))


def _is_word_character(character: str) -> bool:
    return unicodedata.category(character)[0] in "LN" and character not in _BLANK_LETTERS


def only_announces(text: str) -> bool:
    """Tell whether ``text`` holds nothing but announcements ("I'll look at the parser now.")."""
    units = sentences(text)
    return bool(units) and all(_ANNOUNCEMENT.match(unit) for unit in units)


def last_sentence(text: str) -> str:
    """Return the last sentence of ``text``, or an empty string."""
    units = sentences(text)
    return units[-1] if units else ""


def sentences(text: str) -> list[str]:
    """Return the sentences of ``text``; a line's end always ends one."""
    return [unit for line in text.splitlines() for part in _SENTENCE_END.split(line) if (unit := part.strip())]


def _has_substance(text: str) -> bool:
    work = [unit for unit in sentences(text) if not _ANNOUNCEMENT.match(unit)]
    total = sum(len(unit) for unit in work)
    return total >= _SUBSTANCE or (len(work) >= 2 and total >= _TWO_UNITS)


def _has_failure_pattern(text: str) -> bool:
    if len(text) < _SCANNED_WHOLE:
        return bool(_FAILURE_AT_START.match(text) or _FAILURE_ANYWHERE.search(text))
    head, tail = text[:_SCANNED_END], text[-_SCANNED_END:]
    if _FAILURE_AT_START.match(head) or _FAILURE_ANYWHERE.search(head):
        return True
    # The tail begins in the middle of a line, which is no line's start.
    whole_lines = tail.splitlines()[1:]
    return bool(_FAILURE_ANYWHERE.search(tail)) or any(_FAILURE_AT_START.match(line) for line in whole_lines)


def _json_object(text: str) -> dict[str, object] | None:
    value = _parsed(text) if text.startswith("{") else None
    return value if isinstance(value, dict) else None


def _ends_in_array(text: str) -> bool:
    """Tell whether ``text`` ends in a JSON array, as a typed answer with some words before it does."""
    if not text.endswith("]"):
        return False
    starts = [match.start() for match in re.finditer(r"(?m)^\s*\[", text)][:50]
    return any(isinstance(_parsed(text[start:].strip()), list) for start in starts)


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
