"""From a call's arguments to a task on this machine: folder, task text, pools by label or id, the caller."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bullswarm_core.database import open_database
from bullswarm_core.errors import RunConflictError, UsageError
from bullswarm_core.runs.pick import look
from bullswarm_core.runs.task import Task
from bullswarm_core.settings import Settings
from bullswarm_server.cli.task_arguments import task_file_text
from bullswarm_server.mcp.arguments import RunArguments, TaskArguments
from bullswarm_server.mcp.session import Call, absolute_file
from bullswarm_server.ops.launch import refuse_home_in_reach
from bullswarm_server.ops.tasks import ANY_TASK, Asked, PoolNames, origin_from, pool_names, providers_of


@contextlib.contextmanager
def asking(call: Call, given: TaskArguments, *, cwd: str, prompt: str | None, write_cache: bool) -> Iterator[Asked]:
    """Check a task against this machine. Raises UsageError for what is wrong; nothing is changed."""
    connection = open_database(call.home, readonly=True)
    try:
        services = call.services(write_cache=write_cache)
        profiles = tuple(services.load_profiles())
        pool_ids = [profile.id for profile in profiles]
        names = pool_names(services, pool_ids, home=call.home, environ=call.machine.environ)
        settings = Settings.load(call.home)
        if given.model is not None and given.model in settings.excluded_models:
            raise UsageError(f"the person excluded the model {given.model}", hint="leave model out, or name another")
        avoided = providers_of(given.independent_of, connection, option="independent_of")
        task = _task(given, cwd, prompt, names, avoided)
        refuse_home_in_reach(call.home, task)
        caller = call.ops.caller(profiles)
        if task.pool is not None and task.pool == caller.pool_id:
            raise UsageError(
                f"pool {task.pool} is your own ({caller.why}): work given to it would spend the quota that you are running on",
                hint="leave pool out; bullswarm picks the one with quota to spare",
            )
        origin = origin_from(caller, settings, call.machine.environ)
        view = look(services, connection, workspace=task.cwd, write_cache=write_cache)
        yield Asked(task, services, view, origin, connection)
    finally:
        if connection is not None:
            connection.close()


def refuse_second_writer(asked: Asked) -> None:
    """Refuse early, with nothing created, what the kernel would refuse for good inside its transaction."""
    conflict = asked.conflict()
    if conflict is not None:
        booking, run = conflict.booking, conflict.run
        raise RunConflictError(
            f"run {run} already writes in {conflict.tree} (a {booking.lane} task on {booking.pool})",
            hint=f'wait for it: run {{"run_id": "{run}"}}, or pass "shared_tree": true',
        )


def working_folder(name: str | None, environ: Mapping[str, str]) -> str:
    """Return the real path of the folder to work in; never guessed.

    Raises UsageError for one that is missing, relative, no folder, the root of the file system, or the person's home.
    """
    if not name:
        raise UsageError("cwd is missing", hint="give the absolute path of the project's folder; it is never guessed")
    folder = absolute_file(name, "cwd")
    if not folder.is_dir():
        raise UsageError(
            f"cwd {name} {'is not a folder' if folder.exists() else 'does not exist'}", hint="give a folder"
        )
    real = os.path.realpath(folder)
    home = environ.get("HOME") or Path("~").expanduser()
    if real == "/" or real == os.path.realpath(home):
        what = "the root of the file system" if real == "/" else "the person's home folder"
        raise UsageError(f"cwd {name} is {what}, no project", hint="give the folder of the project")
    return real


def task_text(given: RunArguments) -> str:
    """Return the words of the task, from ``prompt`` or ``task_file``. Raises UsageError unless exactly one is given."""
    if (given.prompt is None) == (given.task_file is None):
        what = "the task is missing" if given.prompt is None else "the task is given twice"
        raise UsageError(what, hint="give prompt or task_file, one of them")
    if given.prompt is not None:
        return given.prompt
    file = absolute_file(given.task_file or "", "task_file")
    return task_file_text(file, what=f"task_file {file}")


def check_answer_schema(schema: dict[str, Any] | None) -> None:
    """Raise UsageError for an answer schema that no answer can be checked against."""
    if schema is not None:
        from bullswarm_core.judging.answer_schema import checked_schema

        checked_schema(schema, what="answer_schema")


def _task(given: TaskArguments, cwd: str, prompt: str | None, names: PoolNames, independent: tuple[str, ...]) -> Task:
    if given.lane is None:
        raise UsageError("lane is missing", hint="analyze, build or chore")
    more = given if isinstance(given, RunArguments) else None
    return Task(
        prompt=ANY_TASK if prompt is None else prompt,
        lane=given.lane,
        cwd=cwd,
        effort=given.effort,
        reasoning=more.reasoning if more else None,
        model=given.model,
        pool=names.pool(given.pool) if given.pool is not None else None,
        use_pools=tuple(names.pool(name) for name in given.use_pools),
        avoid_pools=tuple(names.pool(name) for name in given.avoid_pools),
        use_providers=tuple(names.provider(name) for name in given.use_providers),
        avoid_providers=tuple(dict.fromkeys((*map(names.provider, given.avoid_providers), *independent))),
        capabilities=tuple(given.capabilities),
        independent_of=tuple(given.independent_of),
        timeout_sec=more.timeout_s if more else None,
        shared_tree=more.shared_tree if more else False,
        answer=more.answer_schema if more else None,
    )
