"""Steering what was started: stop, resume and wait for any run; continue, pause, steer, add and step for workflows.

Each wish is checked against the run as it is, and either all of it happens or nothing (exit 2). A run whose kernel is gone, or
which is at rest, is given one.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from bullswarm_core.dispatch.services import utc_now
from bullswarm_core.errors import UnknownNameError, UsageError
from bullswarm_core.kernel.liveness import KernelState, kernel_state
from bullswarm_core.pools.caller import find_caller
from bullswarm_core.reports import commands
from bullswarm_core.runs import intents
from bullswarm_core.runs.state import RunState
from bullswarm_core.runs.status import OVER, STUCK, answer_of, statuses
from bullswarm_core.store.database import open_database
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.run import follow
from bullswarm_server.cli.runs_reading import print_run, state_named
from bullswarm_server.cli.workflow_program import read_document
from bullswarm_server.ops.launch import request_stop, wait_for
from bullswarm_server.ops.runs import act, document_of, refuse_own_worker
from bullswarm_server.ops.tasks import names_of_pools
from bullswarm_server.ops.workflows import refuse_additions

WAIT_VERSION = "bullswarm.workflow-wait.v1"
ACT_VERSION = "bullswarm.workflow-act.v1"
_EXIT_STILL_RUNNING = 2


def stop(options: argparse.Namespace, context: CommandContext) -> int:
    """Stop a run's work and print what came of it; one that has ended is only shown."""
    state = state_named(options.run_id, context)
    if state.finished is not None:
        context.note(f"run {state.created.short_id} has ended: there is nothing to stop")
    else:
        refuse_own_worker(state, context.environ)
        connection = open_database(context.home)
        try:
            request_stop(context.home, connection, state, by="bullswarm runs stop", now=utc_now())
        finally:
            connection.close()
        # With the kernel gone, or the run at rest, nobody would carry the stop out: `follow` starts one that does.
    return 0 if follow(context, state.created.run_id, as_json=options.json) in (0, 1) else 1


def resume(options: argparse.Namespace, context: CommandContext) -> int:
    """Go on with a run: after a lost kernel, after a pause, or, when a workflow is over, with what may end otherwise."""
    state = state_named(options.run_id, context)
    if not state.is_single:
        after = act(
            context.home, state.created.run_id, intents.resume(by=who(context)), environ=context.environ, now=utc_now()
        )
        if options.foreground and after.parked is None:
            return follow(context, state.created.run_id, as_json=options.json)
        if options.watch and after.parked is None:
            return follow_live(context, after.created.short_id, after=state.seq, as_json=options.json)
        if after.parked is not None:
            print_run(context, after, as_json=options.json)
            return 1
        return _said(options, context, after, "the run goes on")
    if state.finished is not None:
        context.note(f"run {state.created.short_id} has ended: there is nothing to resume")
    elif kernel_state(context.home, state, now=utc_now()) is not KernelState.GONE:
        context.note(f"run {state.created.short_id} is driven by a living kernel: waiting for it")
    # `follow` starts a kernel where none is.
    return follow(context, state.created.run_id, as_json=options.json)


def wait(options: argparse.Namespace, context: CommandContext) -> int:
    """Wait for a run's verdict, for where it waits for somebody, or until the named steps, gates and loops are settled."""
    state = state_named(options.run_id, context)
    if not options.names:
        return follow(context, state.created.run_id, as_json=options.json, timeout_sec=options.timeout)
    unknown = [name for name in options.names if name not in state.plan.order]
    if unknown:
        raise UnknownNameError(
            f'"{unknown[0]}" is no step, gate or loop of run {state.created.short_id}',
            hint=f"it has {', '.join(state.plan.order)}",
        )
    after = wait_for(
        context.home, state.created.run_id, environ=context.environ, timeout_sec=options.timeout,
        enough=lambda now: _settled(now, options.names),
    )  # fmt: skip
    _print_wait(options, context, after)
    known = statuses(after)
    if _settled(after, options.names):
        return 0 if all(known[name] in OVER for name in options.names) else 1
    return 1 if after.finished or after.parked else _EXIT_STILL_RUNNING


def go_on(options: argparse.Namespace, context: CommandContext) -> int:
    """Open a waiting gate, or give a loop that is out of rounds more of them, or leave it unmet."""
    wish = intents.continue_node(options.node, rounds=options.rounds, by=who(context))
    return _act(options, context, wish, f"{options.node} continued")


def pause(options: argparse.Namespace, context: CommandContext) -> int:
    """Start nothing more; with ``--now`` also stop what runs, to begin anew later."""
    wish = intents.pause(at_once=options.now, by=who(context))
    return _act(options, context, wish, "pausing at once" if options.now else "pausing when what runs is done")


