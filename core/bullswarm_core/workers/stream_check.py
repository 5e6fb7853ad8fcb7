"""Checks of a table's JSON whose errors name the file, the place and the value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bullswarm_core.errors import ConnectorError
from bullswarm_core.values import dataclass


@dataclass(slots=True)
class Place:
    """Where in which table we are, for messages that name both."""

    source: str
    path: str = ""

    def at(self, step: str | int) -> Place:
        joined = f"{self.path}[{step}]" if isinstance(step, int) else f"{self.path}.{step}".lstrip(".")
        return Place(self.source, joined)

    def wrong(self, value: Any, wanted: str) -> ConnectorError:
        shown = json.dumps(value, ensure_ascii=False, default=str)[:80]
        return ConnectorError(f"{self.source}: {self.path or 'the table'} is {shown}; it has to be {wanted}")


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def object_of(value: Any, place: Place, keys: frozenset[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.wrong(value, "an object")
    for key in value:
        if keys is not None and key not in keys:
            raise place.at(key).wrong(value[key], "left out: known here are " + ", ".join(sorted(keys)))
    return value


def list_of(value: Any, place: Place) -> list[Any]:
    if not isinstance(value, list):
        raise place.wrong(value, "a list")
    return value


def string(value: Any, place: Place, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str) or not (value or may_be_empty):
        raise place.wrong(value, "a string")
    return value


def strings(value: Any, place: Place) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise place.wrong(value, "a string or a list of strings")
    return value


def truth(value: Any, place: Place) -> bool:
    if not isinstance(value, bool):
        raise place.wrong(value, "true or false")
    return value


def seconds(value: Any, place: Place) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise place.wrong(value, "a number of seconds, 0 or more")
    return float(value)


def flag(owner: Mapping[str, Any], name: str, place: Place) -> bool:
    return truth(owner.get(name, False), place.at(name))


def choice(owner: Mapping[str, Any], name: str, choices: tuple[str, ...], place: Place) -> str:
    value = owner.get(name, choices[0])
    if value not in choices:
        raise place.at(name).wrong(value, "one of " + ", ".join(choices))
    return str(value)
