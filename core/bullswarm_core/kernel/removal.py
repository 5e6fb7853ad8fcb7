"""Takes ended runs away: their journal and their files. What was learned from them, the decisions, stays.

Never a run that is not over, and never a worktree from which anything would be lost: what a writer made in one and nobody
merged would be gone with it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.errors import RunConflictError, StateError, StorageError, UsageError
from bullswarm_core.fast.files import open_ordinary
from bullswarm_core.fast.tree import Entry, remove_tree, walk
from bullswarm_core.kernel.liveness import kernel_lease
from bullswarm_core.process.identity import ProcessIdentity, is_alive
from bullswarm_core.runs.journal import Journal, RunRow
from bullswarm_core.runs.run_files import MARKER, RunFolder
from bullswarm_core.store.database import transaction
from bullswarm_core.store.home import Home, read_json
from bullswarm_core.trees.worktree import remove_spent, unmerged, worktrees

# A run's folder is made an instant before its record; a day is far beyond any launch that is still under way.
_ORPHANED_AFTER = timedelta(days=1)
# Worktrees stand right below the run's folder or one folder deeper; what a worker built may be deep and large.
_DEPTH = 3
# A path; whatever is longer is not what git wrote.
_LONGEST_LINK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Size:
    """How much a folder holds."""

    files: int = 0
    bytes: int = 0

    def plus(self, other: Size) -> Size:
        """Return the two together."""
        return Size(self.files + other.files, self.bytes + other.bytes)


def remove_run(
    home: Home, connection: sqlite3.Connection, row: RunRow, *, environ: Mapping[str, str] = os.environ
) -> Size:
    """Delete an ended run and say how much it held; also one that can't be ended, since its journal is damaged.

    Raises UsageError for one that is not over or keeps a worktree with work, RunConflictError when a kernel drives it,
    StorageError when a file can't be deleted; what is left of the files then goes with the next ``home prune``.
    """
    folder = RunFolder.of(home, row.run_id)
    refuse_unless_over(connection, row, folder)
    refuse_worktrees(folder, row.short_id, environ=environ)
    with _nobody_drives(folder):
        _spend_worktrees(folder, row.short_id, environ)
        _remove_record(connection, row)
        return _remove_folder(folder.path)


def refuse_unless_over(connection: sqlite3.Connection, row: RunRow, folder: RunFolder) -> None:
    """Raise UsageError for a run without a result, unless its journal is damaged and nothing of it runs any more."""
    if row.finished_at is not None:
        return
    if not _is_damaged(connection, row):
        raise UsageError(
            f"run {row.short_id} is not over: only ended runs are deleted",
            hint=f"end it first: bullswarm runs stop {row.short_id}",
        )
    if alive := _living_keepers(folder):
        raise UsageError(
            f"the journal of run {row.short_id} is damaged, but a worker of it is still at work",
            hint=f"wait for its end, or end its keeper first: kill {alive[0]}",
        )


def _is_damaged(connection: sqlite3.Connection, row: RunRow) -> bool:
    try:
        Journal(connection).state(row.run_id)
    except StateError:
        return True
    return False


def _living_keepers(folder: RunFolder) -> list[int]:
    """Return the processes that look after a worker of the run, by the files that they leave."""
    found = []
    for file in sorted(folder.path.glob("attempt-*.keeper.json")):
        try:
            keeper = ProcessIdentity.from_json(read_json(file, default={}).get("keeper"))
        except StateError:
            continue
        if keeper is not None and is_alive(keeper):
            found.append(keeper.pid)
    return found


def refuse_worktrees(folder: RunFolder, name: str, *, environ: Mapping[str, str] = os.environ) -> None:
    """Raise UsageError when a worktree of the run holds unmerged work, with the way to look at it and to let it go."""
    left = kept_worktrees(folder, environ=environ)
    if left:
        raise UsageError(
            f"run {name} keeps a worktree that may hold unmerged work: {', '.join(map(str, left))}",
            hint=f"take what you need, then: git -C {left[0]} worktree remove --force {left[0]}",
        )


def kept_worktrees(folder: RunFolder, *, environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the worktrees in a run's folder whose removal would lose something, and those of which nobody can tell."""
    judged = {each.path for each in worktrees(folder.path, environ)}
    strange = [each for each in worktrees_in(folder.path) if each not in judged]
    return sorted({*unmerged(folder.path, environ), *strange})


