"""`bullswarm runs delete`: an ended run's journal and files go; what was learned from it stays."""

from __future__ import annotations

import argparse

from bullswarm_core.errors import UnknownNameError
from bullswarm_core.kernel.removal import Size, refuse_unless_over, refuse_worktrees, remove_run, size_of
from bullswarm_core.pools.caller import find_caller
from bullswarm_core.runs.journal import LAST, Journal, RunRow
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.store.database import open_database
from bullswarm_server.cli.context import CommandContext

DELETE_VERSION = "bullswarm.runs-delete.v1"
# Nothing happened: the call lacks the person's word.
_NOT_APPROVED = 2
_UNITS = ("B", "kB", "MB", "GB", "TB")


def delete(options: argparse.Namespace, context: CommandContext) -> int:
    """Delete an ended run, its journal and its files, once it was approved."""
    row = _row_named(options.run_id, context)
    folder = RunFolder.of(context.home, row.run_id)
    with context.ops.reading() as connection:
        assert connection is not None, "there is a row"
        refuse_unless_over(connection, row, folder)
    refuse_worktrees(folder, row.short_id, environ=context.environ)
    if not options.yes:
        held = size_of(folder.path)
        context.note(
            f"run {row.short_id} ({row.outcome or 'damaged'}): {held.files} files, {size_text(held)} in {folder.path}",
            "nothing was deleted · pass --yes to approve",
        )
        return _NOT_APPROVED
    connection = open_database(context.home)
    try:
        gone = remove_run(context.home, connection, row, environ=context.environ)
    finally:
        connection.close()
    if options.json:
        context.print_json(
            {"schemaVersion": DELETE_VERSION, "runId": row.run_id, "shortId": row.short_id, **size_document(gone)}
        )
    else:
        context.print(f"deleted run {row.short_id}: {gone.files} files, {size_text(gone)}")
    return 0


def size_text(size: Size) -> str:
    """Write a number of bytes as people read it."""
    amount, unit = float(size.bytes), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def size_document(size: Size) -> dict[str, int]:
    """Return a size as JSON."""
    return {"files": size.files, "bytes": size.bytes}


def _row_named(name: str, context: CommandContext) -> RunRow:
    """Find a run by its record alone: one whose journal is damaged can be deleted, too."""
    with context.ops.reading() as connection:
        if connection is None:
            raise UnknownNameError(f'unknown run "{name}": nothing has been run in {context.home.root}')
        journal = Journal(connection)
        run_id = journal.find(name, caller=find_caller(context.environ).provider if name == LAST else None)
        return next(row for row in journal.rows() if row.run_id == run_id)
