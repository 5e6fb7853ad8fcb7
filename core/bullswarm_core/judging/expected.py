"""What a step of a program has to leave behind, by the type of its deliverable, and what of it is missing by name.

Rule: docs/design/judging.md, "Deliverables". Pure; a `run` has no such step and is judged by its lane alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.program.model import DeliverableType
from bullswarm_core.trees.snapshot import DeliverableFacts

_NAMED = 5
# Written by a worker; everything else is words.
_ON_DISK: tuple[DeliverableType, ...] = ("files", "data", "media")


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a step names, at its end.

    ``changed`` says that its content is not what it was when the step began, ``written`` that it was at least written
    again since.
    """

    path: str
    exists: bool = False
    changed: bool = False
    written: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """The deliverable of a step: its type and the files that it names.

    ``carried``: found over all attempts of the step, since the last one found the work done already.
    """

    type: DeliverableType
    files: tuple[NamedFile, ...] = ()
    carried: bool = False

    @property
    def on_disk(self) -> bool:
        """Whether the deliverable is files, and not words."""
        return self.type in _ON_DISK

    @property
    def written(self) -> tuple[str, ...]:
        """The named files that are there and were written during the step."""
        return tuple(file.path for file in self.files if file.exists and file.written)


def missing_files(wanted: Wanted, made: DeliverableFacts | None) -> tuple[str, ...]:
    """Return the named files for which a deliverable on disk is not there: empty where it is, or where none is named.

    Of data and media every file has to exist and one to be written; of files one has to be changed, or a commit be made.
    """
    if not wanted.on_disk or not wanted.files:
        return ()
    if wanted.type == "files":
        done = any(file.changed for file in wanted.files) or bool(made and made.commits)
        return () if done else tuple(file.path for file in wanted.files)
    absent = tuple(file.path for file in wanted.files if not file.exists)
    return absent if absent or wanted.written else tuple(file.path for file in wanted.files)


def missing_words(wanted: Wanted, made: DeliverableFacts | None) -> str | None:
    """Say what is missing of the named files, in words; None where nothing is."""
    missing = missing_files(wanted, made)
    if not missing:
        return None
    one = len(missing) == 1
    named = _named(missing)
    if wanted.type == "files":
        return f"{named} did not change" if one else f"none of the step's files changed: {named}"
    if any(not file.exists for file in wanted.files):
        return f"{named} {'is' if one else 'are'} missing"
    return f"{named} {'was' if one else 'were'} there already and not written during the step"


def is_there(wanted: Wanted | None, made: DeliverableFacts | None) -> bool:
    """Tell whether work on disk left its deliverable behind; without named files any change or commit will do."""
    if made is not None and made.gone:
        return False
    if wanted is not None and wanted.files:
        return not missing_files(wanted, made)
    return made is not None and made.produced


def _named(paths: Sequence[str]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")
