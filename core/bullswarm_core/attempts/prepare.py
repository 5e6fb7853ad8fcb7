"""Everything that is on disk before a worker starts: its task, its own temp folder, the tree as it was, the launch plan.

With its clocks: how long the worker may be silent, idle or slow before its keeper stops it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from bullswarm_core._dataclasses import dataclass
from bullswarm_core.attempts.collect_answer import remove_draft
from bullswarm_core.attempts.produced import named_files
from bullswarm_core.dispatch.services import Services
from bullswarm_core.errors import UsageError
from bullswarm_core.keeper.clocks import Clocks
from bullswarm_core.keeper.spec import KeeperSpec
from bullswarm_core.launch.plan import LaunchPlan, plan_launch, shown_command
from bullswarm_core.launch.project import ProjectGrant, project_grant
from bullswarm_core.launch.state_folders import listing
from bullswarm_core.launch.structured_output import AnswerSchema
from bullswarm_core.launch.tamper import fingerprints
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.pools.model import Lane, Rung, writes
from bullswarm_core.pools.settings import PoolChoice, Settings
from bullswarm_core.process.confinement import can_confine
from bullswarm_core.prompts.attachments import without_attachments
from bullswarm_core.prompts.handoff import Prior, prior_attempt, read_prior
from bullswarm_core.prompts.rules import answer_rules, task_text
from bullswarm_core.prompts.step import StepFacts, StepText, step_text
from bullswarm_core.quota.durations import TimeBox, box_history, free_pool_silence_sec, time_box, wall_seconds
from bullswarm_core.routing import Decision
from bullswarm_core.runs.events import AttemptPicked, RunCreated
from bullswarm_core.runs.run_files import AttemptFiles, RunFolder
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.task import RUN_STEP, Task
from bullswarm_core.store.home import make_folder, write_bytes_atomic
from bullswarm_core.trees.snapshot import remember
from bullswarm_core.wire import to_wire


@dataclass(frozen=True, slots=True)
class Preparation:
    """A start that only has to be carried out. ``box`` and ``written`` are of a workflow's step."""

    plan: LaunchPlan
    spec: KeeperSpec
    sandbox: str
    box: TimeBox | None = None
    written: StepText | None = None

    def launch_document(self) -> dict[str, Any]:
        """Return what the journal keeps of the launch; nothing in it is secret."""
        return {
            "command": shown_command(self.plan),
            "confinement": self.plan.confinement_kind,
            "sandbox": self.sandbox,
            "billing": self.plan.billing,
            "model": self.plan.model,
            "reasoning": to_wire(self.plan.reasoning),
            "notes": list(self.plan.notes),
            "clocks": self.spec.to_json()["clocks"],
            "guarded": fingerprints(self.plan.guarded),
            "structuredOutput": self.plan.structured,
            **self._of_step(),
        }

    def _of_step(self) -> dict[str, Any]:
        if self.written is None:
            return {}
        handed = self.written.handoff_from
        return {
            "timeBox": to_wire(self.box),
            "handoff": {"from": handed, "bytes": self.written.handoff_bytes} if handed else None,
        }


