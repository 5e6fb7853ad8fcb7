"""Whose files these are: the home, the agents' folders in it, and how a file of it is read and replaced."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import StorageError
from bullswarm_server.integrate.errors import IntegrationError

_BOM = b"\xef\xbb\xbf"
# What the agents, and bullswarm for its copy of the mod, take their folders from.
_FOLDER_VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "GROK_HOME", "BULLSWARM_HOME")
_WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Person:
    """The home and the environment that say where each agent keeps its settings."""

    home: Path
    environ: Mapping[str, str]

    def folder(self, variable: str, otherwise: str) -> Path:
        """Return the folder that the environment names, else the usual one below the home."""
        named = self.environ.get(variable, "")
        return Path(os.path.abspath(self._expanded(named))) if named else self.home / otherwise  # noqa: PTH100 - keeps links

    @property
    def roots(self) -> tuple[Path, ...]:
        """Where bullswarm may write: in the home, and in the settings folders that the environment names."""
        named = [name for name in _FOLDER_VARIABLES if self.environ.get(name)]
        return (self.home, *(self.folder(name, "") for name in named))

    def _expanded(self, path: str) -> str:
        return str(self.home / path[2:]) if path.startswith("~/") else path

    def shown(self, path: Path) -> str:
        """Return the path as people write it."""
        return f"~/{path.relative_to(self.home)}" if path.is_relative_to(self.home) else str(path)


@dataclass(frozen=True, slots=True)
class PersonsFile:
    """A text file as it was read. ``data`` is None where there is no file; ``real`` is what a link leads to."""

    path: Path
    real: Path
    data: bytes | None
    mode: int

    @property
    def text(self) -> str | None:
        """The text without a byte order mark, its line ends as they are."""
        return None if self.data is None else self.data.removeprefix(_BOM).decode("utf-8")

    def encoded(self, text: str) -> bytes:
        """Return a new text as bytes, with the byte order mark that the file had."""
        mark = _BOM if self.data is not None and self.data.startswith(_BOM) else b""
        return mark + text.encode("utf-8", "surrogatepass")


def read(path: Path, *, roots: tuple[Path, ...], new_mode: int) -> PersonsFile:
    """Read one file; IntegrationError where it is no plain UTF-8 text, or a link leads out of ``roots``."""
    real = Path(os.path.realpath(path))
    if not any(real.is_relative_to(os.path.realpath(root)) for root in roots):
        raise IntegrationError(
            f"{path} leads to {real}, outside your home",
            hint="bullswarm writes nothing there; set this agent up by hand",
        )
    try:
        data = real.read_bytes()
        mode = stat.S_IMODE(real.stat().st_mode)
    except FileNotFoundError:
        return PersonsFile(path, real, None, new_mode)
    except OSError as error:
        raise IntegrationError(
            f"cannot read {path}: {error.strerror or error}", hint="make it a file that you may read"
        ) from error
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise IntegrationError(
            f"{path} line {line}: bytes that are not UTF-8", hint="correct it by hand first"
        ) from error
    return PersonsFile(path, real, data, mode)


def check_writable(file: PersonsFile) -> None:
    """Raise IntegrationError for a file that its owner made read-only; a rename would not respect that."""
    if file.data is not None and (not file.mode & _WRITE_BITS or not os.access(file.real, os.W_OK)):
        raise IntegrationError(f"{file.path} is read-only", hint=f"chmod u+w {file.path}, then try again")


def replace_file(file: PersonsFile, data: bytes) -> list[Path]:
    """Replace the file as a whole, its mode and a link to it kept; return the folders that were made for it.

    Raises StorageError when the disk refuses; the old file is unchanged then.
    """
    made = make_folders(file.real.parent)
    temporary = file.real.parent / f".{file.real.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, file.mode)
        with os.fdopen(handle, "wb") as opened:
            os.fchmod(opened.fileno(), file.mode)
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(file.real)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        remove_folders(made)
        raise _refused(file.path, error) from error
    return made


def remove_file(file: PersonsFile, folders: list[Path]) -> None:
    """Delete the file, and of these folders the ones that are empty then, the deepest first."""
    try:
        # Through a link: the link itself is the person's.
        file.real.unlink(missing_ok=True)
    except OSError as error:
        raise _refused(file.path, error) from error
    remove_folders(folders)


def make_folders(folder: Path) -> list[Path]:
    """Make the folder and those above it that are missing; return the new ones, the outermost first."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    missing.reverse()
    for position, new in enumerate(missing):
        try:
            new.mkdir()
        except OSError as error:
            remove_folders(missing[:position])
            raise _refused(new, error) from error
    return missing


def remove_folders(folders: list[Path]) -> None:
    """Remove those of the folders that are empty, the deepest first."""
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        try:
            folder.rmdir()
        except OSError:
            continue


def _refused(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"cannot write {path}: {error.strerror or error}", hint="check who may write there, and the disk"
    )
