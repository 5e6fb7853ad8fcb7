"""The texts of the person's files while an integration is planned: read once, changed in memory, nothing written."""

from __future__ import annotations

from pathlib import Path

from bullswarm_core._dataclasses import dataclass
from bullswarm_server.integrate.errors import IntegrationError, TextError
from bullswarm_server.integrate.person import PersonsFile, check_writable, read

# What may hold a key is made for its owner only; what is only read by agents is made as editors make it.
PRIVATE, OPEN = 0o600, 0o644


@dataclass(frozen=True, slots=True)
class Change:
    """One file that is to change: as it was read, and its new text (None: it goes).

    ``within`` is a folder above it that is bullswarm's own: it needs no backups, and goes with the last of its files.
    """

    file: PersonsFile
    text: str | None
    within: Path | None = None

    @property
    def own_folders(self) -> tuple[Path, ...]:
        """The folders around a file that goes which are bullswarm's own."""
        if self.within is None or self.text is not None:
            return ()
        return tuple(folder for folder in self.file.path.parents if folder.is_relative_to(self.within))

    @property
    def data(self) -> bytes | None:
        """The new bytes; None when the file goes."""
        return None if self.text is None else self.file.encoded(self.text)


class Workspace:
    """Files by path; ``roots`` are the folders that links may lead into."""

    def __init__(self, roots: tuple[Path, ...]) -> None:
        self.roots = roots
        self._files: dict[Path, PersonsFile] = {}
        self._texts: dict[Path, str | None] = {}
        self._within: dict[Path, Path] = {}

    def text(self, path: Path, *, mode: int = PRIVATE) -> str | None:
        """Return the text as it would be now; None without a file. Raises IntegrationError where it can't be read."""
        if path not in self._texts:
            file = read(path, roots=self.roots, new_mode=mode)
            self._files[path] = file
            self._texts[path] = file.text
        return self._texts[path]

    def put(self, path: Path, text: str | None, *, within: Path | None = None) -> None:
        """Change the text, in memory only; raise IntegrationError for a file that can't be written.

        ``within`` is a folder above it that is bullswarm's own, whoever made it.
        """
        if within is not None:
            self._within[path] = within
        if text != self.text(path):
            check_writable(self._files[path])
            self._texts[path] = text

    def changes(self) -> tuple[Change, ...]:
        """Return every file whose text is another now than on disk."""
        return tuple(
            Change(file, self._texts[path], self._within.get(path))
            for path, file in self._files.items()
            if file.text != self._texts[path]
        )


def in_file(path: Path, error: TextError) -> IntegrationError:
    """Name the file and the line of what can't be read or edited in it."""
    where = f"{path} line {error.line}" if error.line is not None else f"{path}"
    return IntegrationError(f"{where}: {error.message}", hint="correct it by hand, then try again; nothing was written")
