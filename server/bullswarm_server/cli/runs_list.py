"""`bullswarm runs list`: the newest runs, by the words of their goal and by when they began; it only reads."""

from __future__ import annotations

import argparse
import re
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.pools.labels import Labels
from bullswarm_core.runs.journal import UNREADABLE, Journal, RunRow
from bullswarm_core.runs.run_files import MARKER
from bullswarm_core.wire import parse_iso
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.displays.text import duration, one_line
from bullswarm_server.ops.runs import DAMAGED, LIST_VERSION, row_document

_WHY_LENGTH = 80
_DURATION = r"(?:(\d{1,4})w)?(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?"


def list_runs(options: argparse.Namespace, context: CommandContext) -> int:
    """Print the newest runs, or the newest of those that were asked for, a line each."""
    with context.ops.reading() as connection:
        journal = Journal(connection) if connection else None
        rows = _chosen(journal, options) if journal else []
        documents = [row_document(context.home, journal, row) for row in rows] if journal else []
    foreign = _view_only(context)
    if options.json:
        context.print_json({"schemaVersion": LIST_VERSION, "runs": documents, "viewOnly": foreign})
        return 0
    labels = Labels.load(context.home)
    context.print(*(_row_line(document, labels) for document in documents))
    context.note(*(f"view-only, from another program: {one_line(name)}" for name in foreign))
    if not documents and _is_filtered(options):
        context.note("no run of these · bullswarm runs list shows the newest of all")
    elif not documents:
        context.note('no runs yet · start one: bullswarm run --lane analyze "…"')
    return 0


def moment(text: str, *, now: datetime | None = None) -> datetime:
    """Read the moment from which runs are asked for: a duration back from ``now`` (30m, 24h, 7d, 2w, 1d12h) or ISO-8601.

    A time without an offset is UTC. Raises ArgumentTypeError.
    """
    parts = re.fullmatch(_DURATION, text, re.ASCII)
    if parts is not None and any(parts.groups()):
        weeks, days, hours, minutes = (int(part or 0) for part in parts.groups())
        return (now or utc_now()) - timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes)
    try:
        return parse_iso(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'"{text}" is neither a duration such as 30m, 24h or 7d nor a time such as 2026-03-01T12:00:00Z'
        ) from None


def _is_filtered(options: argparse.Namespace) -> bool:
    return options.name is not None or options.since is not None


def _chosen(journal: Journal, options: argparse.Namespace) -> list[RunRow]:
    if not _is_filtered(options):
        return journal.rows(limit=options.limit)
    words = (options.name or "").casefold()

    def is_meant(row: RunRow) -> bool:
        # When a run with a damaged time began, nobody knows: it is shown rather than lost.
        began = options.since is None or row.created_at == UNREADABLE or row.created_at >= options.since
        return began and words in row.goal.casefold()

    return list(islice(filter(is_meant, journal.rows()), options.limit))


def _row_line(row: dict[str, Any], labels: Labels) -> str:
    age = duration((utc_now() - datetime.fromisoformat(row["createdAt"])).total_seconds() / 60)
    steps = row["steps"]
    pool = labels.shown(row["pool"]) if row["pool"] else (f"{steps['done']}/{steps['all']} steps" if steps else "-")
    most = None if row["state"] == DAMAGED else _WHY_LENGTH
    why = "" if row["ok"] else f" · {one_line(str(row['why']))[:most]}"
    return f"{row['shortId']}  {row['state']:<11} {age:>6} ago  [{one_line(pool)}] {one_line(row['goal'])[:60]}{why}"


def _view_only(context: CommandContext) -> list[str]:
    """Name the entries of the workflows folder that are not ours (another program keeps its runs there, too)."""
    folder = context.home.workflows_dir
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not (entry / MARKER).exists())
