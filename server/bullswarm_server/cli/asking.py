"""From the words of a command line to a task: pools by label or id, the caller, and the providers of earlier work."""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from bullswarm_core.caller import find_caller
from bullswarm_core.database import open_database
from bullswarm_core.errors import UsageError
from bullswarm_core.quota.supposed import parse_meters
from bullswarm_core.runs.pick import look
from bullswarm_core.settings import Settings
from bullswarm_server.cli.context import CommandContext
from bullswarm_server.cli.task_arguments import build_task, read_prompt
from bullswarm_server.ops.launch import refuse_home_in_reach
from bullswarm_server.ops.services import services_for
from bullswarm_server.ops.tasks import ANY_TASK, Asked, origin_from, pool_names, providers_of


@contextmanager
def asking(
    options: argparse.Namespace, context: CommandContext, *, prompt_required: bool, write_cache: bool
) -> Iterator[Asked]:
    """Check a command's arguments against this machine. Raises UsageError for what is wrong; nothing is changed."""
    connection = open_database(context.home, readonly=True)
    try:
        yield _asked(options, context, connection, prompt_required=prompt_required, write_cache=write_cache)
    finally:
        # SQLite takes its own files away only when the connection is closed.
        if connection is not None:
            connection.close()


def _asked(
    options: argparse.Namespace,
    context: CommandContext,
    connection: sqlite3.Connection | None,
    *,
    prompt_required: bool,
    write_cache: bool,
) -> Asked:
    services = services_for(context.home, context.environ, write_cache=write_cache)
    prompt = read_prompt(options) or ("" if prompt_required else ANY_TASK)
    profiles = services.load_profiles()
    pool_ids = [profile.id for profile in profiles]
    names = pool_names(services, pool_ids, home=context.home, environ=context.environ)
    settings = Settings.load(context.home)
    if options.model in settings.excluded_models:
        raise UsageError(
            f"you excluded the model {options.model}", hint="bullswarm strategy include-model takes it back in"
        )
    supposed = parse_meters(getattr(options, "meter", None) or (), now=services.now())
    avoided = providers_of(options.independent_of, connection, option="--independent-of")
    task = build_task(options, prompt=prompt, names=names, avoid_also=avoided)
    refuse_home_in_reach(context.home, task)
    caller = find_caller(context.environ, profiles=profiles)
    origin = origin_from(caller, settings, context.environ)
    return Asked(
        task,
        services,
        look(services, connection, workspace=task.cwd, supposed=supposed, write_cache=write_cache),
        origin,
        connection,
    )
