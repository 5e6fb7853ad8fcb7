"""Hook groups in a JSON settings file, and Codex's trust in them."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_server.integrate import json_edit, json_text, toml_edit
from bullswarm_server.integrate.errors import TextError
from bullswarm_server.integrate.parts import Notes, PartState, ended_text, starting_text
from bullswarm_server.integrate.sources import HOOK_COMMAND
from bullswarm_server.integrate.workspace import Workspace, in_file

_FRESH = "{}\n"
_ADVICE = "Codex runs no hook until you trust it: /hooks in Codex, or integrate install with --trust-hooks"
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


def is_our_group(group: Any) -> bool:
    """Tell whether a hook group runs our hook command, wherever bullswarm is installed, and nothing else."""
    hooks = group.get("hooks") if isinstance(group, Mapping) else None
    if not isinstance(hooks, list) or not hooks:
        return False
    return all(isinstance(hook, Mapping) and _program(hook.get("command")) == HOOK_COMMAND for hook in hooks)


def _program(command: Any) -> str:
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return ""
    return Path(words[0]).name if words else ""


@dataclass(frozen=True, slots=True)
class JsonHooks:
    """Our hook groups, one list for each event, behind the groups that the person has for that event."""

    file: Path
    groups: Mapping[str, list[Any]]
    name: str = "hooks"
    optional: bool = False

    def state(self, space: Workspace) -> PartState:
        found: dict[str, list[Any]] = {}
        for event, _, group in our_groups(space.text(self.file)):
            found.setdefault(event, []).append(group)
        if not found:
            return PartState("missing")
        if found == self.groups:
            return PartState("installed")
        return PartState("outdated", "its hooks are another version's, or run a bullswarm elsewhere")

    def install(self, space: Workspace, notes: Notes) -> Notes:
        if self.state(space).state == "outdated":
            # The old ones go, the file stays, whoever made it.
            self.remove(space, {"added": notes.get("added", {})})
        text, empty = starting_text(space.text(self.file), _FRESH)
        kept: Notes = {key: notes[key] for key in ("fresh", "empty") if key in notes}
        added: dict[str, list[Any]] = {}
        for event, groups in self.groups.items():
            for group in groups:
                done = json_edit.insert(text, ("hooks", event, -1), group)
                text = done.text
                added.setdefault(event, []).append([done.made, done.blank])
        space.put(self.file, text)
        return {"added": added, **kept, **empty}

    def remove(self, space: Workspace, notes: Notes) -> None:
        text = space.text(self.file)
        if text is None:
            return
        added = {event: list(pairs) for event, pairs in notes.get("added", {}).items()}
        order = {event: place for place, event in enumerate(added)}
        ours = sorted(our_groups(text), key=lambda found: (order.get(found[0], len(order)), found[1]))
        for event, place, _ in reversed(ours):
            made, blank = added[event].pop() if added.get(event) else (0, None)
            text = json_edit.remove(text, ("hooks", event, place), made=made, blank=blank)
        space.put(self.file, ended_text(text, _FRESH, notes))


def our_groups(text: str | None) -> Iterator[tuple[str, int, Any]]:
    """Go through our groups in a settings text: event, place in its list, the group."""
    if text is None or not text.strip():
        return
    value = json_text.parse(text).value
    events = value.get("hooks") if isinstance(value, dict) else None
    for event, groups in events.items() if isinstance(events, dict) else ():
        for place, group in enumerate(groups if isinstance(groups, list) else ()):
            if is_our_group(group):
                yield event, place, group


@dataclass(frozen=True, slots=True)
class HookTrust:
    """Codex's record that the person trusts our hooks: a hash for each in config.toml, as Codex itself writes it.

    Codex runs no hook without it, and says nothing. It is written only where the person asks for it. ``shown_as`` is how
    Codex itself names the file of the hooks.
    """

    file: Path
    hooks_file: Path
    shown_as: str
    name: str = "hook trust"
    optional: bool = True

    def state(self, space: Workspace) -> PartState:
        document = toml_edit.parse(space.text(self.file) or "")
        wanted = self._wanted(space)
        given = [key for key, digest in wanted.items() if self._hash(document, key) == digest]
        if wanted and len(given) == len(wanted):
            return PartState("installed")
        # Trust is never widened unasked: partly given is not given.
        return PartState("missing", f"for some hooks only · {_ADVICE}" if given else _ADVICE)

    def install(self, space: Workspace, notes: Notes) -> Notes:
        text = space.text(self.file)
        added: list[list[str]] = notes.get("added", [])
        fresh = notes.get("fresh", text is None)
        for key, digest in self._wanted(space).items():
            path = ("hooks", "state", key)
            found = toml_edit.find(toml_edit.parse(text or ""), path)
            if found is None:
                done = toml_edit.insert(text or "", path, {"trusted_hash": digest})
                text = done.text
                added = [*added, [key, done.glue]]
            elif found.get("trusted_hash") != digest:
                text = toml_edit.update(text or "", path, {"trusted_hash": digest})
        space.put(self.file, text)
        return {"added": added, "fresh": fresh}

    def remove(self, space: Workspace, notes: Notes) -> None:
        text = space.text(self.file) or ""
        for key, glue in reversed(notes.get("added", [])):
            if toml_edit.find(toml_edit.parse(text), ("hooks", "state", key)) is not None:
                text = toml_edit.remove(text, ("hooks", "state", key), glue=glue)
        space.put(self.file, None if notes.get("fresh") and not text else text)

    def _wanted(self, space: Workspace) -> dict[str, str]:
        """The key and the hash of each of our hooks, where hooks.json has it."""
        try:
            ours = list(our_groups(space.text(self.hooks_file)))
        except TextError as error:
            raise in_file(self.hooks_file, error) from error
        return {
            f"{self.shown_as}:{event_key(event)}:{place}:{index}": trust_hash(event, group, hook)
            for event, place, group in ours
            for index, hook in enumerate(group["hooks"])
        }

    @staticmethod
    def _hash(document: Mapping[str, Any], key: str) -> Any:
        found = toml_edit.find(document, ("hooks", "state", key))
        return found.get("trusted_hash") if isinstance(found, Mapping) else None


def event_key(event: str) -> str:
    """Return an event's name as Codex writes it in keys: ``PreToolUse`` is ``pre_tool_use``."""
    return _CAPITAL.sub("_", event).lower()


def trust_hash(event: str, group: Mapping[str, Any], hook: Mapping[str, Any]) -> str:
    """Return the hash that Codex compares: of the event, the matcher and the one hook, as sorted compact JSON.

    Found by trial on the real program, and held by a test that asks it (`hooks/list` of its app server).
    """
    # Codex fills in its own defaults before it hashes.
    identity: dict[str, Any] = {"event_name": event_key(event), "hooks": [{"async": False, "timeout": 600, **hook}]}
    if group.get("matcher") is not None:
        identity["matcher"] = group["matcher"]
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
