"""Writes a plan: each file as a whole, a backup first, all of an agent's files or none of them."""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from pathlib import Path

from bullswarm_core.errors import BullswarmError, StorageError
from bullswarm_server.integrate.errors import IntegrationError
from bullswarm_server.integrate.parts import Notes
from bullswarm_server.integrate.person import PersonsFile, remove_file, remove_folders, replace_file
from bullswarm_server.integrate.plan import Plan
from bullswarm_server.integrate.record import Record
from bullswarm_server.integrate.workspace import Change


def apply_plan(plan: Plan, *, installing: bool, record: Record, now: datetime) -> tuple[Path, ...]:
    """Write the plan's changes and the record of them; return the backups that were made.

    Raises IntegrationError when a file changed since it was read, StorageError when the disk refuses; what was written
    of this agent is taken back then.
    """
    for change in plan.changes:
        _check_unchanged(change.file)
    done: list[tuple[Change, list[Path], Path | None]] = []
    try:
        for change in plan.changes:
            backup = _backed_up(change, record, now=now)
            done.append((change, [], backup))
            done[-1][1].extend(_write(change))
        for change, folders, backup in done:
            _note(change, folders, backup, _notes_of(plan, change), record, installing=installing)
        record.save()
    except (BullswarmError, OSError):
        _take_back(done)
        raise
    changes = [change for change, _, _ in done]
    # A folder is empty only when the last of its files is gone, whichever of them it was made for.
    remove_folders([*record.every_folder(), *(folder for change in changes for folder in change.own_folders)])
    if not installing:
        _clean_up(changes, record)
    return tuple(backup for _, _, backup in done if backup is not None and backup.exists())


def _notes_of(plan: Plan, change: Change) -> dict[str, Notes]:
    return {name: notes for path, name, notes in plan.notes if path == change.file.path}


def _check_unchanged(file: PersonsFile) -> None:
    # Claude Code rewrites its settings all the time: what it wrote since must not be lost.
    try:
        now: bytes | None = file.real.read_bytes()
    except FileNotFoundError:
        now = None
    if now != file.data:
        raise IntegrationError(f"{file.path} was changed by another program just now", hint="run it again")


def _write(change: Change) -> list[Path]:
    if change.data is None:
        remove_file(change.file, [])
        return []
    return replace_file(change.file, change.data)


def _backed_up(change: Change, record: Record, *, now: datetime) -> Path | None:
    """Copy the file beside itself, unless a copy of what it says is there, or bullswarm itself wrote all of it."""
    path, data = change.file.path, change.file.data
    if data is None or change.within is not None or record.wrote(path, data):
        return None
    for old in record.backups(path):
        with contextlib.suppress(OSError):
            if old.read_bytes() == data:
                return None
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        copy = path.with_name(f"{path.name}.bullswarm-backup-{stamp}{suffix}")
        try:
            handle = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, change.file.mode)
        except FileExistsError:
            continue
        except OSError as error:
            raise StorageError(f"cannot write {copy}: {error.strerror or error}; nothing was changed") from error
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        return copy
    raise StorageError(f"{path} has a hundred backups of this second; nothing was changed")


def _note(
    change: Change,
    folders: list[Path],
    backup: Path | None,
    parts: dict[str, Notes],
    record: Record,
    *,
    installing: bool,
) -> None:
    if installing and change.data is not None:
        record.keep(change.file.path, parts, data=change.data, folders=folders, backup=backup)
    elif backup is not None:
        record.keep(change.file.path, {}, data=change.file.data or b"", folders=[], backup=backup)


def _clean_up(changes: list[Change], record: Record) -> None:
    for change in changes:
        _drop_needless_backups(change, record)
        record.drop(change.file.path)
    record.drop_gone()
    record.save()


def _drop_needless_backups(change: Change, record: Record) -> None:
    """Delete the backups that say what the file itself says again."""
    for backup in record.backups(change.file.path):
        with contextlib.suppress(OSError):
            if change.data is not None and backup.read_bytes() == change.data:
                backup.unlink()


def _take_back(done: list[tuple[Change, list[Path], Path | None]]) -> None:
    for change, folders, backup in reversed(done):
        with contextlib.suppress(BullswarmError, OSError):
            if change.file.data is None:
                remove_file(change.file, folders)
            else:
                replace_file(change.file, change.file.data)
            if backup is not None:
                backup.unlink()