def prepare(
    services: Services,
    connection: sqlite3.Connection,
    state: RunState,
    task: Task,
    picked: AttemptPicked,
    files: AttemptFiles,
    profile: PoolProfile,
) -> Preparation:
    """Write the task, remember the tree, and plan the launch of an attempt. Raises BullswarmError when it can't start."""
    settings = Settings.load(services.home)
    choice = settings.pool(picked.pool)
    make_folder(files.private_tmp)
    may_commit, rules = choice.sandbox == "full", _answer_rules(task, files)
    box, written = None, None
    if state.is_single:
        text = task_text(task.prompt, lane=task.lane, cwd=task.cwd, may_commit=may_commit, answer_rules=rules)
    else:
        box = _time_box(services, connection, state, picked)
        prior = _prior(services, state, picked, RunFolder(files.folder))
        facts = StepFacts(state, picked, task, files, may_commit, prior=prior, box=box, answer_rules=rules)
        written = step_text(facts)
        text = written.text
    write_bytes_atomic(files.task, text.encode("utf-8", "surrogateescape"))
    rung = Rung(
        model=picked.model, reasoning=picked.reasoning, source=picked.rung_source, level_source=picked.level_source
    )
    grant = project_grant(settings.project_settings, state.created.cwd)
    plan = _plan(services, profile, choice, task, rung, files, grant)
    given = text
    if plan.instructions is not None and plan.instructions_in_task:
        given = f"{plan.instructions}\n\nYour task:\n\n{text}"
    elif plan.instructions is not None:
        write_bytes_atomic(files.instructions, plan.instructions.encode("utf-8", "surrogateescape"))
    if profile.connector.launch.attaches_files:
        given = without_attachments(given)
    if given != text:
        write_bytes_atomic(files.task, given.encode("utf-8", "surrogateescape"))
    named = () if state.is_single else named_files(state.program.step(picked.step), task.cwd)
    remember(files.before, task.cwd, home=services.home, environ=plan.environment, declared=named)
    state_before = listing(plan.state, home=plan.environment.get("HOME", ""))
    write_bytes_atomic(files.state_before, json.dumps(state_before).encode("utf-8", "surrogateescape"))
    clocks = _clocks(services, connection, picked, profile, task)
    spec = _spec(state.created, picked, files, plan, clocks)
    return Preparation(plan=plan, spec=spec, sandbox=choice.sandbox, box=box, written=written)


def preview(services: Services, settings: Settings, task: Task, decision: Decision) -> str:
    """Return the exact command that a pick would run, without preparing anything; the file names are examples."""
    profile = services.profile(decision.pool or "")
    if profile is None or decision.rung is None:
        return ""
    files = RunFolder.of(services.home, "RUN").attempt(RUN_STEP, 1)
    rung = task.asked_of(decision.rung)
    grant = project_grant(settings.project_settings, task.cwd)
    return shown_command(_plan(services, profile, settings.pool(profile.id), task, rung, files, grant))


def _plan(
    services: Services,
    profile: PoolProfile,
    choice: PoolChoice,
    task: Task,
    rung: Rung,
    files: AttemptFiles,
    grant: ProjectGrant,
) -> LaunchPlan:
    return plan_launch(
        profile,
        rung=rung,
        lane=task.lane,
        cwd=task.cwd,
        prompt_file=str(files.task),
        private_tmp=str(files.private_tmp),
        environ=services.environ,
        sandbox=choice.sandbox,
        inherit_config=choice.worker_inherits_config,
        can_confine=can_confine(),
        answer=_answer_schema(task, files),
        instructions_file=str(files.instructions),
        grant=grant,
    )


def _answer_schema(task: Task, files: AttemptFiles) -> AnswerSchema | None:
    return None if task.answer is None else AnswerSchema(task.answer, str(files.answer_schema))


def _answer_rules(task: Task, files: AttemptFiles) -> str | None:
    """Ready the place of a typed answer, and say how the worker gives it."""
    schema = _answer_schema(task, files)
    if schema is None:
        return None
    write_bytes_atomic(files.answer_schema, schema.text.encode())
    # An earlier start of this attempt that came to nothing may have left a file; no answer is older than its worker.
    remove_draft(files.answer_draft)
    return answer_rules(schema.schema, draft=str(files.answer_draft) if writes(task.lane) else None)


def _time_box(
    services: Services, connection: sqlite3.Connection, state: RunState, picked: AttemptPicked
) -> TimeBox | None:
    history = box_history(connection, pool=picked.pool, lane=picked.lane, effort=picked.effort)
    return time_box(state.program.step(picked.step).time_box, history, start=services.now())


