"""What the words of a worker say: whether an output is an answer at all, why work is missing, what is not done.

Runs are judged by facts, and readings of prose never make anything ok: they can be wrong about a short answer. A verdict
borrows the certain findings: an empty output, one that holds nothing but announcements, and the items below the heading
``Not done``. Pure.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Literal

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast.text import clipped, one_line, plain

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


# Stop reasons with which the CLIs and their models say that a reply was cut, and that the model declined.
_CUT = {
    "max_tokens": "the reply was cut at the model's output limit", "length": "the reply was cut at the model's output limit",
    "max_output_tokens": "the reply was cut at the model's output limit",
    "model_context_window_exceeded": "the model ran out of context", "max_turns": "the CLI stopped at its limit of turns",
    "error_max_turns": "the CLI stopped at its limit of turns", "refusal": "the model declined the task",
    "content_filter": "the provider's filter stopped the reply",
}  # fmt: skip
# A worker stuck in plan mode, or one that asks before it begins.
_ASKS = re.compile(
    r"ready to (?:execute|implement|code|proceed|begin|start)\b|plan mode\b|\b(?:await|waiting for) (?:your|user)\b"
    r"|\b(?:shall|should|may|can) i (?:proceed|go ahead|continue|start|begin|make)\b"
    r"|\b(?:do you want|would you like) me to\b|\bplease (?:confirm|approve|clarify|tell me|let me know|provide)\b"
    r"|\bonce (?:you(?:'ve| have)? )?(?:approved?|confirm)",
)
# Print mode ends while the worker waits for its own background work, which is then killed.
_WAITS = re.compile(
    r"(?:(?:so|now|okay|ok|meanwhile|then|for now)[, ]+)*i(?:'ll| will|'m| am)(?: now| just| simply)* (?:be )?wait(?:ing)?\b"
    r"|(?:still |now )?waiting (?:for|on|until) (?:\S+ ){0,5}(?:notifications?|background|tasks?|results?|commands?|builds?"
    r"|tests?|jobs?|process(?:es)?|(?:sub)?agents?|completion|finish|complete|done)\b(?!.*\b(?:is|are|was|were|takes|costs)\b)"
    r"|standing by\b",
)  # fmt: skip


def cut_short(stop_reason: str | None) -> str | None:
    """Return why the reply is not whole, from the stop reason that the CLI reports; None for an ordinary end."""
    return _CUT.get((stop_reason or "").strip().lower())


def waits_for_itself(answer: str) -> bool:
    """Tell whether the last sentence waits for something that ended with the process ("I will wait for …")."""
    return bool(_WAITS.match(_plain(last_sentence(answer))))


def asks_back(answer: str) -> bool:
    """Tell whether the last sentence is a question or a plan that wants leave, so that the caller must answer it."""
    last = _plain(last_sentence(answer))
    return last.endswith("?") or bool(_ASKS.search(last))


def only_asks(answer: str) -> bool:
    """Tell whether every sentence asks or announces; an answer with a question behind it is an answer."""
    units = sentences(answer)
    return (
        bool(units) and any(asks_back(unit) for unit in units) and all(asks_back(u) or only_announces(u) for u in units)
    )


def _plain(sentence: str) -> str:
    return sentence.replace("’", "'").lower().strip(" *_`\"'")


# So many items of so many characters are kept of an attempt.
MOST_ITEMS = 20
LONGEST_ITEM = 300
OUTSIDE = "outside:"
_SECTIONS = frozenset({"done", "not done", "suggested next step", "suggested next steps"})
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]*(?P<words>.*?)[ \t]*#*[ \t]*\Z")
_BOLD_LINE = re.compile(r" {0,3}(?:\*\*|__)(?P<words>[^*_]+)(?:\*\*|__)[ \t]*:?[ \t]*\Z")
_FENCE = re.compile(r" {0,3}(?P<marks>```+|~~~+)(?P<info>[^`]*)\Z")
_BULLET = re.compile(r"(?P<indent>[ \t]*)(?:[-*+•–]|\d{1,3}[.)])[ \t]+(?P<words>.*)\Z")
_CHECKBOX = re.compile(r"\[(?P<mark>[ xX])\][ \t]+")
_NOTHING = re.compile(r"(?:none|nothing|n/?a|nil|-|–|—)(?: left| remaining| open| outstanding)?", re.IGNORECASE)
_MARKUP = str.maketrans("", "", "*_`")


def not_done(reply: str) -> tuple[str, ...]:
    """Return every item below the last heading ``Not done`` of a reply, each on one line; ``none`` is no item.

    Headings in a code fence are quotations and count only where the reply has none outside of one.
    """
    lines = [line.rstrip("\r") for line in reply.removeprefix("\ufeff").split("\n")]
    for inside in (False, True):
        found = _section(list(_seen(lines, inside=inside)))
        if found is not None:
            return tuple(_items(found))
    return ()


def returned_early(items: tuple[str, ...]) -> dict[str, Any] | None:
    """Return what the record of a good attempt keeps of the items that it left undone; None where it left none."""
    if not items:
        return None
    return {"count": len(items), "items": [clipped(item, LONGEST_ITEM) for item in items[:MOST_ITEMS]]}


def outside_blockers(items: tuple[str, ...]) -> list[str]:
    """Return what stands in the worker's way outside of its step: the items that begin with ``outside:``, without it."""
    plain_items = [(item, item.translate(_MARKUP).lstrip()) for item in items]
    blockers = [bare[len(OUTSIDE) :].strip() or item for item, bare in plain_items if bare.lower().startswith(OUTSIDE)]
    return [clipped(blocker, LONGEST_ITEM) for blocker in blockers[:MOST_ITEMS]]


