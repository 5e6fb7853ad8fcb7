"""The models of Codex, from its app-server's `model/list`; it opens no session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bullswarm_core.errors import ModelListError
from bullswarm_core.fast import VERSION
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.pools.model_catalog import Asking, ModelEntry

# Without them it asks the vendor for the list of plug-ins, too.
_QUIET = ("--disable", "hooks", "--disable", "plugins", "--disable", "apps")
# The whole list is one page today; a server that always names another one must come to an end.
_MOST_PAGES = 20


def list_models(profile: PoolProfile, asking: Asking) -> tuple[ModelEntry, ...]:
    """Ask the app-server, page by page. Raises BullswarmError."""
    from bullswarm_core.process.json_rpc import LineRpc

    found: list[ModelEntry] = []
    words = [str(profile.binary), "app-server", *_QUIET]
    with LineRpc(words, cwd=asking.folder, environ=asking.environ, timeout_sec=asking.timeout_sec) as server:
        hello = server.ask("initialize", {"clientInfo": {"name": "bullswarm", "version": VERSION}})
        if hello.code is not None:
            raise ModelListError("codex app-server refused to begin")
        server.tell("initialized")
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            reply = server.ask("model/list", {"cursor": cursor} if cursor else {})
            if reply.code is not None:
                raise ModelListError("codex app-server gave no list", hint="a newer Codex may")
            models, cursor = page_of(reply.result)
            found += models
            if cursor is None:
                break
    return tuple(found)


def page_of(result: Any) -> tuple[list[ModelEntry], str | None]:
    """Read one page and the cursor of the next one; raise ModelListError for an answer that is none."""
    data = result.get("data") if isinstance(result, Mapping) else None
    if not isinstance(data, list):
        raise ModelListError("codex app-server answered without a list of models")
    entries = [each for each in data if isinstance(each, dict) and isinstance(each.get("id"), str)]
    cursor = result.get("nextCursor")
    return [_entry(each) for each in entries if each.get("hidden") is not True], cursor if isinstance(
        cursor, str
    ) else None


def _entry(entry: Mapping[str, Any]) -> ModelEntry:
    efforts = entry.get("supportedReasoningEfforts")
    levels = (
        [each.get("reasoningEffort") for each in efforts if isinstance(each, dict)] if isinstance(efforts, list) else []
    )
    return ModelEntry(
        id=entry["id"],
        name=str(entry.get("displayName") or ""),
        note=str(entry.get("description") or ""),
        default=entry.get("isDefault") is True,
        levels=tuple(level for level in levels if isinstance(level, str)),
    )
