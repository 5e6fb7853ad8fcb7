"""The JSON Schema of program.v3 for editors: the shape of every field; what spans several is for ``program.issues``."""

from __future__ import annotations

from typing import Any

from bullswarm_core.pools.model import EFFORTS, LANES
from bullswarm_core.program.model import MAX_RETRY, PROGRAM_VERSION
from bullswarm_core.program.step_checks import (
    DELIVERABLES,
    LABEL_LENGTH,
    MOST_EVIDENCE,
    MOST_EVIDENCE_SEC,
    MOST_MINUTES,
    PHASE_LENGTH,
    REASONING,
)
from bullswarm_core.program.validate import MOST_ROUNDS, NOTE_LENGTH

_ID = {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]*$"}
_IDS = {"type": "array", "items": _ID, "uniqueItems": True}
_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True}
_FILES = {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True}


def json_schema() -> dict[str, Any]:
    """Return the schema document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "bullswarm workflow program, version 3",
        "type": "object",
        "additionalProperties": False,
        "required": ["schemaVersion", "steps"],
        "properties": {
            "schemaVersion": {"const": PROGRAM_VERSION},
            "defaults": _object(_shared(), []),
            "steps": {"type": "array", "minItems": 1, "items": _step()},
            "gates": {"type": "array", "items": _gate()},
            "loops": {"type": "array", "items": _loop()},
        },
    }


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def _line(most: int, description: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most, "description": description}


def _shared() -> dict[str, Any]:
    return {
        "lane": {"enum": list(LANES), "description": "The nature of the work; analyze writes nothing."},
        "effort": {"enum": list(EFFORTS), "description": "The effort tier; a chore is low."},
        "reasoning": {"enum": list(REASONING)},
        "retry": {"type": "integer", "minimum": 0, "maximum": MAX_RETRY, "description": "Automatic retries."},
        "timeBox": {
            "type": "integer",
            "minimum": 0,
            "maximum": MOST_MINUTES,
            "description": "Whole minutes that the worker is told to take; 0 leaves it out. Nothing is stopped by it.",
        },
    }


def _step() -> dict[str, Any]:
    sides = _object({"use": _NAMES, "avoid": _NAMES}, [])
    properties = {
        "id": _ID,
        "prompt": {"type": "string", "minLength": 1, "description": "The whole task; nothing in it is substituted."},
        "dependsOn": {**_IDS, "description": "Steps, gates or loops that must be over first."},
        "phase": _line(PHASE_LENGTH, "Groups steps for people."),
        "label": _line(LABEL_LENGTH, "What people see instead of the id."),
        "model": _line(LABEL_LENGTH, "An exact model id; nothing is substituted."),
        "route": _object({"pools": sides, "providers": sides, "independentOf": _IDS}, []),
        "blindTo": {**_IDS, "description": "Earlier steps whose output and answer this one must not see."},
        "answer": {"type": "object", "description": "A JSON Schema that the step's answer must fit."},
        "evidence": {"type": "array", "maxItems": MOST_EVIDENCE, "items": _evidence()},
        "deliverable": {
            "anyOf": [
                {"enum": list(DELIVERABLES)},
                _object({"type": {"enum": list(DELIVERABLES)}, "paths": _FILES}, ["type"]),
            ]
        },
        "files": {**_FILES, "description": "Exact relative files that the step owns; no folders, no globs."},
    }
    return _object({**properties, **_shared()}, ["id", "prompt"])


def _evidence() -> dict[str, Any]:
    timeout = {"type": "integer", "minimum": 1, "maximum": MOST_EVIDENCE_SEC}
    command = {"type": {"const": "command"}, "cmd": {"type": "string", "minLength": 1}, "timeoutSec": timeout}
    schema = {
        "type": {"const": "schema"},
        "file": {"type": "string", "minLength": 1, "description": "A relative file, or $output for the final reply."},
        "schema": {"type": "object"},
        "format": {"enum": ["json", "jsonl"]},
        "timeoutSec": timeout,
    }
    return {"anyOf": [_object(command, ["type", "cmd"]), _object(schema, ["type", "file", "schema"])]}


def _condition() -> dict[str, Any]:
    by_field = {"step": _ID, "field": {"type": "string"}, "equals": {"type": "boolean"}}
    by_evidence = {"step": _ID, "evidence": {"const": "passed"}}
    return {"anyOf": [_object(by_field, ["step", "field"]), _object(by_evidence, ["step", "evidence"])]}


def _gate() -> dict[str, Any]:
    properties = {
        "id": _ID,
        "dependsOn": {**_IDS, "minItems": 1},
        "when": _condition(),
        "note": _line(NOTE_LENGTH, "What the person is asked."),
    }
    return _object(properties, ["id", "dependsOn"])


def _loop() -> dict[str, Any]:
    rounds = {"type": "integer", "minimum": 1, "maximum": MOST_ROUNDS}
    properties = {"id": _ID, "steps": {**_IDS, "minItems": 1}, "until": _condition(), "maxRounds": rounds}
    return _object(properties, ["id", "steps", "until", "maxRounds"])
