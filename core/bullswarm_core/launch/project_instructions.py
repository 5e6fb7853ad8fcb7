"""A project's instruction files, read by bullswarm for a CLI that is kept from everything else of the project.

The files come from anybody: a link may lead out of the repository, a pipe never ends, an import may go in circles. What is
read is bounded, and nothing outside of the repository is handed over because a file in it says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.launch.project_settings import files_in, files_named, places_above, repository_root

# About 60,000 tokens: the CLIs themselves warn of instructions that are a sixth of this.
LARGEST_BYTES = 256 * 1024
# As far as the CLI follows imports of imports.
_IMPORT_DEPTH = 5
_IMPORT = re.compile(r"(?:^|(?<=\s))@((?:[^\s\\`]|\\ )+)", re.MULTILINE)
# What a CLI that imports from anywhere takes for an import, in code or not.
_ANY_IMPORT = re.compile(r"(?:^|(?<=\s))@(\S+)", re.MULTILINE)
_CODE = re.compile(r"^(```|~~~).*?^\1[^\n]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Instructions:
    """What a project's instruction files say, as one text (empty without any), and what was left out of it and why."""

    text: str = ""
    left_out: tuple[str, ...] = ()


def read_instructions(
    folder: str,
    groups: Sequence[Sequence[str]],
    *,
    above_repository: bool = False,
    besides: Iterable[str] = (),
) -> Instructions:
    """Read the instruction files for work in ``folder``: those of the folders around it first; never raises.

    Only the names of the first of ``groups`` that has any file count; ``folder/`` names each ``.md`` in it. With
    ``above_repository`` those in the folders around the repository count as well, where they belong to the person or to
    root; they import nothing. What lies in one of the folders ``besides`` is the person's own, which the CLI reads itself.
    """
    start, root = Path(os.path.realpath(folder)), Path(repository_root(folder))
    reading = _Reading(root, besides)
    places = [each for each in reversed([start, *start.parents]) if above_repository or each.is_relative_to(root)]
    for names in groups:
        for path in (path for place in places for name in names for path in _named(place, name)):
            reading.add(path)
        if reading.seen:
            break
    return Instructions("\n\n".join(reading.parts), tuple(reading.left_out))


def leading_out(
    folder: str, patterns: Sequence[str], *, besides: Iterable[str] = (), imports: bool = False, person_root: str = ""
) -> str | None:
    """Return the first instruction file for work in ``folder`` that leads out of the repository, None without any.

    It is a link, lies in a folder that is one, or, with ``imports``, imports a file from elsewhere. ``person_root`` is the
    repository of which this one is a copy. A folder with more files than anybody would read counts as well. Never raises.
    """
    root = Path(repository_root(folder))
    own = tuple(os.path.realpath(each) for each in besides if each)
    for place in places_above(folder) if patterns else ():
        within = [str(root) if place.is_relative_to(root) else str(place), *([person_root] if person_root else [])]
        for path in (path for pattern in patterns for path in files_named(place, pattern)):
            real = Path(os.path.realpath(path))
            if any(real.is_relative_to(each) for each in own):
                continue
            if (
                not _is_within(real, within)
                or (path.is_dir() and not path.is_symlink())
                or (imports and _imports_from_elsewhere(path, within, depth=_IMPORT_DEPTH))
            ):
                return os.path.relpath(path, root)
    return None


def _is_within(real: Path, folders: Iterable[str]) -> bool:
    return any(real.is_relative_to(each) for each in folders)


def _imports_from_elsewhere(path: Path, within: Sequence[str], *, depth: int) -> bool:
    try:
        with open_ordinary(path) as file:
            text = file.read(LARGEST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return False
    for match in _ANY_IMPORT.finditer(text):
        name = os.path.expanduser(match[1]) if match[1].startswith("~/") else match[1]  # noqa: PTH111 - never fails
        imported = path.parent / name
        if "\0" in name or not _is_there(imported):
            continue
        if not _is_within(Path(os.path.realpath(imported)), within):
            return True
        if depth > 1 and _imports_from_elsewhere(imported, within, depth=depth - 1):
            return True
    return False


def _is_there(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except (OSError, ValueError):
        return False


class _Reading:
    """Collects the text of files, each once."""

    def __init__(self, root: Path, besides: Iterable[str]) -> None:
        self._root = root
        self._besides = tuple(os.path.realpath(each) for each in besides if each)
        self.seen: set[Path] = set()
        self._room = LARGEST_BYTES
        self.parts: list[str] = []
        self.left_out: list[str] = []

    def add(self, path: Path, *, depth: int = 0) -> None:
        real = Path(os.path.realpath(path))
        if real in self.seen or any(real.is_relative_to(each) for each in self._besides):
            return
        self.seen.add(real)
        inside = depth > 0 or path.is_relative_to(self._root)
        text = self._read(path, real, inside=inside)
        if text is None:
            return
        self.parts.append(f"Contents of {path} (project instructions):\n\n{text.strip()}")
        if inside and depth < _IMPORT_DEPTH:
            for imported in _imports(text, path.parent):
                if os.path.lexists(imported) and not imported.is_dir():
                    self.add(imported, depth=depth + 1)

    def _read(self, path: Path, real: Path, *, inside: bool) -> str | None:
        if inside and not real.is_relative_to(self._root):
            self.left_out.append(f"{path}: it leads out of the repository")
            return None
        try:
            with open_ordinary(real) as file:
                owner = os.fstat(file.fileno()).st_uid
                data = file.read(self._room + 1)
        except (OSError, ValueError) as error:
            self.left_out.append(f"{path}: {getattr(error, 'strerror', None) or error}")
            return None
        if not inside and owner not in (0, os.geteuid()):
            self.left_out.append(f"{path}: it belongs to another user")
            return None
        if len(data) > self._room:
            self.left_out.append(f"{path}: the instructions together are larger than {LARGEST_BYTES} bytes")
            return None
        self._room -= len(data)
        return data.decode("utf-8", "replace").replace("\0", "")


def _named(place: Path, name: str) -> Iterator[Path]:
    """Give the files that ``name`` means at one place; those of a folder in order."""
    path = place / name.rstrip("/")
    if not name.endswith("/"):
        if os.path.lexists(path) and not path.is_dir():  # a link that leads nowhere, too
            yield path
    elif path.is_dir() and not path.is_symlink():
        yield from (each for each in files_in(path) if each.suffix == ".md")


def _imports(text: str, folder: Path) -> Iterable[Path]:
    """Find each ``@path`` outside of code, but for those that start at the home."""
    for match in _IMPORT.finditer(_CODE.sub("", text)):
        name = match[1].replace("\\ ", " ").rstrip(".,;:)")
        if name and "\0" not in name and not name.startswith("~"):
            yield folder / name
