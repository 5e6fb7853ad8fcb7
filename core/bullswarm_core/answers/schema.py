"""Which JSON Schemas an answer can be checked against: those of a few keywords, each with a value that makes sense.

A keyword that is not asserted would be a promise that nobody keeps, so an unknown one is refused before anything starts
(docs/design/judging.md, "Typed answers"). Pure, and without the validating library: a caller's start-up does not pay for it.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from bullswarm_core._dataclasses import dataclass, field
from bullswarm_core.answers.strict_json import DEEPEST, AnswerTextError, decoded, read_value
from bullswarm_core.errors import UsageError
from bullswarm_core.wire import compact

# Schemas written by hand have a few kB; a generated one with this much is a mistake.
MOST_SCHEMA_BYTES = 1024 * 1024
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_ONE = ("items", "additionalProperties", "not")
_SEVERAL = ("allOf", "anyOf", "oneOf")
_NAMED = ("properties", "$defs", "definitions")
_COUNTS = ("minProperties", "maxProperties", "minItems", "maxItems", "minLength", "maxLength")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_OTHERS = ("type", "enum", "const", "required", "uniqueItems", "pattern", "multipleOf", "$ref")
# Told to the worker, and asserted by nobody.
_REMARKS: Mapping[str, type] = {
    "title": str, "description": str, "$schema": str, "$id": str, "$comment": str, "format": str, "examples": list,
    "deprecated": bool, "readOnly": bool, "writeOnly": bool, "default": object,
}  # fmt: skip
KEYWORDS = (*_OTHERS, *_ONE, *_SEVERAL, *_NAMED, *_COUNTS, *_BOUNDS, *_REMARKS)
# Of the remarks these tell a model something; the rest can only get in the way of a vendor's own check, or (`$id`) change
# what a reference means.
_KEPT_REMARKS = ("title", "description")
_SHOWN = 60
_SHOWN_ISSUES = 6

Place = tuple[str, ...]


def schema_issues(schema: Any) -> list[str]:
    """Return everything for which ``schema`` is refused, each with its place (``#/properties/name``) and value.

    None for a schema that an answer can be checked against. Place it behind a name: ``steps[0].answer: `` + issue.
    """
    if not isinstance(schema, Mapping):
        return [f"must be a JSON schema object, not {_shown(schema)}"]
    if too_deep(schema):
        return [f"is nested deeper than {DEEPEST} levels"]
    try:
        size = len(json.dumps(schema, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
    except (TypeError, ValueError) as error:
        return [f"holds what JSON cannot: {error}"]
    if size > MOST_SCHEMA_BYTES:
        return [f"is too large (limit 1 MiB): {size} bytes"]
    check = _Check()
    check.schema((), schema)
    check.references()
    return list(dict.fromkeys(check.issues))


def checked_schema(schema: Any, *, what: str) -> dict[str, Any]:
    """Return ``schema`` when answers can be checked against it. Raises UsageError that names ``what``, place and value."""
    issues = schema_issues(schema)
    if issues:
        more = f"; and {len(issues) - _SHOWN_ISSUES} more" if len(issues) > _SHOWN_ISSUES else ""
        raise UsageError(
            f"{what}: {'; '.join(issues[:_SHOWN_ISSUES])}{more}",
            hint="a JSON Schema of the keywords that can be asserted; nothing was started",
        )
    return dict(schema)


def read_schema(data: bytes | str, *, what: str) -> dict[str, Any]:
    """Return the schema in a JSON text. Raises UsageError for what is no JSON and for a schema that is refused."""
    size = len(data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape"))
    if size > MOST_SCHEMA_BYTES:
        raise UsageError(f"{what}: is too large (limit 1 MiB): {size} bytes", hint="nothing was started")
    try:
        value = read_value(decoded(data) if isinstance(data, bytes) else data)
    except AnswerTextError as error:
        raise UsageError(f"{what}: {error}", hint="give a JSON Schema object; nothing was started") from error
    return checked_schema(value, what=what)


def asserted(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a valid schema with only what is asserted, titles and descriptions: what validators and CLIs are given."""
    kept: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _REMARKS and keyword not in _KEPT_REMARKS:
            continue
        if keyword in _ONE:
            value = _asserted(value)
        elif keyword in _SEVERAL:
            value = [_asserted(item) for item in value]
        elif keyword in _NAMED:
            value = {name: _asserted(item) for name, item in value.items()}
        kept[keyword] = value
    return kept


def subschemas(schema: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Give a valid schema and every schema in it, each with its place; a reference is not followed."""
    yield place, schema
    if not isinstance(schema, Mapping):
        return
    for keyword in _ONE:
        if keyword in schema:
            yield from subschemas(schema[keyword], (*place, keyword))
    for keyword in _SEVERAL:
        for index, item in enumerate(schema.get(keyword, ())):
            yield from subschemas(item, (*place, keyword, str(index)))
    for keyword in _NAMED:
        for name, item in schema.get(keyword, {}).items():
            yield from subschemas(item, (*place, keyword, name))


def place_text(place: Place) -> str:
    """Write a place as a JSON pointer behind ``#``."""
    return "#" + "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in place)


def too_deep(value: Any, *, deepest: int = DEEPEST) -> bool:
    """Tell whether a value is nested deeper than ``deepest`` levels, without recursion of our own."""
    level = [value]
    for _ in range(deepest):
        level = [inner for item in level for inner in _contents(item)]
    return bool(level)


def _contents(value: Any) -> list[Any]:
    """Return the lists and objects in a value."""
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, (Mapping, list))]


