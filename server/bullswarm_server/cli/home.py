"""`bullswarm home`: how much the home holds, and the ended runs that are to go; nothing goes unless it is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import BullswarmError
from bullswarm_core.kernel.removal import (
    Size,
    kept_worktrees,
    orphans,
    prunable,
    refuse_worktrees,
    remove_orphan,
    remove_run,
    size_of,
)
from bullswarm_core.runs.journal import Journal, RunRow
from bullswarm_core.runs.run_files import RunFolder
from bullswarm_core.store.database import open_database
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.help_format import Parser
from bullswarm_server.cli.runs_deleting import size_document, size_text

STATUS_VERSION = "bullswarm.home-status.v1"
PRUNE_VERSION = "bullswarm.home-prune.v1"
DEFAULT_DAYS = 30
MOST_DAYS = 36_500


def run(arguments: list[str], context: CommandContext) -> int:
    """Carry out one operation on the home."""
    options = _parser().parse_args(arguments)
    operation: Callable[[argparse.Namespace, CommandContext], int] = options.operation
    return operation(options, context)


def _status(options: argparse.Namespace, context: CommandContext) -> int:
    root = context.home.root
    with context.ops.reading() as connection:
        rows = Journal(connection).rows() if connection else []
        old = prunable(connection, before=_moment(DEFAULT_DAYS)) if connection else []
        left = orphans(context.home, connection, now=utc_now())
    ended = [row for row in rows if row.finished_at is not None]
    folders = [RunFolder.of(context.home, row.run_id) for row in rows]
    kept = [tree for folder in folders for tree in kept_worktrees(folder, environ=context.environ)]
    parts = {"all": size_of(root), "runs": size_of(context.home.workflows_dir), "database": _database(context)}
    if options.json:
        context.print_json(
            {
                "schemaVersion": STATUS_VERSION,
                "home": str(root),
                "sizes": {name: size_document(size) for name, size in parts.items()},
                "runs": {"ended": len(ended), "notOver": len(rows) - len(ended)},
                "prunable": {"days": DEFAULT_DAYS, "runs": len(old), "leftFolders": len(left)},
                "worktrees": [str(tree) for tree in kept],
            }
        )
        return 0
    context.print(f"home: {root} ({size_text(parts['all'])} in {parts['all'].files} files)")
    context.print(f"runs: {len(ended)} ended, {len(rows) - len(ended)} not over · {size_text(parts['runs'])}")
    context.print(f"database: {size_text(parts['database'])}")
    context.print(*(f"worktree, perhaps with unmerged work: {tree}" for tree in kept))
    context.print(f"ended more than {DEFAULT_DAYS} days ago: {len(old)} · see: bullswarm home prune --dry-run")
    return 0


def _prune(options: argparse.Namespace, context: CommandContext) -> int:
    before = _moment(options.days)
    with context.ops.reading() as connection:
        rows = prunable(connection, before=before) if connection else []
        left = orphans(context.home, connection, now=utc_now())
    work = [*(_Entry(row.short_id, _folder(context, row), row) for row in rows), *(_Entry(f.name, f) for f in left)]
    gone: list[tuple[_Entry, Size]] = []
    kept: list[tuple[_Entry, str]] = []
    for entry in work:
        try:
            gone.append((entry, _seen(entry, context) if options.dry_run else _removed(entry, context)))
        except BullswarmError as error:
            kept.append((entry, str(error)))
    _say(options, context, gone, kept)
    return 1 if kept else 0


@dataclass(frozen=True, slots=True)
class _Entry:
    """Something that may go: an ended run, or a folder that no run has any more."""

    name: str
    folder: Path
    row: RunRow | None = None


def _seen(entry: _Entry, context: CommandContext) -> Size:
    """Say what would go, by the same checks as if it went."""
    refuse_worktrees(RunFolder(entry.folder), entry.name, environ=context.environ)
    return size_of(entry.folder)


def _removed(entry: _Entry, context: CommandContext) -> Size:
    if entry.row is None:
        return remove_orphan(entry.folder, environ=context.environ)
    connection = open_database(context.home)
    try:
        return remove_run(context.home, connection, entry.row, environ=context.environ)
    finally:
        connection.close()


def _say(
    options: argparse.Namespace,
    context: CommandContext,
    gone: list[tuple[_Entry, Size]],
    kept: list[tuple[_Entry, str]],
) -> None:
    total = Size()
    for _, size in gone:
        total = total.plus(size)
    if options.json:
        context.print_json(
            {
                "schemaVersion": PRUNE_VERSION,
                "dryRun": options.dry_run,
                "days": options.days,
                "removed": [{"name": entry.name, **size_document(size)} for entry, size in gone],
                "kept": [{"name": entry.name, "why": why} for entry, why in kept],
                **size_document(total),
            }
        )
        return
    verb = "would go" if options.dry_run else "deleted"
    context.print(*(f"{verb}: {entry.name} · {size_text(size)}" for entry, size in gone))
    context.note(*(f"kept: {why}" for _, why in kept))
    noun = "run" if len(gone) == 1 else "runs"
    context.print(f"{verb}: {len(gone)} {noun} that ended more than {options.days} days ago, {size_text(total)}")


def _folder(context: CommandContext, row: RunRow) -> Path:
    return RunFolder.of(context.home, row.run_id).path


def _database(context: CommandContext) -> Size:
    file, total = context.home.database_file, Size()
    for path in (file, file.with_name(f"{file.name}-wal")):
        if path.is_file():
            total = total.plus(Size(1, path.stat().st_size))
    return total


def _moment(days: int) -> datetime:
    return utc_now() - timedelta(days=days)


def _days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text[:9]) > MOST_DAYS:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of days from 0 to {MOST_DAYS}')
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bullswarm home", description="What bullswarm's home holds, and the ended runs that are to go."
    )
    verbs: Any = parser.add_subparsers(required=True, metavar="OPERATION")
    text = "how much it holds; changes nothing"
    status = verbs.add_parser("status", help=text, description=text)
    status.set_defaults(operation=_status)
    text = "delete ended runs, their journals and files; never one that is not over or keeps a worktree; what was learned stays"
    prune = verbs.add_parser("prune", help=text, description=text)
    prune.set_defaults(operation=_prune)
    prune.add_argument(
        "--days", type=_days, default=DEFAULT_DAYS, metavar="N",
        help=f"those that ended more than N days ago (default: {DEFAULT_DAYS})",
    )  # fmt: skip
    prune.add_argument("--dry-run", action="store_true", help="say what would go; delete nothing")
    for verb in (status, prune):
        verb.add_argument("--json", action="store_true", help="print one JSON document")
    return parser
