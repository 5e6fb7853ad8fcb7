"""One attempt as its kernel lives through it: started or taken over, followed, and judged at its end.

The worker belongs to its keeper. All that this object holds could be read again from the keeper's files, and a new kernel
does exactly that.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bullswarm_core.attempts.background import Aside, Result
from bullswarm_core.attempts.closing import Closing, one_more_round
from bullswarm_core.attempts.conclude import Ended, conclude, notice_reader
from bullswarm_core.attempts.conclusion import Conclusion
from bullswarm_core.attempts.isolation import Apart
from bullswarm_core.attempts.pick import book_again
from bullswarm_core.attempts.prepare import Preparation, prepare
from bullswarm_core.attempts.produced import earlier_attempts
from bullswarm_core.attempts.quarantining import note_quarantine
from bullswarm_core.dispatch import ledger
from bullswarm_core.dispatch.services import Services
from bullswarm_core.errors import BullswarmError, RunConflictError, StorageError, WorkerStartError
from bullswarm_core.fast.tree import remove_tree
from bullswarm_core.judging.error_channel import with_channel
from bullswarm_core.judging.limits import early_stop
from bullswarm_core.judging.model import StopKind
from bullswarm_core.judging.verdict import Judgement
from bullswarm_core.keeper.client import read_exit, read_keeper, request_stop, start_keeper
from bullswarm_core.launch.first_start import take_turn
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.process.capture import Follower, Gap
from bullswarm_core.process.child import kill_orphans
from bullswarm_core.process.identity import ProcessIdentity, current, is_alive
from bullswarm_core.program.model import Step
from bullswarm_core.quota.notice import Notice
from bullswarm_core.runs.attempt_result import JudgementRecord, LaunchRecord, MetaRecord
from bullswarm_core.runs.decision_log import record_decision
from bullswarm_core.runs.events import AttemptFinished, AttemptLaunched, AttemptPicked, AttemptTakenOver
from bullswarm_core.runs.journal import Journal
from bullswarm_core.runs.run_files import AttemptFiles, RunFolder
from bullswarm_core.runs.state import AttemptState, RunState
from bullswarm_core.runs.task import step_task
from bullswarm_core.runs.workspace import Workspace, left_in, read_workspace, refuse_another, workspace_of
from bullswarm_core.store.database import transaction
from bullswarm_core.store.home import read_json, write_json
from bullswarm_core.streams.facts import ExitFacts, StreamFacts
from bullswarm_core.streams.reader import StreamReader
from bullswarm_core.streams.stderr import StderrWatch
from bullswarm_core.streams.table import compile_table
from bullswarm_core.wire import parse_iso, to_wire

# Of all that a poll of a quiet worker does, asking the system for its keeper takes the longest (34 of 58 microseconds).
_SIGN_OF_LIFE_SEC = 1.0

# Ends a worker's turn to be the first of its CLI that starts.
EndTurn = Callable[[], None]


class LiveAttempt:
    """Follows one booked attempt to its end; ``ended`` turns True once its process is gone.

    Nothing here waits: what may take long is done aside, and `poll` and `finish` go on once it is; ``wake`` is called then.
    ``say`` is given log lines.
    """

    def __init__(
        self,
        services: Services,
        journal: Journal,
        connection: sqlite3.Connection,
        state: RunState,
        picked: AttemptPicked,
        folder: RunFolder,
        *,
        wake: Callable[[], object],
        say: Callable[[str], None],
    ) -> None:
        self.picked = picked
        self.ended = False
        self._say = say
        self._recorded = False
        self._wake = wake
        self._services = services
        self._journal = journal
        self._connection = connection
        self._state = state
        self._created = state.created
        self._apart = Apart.of(services.home, services.environ, state, picked)
        task = step_task(state, picked.step)
        self._task = replace(task, cwd=self._apart.cwd) if self._apart else task
        self._files: AttemptFiles = folder.attempt(picked.step, picked.ordinal)
        self._profile: PoolProfile | None = services.profile(picked.pool)
        self._keeper: ProcessIdentity | None = None
        self._exit: ExitFacts | None = None
        self._notice: Notice | None = None
        self._asked_to_stop = False
        self._next_sign_of_life = 0.0
        self._launch = LaunchRecord()
        self._workspace: Workspace | None = None
        self._end_turn: EndTurn | None = None
        self._follower: Follower | None = None
        self._reader: StreamReader | None = None
        self._stderr = StderrWatch(self._files.stderr, None)
        self._closing: Closing | None = None
        self._preparing: Aside[tuple[Preparation, EndTurn]] | None = None
        self._concluding: Aside[Conclusion] | None = None
        self._settling: Aside[Conclusion] | None = None

    @property
    def is_preparing(self) -> bool:
        """Whether its worker is still to be launched."""
        return self._preparing is not None

    def start(self) -> None:
        """Prepare the launch; `poll` carries it out."""
        self._preparing = self._aside(self._prepare, "start")

    def _launch_prepared(self, preparing: Aside[tuple[Preparation, EndTurn]]) -> None:
        """Launch the CLI under its keeper. A launch that fails ends the attempt as one that never started."""
        try:
            prepared, self._end_turn = preparing.result()
            launch = prepared.launch_document() | {"workspace": to_wire(self._workspace)}
            self._launch = LaunchRecord.from_wire(launch)
            # A kernel that dies while it starts the keeper leaves the next one this much to know the worker by.
            write_json(self._files.launch, launch)
            keeper = start_keeper(
                prepared.spec, prepared.plan.environment, spec_file=self._files.spec, log_file=self._files.keeper_log
            )
        except RunConflictError:
            raise
        except (BullswarmError, OSError) as error:
            record = read_keeper(self._files.keeper)
            if record is None:
                self._never_started(str(error))
                return
            # Refused, or too slow to be seen, and there it is all the same: the attempt is kept, and by this one.
            keeper = record.keeper
        self._launched(keeper)

    def _launched(self, keeper: ProcessIdentity) -> None:
        self._keeper = keeper
        launched = AttemptLaunched(
            step=self.picked.step,
            ordinal=self.picked.ordinal,
            keeper=keeper.to_json(),
            launch=self._launch,
        )
        with transaction(self._connection):
            self._journal.append(self._created.run_id, [launched], at=self._services.now())
            ledger.set_worker(self._connection, self.picked.booking, keeper)
        self._open_stream()

    def take_over(self, attempt: AttemptState) -> None:
        """Go on with an attempt of a kernel that is gone: re-attach to its keeper, read its record, or say what is lost.

        An attempt that was booked but never launched has done nothing yet, and is started.
        """
        record = read_keeper(self._files.keeper)
        if record is None and attempt.launched is None:
            with transaction(self._connection):
                book_again(self._services, self._connection, self._created, self.picked, self._task, self._files)
            self.start()
            return
        ledger.set_kernel(self._connection, self.picked.booking, current())
        if attempt.launched is not None:
            self._launch = attempt.launched.launch
            self._keeper = record.keeper if record else ProcessIdentity.from_json(attempt.launched.keeper)
            self._open_stream()
        elif record is not None:
            self._launch = LaunchRecord.from_wire(read_json(self._files.launch, default={}))
            self._launched(record.keeper)
        self._workspace = read_workspace(self._launch.workspace)
        alive = self._keeper is not None and is_alive(self._keeper)
        self._exit = read_exit(self._files.exit)
        if self._exit is not None:
            how = "harvested"
        elif alive:
            how = "re-attached"
        else:
            how = "lost"
            self._exit = self._lost()
        self._journal.append(
            self._created.run_id,
            [AttemptTakenOver(step=self.picked.step, ordinal=self.picked.ordinal, how=how)],
            at=self._services.now(),
        )

    def poll(self) -> bool:
        """Read what the worker has written since and see whether it has ended; True when anything was there to read."""
        if self.ended:
            return False
        if self._preparing is not None:
            if not self._preparing.done:
                return False
            preparing, self._preparing = self._preparing, None
            self._launch_prepared(preparing)
            return True
        moved = self._read_stream()
        if moved:
            self._leave_turn()
        if (moved or self._stderr.moved()) and self._notice is None:
            self._stop_on_limit()
        self._exit = self._exit or read_exit(self._files.exit)
        if self._exit is None and self._is_lost():
            # The record is written by rename right before the keeper ends: look once more before believing it lost.
            self._exit = read_exit(self._files.exit) or self._lost()
        self.ended = self._exit is not None
        return moved

    def _is_lost(self) -> bool:
        """Look now and then whether the keeper is gone; one that ends well leaves its record, which is looked for always."""
        now = time.monotonic()
        if self._keeper is None or now < self._next_sign_of_life:
            return False
        self._next_sign_of_life = now + _SIGN_OF_LIFE_SEC
        return not is_alive(self._keeper)

    def ask_to_stop(self, by: str) -> None:
        """Have the keeper stop the worker and everything below it."""
        if not self._asked_to_stop:
            self._asked_to_stop = True
            request_stop(self._files.stop, "stopped", by)

    def finish(self, *, stop: StopKind = "cancelled") -> bool:
        """Judge what the attempt left behind; write its output, its verdict, the ledger and the log in that order.

        ``stop`` is what it means when the worker was stopped on request. Returns True once the attempt is recorded; until
        then it is to be called again.
        """
        assert self._exit is not None, "finish comes after the end"
        home = self._services.home.root
        if not home.is_dir():
            raise StorageError(f"{home} was deleted while the worker was at work", hint="to write would bring it back")
        if self._closing is None:
            self._read_stream()
            self._closing = self._close()
        conclusion = self._closing.poll(lambda: self._concluded(stop), stop=stop if self._asked_to_stop else None)
        if conclusion is not None and self._apart is not None:
            conclusion = self._settled(self._apart, conclusion)
        if conclusion is None:
            return False
        self._record(conclusion)
        self._closing.recorded()
        return True

    def _concluded(self, stop: StopKind) -> Conclusion | None:
        """Return what the worker left behind as it is judged; None while it is looked at."""
        if self._concluding is None:
            ended = self._end(stop)
            self._concluding = self._aside(lambda own: conclude(replace(ended, connection=own)), "conclusion")
        if not self._concluding.done:
            return None
        conclusion, self._concluding = self._concluding.result(), None
        note_quarantine(self._services, self._connection, self.picked.pool, conclusion.judgement, conclusion.notice)
        return conclusion

    def _settled(self, apart: Apart, conclusion: Conclusion) -> Conclusion | None:
        """Return the conclusion with what became of the worktree; None while it is merged."""
        if self._settling is None:
            self._settling = self._aside(lambda _: apart.settle(conclusion, self._workspace), "merge")
        return self._settling.result() if self._settling.done else None

    def _aside(self, work: Callable[[sqlite3.Connection], Result], what: str) -> Aside[Result]:
        return Aside(work, home=self._services.home, name=f"{what} of {self._files.id}", wake=self._wake)

    def _step(self) -> Step | None:
        """Return the step as its program has it; a `run` is judged by its lane alone."""
        return None if self._state.is_single else self._state.program.step(self.picked.step)

    def _close(self) -> Closing:
        step = self._step()
        again = step is not None and one_more_round(self._state.program, step)
        return Closing(self._services, self._files, step, cwd=self._task.cwd, one_more_round=again)

    def _end(self, stop: StopKind) -> Ended:
        assert self._exit is not None, "an end has an exit"
        return Ended(
            services=self._services,
            connection=self._connection,
            state=self._state,
            task=self._task,
            picked=self.picked,
            files=self._files,
            profile=self._profile,
            exit=self._exit,
            stream=self._reader.finish() if self._reader else StreamFacts(),
            notice=self._notice,
            launch=self._launch,
            started_at=self._exit.started_at or self._services.now(),
            stop=stop,
            step=self._step(),
            earlier=earlier_attempts(self._state, self.picked.step, ordinal=self.picked.ordinal),
        )

    def break_off(self, error: Exception) -> None:
        """End the attempt because bullswarm itself failed on it; what the worker wrote stays, and so does a verdict."""
        if self._recorded:
            return
        if self._keeper is not None and is_alive(self._keeper):
            request_stop(self._files.stop, "stopped", "bullswarm failed")
        if self._closing is not None:
            self._closing.break_off()
        if isinstance(error, RunConflictError):
            judgement = Judgement(ok=False, why=str(error), failure_kind="ownership-conflict")
        else:
            words = str(error) if isinstance(error, BullswarmError) else f"{type(error).__name__}: {error}"
            judgement = Judgement(
                ok=False, why=f"bullswarm failed while following this attempt: {words}", failure_kind="runtime"
            )
        broken = Conclusion(judgement=judgement, meta={"pool": self.picked.pool}, output_file=None, parts={})
        self._record(self._apart.settle(broken, None) if self._apart is not None else broken)

    def _leave_turn(self) -> None:
        """Let the next start of this CLI go ahead."""
        if self._end_turn is not None:
            self._end_turn()
            self._end_turn = None

    def _prepare(self, connection: sqlite3.Connection) -> tuple[Preparation, EndTurn]:
        if self._services.missing_secrets:
            names = ", ".join(self._services.missing_secrets)
            raise WorkerStartError(
                f"the environment in which this run was asked for had {names}, and this one has not",
                hint="set it and ask for the work again",
            )
        if self._profile is None:
            raise WorkerStartError(f"pool {self.picked.pool} is gone", hint="bullswarm pools lists what is there")
        # Looked at before the journal is read: whoever made a repository in the meantime is on record by then.
        self._workspace = workspace_of(self._created.cwd)
        refuse_another(Journal(connection).read_on(self._state), self.picked.step, self._workspace)
        if self._apart is not None:
            self._apart.make(self._state)
        prepared = prepare(self._services, connection, self._state, self._task, self.picked, self._files, self._profile)
        return prepared, take_turn(self._services.home, self.picked.pool, prepared.plan.first_start)

    def _never_started(self, why: str) -> None:
        self._exit = ExitFacts(reason="never-started", start_error=why, started_at=self._services.now())
        self.ended = True

    def _open_stream(self) -> None:
        table: dict[str, Any] = self._profile.connector.stream_table() if self._profile else {}
        compiled = compile_table(table) if table else None
        self._reader = StreamReader(compiled)
        self._stderr = StderrWatch(self._files.stderr, compiled)
        self._follower = Follower(self._files.stream if table else self._files.stdout)

    def _read_stream(self) -> bool:
        if self._follower is None or self._reader is None:
            return False
        moved = False
        for piece in self._follower.read():
            moved = True
            if isinstance(piece, Gap):
                self._reader.gap(piece.size)
            else:
                self._reader.feed(piece)
        return moved

    def _stop_on_limit(self) -> None:
        """On a limit notice the attempt is ended at once, even if the CLI would otherwise hang."""
        if self._reader is None or self._profile is None:
            return
        said = self._reader.snapshot()
        stream = with_channel(replace(said, errors=said.errors + self._stderr.errors()))
        reader = notice_reader(self._profile, written_at=self._services.now())
        self._notice = early_stop(stream, reader)
        if self._notice is not None:
            request_stop(self._files.stop, "limit", self._notice.kind)

    def _lost(self) -> ExitFacts:
        record = read_json(self._files.keeper, default={})
        killed = kill_orphans(record)
        began = record.get("startedAt")
        return ExitFacts(
            reason="lost",
            leftovers_killed=killed,
            started_at=parse_iso(began) if began else None,
            ended_at=self._services.now(),
        )

    def _record(self, conclusion: Conclusion) -> None:
        judgement = conclusion.judgement
        finished = AttemptFinished(
            step=self.picked.step,
            ordinal=self.picked.ordinal,
            ok=judgement.ok,
            why=judgement.why,
            failure_kind=judgement.failure_kind,
            judgement=JudgementRecord.from_wire(conclusion.document()),
            meta=MetaRecord.from_wire(conclusion.meta),
            output_file=conclusion.output_file,
            workspace=to_wire(left_in(self._workspace, workspace_of(self._created.cwd))),
        )
        self._leave_turn()
        now = self._services.now()
        with transaction(self._connection):
            self._journal.append(self._created.run_id, [finished], at=now)
            ledger.release(self._connection, self.picked.booking)
            record_decision(self._connection, self._created, self.picked, finished, at=now)
        self._recorded = True
        self._clean_up()

    def _clean_up(self) -> None:
        """Remove what is worth nothing once the verdict is recorded; what stays is logged, and changes no verdict."""
        try:
            problem = remove_tree(self._files.private_tmp)
            if self._apart is not None:
                self._apart.clear()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if problem is not None:
            self._say(f"{self._files.id}: not all scratch files could be removed: {problem}")
