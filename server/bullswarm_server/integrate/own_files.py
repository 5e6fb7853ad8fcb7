"""A folder of bullswarm's own among an agent's files: it holds these files, and what else is below it goes with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bullswarm_core._dataclasses import dataclass
from bullswarm_server.integrate.parts import Notes, PartState
from bullswarm_server.integrate.workspace import OPEN, Workspace


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """The texts ``files`` by their place in ``file``, a folder in ``folder``, below which everything belongs to us.

    ``agents_own`` begin the names of what the agent itself writes there: that makes the part neither there nor outdated.
    """

    folder: Path
    file: Path
    files: Mapping[str, str]
    name: str
    agents_own: tuple[str, ...] = ()
    optional: bool = False

    def state(self, space: Workspace) -> PartState:
        texts = {path: space.text(path, mode=OPEN) for path in self._there() if not self._is_agents(path)}
        found = {path: text for path, text in texts.items() if text is not None}
        if not found:
            return PartState("missing")
        if found == self._wanted():
            return PartState("installed")
        return PartState("outdated", "its files are another version's, or run a bullswarm elsewhere")

    def install(self, space: Workspace, notes: Notes) -> Notes:
        wanted = self._wanted()
        for path in self._there():
            if path not in wanted:
                space.put(path, None, within=self.folder)
        for path, text in wanted.items():
            space.text(path, mode=OPEN)
            space.put(path, text, within=self.folder)
        return notes

    def remove(self, space: Workspace, notes: Notes) -> None:
        for path in self._there():
            space.put(path, None, within=self.folder)

    def _wanted(self) -> dict[Path, str]:
        return {self.file / name: text for name, text in self.files.items()}

    def _there(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file())

    def _is_agents(self, path: Path) -> bool:
        return path.is_relative_to(self.file) and str(path.relative_to(self.file)).startswith(self.agents_own)
