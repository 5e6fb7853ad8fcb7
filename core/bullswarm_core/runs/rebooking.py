"""The place in the ledger of an attempt whose kernel died before it started a worker: anybody may have dropped it since."""

from __future__ import annotations

import sqlite3
from typing import cast

from bullswarm_core import ledger
from bullswarm_core.errors import RunConflictError
from bullswarm_core.pools import Effort, Lane
from bullswarm_core.runs.events import AttemptPicked, RunCreated
from bullswarm_core.runs.folder import AttemptFiles
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.pick import conflict_text, second_writer
from bullswarm_core.runs.services import Services
from bullswarm_core.runs.task import Task
from bullswarm_core.workers.identity import current


def book_again(
    services: Services,
    connection: sqlite3.Connection,
    created: RunCreated,
    picked: AttemptPicked,
    task: Task,
    files: AttemptFiles,
) -> None:
    """Take the attempt's place again, for this kernel; call it in a transaction.

    Raises RunConflictError when another run has come to write in the same tree since.
    """
    now = services.now()
    others = [entry for entry in ledger.live(connection, now=now) if entry.run != created.run_id]
    writer = second_writer(others, task, picked.tree)
    if writer is not None:
        run = Journal(connection).short_id(writer.run)
        raise RunConflictError(conflict_text(writer, picked.tree, run=run))
    booking = ledger.Booking(
        id=picked.booking,
        run=created.run_id,
        step=picked.step,
        attempt=files.id,
        pool=picked.pool,
        lane=cast(Lane, picked.lane),
        effort=cast(Effort, picked.effort),
        started_at=now,
        kernel=current(),
        model=picked.model,
        expected_minutes=picked.expected_minutes,
        cwd=task.cwd,
        task_file=str(files.task),
        out_file=str(files.output),
        tree=picked.tree,
    )
    ledger.book(connection, booking)
