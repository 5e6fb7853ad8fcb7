"""The parts of an integration: each finds, writes and takes out one thing of ours in a file of the person's.

``notes`` is what a part wrote down when it was installed, and what it needs to leave the file as it was: which
containers it made, which white space stood there. Without notes (another machine, a lost record) our own still goes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from bullswarm_core._dataclasses import dataclass
from bullswarm_server.integrate import blocks, json_edit, json_text, toml_edit
from bullswarm_server.integrate.errors import IntegrationError, TextError
from bullswarm_server.integrate.workspace import OPEN, Workspace, in_file

State = Literal["missing", "installed", "outdated", "foreign"]
Notes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PartState:
    """What was found of a part; ``detail`` says what is wrong with it."""

    state: State
    detail: str = ""


class Part(Protocol):
    """One thing that an agent needs. ``optional`` parts don't count for being complete."""

    @property
    def name(self) -> str: ...
    @property
    def file(self) -> Path: ...
    @property
    def optional(self) -> bool: ...
    def state(self, space: Workspace) -> PartState:
        """Say what is there. Raises TextError for a file that can't be read as what it should be."""
        ...

    def install(self, space: Workspace, notes: Notes) -> Notes:
        """Put it in (or bring it up to date); return the notes that taking it out needs."""
        ...

    def remove(self, space: Workspace, notes: Notes) -> None:
        """Take it out."""
        ...


def is_our_server(entry: Any) -> bool:
    """Tell whether an MCP entry starts bullswarm's server, wherever bullswarm is installed."""
    if not isinstance(entry, Mapping):
        return False
    command: Any = entry.get("command")
    arguments: Any = entry.get("args", [])
    if isinstance(command, list):
        command, arguments = command[0] if command else None, command[1:]
    return isinstance(command, str) and Path(command).name == "bullswarm" and arguments == ["mcp"]


def entry_state(found: Any, wanted: Mapping[str, Any], fixed: tuple[str, ...]) -> PartState:
    """Compare an entry with the wanted one: the ``fixed`` keys must agree, the others are the person's to change."""
    if found is None:
        return PartState("missing")
    if not is_our_server(found):
        return PartState("foreign", "the entry named bullswarm starts something else")
    stale = [key for key in fixed if found.get(key) != wanted[key]]
    if stale:
        return PartState("outdated", f"it starts {_started(found)}, this bullswarm is {_started(wanted)}")
    lacking = [key for key in wanted if key not in found]
    if found.get("enabled") is False:
        return PartState("outdated", "it is turned off (enabled = false)")
    return PartState("outdated", f"it lacks {', '.join(lacking)}") if lacking else PartState("installed")


def renewed(found: Mapping[str, Any], wanted: Mapping[str, Any], fixed: tuple[str, ...]) -> dict[str, Any]:
    """Return what an existing entry of ours must say: the fixed keys, and those that it lacks."""
    return {k: v for k, v in wanted.items() if k in fixed or k not in found or (k == "enabled" and found[k] is False)}


def _started(entry: Mapping[str, Any]) -> str:
    command = entry["command"]
    return str(command[0] if isinstance(command, list) else command)


@dataclass(frozen=True, slots=True)
class JsonEntry:
    """An MCP entry in a JSON file; ``fixed`` are the keys that must say what this installation says."""

    file: Path
    path: tuple[str, ...]
    entry: Mapping[str, Any]
    fixed: tuple[str, ...] = ("command",)
    comments: bool = False
    fresh: str = "{}\n"
    name: str = "mcp"
    optional: bool = False

    def state(self, space: Workspace) -> PartState:
        return entry_state(self._found(space.text(self.file)), self.entry, self.fixed)

    def install(self, space: Workspace, notes: Notes) -> Notes:
        text = space.text(self.file)
        found = self._found(text)
        if found is not None:
            value = {**found, **renewed(found, self.entry, self.fixed)}
            space.put(self.file, json_edit.replace(text or "", self.path, value, comments=self.comments))
            return notes
        start, empty = starting_text(text, self.fresh)
        done = json_edit.insert(start, self.path, dict(self.entry), comments=self.comments)
        space.put(self.file, done.text)
        return {"made": done.made, "blank": done.blank, **empty}

    def remove(self, space: Workspace, notes: Notes) -> None:
        text = space.text(self.file) or ""
        made, blank = notes.get("made", 0), notes.get("blank")
        text = json_edit.remove(text, self.path, made=made, blank=blank, comments=self.comments)
        space.put(self.file, ended_text(text, self.fresh, notes))

    def _found(self, text: str | None) -> Any:
        if text is None or not text.strip():
            return None
        node: json_text.Node | None = json_text.parse(text, comments=self.comments)
        for step in self.path:
            node = None if node is None else node.child(step)
        return None if node is None else node.value