def _asserted(schema: Any) -> Any:
    return asserted(schema) if isinstance(schema, Mapping) else schema


@dataclass(slots=True)
class _Check:
    issues: list[str] = field(default_factory=list)
    # Every schema, by its place; what of it stands in for it (references and all/any/one of/not) is checked on the spot.
    places: set[Place] = field(default_factory=set)
    refers: dict[Place, Place] = field(default_factory=dict)
    stands_in: dict[Place, list[Place]] = field(default_factory=dict)

    def say(self, place: Place, keyword: str, value: Any, wanted: str) -> None:
        self.issues.append(f'"{keyword}" at {place_text(place)} is {_shown(value)}: {wanted}')

    def schema(self, place: Place, schema: Any) -> None:
        self.places.add(place)
        if isinstance(schema, bool) and place:
            return
        if not isinstance(schema, Mapping):
            self.issues.append(
                f"{place_text(place)} is {_shown(schema)}: it must be a schema (an object, true or false)"
            )
            return
        for keyword, value in schema.items():
            if keyword not in KEYWORDS:
                self.issues.append(f"unsupported keyword {_shown(keyword)} at {place_text(place)}")
            elif keyword in _ONE:
                self._inner(place, value, keyword, on_the_spot=keyword == "not")
            elif keyword in _SEVERAL:
                self._several(place, keyword, value)
            elif keyword in _NAMED:
                self._named(place, keyword, value)
            elif problem := _problem(keyword, value):
                self.say(place, keyword, value, problem)
            elif keyword == "$ref":
                self._reference(place, value)

    def references(self) -> None:
        for place, target in self.refers.items():
            if target not in self.places:
                self.say(place, "$ref", place_text(target), "there is no schema at that place")
            else:
                self.stands_in.setdefault(place, []).append(target)
        for place in self._endless() & self.refers.keys():
            self.say(place, "$ref", place_text(self.refers[place]), "it leads into a circle of references")

    def _inner(self, place: Place, value: Any, *tokens: str, on_the_spot: bool) -> None:
        inner = (*place, *tokens)
        if on_the_spot:
            self.stands_in.setdefault(place, []).append(inner)
        self.schema(inner, value)

    def _several(self, place: Place, keyword: str, value: Any) -> None:
        if not isinstance(value, list) or not value:
            self.say(place, keyword, value, "it must be a list of one or more schemas")
            return
        for index, item in enumerate(value):
            self._inner(place, item, keyword, str(index), on_the_spot=True)

    def _named(self, place: Place, keyword: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            self.say(place, keyword, value, "it must be an object of schemas")
            return
        for name, item in value.items():
            self._inner(place, item, keyword, name, on_the_spot=False)

    def _reference(self, place: Place, value: str) -> None:
        if value != "#" and not value.startswith("#/"):
            self.say(place, "$ref", value, "only a place in this schema (#/…) can be meant")
            return
        tokens = value.split("/")[1:]
        self.refers[place] = tuple(unquote(token).replace("~1", "/").replace("~0", "~") for token in tokens)

    def _endless(self) -> set[Place]:
        """Take away the schemas that end, over and over; what is left stands in for itself."""
        waits_for = {place: len(targets) for place, targets in self.stands_in.items()}
        asked_by: dict[Place, list[Place]] = {}
        for place, targets in self.stands_in.items():
            for target in targets:
                asked_by.setdefault(target, []).append(place)
        ends = [place for place in asked_by if place not in waits_for]
        while ends:
            for place in asked_by.get(ends.pop(), ()):
                waits_for[place] -= 1
                if not waits_for[place]:
                    ends.append(place)
        return {place for place, left in waits_for.items() if left}


def _problem(keyword: str, value: Any) -> str | None:
    """Return what a keyword's value has to be, or None where it is that; for keywords that hold no schema."""
    if keyword in _COUNTS:
        return None if _is_whole(value) and value >= 0 else "it must be a whole number of 0 or more"
    if keyword in _BOUNDS:
        return None if _is_number(value) else "it must be a number"
    if keyword == "multipleOf":
        return None if _is_number(value) and value > 0 else "it must be a number above 0"
    if keyword == "type":
        names = value if isinstance(value, list) else [value]
        known = names and all(isinstance(name, str) and name in TYPES for name in names)
        return None if known and len(set(names)) == len(names) else f"it must be one or some of {', '.join(TYPES)}"
    if keyword == "enum":
        return None if isinstance(value, list) and value else "it must be a list of one or more values"
    if keyword == "required":
        texts = isinstance(value, list) and all(isinstance(name, str) for name in value)
        return None if texts and len(set(value)) == len(value) else "it must be a list of different names"
    if keyword == "uniqueItems":
        return None if isinstance(value, bool) else "it must be true or false"
    if keyword == "pattern":
        return _pattern_problem(value)
    if keyword == "$ref":
        return None if isinstance(value, str) else "it must be the place of a schema (#/…)"
    wanted = _REMARKS.get(keyword, object)
    return None if isinstance(value, wanted) else f"it must be {_WORDS[wanted]}"


_WORDS = {str: "a text", list: "a list", bool: "true or false"}


def _pattern_problem(value: Any) -> str | None:
    if not isinstance(value, str):
        return "it must be a text"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            re.compile(value)
        except (re.error, OverflowError, RecursionError, MemoryError) as error:
            return f"it must be a regular expression ({error})"
    return None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: Any) -> str:
    try:
        text = compact(value)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
