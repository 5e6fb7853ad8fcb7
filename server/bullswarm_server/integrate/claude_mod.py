"""The Claude Mod for a Claude Code that is set up by its settings: a copy of our own, and the variable that has it loaded.

Claude Code writes the declarations of its interface into a plug-in's folder, which an installed package must not suffer: so
the mod is copied below bullswarm's home, one folder for each version. The copy holds the mod alone; the server, the hooks and
the skill stand in the settings.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast import VERSION
from bullswarm_server.integrate import json_edit, json_text
from bullswarm_server.integrate.own_files import OwnFiles
from bullswarm_server.integrate.parts import Notes, Part, PartState, ended_text, starting_text
from bullswarm_server.integrate.person import Person
from bullswarm_server.integrate.sources import COMMAND, Sources, claude_mod
from bullswarm_server.integrate.workspace import Workspace

VARIABLE = "CLAUDE_CODE_PLUGIN_DIRS"
_PATH = ("env", VARIABLE)
_FRESH = "{}\n"
_MANIFEST = ".claude-plugin/plugin.json"
_HOOKS = "hooks/hooks.json"
# What Claude Code itself puts into the folder of a mod that it watches.
_WRITTEN_BY_CLAUDE = (".claude-plugin/types/", ".claude-plugin/.gitignore", "tsconfig.json", ".gitignore")


@dataclass(frozen=True, slots=True)
class ModEntry:
    """Our folder in the variable by which Claude Code takes plug-in folders, behind those that the person has there."""

    file: Path
    mods: Path
    name: str = "mod entry"
    optional: bool = False

    def state(self, space: Workspace) -> PartState:
        value = self._value(space.text(self.file))
        if value is not None and not isinstance(value, str):
            return PartState("foreign", f"env.{VARIABLE} is no text")
        ours = [folder for folder in _folders(value) if self._is_ours(folder)]
        if not ours:
            return PartState("missing")
        return PartState("installed") if ours == [self._wanted] else PartState("outdated", f"it leads to {ours[0]}")

    def install(self, space: Workspace, notes: Notes) -> Notes:
        text = space.text(self.file)
        value = self._value(text)
        folders = [*(folder for folder in _folders(value) if not self._is_ours(folder)), self._wanted]
        if value is not None:
            space.put(self.file, json_edit.replace(text or "", _PATH, os.pathsep.join(folders)))
            return notes
        start, empty = starting_text(text, _FRESH)
        done = json_edit.insert(start, _PATH, self._wanted)
        space.put(self.file, done.text)
        return {"made": done.made, "blank": done.blank, **empty}

    def remove(self, space: Workspace, notes: Notes) -> None:
        text = space.text(self.file) or ""
        kept = [folder for folder in _folders(self._value(text)) if not self._is_ours(folder)]
        if kept:
            text = json_edit.replace(text, _PATH, os.pathsep.join(kept))
        else:
            text = json_edit.remove(text, _PATH, made=notes.get("made", 0), blank=notes.get("blank"))
        space.put(self.file, ended_text(text, _FRESH, notes))

    @property
    def _wanted(self) -> str:
        return str(self.mods / VERSION)

    def _is_ours(self, folder: str) -> bool:
        return Path(folder).parent == self.mods

    @staticmethod
    def _value(text: str | None) -> Any:
        node: json_text.Node | None = None if text is None or not text.strip() else json_text.parse(text)
        for step in _PATH:
            node = None if node is None else node.child(step)
        return None if node is None else node.value


def mod_parts(folder: Path, person: Person, sources: Sources) -> tuple[Part, ...]:
    """Return what the mod consists of for the Claude Code whose settings are in ``folder``."""
    mods = person.folder("BULLSWARM_HOME", ".bullswarm") / "claude-mod"
    files = OwnFiles(mods, mods / VERSION, mod_files(sources), name="mod", agents_own=_WRITTEN_BY_CLAUDE)
    return files, ModEntry(folder / "settings.json", mods)


def mod_files(sources: Sources) -> dict[str, str]:
    """Return the texts of the mod's files by their place in it, with the absolute command."""
    packaged = Path(claude_mod())
    code = [*sorted((packaged / "hooks").glob("*.ts*")), *sorted((packaged / "types").glob("*.ts"))]
    files = {str(file.relative_to(packaged)): file.read_text(encoding="utf-8") for file in code}
    command = f"COMMAND = {json.dumps(sources.command, ensure_ascii=False)}"
    files["hooks/command.ts"] = files["hooks/command.ts"].replace(f"COMMAND = '{COMMAND}'", command)
    modules = json.loads((packaged / _HOOKS).read_text(encoding="utf-8"))["modules"]
    manifest = (packaged / _MANIFEST).read_text(encoding="utf-8")
    return {_MANIFEST: manifest, _HOOKS: json.dumps({"modules": modules}, indent=2) + "\n", **files}


def _folders(value: Any) -> list[str]:
    return [folder for folder in value.split(os.pathsep) if folder] if isinstance(value, str) else []