def _prior(services: Services, state: RunState, picked: AttemptPicked, folder: RunFolder) -> Prior | None:
    """Read the attempt that is handed over, by the table of the CLI that made it."""
    attempt = prior_attempt(state, picked)
    if attempt is None:
        return None
    profile = services.profile(attempt.picked.pool)
    table = profile.connector.stream_table() if profile else {}
    return read_prior(attempt, folder.attempt(picked.step, attempt.picked.ordinal), table)


def _clocks(
    services: Services, connection: sqlite3.Connection, picked: AttemptPicked, profile: PoolProfile, task: Task
) -> Clocks:
    wanted = profile.connector.launch.clocks
    own_runs = wall_seconds(connection, effort=task.tier, pool=picked.pool)
    return worker_clocks(
        lane=task.lane,
        environ=services.environ,
        wall_sec=task.timeout_sec,
        free_silence_sec=free_pool_silence_sec(own_runs) if picked.free else None,
        startup_sec=wanted.startup_sec,
        silence_sec=wanted.silence_sec,
        terminal_grace_sec=wanted.terminal_grace_sec,
    )


def _spec(
    created: RunCreated, picked: AttemptPicked, files: AttemptFiles, plan: LaunchPlan, clocks: Clocks
) -> KeeperSpec:
    return KeeperSpec(
        attempt=f"{created.run_id}/{files.id}",
        argv=plan.argv,
        cwd=plan.cwd,
        stdin_file=plan.stdin_file,
        stdout_file=str(files.stream if plan.stream else files.stdout),
        stderr_file=str(files.stderr),
        keeper_file=str(files.keeper),
        exit_file=str(files.exit),
        stop_file=str(files.stop),
        lock_file=str(files.lock),
        clocks=clocks,
        terminal=plan.terminal,
        watch_tree=picked.tree if picked.lane != "analyze" else None,
        writable=plan.confinement.writable if plan.confinement else None,
    )


# A long build or test run prints and changes nothing for many minutes; an hour of that is a hang.
SILENCE_SEC = 3600.0
NO_PROGRESS_SEC = 3600.0
# A CLI that has said its last word needs a moment to save its session, not more.
TERMINAL_GRACE_SEC = 5.0
TERM_GRACE_SEC = 2.0


def worker_clocks(
    *,
    lane: Lane,
    environ: Mapping[str, str],
    wall_sec: float | None = None,
    free_silence_sec: float | None = None,
    startup_sec: float | None = None,
    silence_sec: float | None = None,
    terminal_grace_sec: float | None = None,
) -> Clocks:
    """Return the clocks of an attempt; 0 is off. The silence clock bounds the start-up too.

    ``free_silence_sec`` is what a free pool is granted by its own record (`quota.durations`), None for a metered one or too
    short a record; the other values are what the connector asks for. The environment overrides all of them:
    ``BULLSWARM_WORKER_STARTUP_SEC``, ``BULLSWARM_WORKER_SILENCE_SEC`` and ``BULLSWARM_WORKER_NO_PROGRESS_SEC``, 0 for off.
    Only a lane that writes has a no-progress clock. Raises UsageError when one of the variables is no number of seconds.
    """
    silence = free_silence_sec or silence_sec or SILENCE_SEC
    silence_clock = _override(environ, "BULLSWARM_WORKER_SILENCE_SEC", silence)
    no_progress = _override(environ, "BULLSWARM_WORKER_NO_PROGRESS_SEC", NO_PROGRESS_SEC)
    return Clocks(
        startup_sec=_override(environ, "BULLSWARM_WORKER_STARTUP_SEC", startup_sec or 0.0),
        silence_sec=silence_clock,
        no_progress_sec=0.0 if lane == "analyze" else no_progress,
        wall_sec=wall_sec,
        terminal_grace_sec=terminal_grace_sec or TERMINAL_GRACE_SEC,
        term_grace_sec=TERM_GRACE_SEC,
    )


def _override(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name)
    if text is None or text == "":
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(f'{name} is "{text}"', hint="give a number of seconds, 0 to turn the clock off")
    return seconds
