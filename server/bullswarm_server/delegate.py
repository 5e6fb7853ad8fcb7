"""``python -m bullswarm_server.delegate``: gives one subagent's task to a pool, for the hook that waits for the answer.

The request is one JSON object on standard input: ``{"prompt", "lane", "cwd", "waitSec", "provider"}``; the last is the
calling agent's own. With ``claim`` and ``beginBefore`` (Unix seconds) the caller doesn't wait for ever that it begins: whoever
first makes the folder ``claim`` does the task, this process before it creates the run, or the caller by itself. What happens
is told a JSON line at a time, so that a hook whose time is over still knows whether work was started:

- ``refused``: nothing was started, and ``why``;
- ``created``: the run exists and its kernel starts (``runId``, ``shortId``);
- ``waiting``: the wait is over and the work isn't (``poolLabel``);
- ``ended``: the ``verdict``, whether a worker had ``started``, and the ``answer`` as far as it fits.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullswarm_core.errors import BullswarmError, RunConflictError, StorageError, UsageError
from bullswarm_core.fast.tree import remove_tree
from bullswarm_core.runs.state import RunState
from bullswarm_core.store.home import Home, refuse_foreign

if TYPE_CHECKING:
    from bullswarm_server.ops.context import Context
    from bullswarm_server.ops.tasks import PreparedTask, TaskRequest

Tell = Callable[..., None]
# The hook shows 12,000 characters; a letter takes up to four bytes.
_ANSWER_BYTES = 48_000
_NEVER_STARTED = "never-started"
# A claim is kept far longer than any request may begin, and then cleared away by a later one.
_CLAIM_NAME = "give-"
_CLAIM_KEPT_SEC = 24 * 3600.0


def main() -> int:
    """Serve the one request of standard input."""

    def tell(event: str, **fields: Any) -> None:
        sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
        sys.stdout.flush()

    try:
        request = json.loads(sys.stdin.read())
        home = Home()
        refuse_foreign(home)
        delegate(request, home, with_caller(home, os.environ, request["provider"]), tell=tell)
    except KeyError as error:
        tell("refused", why=f"the request lacks {error}: it holds prompt, lane, cwd, waitSec and provider")
        return 2
    except (BullswarmError, ValueError, TypeError) as error:
        tell("refused", why=str(error))
        return 2
    return 0


def with_caller(home: Home, environ: Mapping[str, str], provider: str) -> Mapping[str, str]:
    """Return the environment with the caller's own pool in it, by the agent that asks and the account that it uses.

    A hook knows for certain which agent calls, and in its environment there may be nothing that tells (Codex), or what
    another agent further up left there.
    """
    from bullswarm_core.pools.caller import NOBODY, find_caller
    from bullswarm_core.process.environment import CALLER_VARIABLE
    from bullswarm_server.ops.services import services_for

    if environ.get(CALLER_VARIABLE, "").strip() == NOBODY:
        return environ
    untold = {name: value for name, value in environ.items() if name != CALLER_VARIABLE}
    profiles = services_for(home, environ).load_profiles()
    caller = find_caller(untold, client_name=provider, profiles=profiles)
    return {**untold, CALLER_VARIABLE: caller.pool_id or provider}


def delegate(request: Mapping[str, Any], home: Home, environ: Mapping[str, str], *, tell: Tell) -> None:
    """Pick, start and await. Raises BullswarmError before anything was created for what is wrong with the request."""
    from bullswarm_server.ops.context import Context
    from bullswarm_server.ops.launch import start_kernel, wait_for
    from bullswarm_server.ops.tasks import prepare_task, record_task

    ctx = Context(home, environ)
    with prepare_task(ctx, task_request(request, ctx), write_cache=True) as prepared:
        why = _why_not(prepared)
        if why is not None:
            tell("refused", why=why)
            return
    claim(request)
    created = record_task(ctx, prepared)
    tell("created", runId=created.run_id, shortId=created.short_id)
    start_kernel(home, created.run_id, environ=environ)
    state = wait_for(home, created.run_id, environ=environ, timeout_sec=float(request["waitSec"]))
    if state.finished is None:
        tell("waiting", poolLabel=_pool_label(state, home))
        return
    verdict = dict(state.finished.verdict)
    answer, whole = _answer(verdict)
    tell(
        "ended", verdict=verdict, started=worker_started(state), answer=answer, answerIsWhole=whole, why=verdict["why"]
    )


def claim(request: Mapping[str, Any]) -> None:
    """Take the task for good, or leave it to the caller for good; a request without a claim is always taken.

    Making a folder is atomic: of two that try only one succeeds. Raises RunConflictError when it is the caller's by now,
    StorageError when nobody can tell.
    """
    if request.get("claim") is None:
        return
    place, now = Path(str(request["claim"])), time.time()
    if now >= float(request["beginBefore"]):
        raise RunConflictError("it took too long to begin", hint="the caller does the task itself")
    _clear_old(place.parent, now)
    try:
        place.mkdir(mode=0o700)
    except FileExistsError as error:
        raise RunConflictError("it took too long to begin", hint="the caller does the task itself") from error
    except OSError as error:
        raise StorageError(f"cannot make {place}: {error.strerror}", hint="check who may write there") from error


def _clear_old(folder: Path, now: float) -> None:
    for old in folder.glob(f"{_CLAIM_NAME}*"):
        try:
            if now - old.lstat().st_mtime > _CLAIM_KEPT_SEC:
                remove_tree(old)
        except OSError:
            continue


def worker_started(state: RunState) -> bool:
    """Tell whether a worker process ever began: from then on the task may have been done in part."""
    launched = (attempt for step in state.steps.values() for attempt in step.attempts if attempt.launched is not None)
    return any(item.finished is None or item.finished.meta.end_reason != _NEVER_STARTED for item in launched)


def task_request(request: Mapping[str, Any], ctx: Context) -> TaskRequest:
    """Return what a hook asks for. Raises UsageError where a value has not its form."""
    from bullswarm_server.ops.tasks import TaskRequest

    prompt, cwd = request["prompt"], request["cwd"]
    if not isinstance(prompt, str) or not prompt.strip():
        raise UsageError("the task is empty", hint="give the words of the task as prompt")
    if not isinstance(cwd, str) or not os.path.isabs(cwd):  # noqa: PTH117 - a text, not yet a path
        raise UsageError(f"the folder {cwd!r} is not absolute", hint="give the session's working folder")
    # A stand-in that no model is behind would be a worse answer than the agent's own subagent.
    profiles = ctx.services().load_profiles()
    stand_ins = [profile.id for profile in profiles if profile.connector.last_resort]
    return TaskRequest(lane=request["lane"], cwd=cwd, prompt=prompt, avoid_pools=stand_ins)


def _why_not(prepared: PreparedTask) -> str | None:
    decision = prepared.decide()
    if decision.pool is None:
        return decision.reason
    conflict = prepared.conflict()
    return conflict.text() if conflict else None


def _pool_label(state: RunState, home: Home) -> str | None:
    from bullswarm_core.pools.labels import Labels

    step = next(iter(state.steps.values()))
    return Labels.load(home).shown(step.current.picked.pool) if step.current else None


def _answer(verdict: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the beginning of the output file and whether that is all of it; the excerpt where there is no file."""
    path = verdict.get("outFile")
    try:
        with Path(str(path)).open("rb") as file:
            data = file.read(_ANSWER_BYTES + 1)
    except OSError:
        return str(verdict.get("excerpt") or ""), False
    return data[:_ANSWER_BYTES].decode("utf-8", "ignore"), len(data) <= _ANSWER_BYTES


if __name__ == "__main__":
    sys.exit(main())