def starting_text(text: str | None, fresh: str) -> tuple[str, Notes]:
    """Return the text to put members into, and the note of what stood there when that was nothing."""
    if text is None:
        return fresh, {"fresh": True}
    return (text, {}) if text.strip() else (fresh, {"empty": text})


def ended_text(text: str, fresh: str, notes: Notes) -> str | None:
    """Return what is left of a file that held nothing, or was not there, before ours came in."""
    if "empty" in notes and _same(text, fresh):
        return str(notes["empty"])
    return None if notes.get("fresh") and _same(text, fresh) else text


def _same(text: str, fresh: str) -> bool:
    return bool(json_text.parse(text, comments=True).value == json_text.parse(fresh).value)


@dataclass(frozen=True, slots=True)
class TomlEntry:
    """A table of ours in a TOML file, an MCP entry unless ``judge`` knows it otherwise."""

    file: Path
    path: tuple[str, ...]
    entry: Mapping[str, Any]
    fixed: tuple[str, ...] = ("command",)
    name: str = "mcp"
    optional: bool = False
    judge: Callable[[Any, Mapping[str, Any], tuple[str, ...]], PartState] = entry_state

    def state(self, space: Workspace) -> PartState:
        found = toml_edit.find(toml_edit.parse(space.text(self.file) or ""), self.path)
        return self.judge(found, self.entry, self.fixed)

    def install(self, space: Workspace, notes: Notes) -> Notes:
        text = space.text(self.file)
        found = toml_edit.find(toml_edit.parse(text or ""), self.path)
        if found is not None:
            space.put(self.file, toml_edit.update(text or "", self.path, renewed(found, self.entry, self.fixed)))
            return notes
        done = toml_edit.insert(text or "", self.path, self.entry)
        space.put(self.file, done.text)
        return {"glue": done.glue, "fresh": text is None}

    def remove(self, space: Workspace, notes: Notes) -> None:
        left = toml_edit.remove(space.text(self.file) or "", self.path, glue=notes.get("glue"))
        space.put(self.file, None if notes.get("fresh") and not left else left)


@dataclass(frozen=True, slots=True)
class MarkedBlock:
    """The awareness text between our marks in an instruction file."""

    file: Path
    inside: str
    name: str = "instructions"
    optional: bool = False

    def state(self, space: Workspace) -> PartState:
        found = blocks.inside_of(space.text(self.file, mode=OPEN) or "")
        if found is None:
            return PartState("missing")
        return (
            PartState("installed") if found == self.inside else PartState("outdated", "its text is another version's")
        )

    def install(self, space: Workspace, notes: Notes) -> Notes:
        text = space.text(self.file, mode=OPEN)
        new = blocks.find(text or "") is None
        done = blocks.put(text or "", self.inside)
        space.put(self.file, done.text)
        return {"glue": done.glue, "fresh": text is None} if new else notes

    def remove(self, space: Workspace, notes: Notes) -> None:
        text = space.text(self.file, mode=OPEN) or ""
        place = blocks.find(text)
        if place is not None:
            left = blocks.cut(text, *place, notes.get("glue"))
            space.put(self.file, None if notes.get("fresh") and not left else left)


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that is ours as a whole: the skill, a plugin. One without ``mark`` is somebody else's."""

    file: Path
    content: str
    mark: str
    name: str
    optional: bool = False

    def state(self, space: Workspace) -> PartState:
        text = space.text(self.file, mode=OPEN)
        if text is None:
            folder = self.file.parent
            if self.name == "skill" and folder.is_dir() and any(folder.iterdir()):
                return PartState("foreign", f"the folder {folder} holds something else")
            return PartState("missing")
        if self.mark not in text:
            return PartState("foreign", "the file is not bullswarm's")
        return PartState("installed") if text == self.content else PartState("outdated", "its text differs")

    def install(self, space: Workspace, notes: Notes) -> Notes:
        space.put(self.file, self.content)
        return notes

    def remove(self, space: Workspace, notes: Notes) -> None:
        space.put(self.file, None)


def foreign(part: Part, found: PartState) -> IntegrationError:
    """Say that something of this name is there and isn't ours."""
    return IntegrationError(
        f"{part.file}: {found.detail}", hint="bullswarm changes nothing that it doesn't own; rename or remove it first"
    )


@contextlib.contextmanager
def guarded(part: Part) -> Iterator[None]:
    """Name the part's file in what goes wrong with its text."""
    try:
        yield
    except TextError as error:
        raise in_file(part.file, error) from error
