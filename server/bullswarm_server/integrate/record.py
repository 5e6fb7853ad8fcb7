"""What `integrate` wrote down about the files that it changed, so that `remove` leaves them as they were.

``$BULLSWARM_HOME/integrations.json``: for each file the notes of its parts, the folders that were made for it, the
backups, and the hash of what was written last. It can be lost: then our own text still goes, empty containers stay.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from bullswarm_core.store.home import Home, read_json, write_json
from bullswarm_server.integrate.parts import Notes

SCHEMA_VERSION = "bullswarm.integrations.v1"


class Record:
    """The record of one bullswarm home; changed in memory, written by ``save``."""

    def __init__(self, home: Home) -> None:
        self.file = home.root / "integrations.json"
        document = read_json(self.file, default={})
        files = document.get("files") if isinstance(document, dict) else None
        self._files: dict[str, dict[str, Any]] = files if isinstance(files, dict) else {}

    def notes(self, path: Path, part: str) -> Notes:
        """Return the notes of a part in this file."""
        parts = self._entry(path).get("parts")
        found = parts.get(part) if isinstance(parts, dict) else None
        return dict(found) if isinstance(found, dict) else {}

    def every_folder(self) -> list[Path]:
        """Return the folders that were made for the files, those that are gone again included."""
        return [Path(name) for file in self._files for name in self._list(Path(file), "folders")]

    def backups(self, path: Path) -> list[Path]:
        """Return the backups of this file, the oldest first."""
        return [Path(name) for name in self._list(path, "backups")]

    def wrote(self, path: Path, data: bytes) -> bool:
        """Tell whether these bytes are what bullswarm wrote last: then a backup of what was there exists."""
        return self._entry(path).get("written") == digest(data)

    def keep(
        self, path: Path, parts: dict[str, Notes], *, data: bytes, folders: list[Path], backup: Path | None
    ) -> None:
        """Note what was written to the file."""
        entry = self._files.setdefault(str(path), {})
        entry["parts"] = {**entry.get("parts", {}), **parts}
        entry["folders"] = [*self._list(path, "folders"), *map(str, folders)]
        entry["backups"] = [*self._list(path, "backups"), *([str(backup)] if backup else [])]
        entry["written"] = digest(data)

    def drop(self, path: Path) -> None:
        """Forget the file."""
        self._files.pop(str(path), None)

    def drop_gone(self) -> None:
        """Forget the files that are gone with every folder that was made for them."""
        for file in [Path(name) for name in self._files]:
            if not file.exists() and not any(Path(name).exists() for name in self._list(file, "folders")):
                self.drop(file)

    def save(self) -> None:
        """Write the record; StorageError when the disk refuses."""
        if self._files or self.file.exists():
            write_json(self.file, {"schemaVersion": SCHEMA_VERSION, "files": self._files})

    def _entry(self, path: Path) -> dict[str, Any]:
        entry = self._files.get(str(path))
        return entry if isinstance(entry, dict) else {}

    def _list(self, path: Path, key: str) -> list[str]:
        names = self._entry(path).get(key)
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def digest(data: bytes) -> str:
    """Return the hash by which the record knows a file's bytes."""
    return hashlib.sha256(data).hexdigest()
