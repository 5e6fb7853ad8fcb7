"""The kernel process: `python -m bullswarm_server.kernel RUN` drives one run, detached from whoever launched it."""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime

from bullswarm_core.errors import BullswarmError, RunConflictError
from bullswarm_core.store.home import Home


def main(arguments: list[str] | None = None) -> int:
    """Drive the run named by the only argument; everything said goes to standard error, which is the kernel's log."""
    words = sys.argv[1:] if arguments is None else arguments
    if len(words) != 1:
        _say("usage: python -m bullswarm_server.kernel RUN")
        return 2
    # A terminal that closes or a Ctrl-C there must not reach the work; a stop is an event of the journal.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return _drive(words[0])
    except RunConflictError as error:
        _say(str(error))
        return 0
    except BullswarmError as error:
        _say(str(error))
        return error.exit_code


def _drive(run_id: str) -> int:
    from bullswarm_core._dataclasses import replace
    from bullswarm_core.kernel.engine import drive
    from bullswarm_core.process.saved_environment import SavedEnvironment, restore
    from bullswarm_core.runs.journal import Folds, Journal
    from bullswarm_core.store.database import open_database
    from bullswarm_server.hook_state import refresh
    from bullswarm_server.notify import Notifier
    from bullswarm_server.ops.launch import ROOT_VARIABLE
    from bullswarm_server.ops.services import services_for
    from bullswarm_server.report import write_at_end

    home = Home()
    connection = open_database(home)
    try:
        journal = Journal(connection)
        seen = journal.state(run_id)
        created = seen.created
        saved = SavedEnvironment(dict(created.environment), created.secret_names)
        environ, missing = restore(saved, os.environ)
        # Work that this run's worker delegates in turn belongs to the same root task, whose total is limited.
        environ[ROOT_VARIABLE] = created.root or run_id
        services = services_for(home, environ, missing_secrets=missing)
        folds = Folds()
        notifier = Notifier(home, seen, environ=environ, say=_say)

        def load_changed() -> None:
            nonlocal seen
            refresh(home, environ, keep_unseen=True, folds=folds)
            seen = journal.read_on(seen)
            notifier.look(seen)

        state = drive(replace(services, load_changed=load_changed), connection, run_id, say=_say)
        # The verdict came after the last change of the load.
        refresh(home, environ, keep_unseen=True, folds=folds)
        notifier.rest(state)
    finally:
        connection.close()
    write_at_end(home, state, say=_say)
    _say(f"run {run_id}: {state.finished.outcome if state.finished else 'unfinished'}")
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
