"""Claude Code's status line: it has room for one, so ours is put in only where the person asks and has none."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_server.integrate import json_edit, json_text
from bullswarm_server.integrate.parts import Notes, PartState, ended_text, starting_text
from bullswarm_server.integrate.workspace import Workspace

_PATH = ("statusLine",)
_FRESH = "{}\n"


@dataclass(frozen=True, slots=True)
class StatusLine:
    """The ``statusLine`` of a settings file, run by this command."""

    file: Path
    command: str
    name: str = "status line"
    optional: bool = True

    def state(self, space: Workspace) -> PartState:
        found = self._found(space.text(self.file))
        if found is None:
            return PartState("missing", "integrate install with --statusline adds it")
        if not _is_ours(found):
            return PartState("foreign", "you have a status line of your own")
        return (
            PartState("installed") if found == self._value() else PartState("outdated", "it runs a bullswarm elsewhere")
        )

    def install(self, space: Workspace, notes: Notes) -> Notes:
        text = space.text(self.file)
        if self._found(text) is not None:
            space.put(self.file, json_edit.replace(text or "", _PATH, self._value()))
            return notes
        start, empty = starting_text(text, _FRESH)
        done = json_edit.insert(start, _PATH, self._value())
        space.put(self.file, done.text)
        return {"blank": done.blank, **empty}

    def remove(self, space: Workspace, notes: Notes) -> None:
        text = json_edit.remove(space.text(self.file) or "", _PATH, blank=notes.get("blank"))
        space.put(self.file, ended_text(text, _FRESH, notes))

    def _value(self) -> dict[str, Any]:
        return {"type": "command", "command": f"{shlex.quote(self.command)} statusline"}

    @staticmethod
    def _found(text: str | None) -> Any:
        node = None if text is None or not text.strip() else json_text.parse(text).child(_PATH[0])
        return None if node is None else node.value


def _is_ours(found: Any) -> bool:
    command = found.get("command") if isinstance(found, Mapping) else None
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    return len(words) == 2 and Path(words[0]).name == "bullswarm" and words[1] == "statusline"
