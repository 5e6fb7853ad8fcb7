"""Reads single values out of an event: paths, conditions, units. Every reader gives None for what is not there."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

T = TypeVar("T")
Getter = Callable[[Any], Any]
# The slot of an object and the key to look up in it; the value goes to the next slot.
Step = tuple[int, str]
Test = Callable[[Any], bool]

MAX_TEXT = 4_000
# Beyond this no counter is a count; it keeps one forged number from making every later sum huge.
MAX_COUNT = 10**15
_STATUS_IN_TEXT = re.compile(r"(?:status:?|http|error:?|\()\s*(?:code:?\s*)?([45]\d\d)\b", re.IGNORECASE)

# The kinds of window in the order of the pattern's groups.
_WINDOWS = ("5h", "daily", "weekly", "monthly")
_WINDOW_IN_TEXT = re.compile(r"\b(?:(5[- ]?h(?:ou)?rs?)|(daily)|(weekly)|(monthly))\b", re.IGNORECASE)
_WRAPPED = re.compile(r"\s*(?:[A-Za-z][A-Za-z ]{0,30}: ?)?[{\"]")


class Slots:
    """Numbers the values that rules read from one object: each step of a path is taken once; slot 0 is the object.

    Measured: reading every rule's paths anew cost more than parsing the line.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._known: dict[tuple[str, ...], int] = {(): 0}

    def slot(self, keys: tuple[str, ...]) -> int:
        """Return the slot of a path, and lay out the steps to it."""
        if keys not in self._known:
            self.steps.append((self.slot(keys[:-1]), keys[-1]))
            self._known[keys] = len(self.steps)
        return self._known[keys]


def read_slots(steps: tuple[Step, ...], root: Any) -> list[Any]:
    """Read an object's values into slots; None where there is nothing."""
    slots = [root]
    for parent, key in steps:
        value = slots[parent]
        slots.append(value.get(key) if type(value) is dict else None)
    return slots


def first_path(paths: list[str]) -> Getter:
    """Give a getter of the first of some paths of an event that is not null."""
    *others, last = [_path_getter(tuple(path.split("."))) for path in paths]
    if not others:
        return last

    def read(event: Any) -> Any:
        for get in others:
            value = get(event)
            if value is not None:
                return value
        return last(event)

    return read


def _path_getter(keys: tuple[str, ...]) -> Getter:
    """The short paths, on which every line is asked, without a loop."""
    if len(keys) > 2:
        return lambda event: dig(event, keys)
    key, inner = keys[0], keys[-1]
    if len(keys) == 1:
        return lambda event: event.get(key)
    return lambda event: value.get(inner) if type(value := event.get(key)) is dict else None


def dig(value: Any, keys: tuple[str, ...]) -> Any:
    """Follow object keys; None where one is missing or where there is no object."""
    for key in keys:
        if type(value) is not dict:
            return None
        value = value.get(key)
    return value


def first_of(readers: tuple[Callable[[T, T], Any], ...]) -> Callable[[T, T], Any]:
    """Give a reader of the first value that is not null."""

    def read(event: T, item: T) -> Any:
        for reader in readers:
            value = reader(event, item)
            if value is not None:
                return value
        return None

    return read


def number(value: Any) -> float | None:
    """Give a finite number; a numeric string counts, a truth value does not."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int) and abs(value) > MAX_COUNT:
        return None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def count(value: Any) -> int | None:
    """Give a counter: a whole number from 0 to 10^15, or None."""
    if type(value) is int and 0 <= value <= MAX_COUNT:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
        return None
    return int(value)


def text(value: Any) -> str:
    """Give a value as at most 4,000 characters of text: strings as they are, blocks by their text, the rest as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return clean(value[:MAX_TEXT])
    if isinstance(value, list):
        texts = [said[:MAX_TEXT] for block in value[:100] if isinstance(said := _block_text(block), str)]
        if texts:
            return clean("\n".join(texts)[:MAX_TEXT])
    return clean(json.dumps(value, ensure_ascii=False)[:MAX_TEXT])


def _block_text(block: Any) -> Any:
    """Give the text of a content block: plain, ``{"text": …}``, or wrapped once more in ``content``."""
    if not isinstance(block, dict):
        return block
    return block.get("text") or dig(block, ("content", "text"))


def clean(value: str) -> str:
    """Join surrogate pairs that came in halves, and replace a lone half, so that the text can be written as UTF-8."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def _epoch(factor: float) -> Callable[[Any], datetime | None]:
    def convert(value: Any) -> datetime | None:
        seconds = number(value)
        try:
            return None if seconds is None else datetime.fromtimestamp(seconds * factor, UTC)
        except (OverflowError, ValueError, OSError):
            return None

    return convert


def _iso_time(value: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return None if moment.utcoffset() is None else moment.astimezone(UTC)


def _scaled(factor: float) -> Callable[[Any], float | None]:
    def convert(value: Any) -> float | None:
        amount = number(value)
        return amount * factor if amount is not None and amount >= 0 else None

    return convert


def status_in_text(value: Any) -> int | None:
    found = _STATUS_IN_TEXT.search(value[:MAX_TEXT]) if isinstance(value, str) else None
    return int(found[1]) if found else None


def _window_in_text(value: Any) -> str | None:
    found = _WINDOW_IN_TEXT.search(value[:MAX_TEXT]) if isinstance(value, str) else None
    return next(name for name, word in zip(_WINDOWS, found.groups(), strict=True) if word) if found else None


def _message(value: Any) -> Any:
    """Give the sentence inside ``Internal error: {"message": …}``, ``{"error": {"message": …}}`` or a quoted one."""
    start = _WRAPPED.match(value[:100]) if isinstance(value, str) else None
    if start is None:
        return value
    try:
        inner = json.loads(value[start.end() - 1 :])
    except (ValueError, RecursionError):
        return value
    for keys in (("message",), ("error", "message"), ("detail",), ()):
        if isinstance(said := dig(inner, keys), str) and said:
            return said
    return value


UNITS: Mapping[str, Callable[[Any], Any]] = {
    "epochSeconds": _epoch(1.0),
    "epochMs": _epoch(0.001),
    "isoTime": _iso_time,
    "seconds": _scaled(1.0),
    "ms": _scaled(0.001),
    "percent": _scaled(1.0),
    "fraction": _scaled(100.0),
    "statusInText": status_in_text,
    "windowInText": _window_in_text,
    "message": _message,
}


_SCALARS = frozenset({str, int, float, bool, type(None)})


def starts_with(prefixes: tuple[str, ...]) -> Test:
    return lambda value: isinstance(value, str) and value.startswith(prefixes)


def contains(parts: tuple[str, ...]) -> Test:
    lowered = tuple(part.lower() for part in parts)
    return lambda value: value is not None and any(part in text(value).lower() for part in lowered)


def present(wanted: bool) -> Test:
    return lambda value: (value is not None) is wanted


def equals(values: tuple[Any, ...]) -> Test:
    """True for one of the values; 1 is not true, so types are compared, too."""
    if all(isinstance(value, str) for value in values):
        names = frozenset(values)
        return lambda value: type(value) is str and value in names
    kinds = frozenset((type(value), value) for value in values)
    return lambda value: type(value) in _SCALARS and (type(value), value) in kinds


def negated(test: Test) -> Test:
    return lambda value: not test(value)
