"""From a call's arguments to a task: its folder, its text, and what is demanded of the pool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bullswarm_core.errors import RunConflictError, UsageError
from bullswarm_server.mcp.arguments import RunArguments, TaskArguments
from bullswarm_server.mcp.session import Call, absolute_file
from bullswarm_server.ops.tasks import Conflict, PreparedTask, TaskRequest, prepare_task, task_file_text


@contextmanager
def prepare(
    call: Call, given: TaskArguments, *, cwd: str | None, prompt: str | None, write_cache: bool
) -> Iterator[PreparedTask]:
    """Check a task against this machine. Raises UsageError for what is wrong; nothing is changed."""
    with prepare_task(call.ops, _request(given, cwd, prompt), write_cache=write_cache) as prepared:
        caller = prepared.caller
        if caller.pool_id is not None and prepared.task.pool == caller.pool_id:
            raise UsageError(
                f"pool {caller.pool_id} is your own ({caller.why}): work given to it would spend the quota that you are"
                " running on",
                hint="leave pool out; bullswarm picks the one with quota to spare",
            )
        yield prepared


def refuse_second_writer(prepared: PreparedTask) -> None:
    """Refuse early, with nothing created, what the kernel would refuse for good inside its transaction."""
    conflict = prepared.conflict()
    if conflict is not None:
        raise second_writer_error(conflict)


def second_writer_error(conflict: Conflict) -> RunConflictError:
    """Return why work can't start beside another run's, with the ways out as calls."""
    booking, run = conflict.booking, conflict.run
    return RunConflictError(
        f"run {run} already writes in {conflict.tree} (a {booking.lane} task on {booking.pool})",
        hint=f'wait for it: run {{"run_id": "{run}"}}, or pass "shared_tree": true',
    )


def absolute_folder(name: str | None) -> str:
    """Return the path of the folder to work in, which is never guessed. Raises UsageError for none and a relative one."""
    if not name:
        raise UsageError("cwd is missing", hint="give the absolute path of the project's folder; it is never guessed")
    return str(absolute_file(name, "cwd"))


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
        from bullswarm_core.answers.schema import checked_schema

        checked_schema(schema, what="answer_schema")


def _request(given: TaskArguments, cwd: str | None, prompt: str | None) -> TaskRequest:
    if given.lane is None:
        raise UsageError("lane is missing", hint="analyze, build or chore")
    more = given if isinstance(given, RunArguments) else None
    return TaskRequest(
        lane=given.lane,
        cwd=cwd,
        prompt=prompt,
        effort=given.effort,
        reasoning=more.reasoning if more else None,
        model=given.model,
        pool=given.pool,
        use_pools=given.use_pools,
        avoid_pools=given.avoid_pools,
        use_providers=given.use_providers,
        avoid_providers=given.avoid_providers,
        independent_of=given.independent_of,
        capabilities=given.capabilities,
        timeout_sec=more.timeout_s if more else None,
        shared_tree=more.shared_tree if more else False,
        answer=more.answer_schema if more else None,
    )