def _seen(lines: list[str], *, inside: bool) -> Iterator[tuple[str, bool]]:
    """Give each line with whether a heading may stand in it; with ``inside`` fences are looked into."""
    opened = ""
    for line in lines:
        fence = _FENCE.match(line)
        if fence and not opened:
            opened = fence["marks"]
        elif fence and fence["marks"].startswith(opened) and not fence["info"].strip():
            opened = ""
        else:
            yield line, inside or not opened
            continue
        if not inside:
            yield line, False


def _section(lines: list[tuple[str, bool]]) -> list[str] | None:
    """Return the lines below the last ``Not done``, up to the next heading; None without one."""
    found: list[str] | None = None
    taking = False
    for line, may_head in lines:
        heading = _heading(line) if may_head else None
        if heading is not None:
            taking = heading == "not done"
            found = [] if taking else found
        elif taking and found is not None:
            found.append(line)
    return found


def _heading(line: str) -> str | None:
    """Return the words of a heading in lower case, None for any other line; a bold line is one of ours or none."""
    marked = _HEADING.match(line)
    if marked:
        return _words(marked["words"])
    bold = _BOLD_LINE.match(line)
    words = _words(bold["words"]) if bold else ""
    return words if words in _SECTIONS else None


def _words(text: str) -> str:
    return one_line(text.translate(_MARKUP)).rstrip(":. ").lower()


def _items(lines: list[str]) -> Iterator[str]:
    """Join each bullet with what is indented below it; lines without bullets are items of their own."""
    item: list[str] = []
    outer: int | None = None
    for line in lines:
        bullet = _BULLET.match(line)
        indent = len(bullet["indent"].expandtabs(4)) if bullet else 0
        if bullet and (outer is None or indent <= outer):
            yield from _whole(item)
            item, outer = [bullet["words"]], indent
        elif not line.strip():
            if outer is None:
                yield from _whole(item)
                item = []
        else:
            item.append(bullet["words"] if bullet else line)
    yield from _whole(item)


def _whole(parts: list[str]) -> Iterator[str]:
    text = one_line(" ".join(parts))
    box = _CHECKBOX.match(text)
    if box:
        text = text[box.end() :]
    said = text.translate(_MARKUP).strip("()[]. !\"'")
    if said and not _NOTHING.fullmatch(said) and not (box and box["mark"] != " "):
        yield text
