"""One spelling for every JSON document: camelCase keys, times in ISO-8601 UTC with `Z`, tuples as lists."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from bullswarm_core._dataclasses import MISSING, fields, is_dataclass

Value = TypeVar("Value")


@cache
def camel(name: str) -> str:
    """Turn ``snake_case`` into ``camelCase``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def stamp(moment: datetime) -> str:
    """Write an aware time as a column of the database holds it: ISO-8601 UTC, always to the millisecond.

    All have one length, so that SQL, which compares them as text, finds the order of the times. Raises ValueError.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso(moment: datetime) -> str:
    """Write an aware time as a document tells it: as ``stamp`` does, but whole seconds without a fraction."""
    return stamp(moment).replace(".000Z", "Z")


def whole_second(moment: datetime | None) -> str | None:
    """Write an aware time as an answer of routing tells it: to the second; None stays None."""
    return None if moment is None else iso(moment.replace(microsecond=0))


def parse_iso(text: str) -> datetime:
    """Read an ISO-8601 time; one without an offset is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def repeated_key(pairs: Iterable[tuple[str, Any]]) -> str | None:
    """Return the first key of a JSON object that stands there again, in one pass: a document may hold tens of thousands."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return None


def to_wire(value: Any) -> Any:
    """Turn dataclasses, times and tuples into plain JSON values, keys in camelCase."""
    if is_dataclass(value) and not isinstance(value, type):
        if (own := getattr(value, "to_wire", None)) is not None:
            return own()
        return {camel(item.name): to_wire(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {str(key): to_wire(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_wire(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(to_wire(item) for item in value)
    return value


def from_wire(kind: type[Value], document: Any) -> Value:
    """Build the flat dataclass ``kind`` from its JSON form.

    Keys that the class does not know are dropped and missing ones take their default, so that a document of a neighbouring
    version still reads. Raises ValueError when ``document`` is no object or lacks a field without a default.
    """
    if not isinstance(document, dict):
        raise ValueError(f"{kind.__name__} must be a JSON object, not {type(document).__name__}")
    known: dict[str, Any] = {}
    for item in fields(kind):  # type: ignore[arg-type]
        key = camel(item.name)
        if key in document:
            known[item.name] = _read(str(item.type), document[key])
        elif item.default is MISSING and item.default_factory is MISSING:
            raise ValueError(f"{kind.__name__} lacks {key}")
    return kind(**known)


def _read(annotation: str, value: Any) -> Any:
    if isinstance(value, str) and annotation.startswith("datetime"):
        return parse_iso(value)
    if isinstance(value, list) and annotation.startswith("tuple"):
        return tuple(value)
    return value


def compact(value: Any) -> str:
    """Write a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
