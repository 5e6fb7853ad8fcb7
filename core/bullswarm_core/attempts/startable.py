"""Pools whose CLI must not be started at a task: it would obey the project's settings, or the worker could change the CLI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bullswarm_core.errors import WorkerStartError
from bullswarm_core.launch.project import ProjectGrant, refuse_obedient
from bullswarm_core.launch.trusted_programs import command_places, place_in_reach, program_places
from bullswarm_core.pools.connector import PoolProfile
from bullswarm_core.runs.task import Task


def unstartable(
    profiles: Iterable[PoolProfile], task: Task, *, writable: str, environ: Mapping[str, str], grant: ProjectGrant
) -> dict[str, str]:
    """Return why pools may not take the task, by the pool's id; it reads the project's settings files.

    ``writable`` is the folder that a build or chore may write; ``grant`` says which settings of the project count.
    """
    found = {}
    for profile in profiles:
        if profile.binary is None:
            continue
        why = (
            _obeys(profile, task, grant)
            or _is_writable(profile.binary, task, writable, environ)
            or _holds_our_program(profile, environ)
        )
        if why:
            found[profile.id] = why
    return found


def _obeys(profile: PoolProfile, task: Task, grant: ProjectGrant) -> str | None:
    try:
        refuse_obedient(profile, task.cwd, grant)
    except WorkerStartError as refusal:
        return str(refusal)
    return None


def _is_writable(binary: str, task: Task, writable: str, environ: Mapping[str, str]) -> str | None:
    """Say where a worker could change its own CLI: the next start of that would run what the worker wrote."""
    if task.lane == "analyze":
        return None
    place = place_in_reach(command_places(binary, search_path=environ.get("PATH")), writable)
    if place is None:
        return None
    return f"a {task.lane} worker in {writable} could change its CLI, {place}: install it elsewhere"


def _holds_our_program(profile: PoolProfile, environ: Mapping[str, str]) -> str | None:
    """Say where bullswarm lies in a folder that every worker of this CLI may write, also one that only reads the project."""
    from bullswarm_core.launch.plan import state_paths

    for folder in state_paths(profile, environ):
        place = place_in_reach(program_places(), folder)
        if place is not None:
            return (
                f"a {profile.id} worker, which may write {folder}, could change bullswarm's own program in {place}:"
                " install bullswarm elsewhere"
            )
    return None
