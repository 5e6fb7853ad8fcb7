"""Reading the JSON that a worker, or a caller, wrote: strictly, within bounds, and with a reason that can be acted on.

Python's reader is kinder than JSON: it takes NaN, keeps the last of two equal keys, and turns 1e999 into infinity. What it
let through would be another value for the next program that reads the same text. Pure.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from bullswarm_core.wire import compact, repeated_key

# Nobody writes more by hand; a validator, and whoever reads the value after us, walks it by recursion.
DEEPEST = 64
# What every reader of JSON with 64-bit numbers takes.
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_SHOWN = 40
# Written so that a text of a megabyte is one step, and not one for each of its letters.
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_FENCE = re.compile(r" {0,3}(```+|~~~+)([^`]*)\Z")


class AnswerTextError(ValueError):
    """A text that is no JSON value that we take; the message says why, in words for whoever wrote it."""


def read_value(text: str) -> Any:
    """Return the JSON value of ``text``; a byte order mark at its start is no part of it.

    Raises AnswerTextError for what is no JSON (NaN and Infinity are none), for a key that stands twice in one object, for
    a number of more than 64 bits, for half a surrogate pair, and for more than 64 levels.
    """
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise AnswerTextError("it is empty")
    if depth(text) > DEEPEST:
        raise AnswerTextError(f"it is nested deeper than {DEEPEST} levels")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_fraction, parse_int=_whole
        )
    except json.JSONDecodeError as error:
        raise AnswerTextError(f"it is not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    if not _is_text(text) or ("\\u" in text and not _is_text(compact(value))):
        raise AnswerTextError("it holds half a surrogate pair (\\ud800 to \\udfff), which is no text")
    return value


def decoded(data: bytes) -> str:
    """Return ``data`` as text. Raises AnswerTextError unless it is UTF-8; a byte order mark is dropped."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AnswerTextError(f"it is not UTF-8 (byte {error.start})") from None


def depth(text: str) -> int:
    """Return how deep the brackets of a JSON text are nested, without reading it."""
    level = deepest = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    return deepest


def unfenced(reply: str) -> str:
    """Return what a reply holds in its one code fence, or the whole reply where there is none.

    Raises AnswerTextError where there are several: which one is meant is not ours to guess.
    """
    blocks: list[str] = []
    inside: list[str] = []
    opened = ""
    for line in reply.removeprefix("\ufeff").split("\n"):
        found = _FENCE.match(line)
        if opened:
            closes = found and found[1].startswith(opened) and not found[2].strip()
            if closes:
                blocks.append("\n".join(inside))
                inside, opened = [], ""
            else:
                inside.append(line)
        elif found:
            opened = found[1]
    if opened:
        raise AnswerTextError("its code fence is never closed")
    if len(blocks) > 1:
        raise AnswerTextError(f"it has {len(blocks)} code fences, and only one can be the answer")
    return blocks[0] if blocks else reply


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if (twice := repeated_key(pairs)) is not None:
        raise AnswerTextError(f"the key {_shown(twice)} stands twice in one object")
    return dict(pairs)


def _constant(word: str) -> NoReturn:
    raise AnswerTextError(f"{word} is no JSON number")


def _fraction(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise AnswerTextError(f"the number {_shown(digits)} is too large")
    return number


def _whole(digits: str) -> int:
    number = int(digits) if len(digits) <= len(str(_LARGEST)) else None
    if number is None or not _SMALLEST <= number <= _LARGEST:
        raise AnswerTextError(f"the number {_shown(digits)} has more than 64 bits")
    return number


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(words: str) -> str:
    return json.dumps(words if len(words) <= _SHOWN else words[:_SHOWN] + "…")