def worktrees_in(folder: Path) -> list[Path]:
    """Return the git worktrees below a run's folder: folders with a ``.git`` file that leads to a repository elsewhere."""
    found: list[Path] = []

    def is_worktree(entry: Entry) -> bool:
        if entry.kind != "folder" or not _leads_to_worktree(folder / entry.path / ".git"):
            return False
        found.append(folder / entry.path)
        return True

    if _leads_to_worktree(folder / ".git"):
        return [folder]
    for _ in walk(folder, max_depth=_DEPTH, skip=is_worktree):
        pass
    return sorted(found)


def prunable(connection: sqlite3.Connection, *, before: datetime) -> list[RunRow]:
    """Return the runs that ended before a moment, oldest first."""
    rows = Journal(connection).rows()
    return [row for row in reversed(rows) if row.finished_at is not None and row.finished_at < before]


def orphans(home: Home, connection: sqlite3.Connection | None, *, now: datetime) -> list[Path]:
    """Return folders of ours that no run has any more: what a deletion that was cut short has left."""
    if not home.workflows_dir.is_dir():
        return []
    known = {row.run_id for row in Journal(connection).rows()} if connection else set()
    oldest = (now - _ORPHANED_AFTER).timestamp()
    return sorted(
        path
        for path in home.workflows_dir.iterdir()
        if path.name not in known and (path / MARKER).is_file() and (path / MARKER).stat().st_mtime < oldest
    )


def remove_orphan(folder: Path, *, environ: Mapping[str, str] = os.environ) -> Size:
    """Delete a folder that no run has; one with unmerged work is refused as a run's is."""
    refuse_worktrees(RunFolder(folder), folder.name, environ=environ)
    with _nobody_drives(RunFolder(folder)):
        _spend_worktrees(RunFolder(folder), folder.name, environ)
        return _remove_folder(folder)


def size_of(folder: Path) -> Size:
    """Count the files below a folder and their bytes; links are not followed, and what vanishes meanwhile counts nothing."""
    files = size = 0
    for entry in walk(folder):
        status = entry.stat() if entry.kind != "folder" else None
        if status is not None:
            files, size = files + 1, size + status.st_size
    return Size(files, size)


def _spend_worktrees(folder: RunFolder, name: str, environ: Mapping[str, str]) -> None:
    """Let git forget the worktrees of which all is merged; what somebody put into one meanwhile keeps the run."""
    if remove_spent(folder.path, environ):
        refuse_worktrees(folder, name, environ=environ)
        raise StorageError(f"a worktree of run {name} could not be removed", hint="try again")


def _remove_record(connection: sqlite3.Connection, row: RunRow) -> None:
    with transaction(connection):
        found = connection.execute("SELECT finished_at FROM runs WHERE id = ?", (row.run_id,)).fetchone()
        if found is not None and found[0] is None and not _is_damaged(connection, row):
            raise UsageError(f"run {row.short_id} has been taken up again", hint="delete it when it is over")
        connection.execute("DELETE FROM events WHERE run = ?", (row.run_id,))
        connection.execute("DELETE FROM runs WHERE id = ?", (row.run_id,))


def _remove_folder(path: Path) -> Size:
    if path.is_symlink():
        # The person keeps what it leads to elsewhere: the link is ours, the rest is theirs.
        path.unlink(missing_ok=True)
        return Size()
    if not (path / MARKER).is_file():
        return Size()
    held = size_of(path)
    # The marker goes last: a deletion that is cut short leaves a folder that is still known to be ours.
    try:
        first = [entry for entry in sorted(path.iterdir()) if entry.name != MARKER]
    except OSError as error:
        raise _undeleted(f"{path}: {error.strerror}") from error
    for entry in [*first, path]:
        if (problem := remove_tree(entry)) is not None:
            raise _undeleted(problem)
    return held


def _undeleted(problem: str) -> StorageError:
    return StorageError(f"cannot delete {problem}", hint="`bullswarm home prune` tries again")


@contextmanager
def _nobody_drives(folder: RunFolder) -> Iterator[None]:
    """Hold the run's lease, so that no kernel takes it up meanwhile; a folder that is gone has none."""
    if not folder.path.is_dir():
        yield
        return
    try:
        with kernel_lease(folder):
            yield
    except RunConflictError as error:
        raise RunConflictError(f"a kernel still drives run {folder.path.name}", hint="try again in a moment") from error


def _leads_to_worktree(file: Path) -> bool:
    try:
        with open_ordinary(file) as opened:
            return b"/worktrees/" in opened.read(_LONGEST_LINK)
    except OSError:
        return False
