"""At the start of a session: remember who calls, and tell the model what it could hand over, if there is anything."""

from __future__ import annotations

import os

from bullswarm_core.fast.files import home_folder, write_private
from bullswarm_core.fast.hook_state import FRESH_SEC, USEFUL_SEC
from bullswarm_core.fast.moments import iso_of, span
from bullswarm_core.fast.pool_text import shown, surplus_text, use_text
from bullswarm_hooks import answers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bullswarm_core.fast.hook_state import HookState, Pool, RunInFlight
    from bullswarm_hooks.call import Call

CALLER_SCHEMA = "bullswarm.caller.v1"
_KEPT_SEC = 7 * 86400.0
_KEPT_FILES = 200
_LONGEST_SESSION_ID = 128
_SHOWN_POOLS = 8
_SHOWN_RUNS = 5


def answer(call: Call) -> dict[str, Any] | None:
    """Remember the caller; return the context block, or None when there is nothing to say."""
    remember(call)
    if call.mod_is_loaded() or call.state is None:
        return None
    return answers.context(call.event, block(call.state, call.own_pool, now=call.now))


def block(state: HookState, own: Pool | None, *, now: float) -> str:
    """Return what a session should know of the other pools and of work in flight; empty when that is nothing.

    Numbers that are not fresh come with their age, and after a day they are not told at all.
    """
    pools = [pool for pool in state.pools if pool.ready and pool is not own] if state.age(now) < USEFUL_SEC else []
    runs = [run for run in state.runs if run.alive(now)]
    if not pools and not runs:
        return ""
    lines = [
        'bullswarm can hand a bounded task to another account: bullswarm run --lane analyze|build|chore "the task"'
    ]
    if pools:
        pools.sort(key=lambda pool: (-(pool.surplus or 0.0), pool.id))
        age = state.age(now)
        lines.append("pools by surplus" + (f" (as of {span(age)} ago)" if age > FRESH_SEC else "") + ":")
        lines += [f"- {_pool_line(pool, now)}" for pool in pools[:_SHOWN_POOLS]]
    if runs:
        lines.append("in flight:")
        lines += [f"- {_run_line(run, now)}" for run in runs[:_SHOWN_RUNS]]
    return "\n".join(lines)


def _pool_line(pool: Pool, now: float) -> str:
    return ", ".join((f"{shown(pool.label)}: {surplus_text(pool)}", *use_text(pool, now=now)))


def _run_line(run: RunInFlight, now: float) -> str:
    age = span(now - run.started_at) if run.started_at is not None else "?"
    return f"{shown(run.short_id)} on {shown(run.pool_label)} ({shown(run.lane)}, {age})"


def remember(call: Call) -> None:
    """Write down which CLI and account this session is, for whoever is called from it without its environment."""
    name = call.session
    if (
        not name
        or len(name) > _LONGEST_SESSION_ID
        or name[0] == "."
        or not all(c.isalnum() or c in "._-" for c in name)
    ):
        return
    home = home_folder(call.environ)
    if not os.path.isdir(home):
        return  # bullswarm was never used here, and a hook is no reason to begin
    own = call.own_pool
    folder = os.path.join(home, "cache", "callers")
    document = {
        "schemaVersion": CALLER_SCHEMA,
        "session": name,
        "provider": call.provider,
        "pool": own.id if own else None,
        "configDir": own.config_dir if own else None,
        "cwd": call.text("cwd") or None,
        "pid": os.getppid(),
        "at": iso_of(call.now),
    }
    try:
        write_private(os.path.join(folder, f"{name}.json"), document)
        _prune(folder, call.now)
    except OSError:
        return


def _prune(folder: str, now: float) -> None:
    """Forget sessions of more than a week ago, and the oldest of more than 200."""
    with os.scandir(folder) as found:
        ages = sorted((now - entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in found)
    for place, (age, path) in enumerate(ages):
        if age > _KEPT_SEC or place >= _KEPT_FILES:
            os.unlink(path)
