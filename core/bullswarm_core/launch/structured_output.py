"""Whether a CLI's own structured output is given the schema of a typed answer.

A vendor takes a part of JSON Schema, and refuses the whole task for a schema with more: then the schema stays out of the
command, the task's words alone ask for the answer, and bullswarm checks it all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.answers.schema import asserted, place_text, subschemas
from bullswarm_core.pools.launch_rules import StructuredOutput
from bullswarm_core.wire import compact

# OpenAI's strict mode has taken 5 levels from its first day; more of them later.
_MOST_LEVELS = 5
_LEVELS = frozenset({"properties", "items"})


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The schema of a typed answer, and the file in which a CLI finds what is asserted of it."""

    schema: Mapping[str, Any]
    file: str

    @property
    def text(self) -> str:
        """What is asserted, as JSON on one line."""
        return compact(asserted(self.schema))


def why_not_passed(schema: Mapping[str, Any], rule: StructuredOutput) -> str | None:
    """Return why the CLI can't be given a valid ``schema``, or None where it can. Both vendors want an object."""
    kept = asserted(schema)
    if kept.get("type") != "object":
        return 'it takes only a schema whose type is "object"'
    for keyword in sorted(rule.root_without & kept.keys()):
        return f"it takes no {keyword} at #"
    for place, inner in subschemas(kept):
        if not isinstance(inner, Mapping):
            if rule.closed_objects and place[-1:] != ("additionalProperties",):
                return f"it takes no true or false for a schema, as at {place_text(place)}"
            continue
        unknown = [keyword for keyword in inner if rule.keywords is not None and keyword not in rule.keywords]
        if unknown:
            return f"it takes no {unknown[0]}, as at {place_text(place)}"
        if rule.closed_objects and sum(token in _LEVELS for token in place) > _MOST_LEVELS:
            return f"it takes at most {_MOST_LEVELS} levels, and not {place_text(place)}"
        if rule.closed_objects and (open_how := _open(inner)):
            return f"{open_how}, and not at {place_text(place)}"
    size = len(compact(kept).encode())
    if rule.largest_bytes is not None and size > rule.largest_bytes:
        return f"it takes at most {rule.largest_bytes} bytes, and this schema has {size}"
    return None


def _open(schema: Mapping[str, Any]) -> str | None:
    """Return what a schema lacks for a model that is held to it word by word (OpenAI's strict mode)."""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "$ref" in schema and len(schema) > 1:
        return "it wants a $ref to stand alone"
    if not schema.keys() & {"type", "anyOf", "$ref"}:
        return "it wants a type everywhere"
    if "object" in kinds or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            return "it wants additionalProperties false in each object"
        if set(schema.get("required", ())) != set(schema.get("properties", {})):
            return "it wants each property of an object required"
    if "array" in kinds and "items" not in schema:
        return "it wants the items of each array"
    return None
