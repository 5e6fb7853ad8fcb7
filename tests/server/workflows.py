"""Workflows on scripted workers: how a test starts one, waits for it, and carries wishes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.server.site import ANSWER, Site

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.runs.intents import Wish, carry_out
from bullswarm_core.runs.state import RunState
from bullswarm_server.ops.launch import Origin, create_workflow, start_kernel, wait_for

# Answers, fails, writes, or waits, as the prompt says.
ACTOR = f"""p=$(cat)
case "$p" in
  *"FAIL"*) echo 'boom' >&2; exit 3;;
  *"WAIT"*) n=0; while [ ! -e go ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done; echo '{ANSWER}';;
  *"WRITE"*) f=$(printf '%s' "$p" | sed -n 's/.*WRITE \\([a-z.]*\\).*/\\1/p'); echo made >> "$f"; echo '{ANSWER}';;
  *"DONE"*) echo '{{"done": true}}';;
  *"MORE"*) if [ -e enough ]; then echo '{{"done": true}}'; else touch enough; echo '{{"done": false}}'; fi;;
  *) echo '{ANSWER}';;
esac"""
TYPED = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}


def begin(site: Site, program: Mapping[str, Any], **options: Any) -> str:
    run_id = record(site, program, **options)
    start_kernel(site.home, run_id, environ=site.environ)
    return run_id


def record(site: Site, program: Mapping[str, Any], **options: Any) -> str:
    """Record a workflow that no kernel has seen yet."""
    with site.database() as connection:
        created = create_workflow(
            site.home, connection, program, goal="the goal", cwd=str(site.project), options=options, environ=site.environ,
            origin=Origin(), now=utc_now(),
        )  # fmt: skip
    return created.run_id


def ended(site: Site, run_id: str) -> RunState:
    state = wait_for(site.home, run_id, environ=site.environ, timeout_sec=60)
    assert state.finished is not None or state.parked is not None, site.newest_events()
    return state


def wish(site: Site, run_id: str, wanted: Wish) -> None:
    with site.database() as connection:
        carry_out(connection, run_id, wanted, now=utc_now())


def go_on(site: Site, run_id: str, wanted: Wish) -> RunState:
    """Carry a wish out on a run without a kernel, and drive it on."""
    wish(site, run_id, wanted)
    start_kernel(site.home, run_id, environ=site.environ)
    return ended(site, run_id)


def result(state: RunState) -> dict[str, Any]:
    assert state.finished is not None
    return dict(state.finished.verdict)


def statuses(state: RunState) -> dict[str, str]:
    return {step["id"]: step["status"] for step in result(state)["steps"]}
