"""The models of Claude Code, from its answer to an `initialize` control request: no turn, no session, no hooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bullswarm_core.errors import ModelListError
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.pools.model_catalog import Asking, ModelEntry, texts

_ARGUMENTS = (
    "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--no-session-persistence",
    "--safe-mode",
)  # fmt: skip
_QUESTION = json.dumps({"type": "control_request", "request_id": "models", "request": {"subtype": "initialize"}})
# Its first entry stands for "no model named"; what it resolves to is the default.
_DEFAULT = "default"


def list_models(profile: PoolProfile, asking: Asking) -> tuple[ModelEntry, ...]:
    """Ask Claude Code. The names are its aliases (`opus`), which follow the newest version. Raises BullswarmError."""
    return models_of(asking.run(profile, *_ARGUMENTS, say=_QUESTION + "\n"))


def models_of(output: str) -> tuple[ModelEntry, ...]:
    """Read the list out of what Claude Code printed; raise ModelListError when it is not there."""
    entries = _entries(output)
    default = next((each.get("resolvedModel") for each in entries if each.get("value") == _DEFAULT), None)
    return tuple(
        ModelEntry(
            id=str(each["value"]),
            name=str(each.get("resolvedModel") or each.get("displayName") or ""),
            note=str(each.get("description") or ""),
            default=default is not None and each.get("resolvedModel") == default,
            levels=texts(each.get("supportedEffortLevels")),
        )
        for each in entries
        if each.get("value") not in (None, _DEFAULT)
    )


def _entries(output: str) -> list[dict[str, Any]]:
    for line in output.splitlines():
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if _member(message, "type") == "control_response":
            models = _member(_member(_member(message, "response"), "response"), "models")
            if isinstance(models, list):
                return [each for each in models if isinstance(each, dict)]
    raise ModelListError("claude answered without a list of models")


def _member(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None