def steer(options: argparse.Namespace, context: CommandContext) -> int:
    """Leave a message for whoever watches the run; it stops nothing."""
    return _act(options, context, intents.steer(options.message, by=who(context)), "the message is queued")


def add(options: argparse.Namespace, context: CommandContext) -> int:
    """Let the program grow by new steps, gates and loops; what is there stays as it is."""
    state = state_named(options.run_id, context)
    fragment = _fragment(options, state)
    refuse_additions(context.ops, state, fragment)
    added = ", ".join(
        str(item.get("id"))
        for part in ("steps", "gates", "loops")
        for item in (fragment.get(part) or () if isinstance(fragment, Mapping) else ())
        if isinstance(item, Mapping)
    )
    return _act(options, context, intents.add(fragment, by=who(context)), f"added {added}")


def rerun(options: argparse.Namespace, context: CommandContext) -> int:
    """Begin a step anew, kept from some pools for good."""
    wanted = [name.strip() for names in options.avoid for name in names.split(",") if name.strip()]
    names = names_of_pools(context.ops) if wanted else None
    avoid = [names.pool(name) for name in wanted] if names else []
    return _act(
        options, context, intents.rerun(options.step, avoid=avoid, by=who(context)), f"{options.step} begins anew"
    )


def accept(options: argparse.Namespace, context: CommandContext) -> int:
    """Take a failed step's work as it is: a choice with its reason, never a proof."""
    wish = intents.accept(options.step, reason=options.reason, by=who(context))
    return _act(options, context, wish, f"{options.step} is accepted by choice")


def restart(options: argparse.Namespace, context: CommandContext) -> int:
    """Stop a step's running worker and begin the step anew."""
    pool = names_of_pools(context.ops).pool(options.pool) if options.pool is not None else None
    wish = intents.restart(options.step, pool=pool, by=who(context))
    return _act(options, context, wish, f"{options.step} is stopped and begins anew")


def follow_live(context: CommandContext, run_id: str, *, after: int, as_json: bool) -> int:
    """Follow a run as `workflow watch` does, from behind event ``after``; Ctrl-C leaves it running."""
    from bullswarm_server.cli.workflow import run as workflow

    return workflow(["watch", run_id, "--after", str(after), *(["--jsonl"] if as_json else [])], context)


def who(context: CommandContext) -> str:
    """Name who wishes: the calling agent, or a person."""
    return find_caller(context.environ).provider or "a person"


def _act(options: argparse.Namespace, context: CommandContext, wish: intents.Wish, done: str) -> int:
    state = state_named(options.run_id, context)
    after = act(context.home, state.created.run_id, wish, environ=context.environ, now=utc_now())
    return _said(options, context, after, done)


def _said(options: argparse.Namespace, context: CommandContext, state: RunState, done: str) -> int:
    short, status = state.created.short_id, _status(context, state)
    follow_up = {"wait": commands.wait(short), "show": commands.show(short), "cancel": commands.stop(short)}
    if options.json:
        context.print_json(
            {
                "schemaVersion": ACT_VERSION,
                "runId": state.created.run_id,
                "shortId": short,
                "done": done,
                "status": status,
                "next": follow_up,
            }
        )
    else:
        # A wait for a run that is at rest returns at once.
        following = commands.resume(short) if status == "paused" else follow_up["wait"]
        context.print(f"✓ {done} · run {short} is {status}", f"next: {following}")
    return 0


def _status(context: CommandContext, state: RunState) -> str:
    # A kernel that was only just started has not said so yet.
    status = str(document_of(context.home, state)["status"])
    return "running" if status == "kernel-gone" else status


def _settled(state: RunState, names: list[str]) -> bool:
    known = statuses(state)
    return all(known[name] in OVER or known[name] in STUCK for name in names)


def _print_wait(options: argparse.Namespace, context: CommandContext, state: RunState) -> None:
    whole = document_of(context.home, state)
    if state.is_single or not options.json:
        print_run(context, state, as_json=options.json)
        return
    parts = {
        part: [node for node in whole[part] if node["id"] in options.names] for part in ("steps", "gates", "loops")
    }
    head = {key: whole[key] for key in ("runId", "shortId", "status", "reason")}
    context.print_json({"schemaVersion": WAIT_VERSION, **head, "settled": _settled(state, options.names), **parts})


def _fragment(options: argparse.Namespace, state: RunState) -> Any:
    if options.from_answer is None:
        return read_document(options.steps, what="--steps")
    step = state.steps.get(options.from_answer)
    if step is None:
        raise UnknownNameError(
            f'"{options.from_answer}" is no step of run {state.created.short_id}',
            hint=f"steps: {', '.join(state.steps)}",
        )
    answer = answer_of(step)
    if answer is None:
        raise UsageError(f"step {options.from_answer} has no typed answer", hint="give the steps with --steps FILE")
    return answer
